r"""How large a text is: bytes of UTF-8, and lines.

A line ends with `\n`. A last line without one counts, and an empty text has no lines. The service counts the
same way.

Long texts are counted in steps: one long call of `str.count` would hold Python's lock and stop every other
thread.
"""

from __future__ import annotations

import codecs
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.reading.chunks import Extent
from overspill.text.body import FileBody

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.text.body import Body

STEP_CHARS: Final = 1024 * 1024
"""Characters or bytes that are encoded or decoded in one call."""
_COUNTED_AT_ONCE: Final = 32 * 1024
"""Characters or bytes in which newlines are counted in one call."""
_USUAL_LINE_BYTES: Final = 40
"""If lines are shorter than this on average, `count` is faster than `replace`."""
_ENCODE_ERRORS: Final = ("strict", "surrogateescape", "overspill.each")
"""Error handlers for lone surrogates, tried in turn: the first is the fastest, the last never fails."""


def extent_of(body: Body) -> Extent:
    """Return the bytes and lines of a body."""
    if isinstance(body, FileBody):
        return Extent(body.size, body.lines)
    return Extent(size(body), count_lines(body))


# --- bytes --------------------------------------------------------------------------------------


def encode(text: str) -> bytes:
    """Return `text` as the bytes that are stored. Never fails.

    Bytes that Python smuggled into a `str` (`surrogateescape`, as in file names) come back as they were. Any
    other lone surrogate becomes its own three bytes: those are not UTF-8, but nothing is lost.
    """
    return text.encode() if text.isascii() else b"".join(encoded_pieces(text))


def part(body: Body, offset: int, most: int) -> bytes:
    """Return up to `most` of the bytes that are stored, from `offset` on. Raises `OSError`."""
    if isinstance(body, FileBody):
        return body.read(offset, most)
    data = encode(body) if isinstance(body, str) else body
    return data[offset : offset + most]


def size(body: Body) -> int:
    """Return the bytes of a body. ASCII text is not encoded for this."""
    if not isinstance(body, str):
        return len(body)
    if body.isascii():
        return len(body)
    return len(_encoded(body)) if len(body) <= STEP_CHARS else sum(map(len, encoded_pieces(body)))


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


# --- lines --------------------------------------------------------------------------------------


def count_lines(content: str | bytes) -> int:
    """Return how many lines a text or its bytes have."""
    if isinstance(content, str):
        return count_newlines(content) + (not content.endswith("\n")) if content else 0
    newlines = sum(
        _newlines_of_bytes(content[at : at + _COUNTED_AT_ONCE])
        for at in range(0, len(content), _COUNTED_AT_ONCE)
    )
    return newlines + (not content.endswith(b"\n")) if content else 0


def count_newlines(text: str, start: int = 0, stop: int | None = None) -> int:
    r"""Return how many `\n` are in `text[start:stop]`."""
    stop = len(text) if stop is None else stop
    if stop - start <= _COUNTED_AT_ONCE:
        return text.count("\n", start, stop)
    return sum(_newlines_by_step(text, start, stop))


def _newlines_by_step(text: str, start: int, stop: int) -> Iterator[int]:
    ranges = ((at, min(at + _COUNTED_AT_ONCE, stop)) for at in range(start, stop, _COUNTED_AT_ONCE))
    if text.isascii():
        return (_newlines_of_bytes(text[begin:end].encode()) for begin, end in ranges)
    return (text.count("\n", begin, end) for begin, end in ranges)


def _newlines_of_bytes(data: bytes) -> int:
    """Count the newlines of a few bytes.

    `replace` searches at the speed of memory, while `count` looks at each byte. But `replace` is slower where
    lines are short.
    """
    most = len(data) // _USUAL_LINE_BYTES + 1
    found = len(data) - len(data.replace(b"\n", b"", most))
    return found if found < most else data.count(b"\n")


class NewlineIndex:
    r"""The `\n` of a text, counted once: how many stand before any position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._before = list(accumulate(_newlines_by_step(text, 0, len(text)), initial=0))

    @property
    def lines(self) -> int:
        """How many lines the text has."""
        return self._before[-1] + (not self.text.endswith("\n")) if self.text else 0

    def before(self, position: int) -> int:
        r"""Return how many `\n` stand before `position`."""
        step = position // _COUNTED_AT_ONCE
        return self._before[step] + self.text.count("\n", step * _COUNTED_AT_ONCE, position)


# --- in words -----------------------------------------------------------------------------------

_LARGEST_SCALED: Final = 999.95
"""From here on, one decimal place would print as `1000.0`."""


def approx_tokens(size: int) -> int:
    """Return `wire.approx_tokens` to two digits, which is more than the estimate is worth. For display."""
    return int(float(f"{wire.approx_tokens(size):.1e}"))


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 line`, `2,000 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def readable_size(size: int) -> str:
    """Return a size in decimal units: `512 bytes`, `50.1 KB`, `4.2 MB`."""
    scaled = float(size)
    for unit in ("KB", "MB", "GB"):
        scaled /= 1000
        if scaled < _LARGEST_SCALED:
            return f"{scaled:.1f} {unit}" if size >= 1000 else plural(size, "byte")  # noqa: PLR2004
    return f"{scaled:.1f} GB"
