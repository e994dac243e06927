"""Find plain texts that every matching line has, from the pattern alone. If in doubt, find none."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MIN_DISTINCT_CHARS: Final = 3
"""A text is searched for only if its last `_TAIL_CHARS` have at least this many different characters. Other
texts are nearly everywhere, or at every byte of some places, as in lines drawn with dashes."""
_TAIL_CHARS: Final = 8
MAX_TEXTS: Final = 64
"""The most texts that are searched for at once."""

_PIECE: Final = re.compile(
    r"""
    (?: (?P<plain> \\[ -/:-@\[-`{-~] | [^\x00-\x1f\x7f-\U0010ffff\\.\[\](){}*+?|^$] )
      | (?P<group> \( (?: \?: | \?P?<\w+> | (?!\?) ) )
      | (?P<end> \) )
      | (?P<either> \| )
      | \\[bBdDsSwW] | [.^$] | \[ \^? (?: [^\]\[\\] | \\. )+ \]
    )
    (?P<repeated> (?: [*+?] | \{\d+(?:,\d*)?\} ) \?? )?
    """,
    re.VERBOSE | re.DOTALL,
)
_ONE_GROUP: Final = re.compile(r"\((?:\?:)?([^()\\]*)\)")
_IGNORE_CASE: Final = "(?i)"


class Literals(NamedTuple):
    """Printable ASCII texts. Every line that matches has one of them."""

    texts: tuple[str, ...]
    ignore_case: bool
    is_whole: bool
    """Every line that has one of them matches."""

    @property
    def needs_ascii(self) -> bool:
        """Whether they are valid for ASCII data only: beyond ASCII, two other letters fold to `k` and `s`."""
        return self.ignore_case and any(letter in text.lower() for text in self.texts for letter in "ks")


def literals_of(pattern: str, *, fixed: bool, ignore_case: bool) -> Literals | None:
    """Return the texts of which a valid pattern needs one. None if they are too common or hard to find."""
    if fixed:
        alternatives = [(pattern, True)]
    else:
        if pattern.startswith(_IGNORE_CASE):
            pattern, ignore_case = pattern.removeprefix(_IGNORE_CASE), True
        grouped = _ONE_GROUP.fullmatch(pattern)
        alternatives = _alternatives(grouped[1] if grouped else pattern)
    texts = tuple(text for text, _ in alternatives)
    if (
        not 0 < len(texts) <= MAX_TEXTS
        or min(len(set(text[-_TAIL_CHARS:])) for text in texts) < MIN_DISTINCT_CHARS
    ):
        return None
    if not all(text.isascii() and text.isprintable() for text in texts):
        return None
    return Literals(texts, ignore_case, all(is_whole for _, is_whole in alternatives))


def _alternatives(pattern: str) -> list[tuple[str, bool]]:
    """Return the longest text that each alternative needs, and whether that is all of the alternative.

    Empty if the pattern has a piece that is not known here.
    """
    pieces = list(_PIECE.finditer(pattern))
    if sum(len(piece[0]) for piece in pieces) != len(pattern):
        return []
    split: list[list[re.Match[str]]] = [[]]
    depth = 0
    for piece in pieces:
        if piece["either"] and not depth:
            split.append([])
        elif not depth or piece["end"]:
            split[-1].append(piece)
        depth += bool(piece["group"]) - bool(piece["end"])
    return [_needed(each) for each in split]


def _needed(pieces: list[re.Match[str]]) -> tuple[str, bool]:
    runs, is_whole = [""], True
    for piece in pieces:
        character, repeated = (piece["plain"] or "")[-1:], piece["repeated"]
        if character and (not repeated or repeated.startswith("+")):
            runs[-1] += character
        if repeated or not character:
            runs.append("")
            is_whole = False
    return max(runs, key=len), is_whole
