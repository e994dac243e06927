"""Captures that wait on this machine's disk for the service: bounded, safe from crashes, shared by processes.

    spool/                       0700, its owner's alone
      .lock, .tidy               see `room`
      <fingerprint>/             the captures of one service and key, a `Folder`

A client reads and uploads only what was kept for its own service and key, so tenants do not mix. A notice
promised each capture that is here. So if a new one would exceed the bound, the new one is refused.
"""

from __future__ import annotations

import functools
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overspill.spools import location, own_directory
from overspill.spools.folder import Folder
from overspill.spools.location import FINGERPRINT, fingerprint
from overspill.spools.partition import LONG_LOCK_TIMEOUT_SECONDS, Partition
from overspill.spools.room import Room

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.live.ports import Description
    from overspill.text.body import Body
    from overspill.transfer.client import Client
    from overspill.transfer.sync import SyncClient


class Spool:
    """The spool in `directory`: outputs that wait on this machine's disk for the service.

    The default is `OVERSPILL_SPOOL`, else `overspill/spool` in the user's state directory. It takes at most
    `max_bytes` of the disk; the default is `OVERSPILL_SPOOL_BYTES`, else 1 GiB. Nothing is created before the
    first use. `clock` gives seconds since the epoch. Safe to use from any number of threads and processes.
    Raises `ValueError` if `max_bytes` or `OVERSPILL_SPOOL_BYTES` is not a size.

    Example: `Guard(client, spool=Spool("/var/spool/agent", max_bytes=10_000_000_000))`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not (max_bytes is None or (isinstance(max_bytes, (int, float)) and max_bytes >= 0)):
            raise ValueError(f"max_bytes must be 0 or more, not {max_bytes!r}")
        self.path: Path = Path(os.path.abspath(location.directory() if directory is None else directory))  # noqa: PTH100
        self.max_bytes: int = location.max_bytes() if max_bytes is None else max_bytes
        self.clock = clock
        self.room: Room = Room(self.path, self.max_bytes, folders=self._folders, clock=clock)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), max_bytes=self.max_bytes, clock=self.clock), (self.path,)

    def __repr__(self) -> str:
        return f"Spool({str(self.path)!r})"

    @classmethod
    def default(cls) -> Spool | None:
        """Return the spool that the environment names, or None if `OVERSPILL_SPOOL` is `off`."""
        return None if location.is_off() else cls()

    def partition(self, url: str, key: str) -> Partition:
        """Return the part that belongs to one service and key."""
        return Partition(self, Folder(self.path / fingerprint(url, key)), url)

    def partitions(self) -> list[Partition]:
        """Return the parts of all services and keys. Raises `NotSpooled` if the directory is not safe."""
        if not self.exists():
            return []
        names = sorted(name for name in os.listdir(self.path) if FINGERPRINT.fullmatch(name))  # noqa: PTH208
        return [Partition(self, Folder(self.path / name)) for name in names]

    def keep_stream(
        self, description: Description, body: Body, *, url: str, key: str, reason: str, producer: str
    ) -> None:
        """Keep a stream that the service could not take as it came: see `StreamSpool`."""
        partition = self.partition(url, key)
        partition.keep_body(
            description, body, reason, producer=producer, lock_timeout=LONG_LOCK_TIMEOUT_SECONDS
        )

    def used(self) -> int:
        """Count the bytes that captures take of the disk. Raises `NotSpooled` and `OSError`."""
        return sum(folder.stock().size for folder in self._folders())

    def exists(self) -> bool:
        """Return whether the directory is there. Raises `NotSpooled` if it is not safe to use."""
        return own_directory.exists(self.path)

    def make(self) -> None:
        """Create the directory if it is not there. Raises `NotSpooled` and `OSError`."""
        if not self.exists():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
            self.exists()

    def _folders(self) -> list[Folder]:
        return [partition.folder for partition in self.partitions() if partition.exists()]


def partition_for(client: Client | SyncClient | None, spool: Spool | bool = True) -> Partition | None:  # noqa: FBT001, FBT002
    """Return the part of the spool that belongs to a client's service and key, or None if there is no spool.

    `spool=True` is the spool that the environment names, if there is a client; False is none. Raises
    `TypeError` for anything else that is not a spool, and `ValueError` if a variable of the environment has a
    wrong value.
    """
    if not isinstance(spool, (Spool, bool, type(None))):
        hint = "; a folder is Spool(folder)" if isinstance(spool, (str, os.PathLike)) else ""
        raise TypeError(f"spool must be a Spool, a Workspace, True or False, not {spool!r}{hint}")
    usual = Spool.default() if spool is True and client is not None else None
    found = usual if isinstance(spool, bool) else spool
    if found is None:
        return None
    return (
        found.partition("", "") if client is None else found.partition(client.address.url, client.address.key)
    )
