"""Estimate how many tokens a text has from its characters, without a tokenizer.

Two estimates come from one count of character classes:

- `likely(text)` is for display. English, code, logs, JSON and Chinese, Japanese or Korean are within 15 % of
  the o200k vocabulary, nine texts of ten.
- `at_most(text)` is for limits. No text that was measured has more tokens, in the vocabularies o200k, cl100k,
  Qwen, Mistral (Tekken) or DeepSeek. Two of them give each digit a token of its own.

The weights were fitted to 790 texts of 330 kinds: `likely` by least squares, `at_most` by a linear program
that asks for 4 % more than the largest true count of each text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.text import encoding
from overspill.text.sanitize import longest_fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Sized

    from overspill.text.body import FileBody

WHOLE_CHARS: Final = 128 * 1024
"""Up to this length all of a text is counted, at 20 to 30 ns a character. Longer texts are sampled."""
BYTES_PER_TOKEN: Final = 10
"""No estimate has more bytes in a token, so a long text exceeds its limit by its size alone."""
_SAMPLES: Final = 16
_SAMPLE_CHARS: Final = 4 * 1024
_DISPLAY_SAMPLE_CHARS: Final = 512
"""Characters of each sample for display. Nine long texts in ten are within 4 % of the count of the whole."""
_EDGE_TOKENS: Final = 4
"""Tokens added for each block, because its edges cut patterns apart."""


class _Weight(NamedTuple):
    """The tokens that each occurrence of one of `patterns` adds to the two estimates."""

    likely: float
    upper: float
    patterns: tuple[bytes, ...]


def _alphabet(default: bytes, groups: Mapping[str, Iterable[int]]) -> bytes:
    """Return a table for `bytes.translate` that replaces each byte by the letter of its group."""
    table = bytearray(default * 256)
    for letter, members in groups.items():
        for member in members:
            table[member] = ord(letter)
    return bytes(table)


_LOWER: Final = range(ord("a"), ord("z") + 1)
_UPPER: Final = range(ord("A"), ord("Z") + 1)
_HIGH: Final = range(0x80, 0x100)
_CONTROL: Final = (*range(9), 11, 12, *range(14, 32), 127)

_KINDS: Final = _alphabet(
    b".",
    {
        "a": _LOWER,
        "A": _UPPER,
        "0": range(ord("0"), ord("9") + 1),
        " ": b" \t",
        "n": b"\r\n",
        "x": _CONTROL,
        "h": _HIGH,
    },
)
_WORDS: Final = _alphabet(b" ", {"w": (*_LOWER, *_UPPER), "h": _HIGH})
_LETTERS: Final = _alphabet(
    b".",
    {
        "c": b"bcdfghlmnprst",
        "v": b"aeiouy",
        "q": b"jkqvwxz",
        "C": (letter for letter in _UPPER if letter not in b"AEIOUY"),
    },
)
_LEADS: Final = _alphabet(
    b".",
    {
        "L": [0xC3],  # accented Latin letters
        "X": [0xC4, 0xC5],  # of Central Europe and Turkey
        "2": [
            0xC2,
            *range(0xC6, 0xCE),
            *range(0xD2, 0xD7),
            *range(0xDC, 0xE0),
        ],  # other characters of 2 bytes
        "G": [0xCE, 0xCF],  # Greek
        "Y": [0xD0, 0xD1],  # Cyrillic
        "H": [0xD7],  # Hebrew
        "R": range(0xD8, 0xDC),  # Arabic
        "I": [0xE0],  # India, Thailand, Laos
        "S": [0xE1],  # Vietnamese, and small scripts
        "P": [0xE2],  # punctuation, symbols, lines of tables
        "J": [0xE3],  # kana, and rare Chinese characters
        "K": range(0xE4, 0xEA),  # Chinese characters
        "O": range(0xEA, 0xEE),  # Hangul
        "F": [0xEE, 0xEF],  # full-width forms, private use
        "E": range(0xF0, 0xF5),  # emoji, and rare characters
    },
)
"""Groups of characters beyond ASCII, by their first byte in UTF-8."""

_OF_ASCII: Final = (
    (_WORDS, (_Weight(1.07, 1.06, (b" w",)), _Weight(0.2, 1.4, (b"wwwwwwww",)))),
    (
        _LETTERS,
        (
            _Weight(0.5, 1.18, (b"q",)),
            _Weight(0.3, 0.3, (b"ccc",)),
            _Weight(0.33, 1.73, (b"vv",)),
            _Weight(2.1, 0.0, (b"CCC",)),
        ),
    ),
    (
        _KINDS,
        (
            _Weight(0.0, 0.52, (b"A",)),
            _Weight(0.12, 0.0, (b"AA",)),
            _Weight(0.6, 1.37, (b"aA",)),
            _Weight(0.4, 1.1, (b"0",)),
            _Weight(0.72, 1.08, (b".0",)),
            _Weight(1.58, 1.67, (b" 0",)),
            _Weight(0.24, 0.3, (b".",)),
            _Weight(0.15, 0.37, (b"..",)),
            _Weight(0.28, 1.46, (b"....",)),
            _Weight(1.22, 0.14, (b" .",)),
            _Weight(0.2, 1.3, (b"n",)),
            _Weight(0.02, 0.04, (b"  ",)),
            _Weight(0.7, 1.07, (b"x",)),
        ),
    ),
)
_OF_LEADS: Final = (
    _Weight(0.64, 0.93, (b"L",)),
    _Weight(1.0, 1.56, (b"X",)),
    _Weight(1.0, 2.54, (b"2",)),
    _Weight(0.56, 1.8, (b"G",)),
    _Weight(0.4, 0.99, (b"Y",)),
    _Weight(0.54, 1.58, (b"H",)),
    _Weight(0.47, 1.91, (b"R",)),
    _Weight(0.41, 2.81, (b"I",)),
    _Weight(0.6, 3.12, (b"S",)),
    _Weight(1.07, 3.11, (b"P",)),
    _Weight(3.0, 3.88, (b"J",)),
    _Weight(0.66, 2.45, (b"K",)),
    _Weight(0.64, 3.11, (b"O",)),
    _Weight(2.5, 3.12, (b"F",)),
    _Weight(3.0, 4.56, (b"E",)),
)
_OF_PREFIXES: Final = (
    _Weight(0.36, 0.48, (b"\xe0\xb6", b"\xe0\xb7", b"\xe0\xba", b"\xe0\xbb")),  # Sinhala, Lao
    _Weight(-0.43, -2.15, (b"\xe2\x80", b"\xe2\x94", b"\xe2\x95")),  # dashes and quotes, lines of tables
    _Weight(-2.31, -1.99, (b"\xe3\x80", b"\xe3\x81", b"\xe3\x82", b"\xe3\x83")),  # kana
    _Weight(-1.84, -1.29, (b"\xef\xbc", b"\xef\xbd")),  # full-width forms
)
"""Corrections for characters that are more usual, or less, than others with the same first byte."""


class _Sums(NamedTuple):
    likely: float
    upper: float


def likely(text: str) -> int:
    """Estimate the tokens of `text` for people and models to read."""
    parts = _sample(text, _DISPLAY_SAMPLE_CHARS)
    return math.ceil(_scaled(len(text), parts, _sums("".join(parts)).likely))


def at_most(text: str) -> int:
    """Return tokens that `text` does not exceed. A text of more than `WHOLE_CHARS` is sampled."""
    parts = _sample(text, _SAMPLE_CHARS)
    return math.ceil(_scaled(len(text), parts, sum(map(_estimate_for_limits, parts))))


def exceeds(text: str, size: int, limit: int) -> bool:
    """Return whether `text`, which has `size` bytes, may have more than `limit` tokens.

    No token is shorter than a byte, so a text of up to `limit` bytes needs no look.
    """
    if not limit < size <= limit * BYTES_PER_TOKEN:
        return size > limit
    return at_most(text) > limit


def data_exceeds(data: bytes | FileBody, limit: int) -> bool:
    """Do the same as `exceeds`, for bytes. Raises `OSError` if a file cannot be read."""
    size = len(data)
    if not limit < size <= limit * BYTES_PER_TOKEN:
        return size > limit
    parts = _parts(data, _SAMPLE_CHARS)
    tokens = sum(_estimate_for_limits(part.decode(errors="replace")) for part in parts)
    return _scaled(size, parts, tokens) > limit


def likely_of_data(data: bytes | FileBody) -> int:
    """Do the same as `likely`, for bytes. Raises `OSError` if a file cannot be read."""
    parts = _parts(data, _DISPLAY_SAMPLE_CHARS)
    text = "".join(part.decode(errors="replace") for part in parts)
    return math.ceil(_scaled(len(data), parts, _sums(text).likely))


def _parts(data: bytes | FileBody, slice_size: int) -> list[bytes]:
    return [encoding.part(data, begin, length) for begin, length in _sample_spans(len(data), slice_size)]


def prefix(text: str, limit: int) -> int:
    """Return the length in characters of a prefix with at most `limit` tokens, nearly the longest."""
    return _fitting(lambda begin, end: text[begin:end], len(text), limit)


def suffix(text: str, limit: int) -> int:
    """Do the same as `prefix`, for a suffix."""
    length = len(text)
    return _fitting(lambda begin, end: text[length - end : length - begin], length, limit)


def _fitting(part: Callable[[int, int], str], length: int, limit: int) -> int:
    """Return the length that fits, found block by block. `part` gets a range from the end that is kept."""
    room = float(limit)
    for begin in range(0, length, _SAMPLE_CHARS):
        end = min(length, begin + _SAMPLE_CHARS)
        room -= _EDGE_TOKENS * (begin > 0)
        tokens = _uncapped(part(begin, end))
        if tokens > room:
            return begin + longest_fitting(end - begin, _block_fits(part, begin, room))
        room -= tokens
    return length


def _block_fits(part: Callable[[int, int], str], begin: int, room: float) -> Callable[[int], bool]:
    return lambda length: _uncapped(part(begin, begin + length)) <= room


def _sample_spans(size: int, slice_size: int) -> list[tuple[int, int]]:
    """Return offsets and lengths of the counted parts: the whole, or samples at equal distances."""
    if size <= (WHOLE_CHARS if slice_size == _SAMPLE_CHARS else _SAMPLES * slice_size):
        return [(0, size)]
    step = (size - slice_size) / (_SAMPLES - 1)
    return [(int(at * step), slice_size) for at in range(_SAMPLES)]


def _sample(text: str, slice_size: int) -> list[str]:
    return [text[begin : begin + length] for begin, length in _sample_spans(len(text), slice_size)]


def _scaled(size: int, parts: Sequence[Sized], tokens: float) -> float:
    """Return the tokens of the whole, which has `size`, by those of its parts."""
    return tokens if len(parts) == 1 else tokens * size / max(1, sum(map(len, parts)))


def _estimate_for_limits(text: str) -> float:
    """Estimate for limits: at most one token for each byte."""
    return min(len(_encoded(text)), _uncapped(text))


def _uncapped(text: str) -> float:
    """Estimate without that cap. The parts of a text add up to the whole, except for `_EDGE_TOKENS`."""
    return max(_sums(text).upper, len(_encoded(text)) / BYTES_PER_TOKEN)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _sums(text: str) -> _Sums:
    """Return the two weighted sums of `text`."""
    data = b" " + _encoded(text)
    found = [_weighed(data.translate(alphabet), weights) for alphabet, weights in _OF_ASCII]
    if not data.isascii():
        found += [_weighed(data.translate(_LEADS), _OF_LEADS), _weighed(data, _OF_PREFIXES)]
    return _Sums(sum(each.likely for each in found), sum(each.upper for each in found))


def _weighed(data: bytes, weights: tuple[_Weight, ...]) -> _Sums:
    likely_tokens = upper_tokens = 0.0
    for weight in weights:
        number = sum(map(data.count, weight.patterns))
        likely_tokens += number * weight.likely
        upper_tokens += number * weight.upper
    return _Sums(likely_tokens, upper_tokens)
