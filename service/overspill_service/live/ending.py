"""How a live capture ends: what its producer said, or what the service found out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from overspill import wire

if TYPE_CHECKING:
    from overspill_service.catalog.records import Entry


class Ending(Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: wire.State
    sha256: bytes
    status: str | None = None
    exit_code: int | None = None
    lost: int | None = None
    """As `Entry.lost`."""

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> Ending:
        return msgspec.msgpack.decode(data, type=cls)

    def of(self, entry: Entry, now: float) -> Entry:
        """Return the entry as it stays. Its TTL counts from now."""
        code = {} if self.exit_code is None else {wire.EXIT_CODE_LABEL: str(self.exit_code)}
        return msgspec.structs.replace(
            entry,
            state=self.state,
            sha256=self.sha256,
            status=entry.status if self.status is None else self.status,
            labels=entry.labels | code,
            expires=max(entry.expires, float(int(now + entry.life + 0.999))),
            lost=self.lost,
            producer="",
            life=0.0,
        )
