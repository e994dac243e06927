"""Tell which of the words for trouble a text may have, before each is searched for in all of it.

Most words are nowhere. Of thousands of pieces between blanks and punctuation only hundreds differ, so one
pass over those that differ takes a fraction of the time of one search for each word.
"""

from __future__ import annotations

from typing import Final

from overspill.previews import words
from overspill.previews.keywords import Keywords, members

_DIGITS: Final = b"0123456789"
_PUNCTUATION_TO_BLANKS: Final = bytes.maketrans(b'/.,:;=()[]{}"<>|\\_-', b" " * 19)
_HEAD_BYTES: Final = 3
_ALL: Final = (*words.STRONG, *words.USUAL, *words.WEAK)


def _pieces(text: bytes) -> list[bytes]:
    """Return what stands between blanks and punctuation, without digits."""
    return text.translate(_PUNCTUATION_TO_BLANKS, _DIGITS).split()


_PIECES: Final = {word: max(_pieces(word), key=len, default=b"") for word in _ALL}
"""The longest piece of each word. A text without that piece does not have the word."""
_HEADS: Final = {
    word: b" " + piece[:_HEAD_BYTES]
    for word, piece in _PIECES.items()
    if word in words.WEAK and len(piece) >= _HEAD_BYTES
}
"""A weak word is searched for only if a piece of the text begins as it does."""


def _numbers_of(piece: bytes) -> int:
    return sum(1 << number for number, word in enumerate(_ALL) if _PIECES[word] == piece)


_ANYWHERE: Final = sum(1 << number for number, word in enumerate(_ALL) if not _PIECES[word])
_RED: Final = sum(1 << number for number, word in enumerate(_ALL) if word.endswith(words.END_OF_RED))
_KEYWORDS: Final = Keywords(
    {piece: _numbers_of(piece) for piece in _PIECES.values() if piece not in {b"", b"m"}}
)


def present_words(data: bytes) -> list[bytes]:
    """Return the words that `data`, in lower case, may have: strong and usual words first."""
    pieces = b" " + b" ".join({*_pieces(data)})
    found = _KEYWORDS.numbers(pieces) | _ANYWHERE
    if words.END_OF_RED in data:
        found |= _RED
    present = map(_ALL.__getitem__, members(found))
    return [word for word in present if word not in _HEADS or _HEADS[word] in pieces]
