"""The ports of a producer: the service's calls, and a place for bytes that the service cannot take."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from overspill.text import encoding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from overspill import wire
    from overspill.text.body import Body


class LiveService(Protocol):
    """The calls about one live capture. Each retries as its client does, then raises an `OverspillError`."""

    producer: str
    """The word of this producer. The service refuses appends with another word."""

    async def begin(self) -> wire.LiveStatus:
        """Make the capture. Does nothing if this producer has made it already."""

    async def append(
        self,
        offset: int,
        pieces: Sequence[bytes],
        *,
        is_last: bool = False,
        on_sent: Callable[[], object] | None = None,
    ) -> wire.LiveStatus:
        """Append at `offset`. Without pieces, say that the producer is still there.

        A service that looks for secrets may leave the last word for later, because the bytes after it decide
        whether it is a secret. With `is_last` nothing follows, and everything is taken. `on_sent` is called
        when the pieces have gone out.
        """

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        """End the capture, and return its entry."""


class Description(Struct, frozen=True, kw_only=True):
    """The metadata that is stored with an output, live or whole. `ttl` in seconds; None: the service decides.

    `id` is empty until it is known, for example while a file is still to be read.
    """

    id: str
    session: str
    call_id: str = ""
    tool: str = ""
    status: str = ""
    content_type: str = ""
    ttl: int | None = None
    labels: Mapping[str, str] = {}


class Beginning(Struct, frozen=True, kw_only=True):
    """The beginning of an output that the service may have, as a live capture that has not ended there.

    The service has at most the first `size` bytes, which have this SHA-256. If that is None, they were read
    from the output itself. `producer` is the word of the producer. `labels` are those of the whole output,
    without those of a guard.
    """

    id: str
    producer: str
    size: int
    sha256: bytes | None
    labels: Mapping[str, str]
    accepted: int = 0
    """Bytes that `go_on` does not have to send."""
    go_on: Callable[[wire.Completion, Callable[[int], object]], Awaitable[wire.Entry | None]] | None = None
    """Sends the rest, calling the second argument with the bytes of each piece, and completes the capture.

    Returns None if the service refuses that. Without `go_on`, the whole output replaces the beginning.
    """

    def is_beginning_of(self, body: Body) -> bool:
        """Return whether the service has nothing but a beginning of `body`. Raises `OSError`."""
        return self.sha256 is None or sha256(encoding.part(body, 0, self.size)).digest() == self.sha256


class StreamCopy(Protocol):
    """Keeps all of a stream on this machine while it is sent, in case the service cannot take it."""

    @property
    def missing(self) -> str:
        """The reason why some of the stream is not kept; empty if all is."""

    def keep(self, data: bytes, *, is_masked: bool) -> None:
        """Keep the next bytes. `is_masked`: something was masked in them, or before. Raises nothing."""


class StreamSpool(Protocol):
    """Keeps streams on this machine until they can be uploaded. A `Spool` is one."""

    def keep_stream(
        self, description: Description, body: Body, *, url: str, key: str, reason: str, producer: str
    ) -> None:
        """Keep a stream that has ended for the service at `url`. `reason` says why that does not have it.

        If it may have a beginning, `producer` is the word of who produced that. Raises `OSError` and
        `NotSpooled`.
        """
