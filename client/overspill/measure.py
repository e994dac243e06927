r"""How large a text is: UTF-8 bytes, lines and tokens, found as lazily as the question allows.

A line ends with `\n`; a last line without one counts, and an empty text has none. The service
counts the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES_PER_CHARACTER: Final = 4
_READABLE: Final = 999.95
_STEP: Final = 1024 * 1024
_ENCODE_ERRORS: Final = ("strict", "surrogateescape", "surrogatepass")


class Extent(NamedTuple):
    """How large a text is: UTF-8 bytes, and lines."""

    size: int
    lines: int

    @classmethod
    def of(cls, body: str | bytes) -> Extent:
        if isinstance(body, bytes):
            return cls(len(body), lines_of_bytes(body))
        return cls(size(body), lines(body))


class Limits(NamedTuple):
    """What a text may have at most: bytes, lines, and characters unless None."""

    max_bytes: int
    max_lines: int
    max_chars: int | None = None


def encode(text: str) -> bytes:
    """`text` as the bytes that are stored; never fails.

    Bytes that Python smuggled through a `str` (`surrogateescape`, as in file names) come back as they
    were; any other lone surrogate becomes its own three bytes, which are not UTF-8 but lose nothing.
    """
    return text.encode() if text.isascii() else b"".join(map(_encoded, _pieces(text)))


def size(text: str) -> int:
    """Bytes of `encode(text)`, without encoding where the text is ASCII."""
    return len(text) if text.isascii() else sum(map(len, map(_encoded, _pieces(text))))


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


def newlines(text: str, start: int = 0, stop: int | None = None) -> int:
    r"""`\n` in `text[start:stop]`, counted in steps that let other threads run between."""
    stop = len(text) if stop is None else stop
    return sum(text.count("\n", at, min(at + _STEP, stop)) for at in range(start, stop, _STEP))


def lines(text: str) -> int:
    return newlines(text) + (not text.endswith("\n")) if text else 0


def lines_of_bytes(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n")) if data else 0


def exceeds(text: str, limits: Limits) -> bool:
    """Whether `text` has strictly more bytes, lines or characters than allowed.

    Each step is dearer than the one before: the length alone, a flag of the string, encoding,
    counting lines. A text of `n` characters has at most `n` lines.
    """
    length = len(text)
    if length > limits.max_bytes or (limits.max_chars is not None and length > limits.max_chars):
        return True
    if length * MAX_BYTES_PER_CHARACTER > limits.max_bytes and size(text) > limits.max_bytes:
        return True
    return length > limits.max_lines and lines(text) > limits.max_lines


def exceeds_bytes(data: bytes, limits: Limits) -> bool:
    return len(data) > limits.max_bytes or lines_of_bytes(data) > limits.max_lines


def surely_fits(limits: Limits) -> int:
    """The length in characters up to which no text can exceed the limits, whatever is in it."""
    lengths = (limits.max_bytes // MAX_BYTES_PER_CHARACTER, limits.max_lines, limits.max_chars)
    return min(length for length in lengths if length is not None)


def approx_tokens(size: int) -> int:
    """`wire.approx_tokens` to two digits, which is more than the estimate is worth: for people and models."""
    return int(float(f"{wire.approx_tokens(size):.1e}"))


def counted(number: int, noun: str) -> str:
    """`1 line`, `2,000 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def readable(size: int) -> str:
    """`size` bytes in decimal units, as people read them: `512 bytes`, `50.1 KB`, `4.2 MB`."""
    scaled = float(size)
    for unit in ("KB", "MB", "GB"):
        scaled /= 1000
        if scaled < _READABLE:
            return f"{scaled:.1f} {unit}" if size >= 1000 else counted(size, "byte")  # noqa: PLR2004
    return f"{scaled:.1f} GB"
