"""Uploaded bodies out of their `Content-Encoding`, in pieces of bounded size whatever they claim.

A gzip body is a row of members (RFC 1952), a zstd body a row of frames (RFC 8878). No call makes more than
`PIECE_SIZE` bytes at once, no zstd frame gets a window over `WINDOW_SIZE`, and no body may have more than
`MAX_MEMBERS` of them. Pure CPU: run it in a thread.
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
"""The most decoded bytes that come as one piece."""
SLICE_SIZE: Final = 64 * 1024
"""The most encoded bytes looked at once: what lies behind a member's end is copied for every member."""
WINDOW_LOG: Final = 23
WINDOW_SIZE: Final = 1 << WINDOW_LOG
"""8 MiB, what RFC 8878 (section 3.1.1.1.2) asks every decoder to support."""
MAX_HEADER_SIZE: Final = 18
"""The most bytes that a zstd frame's header takes, its magic number included."""
MAX_MEMBERS: Final = 1 << 18
"""Members or frames in one body: an empty one costs microseconds and gives nothing."""
GZIP_ONLY: Final = zlib.MAX_WBITS | 16
ALLOWED: Final = "zstd, gzip or identity"


class BodyDecoder:
    """Decodes one body: `feed` it all, then `finish`. This class itself is the identity."""

    @staticmethod
    def of(encoding: str | None) -> BodyDecoder:
        """The decoder for a `Content-Encoding` field's value, None where the field is absent.

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
        """Decode more of the body; the pieces are made as they are taken, so take them all.

        Raises `DamagedEncoding` where the body does not decode, `UnsupportedEncoding` where it needs too much
        memory to.
        """
        if data:
            yield data

    def finish(self) -> None:
        """Say that the body has ended; raises `DamagedEncoding` where it may not end there."""


class _Member(Protocol):
    """One gzip member or zstd frame."""

    def pieces(self, data: bytes) -> Iterator[bytes]: ...
    @property
    def rest(self) -> bytes | None:
        """What followed the member's end; None while it has not ended."""


class _GzipMember:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(GZIP_ONLY)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        piece = self._stream.decompress(data, PIECE_SIZE)
        while piece:
            yield piece
            if self._stream.eof:  # what is left over is in `unconsumed_tail` too, but is not this member's
                return
            piece = self._stream.decompress(self._stream.unconsumed_tail, PIECE_SIZE)

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


class _ZstdFrame:
    def __init__(self) -> None:
        self._stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG})
        self._header: bytes | None = b""
        """The bytes of the header that have come; None once it was judged."""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self._header is not None:
            self._header = _unchecked_header(self._header + data[:MAX_HEADER_SIZE])
        yield self._stream.decompress(data, PIECE_SIZE)
        while not (self._stream.eof or self._stream.needs_input):
            yield self._stream.decompress(b"", PIECE_SIZE)

    @property
    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


def _unchecked_header(header: bytes) -> bytes | None:
    """Return a header that goes on in bytes still to come, None for a whole one.

    Raises `UnsupportedEncoding` for too large a window. libzstd itself sees no harm in one where a small
    frame comes as one piece, which is up to the network.
    """
    try:
        window = zstandard.get_frame_parameters(header).window_size
    except zstandard.ZstdError:  # cut short, or no frame: then the decoder says so
        return header if len(header) < MAX_HEADER_SIZE else None
    if window > WINDOW_SIZE:
        raise UnsupportedEncoding(
            f"the zstd body needs a window of more than {WINDOW_SIZE >> 20} MiB; compress it at level 19 "
            f"or below, and without --long or with --long={WINDOW_LOG} at most"
        )
    return None


class _Members(BodyDecoder):
    def __init__(self, name: str, member_type: type[_GzipMember | _ZstdFrame]) -> None:
        self._name = name
        self._member_type = member_type
        self._member: _Member | None = None
        self._member_count = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            for start in range(0, len(data), SLICE_SIZE):
                yield from self._decode(data[start : start + SLICE_SIZE])
        except (zlib.error, zstd.ZstdError) as error:
            raise DamagedEncoding(f"the {self._name} body does not decode: {error}") from error

    def finish(self) -> None:
        if self._member is not None or not self._member_count:
            raise DamagedEncoding(f"the {self._name} body ends before its content does; send it again, whole")

    def _decode(self, data: bytes) -> Iterator[bytes]:
        while data:
            member = self._member = self._member or self._next()
            yield from filter(None, member.pieces(data))
            rest = member.rest
            if rest is None:
                return
            self._member, data = None, rest

    def _next(self) -> _Member:
        self._member_count += 1
        if self._member_count > MAX_MEMBERS:
            raise DamagedEncoding(
                f"the {self._name} body has more than {MAX_MEMBERS} parts; compress it as one stream"
            )
        return self._member_type()
