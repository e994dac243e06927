"""The bytes that a text is stored as: UTF-8, with a way for every lone surrogate.

Long texts are encoded in steps: one long call would hold Python's lock and stop every other thread.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from overspill.text.body import FileBody

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overspill.text.body import Body

STEP_CHARS: Final = 1024 * 1024
"""Characters or bytes that are encoded or decoded in one call."""
_ENCODE_ERRORS: Final = ("strict", "surrogateescape", "overspill.each")
"""Error handlers for lone surrogates, tried in turn: the first is the fastest, the last never fails."""


def encode(text: str) -> bytes:
    """Return `text` as the bytes that are stored. Never fails.

    Bytes that Python smuggled into a `str` (`surrogateescape`, as in file names) come back as they were. Any
    other lone surrogate becomes its own three bytes: those are not UTF-8, but nothing is lost.
    """
    return text.encode() if text.isascii() else b"".join(encoded_pieces(text))


def bytes_of(body: str | bytes) -> bytes:
    """Return a body that is in memory as the bytes that are stored."""
    return encode(body) if isinstance(body, str) else body


def joined(pieces: Sequence[str | bytes]) -> str | bytes:
    """Return the pieces of a body as one: a text if all are texts, otherwise bytes."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    return "".join(texts) if len(texts) == len(pieces) else b"".join(map(bytes_of, pieces))


def part(body: Body, offset: int, limit: int) -> bytes:
    """Return up to `limit` of the bytes that are stored, from `offset` on. Raises `OSError`."""
    if isinstance(body, FileBody):
        return body.read(offset, limit)
    return bytes_of(body)[offset : offset + limit]


def encoded_pieces(text: str) -> Iterator[bytes]:
    """Yield the bytes of `encode(text)` in pieces."""
    return (_encoded(text[at : at + STEP_CHARS]) for at in range(0, len(text), STEP_CHARS))


def _encoded(text: str) -> bytes:
    for errors in _ENCODE_ERRORS[:-1]:
        try:
            return text.encode("utf-8", errors)
        except UnicodeEncodeError:
            continue
    return text.encode("utf-8", _ENCODE_ERRORS[-1])


def _encode_each(error: UnicodeError) -> tuple[bytes, int]:
    """Encode each surrogate by itself, so that the sizes of parts add up to the size of the whole."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    run = error.object[error.start : error.end]
    return b"".join(map(_surrogate, run)), error.end


def _surrogate(character: str) -> bytes:
    is_byte = "\udc80" <= character <= "\udcff"
    return character.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass")


codecs.register_error(_ENCODE_ERRORS[-1], _encode_each)
