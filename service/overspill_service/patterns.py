r"""Search patterns, compiled by RE2 under bounds: matching takes linear time whatever the pattern.

Text to search has passed `text.clean`: it is valid UTF-8, and lines end at `\n` alone.
`\b`, `\d`, `\s` and `\w` are ASCII; ignoring case is Unicode-aware.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

from re2 import _re2 as re2

from overspill_service.errors import InvalidPattern
from overspill_service.finder import IS_AVAILABLE, Finder
from overspill_service.literals import literals_of
from overspill_service.stages import Chain, chains_of

MAX_SIZE: Final = 4096
"""Bytes that a pattern may have."""
MAX_PROGRAM: Final = 5_000
"""Instructions that it may compile to; typical patterns have 7 to 111."""
_MEMORY: Final = 8 * 2**20
"""Bytes for RE2's programs and automata together: with fewer it falls back to a slow engine too soon."""
_ANYWHERE: Final = re2.RE2.Anchor.UNANCHORED

Span = tuple[int, int]


class Pattern:
    """A compiled pattern. Safe to use from several threads at once."""

    def __init__(self, source: bytes, *, ignore_case: bool, chains: tuple[Chain, ...] | None = None) -> None:
        """`chains` are the texts of its blocks (see `stages`). Raises `InvalidPattern`."""
        self._ignore_case, self._texts = ignore_case, chains
        self._engine = _compile(b"(?m)" + source, ignore_case=ignore_case)
        self.program_size = _size_of(self._engine)
        """Instructions: a bound on the time that a byte of text can take."""
        self._finder: Finder | None = None

    @classmethod
    def compile(cls, pattern: str, *, fixed: bool = False, ignore_case: bool = False) -> Pattern:
        """`pattern` as a regular expression, or as the text itself where `fixed`.

        Raises `InvalidPattern`, which names what is not supported and what to write instead.
        """
        source = _encode(pattern)
        if fixed:
            source = re2.RE2.QuoteMeta(source)
        else:
            _check(pattern)
            _compile(source, ignore_case=ignore_case)
        chains = ((source.decode(),),) if fixed else chains_of(pattern)
        compiled = cls(source, ignore_case=ignore_case, chains=chains)
        literals = literals_of(pattern, fixed=fixed, ignore_case=ignore_case)
        if literals and IS_AVAILABLE:
            compiled._finder = Finder(literals)
        return compiled

    @cached_property
    def chains(self) -> tuple[tuple[Pattern, ...], ...] | None:
        """What a line that is too long to search at once is searched for; None where there is no such thing.

        Each block matches at most `program_size` bytes.
        """
        if self._texts is None:
            return None
        try:
            return tuple(
                tuple(Pattern(block.encode(), ignore_case=self._ignore_case) for block in chain)
                for chain in self._texts
            )
        except InvalidPattern:
            return None

    def search(self, data: bytes, start: int, stop: int) -> Span | None:
        r"""Where the leftmost match between `start` and `stop` begins and ends.

        The bytes around them count as context: `^`, `$` and `\b` hold only where they do in all of `data`.
        """
        span: Span = self._engine.Match(_ANYWHERE, data, start, stop)[0]
        return span if span[0] >= 0 else None

    def first_line(self, data: bytes, start: int, stop: int) -> int:
        """Where the first of the lines of `data[start:stop]` begins that may match; behind `stop` if none."""
        if self._finder is None or not self._finder.applies_to(data):
            return start
        end = self._finder.first(data, start, stop)
        return stop + 1 if end < 0 else data.rfind(b"\n", start, end) + 1 or start

    def count(self, data: bytes, start: int, stop: int) -> int:
        """How many of the whole lines of `data[start:stop]` match."""
        count, match, find = 0, self._engine.Match, data.find
        if self._finder and self._finder.is_whole and self._finder.applies_to(data):
            count, start = self._finder.count(data, start, stop)
        start = self.first_line(data, start, stop)
        while start <= stop:
            end = match(_ANYWHERE, data, start, stop)[0][1]
            if end < 0:
                break
            count += 1
            start = find(b"\n", end, stop) + 1
            if not start:
                break
        return count


def _compile(source: bytes, *, ignore_case: bool) -> re2.RE2:
    options = re2.RE2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not ignore_case
    engine = re2.RE2(source, options)
    if not engine.ok():
        trouble = engine.error().decode(errors="replace")
    elif _size_of(engine) > MAX_PROGRAM:
        trouble = "pattern too large"
    else:
        return engine
    del engine  # it may take megabytes, and an exception keeps what its frames hold
    raise InvalidPattern(_explain(trouble))


def _size_of(engine: re2.RE2) -> int:
    """Instructions of the larger of its two programs."""
    return max(int(engine.ProgramSize()), int(engine.ReverseProgramSize()))


def _encode(pattern: str) -> bytes:
    if "\n" in pattern:
        raise InvalidPattern(_LINE_END)
    try:
        source = pattern.encode()
    except UnicodeEncodeError as error:
        raise InvalidPattern("the pattern is not valid Unicode: it has a lone surrogate") from error
    if len(source) > MAX_SIZE:
        raise InvalidPattern(
            f"the pattern has {len(source)} bytes; {MAX_SIZE} is the most. Search for a shorter part of it"
        )
    return source


# --- translation to RE2's syntax --------------------------------------------------------------------

_LINE_END: Final = (
    "a pattern cannot match a line end: lines are searched one by one. Search for one of the lines, "
    "and use context=, before= or after= to see those around it"
)
_TOKEN: Final = re.compile(
    r"""
    \\Q .*? (?: \\E | \Z )                             # quoted text
  | \\ .                                               # an escape
  | \[ \^? \]? (?: \[:[^\]]*:\] | \\. | [^\]\\] )* \]?   # a class
  | \(\? (?: <?[=!] | P?[<=>&] | ['>|\#(&R+] | -?\d | [A-Za-z]*(?:-[A-Za-z]*)? )  # a special group
  | \$
  | .
    """,
    re.VERBOSE | re.DOTALL,
)
_LOOK_AROUND: Final = (
    "Search for the plain text and pick among the matching lines (context=, before= and after= show more), "
    "or use invert=true to leave lines out"
)
_REFUSED: Final = {
    "(?=": f"look-ahead (?=…) is not supported. {_LOOK_AROUND}",
    "(?!": f"negative look-ahead (?!…) is not supported. {_LOOK_AROUND}",
    "(?<=": f"look-behind (?<=…) is not supported. {_LOOK_AROUND}",
    "(?<!": f"negative look-behind (?<!…) is not supported. {_LOOK_AROUND}",
    "(?>": "atomic groups (?>…) are not supported and not needed, since nothing backtracks: write (?:…)",
    "(?P=": "back-references are not supported. Write what the group matches once more",
    "(?P>": "recursion is not supported. Search for a part that does not nest",
    "(?R": "recursion is not supported. Search for a part that does not nest",
    "(?&": "recursion is not supported. Search for a part that does not nest",
    "(?(": "conditionals are not supported. Write the alternatives as a|b",
    "(?|": "branch reset groups are not supported and not needed: write (?:…|…)",
    "(?#": "comments (?#…) are not supported. Leave them out",
    "(?'": "named groups are written (?P<name>…); a plain (…) does as well here",
    r"\A": r"\A is not supported: lines are searched one by one. Write ^",
    r"\z": r"\z is not supported: lines are searched one by one. Write $",
    r"\Z": r"\Z is not supported: lines are searched one by one. Write $",
    r"\n": _LINE_END,
    r"\R": _LINE_END,
    r"\C": r"\C is not supported. Write . for any character",
    r"\X": r"\X is not supported. Write . for any character",
    r"\N": r"\N is not supported. Write . for any character",
    r"\K": r"\K is not supported. Leave it out: whole lines are given",
    r"\G": r"\G is not supported. Leave it out",
    r"\h": r"\h is not supported. Write [ \t]",
    r"\H": r"\H is not supported. Write [^ \t]",
    r"\e": r"\e is not supported. Write \x1b",
    r"\u": r"\u is not supported. Write \x{…} with the hexadecimal code",
    r"\U": r"\U is not supported. Write \x{…} with the hexadecimal code",
    r"\k": "back-references are not supported. Write what the group matches once more",
    r"\g": "back-references are not supported. Write what the group matches once more",
}


def _check(pattern: str) -> None:
    """Refuse what RE2 lacks or a line search bends."""
    for part in _TOKEN.findall(pattern):
        if part.startswith("\\") and part[1:] in tuple("123456789"):
            raise InvalidPattern(_REFUSED[r"\k"])
        if part in _REFUSED:
            raise InvalidPattern(_REFUSED[part])
        if part.startswith("(?"):
            _check_flags(part)


def _check_flags(group: str) -> None:
    on, _, off = group[2:].partition("-")
    if "x" in on:
        raise InvalidPattern("the flag x is not supported. Write the pattern without spaces and comments")
    if "m" in off:
        raise InvalidPattern("the flag m cannot be taken off: lines are searched one by one")
    if on.isdecimal() or off.isdecimal() or on == "+":
        raise InvalidPattern(_REFUSED["(?R"])


# --- RE2's own refusals -----------------------------------------------------------------------------


def _explain(error: str) -> str:
    """RE2's message (see its re2.h and re2/regexp.cc) with what to write instead."""
    kind, _, part = error.partition(": ")
    match kind:
        case "bad repetition operator" if part.endswith("+"):
            return (
                f"possessive repetition {part} is not supported and not needed, since nothing backtracks: "
                f"write {part[:-1]}"
            )
        case "invalid repetition size":
            return (
                f"the repetition {part} is too large: 1000 is the most, nested ones multiplied. Write + or *"
            )
        case _ if "too large" in error:
            return (
                f"the pattern is too complex: it needs more than {MAX_PROGRAM} steps. "
                "Use smaller repetitions, and fewer alternatives and classes like \\pL"
            )
    return (
        f"the pattern is not valid: {error}. The syntax is RE2's (github.com/google/re2/wiki/Syntax); "
        "fixed=true searches for the text as it is"
    )
