"""Tell which of the words for trouble a text may have, and search for one of them.

Most words are nowhere. RE2 (the extra `re2`) looks for all of them in one pass. Without it, each is searched
for in the pieces between blanks and punctuation: of thousands only hundreds differ.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from overspill.previews import search_set, words
from overspill.previews.search_set import SearchSet

_DIGITS: Final = b"0123456789"
_PUNCTUATION: Final = b'/.,:;=()[]{}"<>|\\_-'
_PUNCTUATION_TO_BLANKS: Final = bytes.maketrans(_PUNCTUATION, b" " * len(_PUNCTUATION))
_SEPARATORS: Final = b" \t\n\r\x0b\x0c" + _PUNCTUATION
_HEAD_BYTES: Final = 3
_FEW_WEAK: Final = 3
"""So many weak words are searched for in less time than all heads."""
_RARE_LETTER_BYTES: Final = 1_000
"""A letter that stands at most once in this many bytes is worth searching for in the place of its word."""
_MAX_LETTER_HITS: Final = 100
"""After this many hits of a letter, search for the word: the letter is more usual than the sample said."""


class Word(NamedTuple):
    """A word to search for. If its `letter` at `offset` is rare, the search goes from letter to letter.

    One byte is found at the speed of memory, ten times as fast as several bytes.
    """

    text: bytes
    letter: bytes = b""
    offset: int = 0

    @classmethod
    def of(cls, text: bytes, sample: bytes) -> Word:
        """Return the word with the letter that is rarest in `sample`, if that is rare enough."""
        letters = [text[at : at + 1] for at in range(len(text))]
        letter = min(letters, key=sample.count)
        is_rare = sample.count(letter) * _RARE_LETTER_BYTES <= len(sample)
        return cls(text, letter, letters.index(letter)) if is_rare else cls(text)

    def find(self, data: bytes, begin: int) -> int:
        """Return the position of the word in `data`, from `begin` on; negative if there is none."""
        if not self.letter:
            return data.find(self.text, begin)
        at = begin + self.offset
        for _ in range(_MAX_LETTER_HITS):
            at = data.find(self.letter, at)
            if at < 0 or data.startswith(self.text, at - self.offset):
                return at - self.offset
            at += 1
        return data.find(self.text, at - self.offset)


class _Probe(NamedTuple):
    """A text without the `piece` does not have the `word`.

    A weak word has a `head`. It is searched for only if a piece of the text begins so.
    """

    word: bytes
    piece: bytes
    head: bytes = b""

    @classmethod
    def of(cls, word: bytes) -> _Probe:
        piece = max(_pieces(word), key=len, default=b"")
        if word.endswith(words.END_OF_RED):
            return cls(word, b"")
        if word in words.WEAK and len(piece) >= _HEAD_BYTES:
            return cls(word, piece, piece[:_HEAD_BYTES])
        return cls(word, piece)

    def begins_a_piece(self, data: bytes) -> bool:
        """Return whether the first word in `data` begins a piece. If not, another piece may begin so."""
        at = data.find(self.word) + self.word.index(self.piece)
        return at == 0 or data[at - 1 : at] in _SEPARATORS


def _pieces(text: bytes) -> list[bytes]:
    """Return what stands between blanks and punctuation, without digits."""
    return text.translate(_PUNCTUATION_TO_BLANKS, _DIGITS).split()


_PROBES: Final = tuple(map(_Probe.of, (*words.STRONG, *words.USUAL, *words.WEAK)))
_PROBES_BUT_RED: Final = tuple(probe for probe in _PROBES if not probe.word.endswith(words.END_OF_RED))


def present_words(data: bytes) -> list[bytes]:
    """Return the words that `data`, in lower case, may have: strong and usual words first."""
    return _present_by_sets(data) if search_set.IS_AVAILABLE else present_in_pieces(data)


def present_in_pieces(data: bytes) -> list[bytes]:
    """Do the same as `present_words` without RE2, in five times the time. Some words may be nowhere."""
    pieces = {*_pieces(data)}
    joined = b" ".join(pieces)
    heads = {b"", *(piece[:_HEAD_BYTES] for piece in pieces)}
    probes = _PROBES if words.END_OF_RED in data else _PROBES_BUT_RED
    return [word for word, piece, head in probes if head in heads and piece in joined]


def _present_by_sets(data: bytes) -> list[bytes]:
    found = [_PROBES[number] for number in _WORD_SET.numbers(data)]
    weak = [probe for probe in found if probe.head]
    heads = {b""}
    if len(weak) <= _FEW_WEAK:
        heads.update(probe.head for probe in weak if probe.begins_a_piece(data))
    if any(probe.head not in heads for probe in weak):
        heads.update(_HEADS[number] for number in _HEAD_SET.numbers(data))
    return [probe.word for probe in found if probe.head in heads]


def _beginning_with(head: bytes) -> bytes:
    """Return a pattern that a text has if one of its pieces begins with `head`, digits left out."""
    letters = b"".join(b"[0-9]*" + re.escape(head[at : at + 1]) for at in range(len(head)))
    return rb"(?:\A|[\s\x0b" + re.escape(_PUNCTUATION) + rb"])" + letters


_HEADS: Final = sorted({probe.head for probe in _PROBES} - {b""})
# One set of words and heads would have far more states.
_WORD_SET: Final = SearchSet(re.escape(probe.word) for probe in _PROBES)
_HEAD_SET: Final = SearchSet(map(_beginning_with, _HEADS))
