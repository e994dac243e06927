r"""Split a pattern into blocks that match short texts, so that a long line can be searched in parts.

    pattern   error.*time|panic
    chains    [error, time]  [panic]        one for each alternative; a line has to satisfy one of them
    blocks     error  time    panic         of a chain; found one behind the other, each as early as possible

Some patterns cannot be split, as `"[^"]*"`: something is repeated without bound in the middle of a block.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

Chain = tuple[str, ...]
MAX_BLOCKS: Final = 32
"""The most blocks of all chains together."""
MAX_DEPTH: Final = 16
"""Groups within groups that are looked into: each level reads the pattern once more."""

_PIECE: Final = re.compile(
    r"""
    (?P<open> \( (?: \?: | \?P?<\w+> | (?P<flags> \?[A-Za-z]*(?:-[A-Za-z]+)?: ) | (?!\?) ) )
  | (?P<close> \) )
  | (?P<either> \| )
  | (?P<repeat> (?: [*+?] | \{ \d+ (?:,\d*)? \} ) \?? )
  | \\x\{[0-9A-Fa-f]+\} | \\x[0-9A-Fa-f]{2} | \\0[0-7]{0,2} | \\[pP](?: \{\^?\w+\} | \w )   # a character
  | \\[^QExpP0-9] | [^\\\[()|*+?]
  | \[ \^? \]? (?: \[:\^?\w+:\] | \\. | [^\]\\\[] | \[(?!:) )* \]                        # a class
    """,
    re.VERBOSE | re.DOTALL,
)
_FLAGS: Final = re.compile(r"\(\?[A-Za-z]+\)")
_UNBOUNDED: Final = re.compile(r"(?: \* | \+ | \{(?P<least>\d+),\} )\??", re.VERBOSE)


class _Item(NamedTuple):
    """Something that may be repeated. `inner` is what a group holds that only groups."""

    text: str
    inner: str | None = None
    repeat: str = ""
    has_unbounded: bool = False
    """A part of it is repeated without bound, whatever `repeat` says."""

    @property
    def is_unbounded(self) -> bool:
        return _UNBOUNDED.fullmatch(self.repeat) is not None

    @property
    def shortest(self) -> str:
        """The item with no more repetitions than it needs."""
        unbounded = _UNBOUNDED.fullmatch(self.repeat)
        if unbounded is None:
            return self.text + self.repeat
        least = 1 if self.repeat.startswith("+") else int(unbounded["least"] or 0)
        return f"{self.text}{{{least}}}" if least else ""


def chains_of(pattern: str) -> tuple[Chain, ...] | None:
    """Return the chains of a valid pattern in RE2's syntax, or None if it cannot be split.

    They hold for lines of valid UTF-8, in which `.` matches every character.
    """
    flags = _FLAGS.match(pattern)
    prefix = flags[0] if flags else ""
    alternatives = _alternatives(pattern.removeprefix(prefix))
    if alternatives is None:
        return None
    if not any(item.is_unbounded or item.has_unbounded for items in alternatives for item in items):
        return ((pattern,),)
    chains = [_blocks(items) for items in alternatives]
    if None in chains or sum(len(chain or ()) for chain in chains) > MAX_BLOCKS:
        return None
    return tuple(tuple(prefix + block for block in chain or ()) for chain in chains)


def _alternatives(pattern: str, depth: int = MAX_DEPTH) -> list[list[_Item]] | None:
    """Return what stands between the `|` of a pattern, without mere groups.

    None for unknown syntax, and for groups that nest deeper than `depth`.
    """
    alternatives = _split(pattern) if depth else None
    if alternatives is None:
        return None
    if len(alternatives) == len(alternatives[0]) == 1 and _is_group(alternatives[0][0]):
        return _alternatives(alternatives[0][0].inner or "", depth - 1)
    return [list(_dissolved(items, depth - 1)) for items in alternatives]


def _is_group(item: _Item) -> bool:
    return item.inner is not None and not item.repeat


def _dissolved(items: list[_Item], depth: int) -> Iterator[_Item]:
    for item in items:
        inner = _alternatives(item.inner or "", depth) if _is_group(item) else None
        if inner is not None and len(inner) == 1:
            yield from inner[0]
        else:
            yield item


def _split(pattern: str) -> list[list[_Item]] | None:
    """Return the items between the `|` of a pattern. A group is one item. None for unknown syntax."""
    alternatives: list[list[_Item]] = [[]]
    opened: list[re.Match[str]] = []
    has_unbounded = False
    for piece in _pieces(pattern):
        if piece is None or (piece["repeat"] and not opened and not alternatives[-1]):
            return None
        if piece["open"]:
            has_unbounded = has_unbounded and bool(opened)
            opened.append(piece)
        elif piece["close"]:
            group = opened.pop()
            if not opened:
                inner = None if group["flags"] else pattern[group.end() : piece.start()]
                text = pattern[group.start() : piece.end()]
                alternatives[-1].append(_Item(text, inner, has_unbounded=has_unbounded))
        elif opened:
            has_unbounded = has_unbounded or _UNBOUNDED.fullmatch(piece[0]) is not None
        else:
            _add(alternatives, piece)
    return alternatives


def _pieces(pattern: str) -> Iterator[re.Match[str] | None]:
    """Return the pieces of a pattern, or None if one is not known here."""
    position = 0
    while position < len(pattern):
        piece = _PIECE.match(pattern, position)
        yield piece
        if piece is None:
            return
        position = piece.end()


def _add(alternatives: list[list[_Item]], piece: re.Match[str]) -> None:
    """Add a piece that is in no group."""
    if piece["either"]:
        alternatives.append([])
    elif piece["repeat"]:
        alternatives[-1][-1] = alternatives[-1][-1]._replace(repeat=piece[0])
    else:
        alternatives[-1].append(_Item(piece[0]))


def _blocks(items: list[_Item]) -> Chain | None:
    """Return the blocks of one alternative, or None if one repeats something without bound in its middle.

    `.+` becomes a block of its own, `.`, because gaps are on both sides of it.
    """
    parts: list[list[_Item]] = [[]]
    for item in items:
        if item.is_unbounded and item.text == ".":
            parts += [[_Item(item.shortest)], []]
        else:
            parts[-1].append(item)
    blocks = [_trimmed(_trimmed(part)[::-1])[::-1] for part in parts]
    if any(item.is_unbounded or item.has_unbounded for block in blocks for item in block):
        return None
    texts = ["".join(item.text + item.repeat for item in block) for block in blocks]
    return tuple(filter(None, texts)) or ("",)


def _trimmed(block: list[_Item]) -> list[_Item]:
    """Return the block without an unbounded repetition at its start: the gap before it takes the rest."""
    for number, item in enumerate(block):
        if not item.is_unbounded or item.has_unbounded:
            return block[number:]
        if item.shortest:
            return [_Item(item.shortest), *block[number + 1 :]]
    return []
