"""One output that a thread hands to another to be kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from overspill.execution.waiting import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spools.claim import Claim
    from overspill.spools.folder import Spooled
    from overspill.transfer.store_request import StoreRequest


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """An output to keep, because of `reason`; `refused` is that of `Partition.keep`.

    `on_kept` runs in the thread of the writer.
    """

    request: StoreRequest
    reason: str
    refused: str
    claim: Claim
    on_kept: Callable[[Spooled], None]
    done: Reply[Spooled] = field(default_factory=Reply)
