"""Turn one body into frames: decode, hash, screen, measure, cut and compress it. CPU work only.

What was sent and what is stored differ where secrets are masked. The digest that a client announces is of
what it sent. Size, lines and digest of the capture are of what is stored.

The caller runs it in a thread, one bounded step at a time. So no body holds a thread or memory for long,
however it was compressed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from overspill_service.errors import CaptureTooLarge, DigestMismatch
from overspill_service.store_format import screening
from overspill_service.store_format.decoding import BodyDecoder
from overspill_service.store_format.frames import Frame, FrameWriter, accept_frame, content_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from overspill_service.store_format.screening import Screen

STEP_BYTES: Final = 4 * 2**20
"""Decoded bytes of one step."""
HEAD_BYTES: Final = 8 * 1024
"""Bytes of the beginning that are kept to guess the content type."""

INLINE_BYTES: Final = 64 * 1024
"""Bytes of content that are decoded, hashed and compressed in less than a millisecond."""

Framed = tuple[Frame, bytes]


class Ingest:
    """Measures and frames what `take` gets. `is_dry_run` only hashes: the content is stored already."""

    def __init__(
        self,
        encoding: str | None,
        *,
        level: int,
        limit: int,
        is_dry_run: bool = False,
        screen: Screen | None = None,
        mark: int = 0,
    ) -> None:
        """`encoding` is the body's `Content-Encoding`. Raises `UnsupportedEncoding`.

        `marked` becomes the digest of the first `mark` stored bytes, once they have come.
        """
        self._mark = mark
        self.marked: bytes | None = None
        self._screen = screen
        self._decoder = BodyDecoder.of(encoding)
        self._encoding, self._limit, self._is_dry_run = encoding, limit, is_dry_run
        self._writer = FrameWriter(level)
        self._content, self._encoded = hashlib.sha256(), hashlib.sha256()
        self._sent = self._content if screen is None else hashlib.sha256()
        self._sent_size = 0
        self._is_begun = False
        self.is_refused_as_frame = False
        """The last step found that a body cannot be stored as the one frame that it came as."""
        self.size = 0
        self.head = b""
        self.ends_in_newline = False

    @property
    def sha256(self) -> bytes:
        """The digest of the content to store, so far."""
        return self._content.digest()

    @property
    def masked(self) -> Mapping[str, int]:
        """The number of secrets of each kind that were masked so far."""
        return {} if self._screen is None else self._screen.counts

    @property
    def sent_sha256(self) -> bytes:
        """The digest of the content that was sent, so far."""
        return self._sent.digest()

    def runs_inline(self, chunks: Sequence[bytes], *, is_last: bool) -> bool:
        """Return whether the first step of `take` is so short that the event loop may run it.

        The size of an encoded body is known before decoding only if it may be stored as it is. What came
        before counts too: the last step searches and compresses what waits of it.
        """
        limit = INLINE_BYTES if self._screen is None else screening.INLINE_BYTES
        if self._sent_size + sum(map(len, chunks)) > limit:
            return False
        if self._encoding is None:
            return True
        return self._may_be_frame(is_last=is_last) and 0 < content_size(b"".join(chunks)) <= limit

    def take(self, chunks: Sequence[bytes], *, is_last: bool) -> Iterator[tuple[list[Framed], bool]]:
        """Yield after each step the frames that it finished, and whether another step follows.

        Raises `CaptureTooLarge` and `DamagedEncoding`.
        """
        if self._may_be_frame(is_last=is_last):  # the whole body came at once: try to store it as it is
            accepted = self._accept(chunks)
            self.is_refused_as_frame = not accepted
            yield [] if self._is_dry_run else accepted, not accepted
            if accepted:
                return
        self._is_begun, self.is_refused_as_frame = True, False
        frames: list[Framed] = []
        done = 0
        for piece in self._pieces(chunks, is_last=is_last):
            frames += self._write(piece)
            done += len(piece)
            if done >= STEP_BYTES:
                yield frames, True
                frames, done = [], 0
        if is_last:
            frames += self._finish()
        yield frames, False

    def verify(self, digest: bytes | None) -> None:
        """Compare the content with the digest that the client announced.

        RFC 9530 digests the representation, so the digest of an encoded body's bytes is right too. Raises
        `DigestMismatch`.
        """
        if digest is None or digest == self.sent_sha256:
            return
        if self._encoding is not None and digest == self._encoded.digest():
            return
        raise DigestMismatch(
            f"the content of {self._sent_size} bytes has SHA-256 {self.sent_sha256.hex()}, announced "
            f"{digest.hex()}; nothing was stored: send it again"
        )

    def _hash(self, piece: bytes) -> None:
        """Hash a piece that `size` counts already."""
        before = self._mark - (self.size - len(piece))
        if 0 <= before <= len(piece):
            self._content.update(piece[:before])
            self.marked, piece = self._content.digest(), piece[before:]
        self._content.update(piece)

    def _may_be_frame(self, *, is_last: bool) -> bool:
        return self._encoding == "zstd" and is_last and not self._is_begun

    def _accept(self, chunks: Sequence[bytes]) -> list[Framed]:
        """Return the whole body as one frame, if the client compressed it as it is stored."""
        body = b"".join(chunks)
        accepted = accept_frame(body)
        if accepted is None:
            return []
        frame, content = accepted
        if self._screen is not None and not self._screen.passes(content):
            return []
        self._encoded.update(body)
        self._count_sent(content)
        self._measure(content)
        return [(frame, body)]

    def _pieces(self, chunks: Iterable[bytes], *, is_last: bool) -> Iterator[bytes]:
        for chunk in chunks:
            if self._encoding is not None:
                self._encoded.update(chunk)
            yield from self._decoder.feed(chunk)
        if is_last:
            self._decoder.finish()

    def _write(self, piece: bytes) -> list[Framed]:
        if not piece:
            return []
        self._count_sent(piece)
        frames: list[Framed] = []
        for part in (piece,) if self._screen is None else self._screen.feed(piece):
            frames += self._keep(part)
        return frames

    def _finish(self) -> list[Framed]:
        frames = [] if self._screen is None else self._keep(self._screen.finish())
        return frames if self._is_dry_run else frames + self._writer.finish()

    def _keep(self, piece: bytes) -> list[Framed]:
        if not piece:
            return []
        self._measure(piece)
        return [] if self._is_dry_run else self._writer.write(piece)

    def _count_sent(self, piece: bytes) -> None:
        """Count and hash a piece that was sent. Raises `CaptureTooLarge`."""
        self._sent_size += len(piece)
        if self._sent_size > self._limit:
            raise CaptureTooLarge(self._limit)
        if self._sent is not self._content:
            self._sent.update(piece)

    def _measure(self, piece: bytes) -> None:
        """Count and hash a piece to store, and keep the beginning. Raises `CaptureTooLarge`."""
        self.size += len(piece)
        if self.size > self._limit:  # a mask may be longer than the secret
            raise CaptureTooLarge(self._limit)
        if len(self.head) < HEAD_BYTES:
            self.head += piece[: HEAD_BYTES - len(self.head)]
        self.ends_in_newline = piece.endswith(b"\n")
        self._hash(piece)
