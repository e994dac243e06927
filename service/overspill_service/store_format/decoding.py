"""Decode uploaded bodies by their `Content-Encoding`, in pieces of bounded size whatever the body claims.

A gzip body is a sequence of members (RFC 1952), a zstd body a sequence of frames (RFC 8878). No call returns
more than `PIECE_SIZE` bytes, no zstd frame gets a window above `WINDOW_SIZE`, and the members of a body are
limited by its length and its content. CPU work only: call it in a thread.
"""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING, Final, Protocol

import zstandard

from overspill_service.errors import DamagedEncoding, UnsupportedEncoding

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_SIZE: Final = 1024 * 1024
"""The most decoded bytes in one piece."""
SLICE_SIZE: Final = 64 * 1024
"""The most encoded bytes in one call of zlib or libzstd. Both copy the bytes behind a member's end, for every
member.
"""
WINDOW_LOG: Final = 23
WINDOW_SIZE: Final = 1 << WINDOW_LOG
"""8 MiB, the window that RFC 8878 (section 3.1.1.1.2) asks every decoder to support."""
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
MAX_HEADER_SIZE: Final = 18
"""The most bytes of a zstd frame's header, magic number included (RFC 8878, section 3.1.1.1)."""
FREE_MEMBERS: Final = 4096
"""Members that any body may have. Even an empty one takes as much time as a thousand bytes of content."""
MEMBER_ENCODED: Final = 32
MEMBER_DECODED: Final = 1024
"""A body may have one more member for so many bytes of it, and for so many bytes of its content."""
GZIP_ONLY: Final = zlib.MAX_WBITS | 16
ALLOWED: Final = "zstd, gzip or identity"


class BodyDecoder:
    """Decodes one body: call `feed` for all of it, then `finish`.

    This class itself is the identity encoding.
    """

    @staticmethod
    def of(encoding: str | None) -> BodyDecoder:
        """Return the decoder for the value of a `Content-Encoding` field, None if there is no field.

        Raises `UnsupportedEncoding` for anything but one known encoding.
        """
        match (encoding or "identity").strip().lower():
            case "identity" | "":
                return BodyDecoder()
            case "gzip" | "x-gzip":
                return _Members("gzip", _GzipMember)
            case "zstd":
                return _Members("zstd", _ZstdFrame)
        raise UnsupportedEncoding(f"the body has Content-Encoding {encoding!r}; send one of {ALLOWED}")

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decode more of the body. Take all pieces: each is made when it is taken.

        Raises `DamagedEncoding` if the body does not decode, `UnsupportedEncoding` if its window is too
        large.
        """
        if data:
            yield data

    def finish(self) -> None:
        """Say that the body has ended. Raises `DamagedEncoding` if it is incomplete."""


class _Member(Protocol):
    """One gzip member or zstd frame."""

    def pieces(self, data: bytes) -> Iterator[bytes]: ...
    @property
    def rest(self) -> bytes | None:
        """The bytes behind the member's end. None while the member has not ended."""


class _GzipMember:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(GZIP_ONLY)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        piece = self._stream.decompress(data, PIECE_SIZE)
        while piece:
            yield piece
            if self._stream.eof:  # `unconsumed_tail` then has bytes behind the member
                return
            piece = self._stream.decompress(self._stream.unconsumed_tail, PIECE_SIZE)

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


class _ZstdFrame:
    def __init__(self) -> None:
        self._stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG})
        self._header: bytes | None = b""
        """The bytes of the header so far. None once the whole header was checked."""
        self._size: int | None = None
        """The bytes of content that the header announces, if it does."""
        self._count = 0

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self._header is not None:
            header = self._header + data[:MAX_HEADER_SIZE]
            self._header = _unchecked_header(header)
            self._size = _announced_size(header) if self._header is None else None
        for piece in self._decoded(data):
            self._count += len(piece)
            yield piece
        if self._stream.eof and self._size not in (None, self._count):
            raise DamagedEncoding(
                f"the zstd body holds {self._count} bytes where its header says {self._size}; send it again"
            )

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        yield self._stream.decompress(data, PIECE_SIZE)
        while not (self._stream.eof or self._stream.needs_input):  # a piece was full: more is buffered
            yield self._stream.decompress(b"", PIECE_SIZE)

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


def _unchecked_header(header: bytes) -> bytes | None:
    """Return the header so far if it is incomplete, None if it is complete.

    Raises `UnsupportedEncoding` if the window is too large. libzstd's own limit is not enough: it ignores the
    limit for a small frame that comes in one piece, so the answer would depend on how the network cuts the
    body.
    """
    try:
        window = zstandard.get_frame_parameters(header).window_size
    except zstandard.ZstdError:  # incomplete, or no zstd frame: the decoder refuses that
        return header if len(header) < MAX_HEADER_SIZE else None
    if window > WINDOW_SIZE:
        raise UnsupportedEncoding(
            f"the zstd body needs a window of more than {WINDOW_SIZE >> 20} MiB; compress it at level 19 "
            f"or below, and without --long or with --long={WINDOW_LOG} at most"
        )
    return None


def _announced_size(header: bytes) -> int | None:
    """Return the size of the content in a frame's header, None if it has none.

    libzstd compares it with the content too, except in a frame that comes in pieces with an empty last block.
    """
    if not header.startswith(ZSTD_MAGIC):  # a frame to skip
        return None
    try:
        size = zstandard.get_frame_parameters(header).content_size
    except zstandard.ZstdError:
        return None
    return None if size == zstandard.CONTENTSIZE_UNKNOWN else size


class _Members(BodyDecoder):
    def __init__(self, name: str, member_type: type[_GzipMember | _ZstdFrame]) -> None:
        self._name = name
        self._member_type = member_type
        self._member: _Member | None = None
        self._member_count = 0
        self._encoded = self._decoded = 0
        """The bytes of the body that were fed, and the bytes of its content."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            for start in range(0, len(data), SLICE_SIZE):
                yield from self._pieces(data[start : start + SLICE_SIZE])
        except (zlib.error, zstd.ZstdError) as error:
            raise DamagedEncoding(f"the {self._name} body does not decode: {error}") from error

    def finish(self) -> None:
        if self._member is not None or not self._member_count:
            raise DamagedEncoding(f"the {self._name} body ends before its content does; send it again, whole")

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        self._encoded += len(data)
        while data:
            member = self._member = self._member or self._next(self._encoded - len(data))
            for piece in filter(None, member.pieces(data)):
                self._decoded += len(piece)
                yield piece
            rest = member.rest
            if rest is None:
                return
            self._member, data = None, rest

    def _next(self, encoded: int) -> _Member:
        """Begin the member behind the first `encoded` bytes. Raises `DamagedEncoding` if too many came."""
        max_members = FREE_MEMBERS + encoded // MEMBER_ENCODED + self._decoded // MEMBER_DECODED
        if self._member_count >= max_members:
            raise DamagedEncoding(
                f"the {self._name} body has more than {max_members} parts in its first {encoded} bytes; "
                "compress it as one stream"
            )
        self._member_count += 1
        return self._member_type()
