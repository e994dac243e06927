"""Remembers, for all processes of this machine, that a service took an output and did not answer.

    .away    in a folder: when the next try is due, since when the service fails, and why

So if a service accepts connections and hangs, one process waits for it, and no other does for some seconds.
Then one of them tries again. Nothing here raises: if it cannot be remembered, another process waits too.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from overspill.errors.client_errors import NotSpooled
from overspill.spools import files

if TYPE_CHECKING:
    from overspill.spools.partition import Partition

_NAME: Final = ".away"
_LONGEST: Final = 60.0
"""A next try that is further away, in seconds, is ignored: a clock may have been set back."""
_MAX_BYTES: Final = 4096


class Away(Struct, frozen=True):
    """`next_try` and `since` are in seconds since the epoch."""

    next_try: float
    since: float
    why: str


class Absence:
    """The memory of one partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def known(self) -> Away | None:
        """Return what is remembered, even if the next try is due already; None if nothing is."""
        try:
            with (
                files.opened(self._partition.folder.path) as directory,
                files.open_regular(directory, _NAME) as file,
            ):
                away = msgspec.json.decode(file.read(_MAX_BYTES), type=Away)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return away if abs(away.next_try - time.time()) <= _LONGEST else None

    def pause(self) -> float:
        """Return the seconds until the next try is due; 0 if it is due or nothing is remembered."""
        away = self.known()
        return 0.0 if away is None else max(0.0, away.next_try - time.time())

    def note(self, away: Away) -> None:
        """Make all processes send nothing to the service until its next try."""
        data = msgspec.json.encode(msgspec.structs.replace(away, why=away.why[: _MAX_BYTES // 8]))
        with suppress(NotSpooled, OSError):
            self._partition.make()
            descriptor = os.open(
                self._partition.folder.path / _NAME, os.O_WRONLY | os.O_CREAT | files.NO_LINKS, 0o600
            )
            try:
                os.pwrite(descriptor, data, 0)
                os.ftruncate(descriptor, len(data))
            finally:
                os.close(descriptor)

    def end(self) -> None:
        """Let all processes use the service again."""
        with suppress(OSError):
            os.unlink(self._partition.folder.path / _NAME)  # noqa: PTH108  (as os.open above)
