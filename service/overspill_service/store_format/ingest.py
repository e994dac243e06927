"""Turn one body into frames: decode, hash, measure, cut and compress it. CPU work only.

The caller runs it in a thread, one bounded step at a time. So no body holds a thread or memory for long,
however it was compressed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from overspill.redaction.redactor import Redactor

from overspill_service.errors import CaptureTooLarge, DigestMismatch, SecretsFound
from overspill_service.store_format.decoding import BodyDecoder
from overspill_service.store_format.frames import Frame, FrameWriter, accept_frame, content_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
        refuses_secrets: bool = False,
        mark: int = 0,
    ) -> None:
        """`encoding` is the body's `Content-Encoding`. Raises `UnsupportedEncoding`.

        `mark`: `marked` becomes the digest of so many bytes from the beginning, once they have come.
        """
        self._mark = mark
        self.marked: bytes | None = None
        self._secrets = Redactor().stream(bytes) if refuses_secrets else None
        self._decoder = BodyDecoder.of(encoding)
        self._encoding, self._limit, self._is_dry_run = encoding, limit, is_dry_run
        self._writer = FrameWriter(level)
        self._content, self._encoded = hashlib.sha256(), hashlib.sha256()
        self._is_begun = False
        self.is_refused_as_frame = False
        """The last step found that a body cannot be stored as the one frame that it came as."""
        self.size = 0
        self.head = b""
        self.ends_in_newline = False

    @property
    def sha256(self) -> bytes:
        """The digest of the content taken so far."""
        return self._content.digest()

    def runs_inline(self, chunks: Sequence[bytes], *, is_last: bool) -> bool:
        """Return whether the first step of `take` is so short that the event loop may run it.

        The size of an encoded body is known before decoding only if it may be stored as it is.
        """
        if sum(map(len, chunks)) > INLINE_BYTES:
            return False
        if self._encoding is None:
            return True
        return self._may_be_frame(is_last=is_last) and 0 < content_size(b"".join(chunks)) <= INLINE_BYTES

    def take(self, chunks: Sequence[bytes], *, is_last: bool) -> Iterator[tuple[list[Framed], bool]]:
        """Yield after each step the frames that it finished, and whether another step follows.

        Raises `CaptureTooLarge` and `DamagedEncoding`.
        """
        if self._may_be_frame(is_last=is_last):  # the whole body came at once: try to store it as it is
            accepted = self._accept(chunks)
            self.is_refused_as_frame = not accepted
            yield accepted, not accepted
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
        if is_last and not self._is_dry_run:
            frames += self._writer.finish()
        yield frames, False

    def require_no_secrets(self) -> None:
        """Raise `SecretsFound` if the content has secrets, where they are refused. Call it at the end."""
        if self._secrets is not None:
            self._secrets.finish()
            if self._secrets.counts:
                raise SecretsFound(self._secrets.counts)

    def verify(self, digest: bytes | None) -> None:
        """Compare the content with the digest that the client announced.

        RFC 9530 digests the representation, so the digest of an encoded body's bytes is right too. Raises
        `DigestMismatch`.
        """
        if digest is None or digest == self.sha256:
            return
        if self._encoding is not None and digest == self._encoded.digest():
            return
        raise DigestMismatch(
            f"the content of {self.size} bytes has SHA-256 {self.sha256.hex()}, announced {digest.hex()}; "
            "nothing was stored: send it again"
        )

    def _hash(self, piece: bytes) -> None:
        """Hash a piece that `size` counts already."""
        before = self._mark - (self.size - len(piece))
        if 0 <= before <= len(piece):
            self._content.update(piece[:before])
            self.marked, piece = self._content.digest(), piece[before:]
        self._content.update(piece)

    def _may_be_frame(self, *, is_last: bool) -> bool:
        return self._encoding == "zstd" and is_last and not self._is_begun and not self._is_dry_run

    def _accept(self, chunks: Sequence[bytes]) -> list[Framed]:
        """Return the whole body as one frame, if the client compressed it as it is stored."""
        body = b"".join(chunks)
        accepted = accept_frame(body)
        if accepted is None:
            return []
        frame, content = accepted
        self._encoded.update(body)
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
        self._measure(piece)
        return [] if self._is_dry_run else self._writer.write(piece)

    def _measure(self, piece: bytes) -> None:
        """Count and hash a piece of content, and keep its beginning. Raises `CaptureTooLarge`."""
        self.size += len(piece)
        if self.size > self._limit:
            raise CaptureTooLarge(self._limit)
        if len(self.head) < HEAD_BYTES:
            self.head += piece[: HEAD_BYTES - len(self.head)]
        self.ends_in_newline = piece.endswith(b"\n")
        self._hash(piece)
        if self._secrets is not None:
            self._secrets.feed(piece)
