"""One output for a spool's writer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from overspill.execution.waiting import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spools.claim import Claim
    from overspill.spools.entries import Spooled
    from overspill.spools.store_request import StoreRequest


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """An output to write to the spool. `reason`, `refused` and `claim` are those of `Partition.keep`.

    `done` gets the entry once it is durable. `on_kept` is called after that, in a thread for blocking work.
    """

    request: StoreRequest
    reason: str
    refused: str
    claim: Claim
    on_kept: Callable[[Spooled], None]
    done: Reply[Spooled] = field(default_factory=Reply)
