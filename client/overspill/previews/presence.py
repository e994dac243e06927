"""Tell which of the words for trouble a text may have, and search for one of them.

Most words are nowhere. Of thousands of pieces between blanks and punctuation only hundreds differ, and a word
is searched for in those in a tenth of the time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from overspill.previews import words

_DIGITS: Final = b"0123456789"
_PUNCTUATION_TO_BLANKS: Final = bytes.maketrans(b'/.,:;=()[]{}"<>|\\_-', b" " * 19)
_HEAD_BYTES: Final = 3
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


def _pieces(text: bytes) -> list[bytes]:
    """Return what stands between blanks and punctuation, without digits."""
    return text.translate(_PUNCTUATION_TO_BLANKS, _DIGITS).split()


_PROBES: Final = tuple(map(_Probe.of, (*words.STRONG, *words.USUAL, *words.WEAK)))
_PROBES_BUT_RED: Final = tuple(probe for probe in _PROBES if not probe.word.endswith(words.END_OF_RED))


def present_words(data: bytes) -> list[bytes]:
    """Return the words that `data`, in lower case, may have: strong and usual words first."""
    pieces = {*_pieces(data)}
    joined = b" ".join(pieces)
    heads = {b"", *(piece[:_HEAD_BYTES] for piece in pieces)}
    probes = _PROBES if words.END_OF_RED in data else _PROBES_BUT_RED
    return [word for word, piece, head in probes if head in heads and piece in joined]
