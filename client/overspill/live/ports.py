"""What a producer needs of others: the service's calls, and a place for what the service cannot take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill import wire
    from overspill.text.body import Body


class LiveService(Protocol):
    """The calls about one live capture. Each retries as its client does, then raises an `OverspillError`."""

    async def begin(self) -> wire.LiveStatus:
        """Make the capture. Does nothing if this producer has made it already."""

    async def append(self, offset: int, data: bytes) -> wire.LiveStatus:
        """Append at `offset`; without data, say that the producer is still there."""

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        """End the capture, and return its entry."""


class Description(Struct, frozen=True, kw_only=True):
    """What is known of a live capture before its first byte. `ttl` is seconds; None: the service decides."""

    id: str
    session: str
    call_id: str = ""
    tool: str = ""
    content_type: str = ""
    ttl: int | None = None
    labels: Mapping[str, str] = {}


class WholeStream(Struct, frozen=True, kw_only=True):
    """A stream that has ended, which the service does not have. `reason` says why.

    `missing` says why `body` is not all of it; empty if it is. `is_begun`: the service has a beginning of it
    under the described id, so the whole needs another one.
    """

    description: Description
    body: Body
    status: str
    exit_code: int | None
    reason: str
    missing: str
    is_begun: bool


class StreamSpool(Protocol):
    """Keeps streams on this machine until they can be uploaded. A `Spool` is one."""

    def keep_stream(self, stream: WholeStream, url: str, key: str) -> str:
        """Keep it for the service at `url`, and return its handle. Raises `OSError` and `NotSpooled`."""
