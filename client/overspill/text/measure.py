r"""How large a text is: UTF-8 bytes, lines and tokens, found as lazily as the question allows.

A line ends with `\n`; a last line without one counts, and an empty text has none. The service
counts the same way.
"""

from __future__ import annotations

import codecs
import sys
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from overspill import wire
from overspill.text import token_estimate
from overspill.text.body import FileBody

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.text.body import Body

UNLIMITED: Final = sys.maxsize
MAX_BYTES_PER_CHARACTER: Final = 4
PREVIEW_BYTES_PER_TOKEN: Final = 2.4
"""For the size of a preview within a limit in tokens: nineteen of twenty logs and programs have more."""
CHARS_PER_TOKEN: Final = 4
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_READABLE: Final = 999.95
_STEP: Final = 1024 * 1024
_FEW: Final = 32 * 1024
_USUAL_LINE: Final = 40
"""Bytes of a line below which counting is faster than searching."""
_SHORT: Final = 128 * 1024
"""Characters that are copied rather than looked at one by one."""
_ENCODE_ERRORS: Final = ("strict", "surrogateescape", "overspill.each")


class Extent(NamedTuple):
    """How large a text is: UTF-8 bytes, and lines."""

    size: int
    lines: int

    @classmethod
    def of(cls, body: Body) -> Extent:
        """Measure a body: bytes in UTF-8, and lines, of which the last may lack its end."""
        if isinstance(body, FileBody):
            return cls(body.size, body.lines)
        if isinstance(body, bytes):
            return cls(len(body), lines_of_bytes(body))
        return cls(size(body), count_lines(body))


class TokenMeter(Protocol):
    """What decides on a limit in tokens."""

    def exceeds(self, text: str, limit: int) -> bool:
        """Whether `text` has strictly more than `limit` tokens, or may have where it cannot be known."""

    def exceeds_data(self, data: bytes | FileBody, limit: int) -> bool:
        """The same of bytes, which are not at hand as text."""

    def surely_fits(self, limit: int) -> int:
        """The length in characters up to which no text has more than `limit` tokens."""

    def safe(self, text: str) -> int:
        """The least limit that `text` does not exceed."""

    def prefix(self, text: str, limit: int) -> int:
        """Characters of the longest prefix that is known to have at most `limit` tokens."""

    def suffix(self, text: str, limit: int) -> int:
        """As `prefix`, from the end."""


class Limits(NamedTuple):
    """What a text may have at most: bytes, lines, and unless None characters and tokens.

    `counter` counts the tokens; without one they are estimated by `token_estimate`.
    """

    max_bytes: int
    max_lines: int = UNLIMITED
    max_chars: int | None = None
    max_tokens: int | None = None
    counter: TokenMeter | None = None


def encode(text: str) -> bytes:
    """`text` as the bytes that are stored; never fails.

    Bytes that Python smuggled through a `str` (`surrogateescape`, as in file names) come back as they
    were; any other lone surrogate becomes its own three bytes, which are not UTF-8 but lose nothing.
    """
    return text.encode() if text.isascii() else b"".join(encoded_pieces(text))


def size(text: str) -> int:
    """Bytes of `encode(text)`, without encoding where the text is ASCII."""
    if text.isascii():
        return len(text)
    return len(_encoded(text)) if len(text) <= _STEP else sum(map(len, encoded_pieces(text)))


def size_of(body: Body) -> int:
    """Bytes of a body of any kind."""
    if isinstance(body, str):
        return size(body)
    return body.size if isinstance(body, FileBody) else len(body)


def encoded_pieces(text: str) -> Iterator[bytes]:
    """`encode(text)` a piece at a time."""
    return map(_encoded, _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """`text` in steps that let other threads run between."""
    return (text[at : at + _STEP] for at in range(0, len(text), _STEP))


def _encoded(text: str) -> bytes:
    for errors in _ENCODE_ERRORS[:-1]:
        try:
            return text.encode("utf-8", errors)
        except UnicodeEncodeError:
            continue
    return text.encode("utf-8", _ENCODE_ERRORS[-1])


def _each(error: UnicodeError) -> tuple[bytes, int]:
    """Each surrogate by itself, so that the sizes of parts add up to that of the whole."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    run = error.object[error.start : error.end]
    return b"".join(map(_surrogate, run)), error.end


def _surrogate(character: str) -> bytes:
    is_byte = "\udc80" <= character <= "\udcff"
    return character.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass")


codecs.register_error(_ENCODE_ERRORS[-1], _each)


def count_newlines(text: str, start: int = 0, stop: int | None = None) -> int:
    r"""`\n` in `text[start:stop]`, counted in steps that let other threads run between."""
    stop = len(text) if stop is None else stop
    return text.count("\n", start, stop) if stop - start <= _FEW else sum(_by_step(text, start, stop))


def _by_step(text: str, start: int, stop: int) -> Iterator[int]:
    if text.isascii():
        return (_newlines(text[at : min(at + _FEW, stop)].encode()) for at in range(start, stop, _FEW))
    return (text.count("\n", at, min(at + _FEW, stop)) for at in range(start, stop, _FEW))


class NewlineIndex:
    r"""The `\n` of a text, counted once: how many stand before any place of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._before = list(accumulate(_by_step(text, 0, len(text)), initial=0))

    @property
    def lines(self) -> int:
        return self._before[-1] + (not self.text.endswith("\n")) if self.text else 0

    def before(self, position: int) -> int:
        """Return how many newlines stand before `position`."""
        step = position // _FEW
        return self._before[step] + self.text.count("\n", step * _FEW, position)


def count_lines(text: str) -> int:
    """Return the lines of a text; the last one counts without its end, too."""
    return count_newlines(text) + (not text.endswith("\n")) if text else 0


def newlines_of_bytes(data: bytes) -> int:
    r"""`\n` in `data`, counted in steps that let other threads run between."""
    return sum(_newlines(data[at : at + _FEW]) for at in range(0, len(data), _FEW))


def lines_of_bytes(data: bytes) -> int:
    """Return the lines of `data`; the last one counts without its end, too."""
    return newlines_of_bytes(data) + (not data.endswith(b"\n")) if data else 0


def _newlines(data: bytes) -> int:
    """Those of few bytes: `replace` finds them at the speed of memory, where `count` looks at each byte.

    But it is the slower one where lines are short.
    """
    most = len(data) // _USUAL_LINE + 1
    found = len(data) - len(data.replace(b"\n", b"", most))
    return found if found < most else data.count(b"\n")


def exceeds(text: str, limits: Limits) -> bool:
    """Whether `text` has strictly more bytes, lines, characters or tokens than allowed.

    Each step is dearer than the one before: the length alone, a flag of the string, encoding,
    counting lines, counting tokens. A text of `n` characters has at most `n` lines.
    """
    length = len(text)
    if length > limits.max_bytes or (limits.max_chars is not None and length > limits.max_chars):
        return True
    if length * MAX_BYTES_PER_CHARACTER > limits.max_bytes and size(text) > limits.max_bytes:
        return True
    if length > limits.max_lines and has_more_lines(text, limits.max_lines):
        return True
    return limits.max_tokens is not None and _has_more_tokens(text, limits.max_tokens, limits.counter)


def exceeds_bytes(data: bytes, limits: Limits) -> bool:
    """As `exceeds`; tokens are estimated."""
    return len(data) > limits.max_bytes or _data_exceeds(data, limits)


def body_exceeds(body: Body, limits: Limits) -> bool:
    """As `exceeds`, of a body of any kind; tokens of what is not text in memory are estimated."""
    if isinstance(body, str):
        return exceeds(body, limits)
    return exceeds_bytes(body, limits) if isinstance(body, bytes) else _data_exceeds(body, limits)


def _data_exceeds(data: bytes | FileBody, limits: Limits) -> bool:
    if limits.max_chars is not None and _has_more_characters(data, limits.max_chars):
        return True
    extent = Extent.of(data)
    if extent.size > limits.max_bytes or extent.lines > limits.max_lines:
        return True
    if limits.max_tokens is None:
        return False
    if limits.counter is None:
        return data_has_more_tokens(data, limits.max_tokens)
    return limits.counter.exceeds_data(data, limits.max_tokens)


def data_has_more_tokens(data: bytes | FileBody, limit: int) -> bool:
    """Whether `data` may have more than `limit` tokens, by estimate."""
    if isinstance(data, bytes):
        return token_estimate.data_exceeds(lambda at, length: data[at : at + length], len(data), limit)
    return token_estimate.data_exceeds(data.read, data.size, limit)


def _has_more_characters(data: bytes | FileBody, limit: int) -> bool:
    """Whether `data` has more than `limit` bytes that begin a UTF-8 character."""
    if not limit < len(data) <= limit * MAX_BYTES_PER_CHARACTER:
        return len(data) > limit
    pieces = data.pieces() if isinstance(data, FileBody) else _parts(data)
    return sum(len(piece.translate(None, _CONTINUATION)) for piece in pieces) > limit


def _parts(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _STEP] for at in range(0, len(data), _STEP))


def has_more_lines(text: str, limit: int) -> bool:
    """Whether `text` has more than `limit` lines: whether anything stands behind that many newlines.

    `replace` goes from newline to newline at the speed of memory, where `count` looks at each character.
    """
    if limit <= 0:
        return bool(text)
    if len(text) > _SHORT:
        return _has_more_lines_in_steps(text, limit)
    at = text.replace("\n", " ", limit - 1).find("\n", limit - 1)
    return -1 < at < len(text) - 1


def _has_more_lines_in_steps(text: str, limit: int) -> bool:
    found = int(not text.endswith("\n"))
    return any(
        (found := found + text.count("\n", at, at + _SHORT)) > limit for at in range(0, len(text), _SHORT)
    )


def _has_more_tokens(text: str, limit: int, counter: TokenMeter | None) -> bool:
    if counter is None:
        return token_estimate.exceeds(text, size(text), limit)
    return counter.exceeds(text, limit)


def safe_tokens(text: str, counter: TokenMeter | None) -> int:
    """The least limit in tokens that `text` does not exceed."""
    return token_estimate.at_most(text) if counter is None else counter.safe(text)


def surely_fitting_bytes(limits: Limits) -> int:
    """The bytes up to which neither bytes nor tokens exceed the limits; 0 where tokens must be counted."""
    if limits.max_tokens is None:
        return limits.max_bytes
    if limits.counter is not None:
        return 0
    return min(limits.max_bytes, limits.max_tokens)  # no token is shorter than a byte


def surely_fitting_chars(limits: Limits) -> int:
    """The length in characters up to which no text can exceed the limits, whatever is in it."""
    return min(limits.max_lines, surely_fitting_chars_on_lines(limits))


def surely_fitting_chars_on_lines(limits: Limits) -> int:
    """As `surely_fits`, of a text that has no more lines than they allow."""
    if limits.max_chars is None and limits.max_tokens is None:
        return limits.max_bytes // MAX_BYTES_PER_CHARACTER
    lengths = [limits.max_bytes // MAX_BYTES_PER_CHARACTER]
    if limits.max_chars is not None:
        lengths.append(limits.max_chars)
    if limits.max_tokens is not None:
        lengths.append(_chars_for(limits.max_tokens, limits.counter))
    return min(lengths)


def allowed_bytes(limits: Limits, body: Body) -> int:
    """How many bytes of `body` the limits allow at most, at 4 characters a token."""
    width = 1 if isinstance(body, str) and body.isascii() else MAX_BYTES_PER_CHARACTER
    sizes = [limits.max_bytes]
    if limits.max_chars is not None:
        sizes.append(limits.max_chars * width)
    if limits.max_tokens is not None:
        sizes.append(limits.max_tokens * CHARS_PER_TOKEN * width)
    return min(sizes)


def _chars_for(tokens: int, counter: TokenMeter | None) -> int:
    if counter is None:
        return tokens // MAX_BYTES_PER_CHARACTER
    return counter.surely_fits(tokens)


def approx_tokens(size: int) -> int:
    """`wire.approx_tokens` to two digits, which is more than the estimate is worth: for people and models."""
    return int(float(f"{wire.approx_tokens(size):.1e}"))


def plural(number: int, noun: str) -> str:
    """`1 line`, `2,000 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def readable_size(size: int) -> str:
    """`size` bytes in decimal units, as people read them: `512 bytes`, `50.1 KB`, `4.2 MB`."""
    scaled = float(size)
    for unit in ("KB", "MB", "GB"):
        scaled /= 1000
        if scaled < _READABLE:
            return f"{scaled:.1f} {unit}" if size >= 1000 else plural(size, "byte")  # noqa: PLR2004
    return f"{scaled:.1f} GB"
