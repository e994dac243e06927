"""One output for a spool's writer, and who decides whether it is kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from overspill.execution.waiting import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spools.entries import Spooled
    from overspill.spools.own_directory import LockedFile
    from overspill.spools.store_request import StoreRequest


class Claim:
    """Belongs to the first that takes it: the attempt just before it publishes, or the waiter that gives up.

    So an output that was given up is never found on the disk afterwards, and an output on the disk is never
    given up.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take the claim. Return False if somebody else has it."""
        return self._lock.acquire(blocking=False)


class UploadLock:
    """Keeps flushes from an output whose upload goes on, from the moment it can be found on the disk."""

    def __init__(self) -> None:
        self._file: LockedFile | None = None

    @property
    def is_held(self) -> bool:
        """Whether no flush uploads the output."""
        return self._file is not None

    def hold(self, file: LockedFile | None) -> None:
        """Keep the locked content of the output, until `release`."""
        self._file = file

    def release(self) -> None:
        """Let flushes upload the output. Does nothing the second time."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """An output to write to the spool. `reason` and `refused` are those of `Partition.keep`.

    `done` gets the entry once it is durable. `on_kept` is called after that, in a thread for blocking work.
    `upload` is given if an upload of the output goes on. It is held once the output is kept, unless the
    output was in the spool before.
    """

    request: StoreRequest
    reason: str
    refused: str
    claim: Claim
    on_kept: Callable[[Spooled], None]
    upload: UploadLock | None = None
    done: Reply[Spooled] = field(default_factory=Reply)
