"""One output for a spool's writer."""

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


@dataclass(slots=True, eq=False)
class Order:
    """An output to write to the spool. `reason` and `refused` are those of `Partition.keep`.

    `done` gets the entry once it is durable. `on_kept` is called after that, in a thread for blocking work.
    With `is_uploading` an upload of the output goes on: its content stays `locked` against flushes from the
    moment it can be found on the disk, unless it was in the spool before.
    """

    request: StoreRequest
    reason: str
    refused: str
    on_kept: Callable[[Spooled], None]
    is_uploading: bool = False
    locked: LockedFile | None = None
    done: Reply[Spooled] = field(default_factory=Reply)
    _taken: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """Decide whether the output is kept. Return False if somebody else has decided.

        The first to do so is the attempt just before it publishes, or the waiter that gives up. So an output
        that was given up is never found on the disk afterwards, and one on the disk is never given up.
        """
        return self._taken.acquire(blocking=False)
