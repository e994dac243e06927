"""The buffers of live captures in a catalog: bytes that are accepted, but not in the object store yet.

The buffer of a live capture holds its bytes from the durable offset, which is the size of its entry, up to
the accepted offset. A lost catalog loses the buffer, but none of its bytes was ever called durable.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog.records import Entry

MARK: Final = struct.Struct(">QQ")
"""A mark of the timeline: milliseconds since the epoch, and the offset of the byte that came then."""
MARK_MILLISECONDS: Final = 250
"""The least time between two marks."""
MARKS_BY_AGE: Final = 500
"""Marks of an older capture are further apart: by its age, divided by this."""
NEWS_BYTES: Final = 64 * 1024
"""An append of up to this many bytes is part of its news. Followers read larger ones from the buffer."""
UNKNOWN: Final = -1
"""In place of an offset: the catalog may have lost accepted bytes, nobody knows how many."""
NO_BYTES: Final = 2**53
"""An offset behind every buffer: a record without bytes."""
LOOK_AGAIN: Final = -1
"""The offset in news that something else has changed, or that news may have been lost."""


class LiveRecord(Struct, frozen=True, kw_only=True):
    """The record of a live capture in the catalog, besides its entry."""

    producer: str
    accepted: int
    start: int
    """The offset of the first byte of `buffer`."""
    durable: int
    active: float
    """When the producer was last heard of, in seconds since the epoch. It never goes back."""
    opened: int = 0
    """The offset at which the buffer began. If it is not 0, an earlier buffer was lost with the catalog."""
    reached: int = 0
    """The offset up to which bytes were once accepted, if that is more than `accepted`; or `UNKNOWN`."""
    cut: int | None = None
    """The offset at which the segment that is being stored ends."""
    ending: bytes | None = None
    """How the capture ends, once its producer has said so."""
    buffer: bytes = b""
    marks: bytes = b""
    """The timeline: `MARK`s in their order."""

    @property
    def lost(self) -> int | None:
        """The number of accepted bytes that are lost behind the buffer; `UNKNOWN`; None if none are."""
        if self.reached == UNKNOWN:
            return UNKNOWN
        return self.reached - self.accepted if self.reached > self.accepted else None


class AppendStatus(IntEnum):
    """The result of an append."""

    DONE = 1
    UNKNOWN = -1
    """There is no buffer: the catalog has lost it, or the capture has ended."""
    OTHER_PRODUCER = -2
    ENDED = -3
    WRONG_OFFSET = -4
    CAPTURE_FULL = -5
    TENANT_FULL = -6


class Append(NamedTuple):
    """One append: `data` at `offset`, sent by `producer` at `now` (seconds since the epoch)."""

    producer: str
    offset: int
    data: bytes
    now: float


class Appended(NamedTuple):
    """The answer to an append. The offsets are 0 if there is no buffer, or it is another producer's."""

    status: AppendStatus
    accepted: int = 0
    durable: int = 0


class LiveTotals(NamedTuple):
    """A tenant's live captures."""

    captures: int = 0
    unstored: int = 0
    """Bytes that are accepted, and not in the object store yet."""


class LiveBuffers(Protocol):
    """Buffers of live captures. Any replica may append to any of them."""

    async def open_live(
        self, tenant: str, capture: str, record: LiveRecord, *, only_of: Entry | None = None
    ) -> bool:
        """Begin a buffer at `record.accepted`. Return False, and change nothing, if there is one.

        Change nothing either if `only_of` is not stored any more, or has ended: nobody would ever store what
        the buffer takes.
        """

    async def doubt_live(self, tenant: str, capture: str) -> None:
        """Note that bytes behind the buffer may be lost: the catalog may be older than the objects.

        If the next append begins where the buffer ends, nothing was lost.
        """

    async def append_live(
        self, tenant: str, capture: str, append: Append, *, limit: int, tenant_limit: int
    ) -> Appended:
        """Add bytes to a buffer if they begin where it ends, and notify everyone who watches it.

        If bytes may be lost, an append that begins behind the buffer's end tells how many: its producer knows
        what was accepted. A buffer has at most `limit` bytes, all of a tenant together `tenant_limit`.
        """

    async def live(
        self, tenant: str, capture: str, *, since: int = 0, limit: int | None = None
    ) -> LiveRecord | None:
        """Return a buffer, without its bytes before the offset `since`. None if there is none.

        If it has more than `limit` bytes from there on, it comes without any.
        """

    async def live_totals(self, tenant: str) -> LiveTotals:
        """Return how much of a tenant is live."""

    async def plan_cut(self, tenant: str, capture: str, end: int) -> int | None:
        """Decide that the next segment ends at `end`. Return where it ends if that was decided before."""

    async def end_live(self, tenant: str, capture: str, offset: int, ending: bytes) -> bool:
        """Take no more appends. Return False if `offset` is not the end, or there is no buffer.

        The first ending stays; with the same offset this also returns True.
        """

    async def replace(self, old: Entry, new: Entry) -> Entry | None:
        """Replace an entry by one with more segments or other objects. Drop the buffer's bytes that it has.

        If `new` is larger than the announced end of the capture, change nothing and return the old entry. If
        `new` is not live, drop the whole buffer, and free what the old entry had reserved. If `old` and `new`
        are the same, only correct the buffer. Tell everybody who watches it. Return the stored entry: `new`
        if this, or an earlier attempt, has replaced it, else what others have made of it. Return None if the
        capture is gone.
        """

    async def forget_live(self, tenant: str, capture: str) -> None:
        """Forget the buffer of a capture that was removed."""


class LiveSchedule(Protocol):
    """The times at which somebody should look at live captures next."""

    async def schedule(self, tenant: str, capture: str, at: float | None) -> None:
        """Schedule a look at the capture at the time `at`, instead of any earlier schedule. None: no look."""

    async def due(self, now: float, limit: int, *, skip: int = 0) -> list[tuple[str, str]]:
        """Return tenants and ids of captures that somebody should look at, the longest due first.

        The first `skip` are passed over.
        """

    async def scheduled_after(self, instant: float, limit: int) -> list[tuple[str, str]]:
        """Return tenants and ids of captures that are scheduled for after `instant`, the next one first."""

    async def scheduled_count(self) -> int:
        """Return how many captures are scheduled: live ones, and finished ones until they are compacted."""


class LiveNews(Protocol):
    """News of live captures, for readers that follow them."""

    async def watch(self, tenant: str, capture: str, on_news: Callable[[int, bytes], None]) -> None:
        """Call `on_news` for every append, with its offset and bytes, until `unwatch`.

        Without bytes it has only the offset; see `LOOK_AGAIN`. Each capture has one such function.
        """

    async def unwatch(self, tenant: str, capture: str) -> None: ...
