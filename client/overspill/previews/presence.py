"""Tell which of the words for trouble a text may have, before each is searched for in all of it.

Most words are nowhere. Of thousands of pieces between blanks and punctuation only hundreds differ, and a word
is searched for in those in a tenth of the time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from overspill.previews import words

_DIGITS: Final = b"0123456789"
_PUNCTUATION_TO_BLANKS: Final = bytes.maketrans(b'/.,:;=()[]{}"<>|\\_-', b" " * 19)
_HEAD_BYTES: Final = 3


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
