"""The ending of a live capture, as its producer said or as the service found out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from overspill import wire

from overspill_service.archive.retention import end_of_life
from overspill_service.errors import InvalidParameter

if TYPE_CHECKING:
    from overspill_service.catalog.records import Entry


MAX_METADATA: Final = wire.MAX_METADATA + wire.SHORT_VALUE
"""A capture that began with the most metadata still gets its status within this limit."""


class Ending(Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: wire.State
    sha256: bytes
    status: str | None = None
    exit_code: int | None = None
    labels: dict[str, str] = {}
    lost: int | None = None
    """The same as `Entry.lost`."""

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> Ending:
        return msgspec.msgpack.decode(data, type=cls)

    def of(self, entry: Entry, now: float) -> Entry:
        """Return the final entry. Its TTL counts from now."""
        code = {} if self.exit_code is None else {wire.EXIT_CODE_LABEL: str(self.exit_code)}
        return msgspec.structs.replace(
            entry,
            state=self.state,
            sha256=self.sha256,
            status=entry.status if self.status is None else self.status,
            labels=entry.labels | self.labels | code,
            expires=max(entry.expires, end_of_life(now, entry.life)),
            lost=self.lost,
            producer="",
            life=0.0,
        )


def require_small(entry: Entry, completion: wire.Completion) -> None:
    """Raise `InvalidParameter` if the final entry would have too many labels, or texts that are too large."""
    joined = {**entry.labels, **completion.labels}
    if len(joined) > wire.MAX_LABELS:
        raise InvalidParameter(f"{len(joined)} labels are more than the {wire.MAX_LABELS} that are allowed")
    status = entry.status if completion.status is None else completion.status
    named = entry.session, entry.call_id, entry.tool, status, entry.content_type
    size = sum(len(text.encode("utf-8", "replace")) for text in (*named, *joined, *joined.values()))
    if size > MAX_METADATA:
        raise InvalidParameter(
            f"session, call id, tool, status, type and labels have {size} bytes of UTF-8 together, and may "
            f"have {MAX_METADATA} at the end: send fewer labels, or a shorter status"
        )
