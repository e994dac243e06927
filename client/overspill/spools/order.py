"""One output for a spool's writer, and who decides whether it is kept."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from overspill.execution.waiting import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spools.entries import Spooled
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


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """An output to write to the spool. `reason` and `refused` are those of `Partition.keep`.

    `done` gets the entry once it is durable. `on_kept` is called after that, in a thread for blocking work.
    """

    request: StoreRequest
    reason: str
    refused: str
    claim: Claim
    on_kept: Callable[[Spooled], None]
    done: Reply[Spooled] = field(default_factory=Reply)
