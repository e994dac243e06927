r"""Search patterns, compiled by RE2 under bounds: matching takes linear time whatever the pattern.

`\b`, `\d`, `\s` and `\w` are ASCII; ignoring case is Unicode-aware.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from re2 import _re2 as re2

from overspill.reading.errors import InvalidPattern
from overspill.reading.finder import IS_AVAILABLE, Finder
from overspill.reading.literals import literals_of
from overspill.reading.lock_free import cached_property
from overspill.reading.pattern_size import UNICODE_CLASS, check_size
from overspill.reading.pattern_syntax import MAX_PROGRAM, check, encoded
from overspill.reading.stages import Chain, chains_of

_MEMORY: Final = 8 * 2**20
"""Bytes for RE2's programs and automata together: with fewer it falls back to a slow engine too soon."""
TRIAL_MEMORY: Final = 256 * 1024
"""Bytes for a first program that shows whether the pattern is small enough. RE2 fills them in about 2 ms."""
_REMEMBERED: Final = 256
"""The number of patterns of which it is remembered whether they are refused: at most 1 MiB of text."""
_ANYWHERE: Final = re2.RE2.Anchor.UNANCHORED


class Re2Pattern:
    """A compiled pattern. Safe to use from several threads at once."""

    def __init__(self, source: bytes, *, ignore_case: bool, chains: tuple[Chain, ...] | None = None) -> None:
        """Compile. `chains` are the texts of its blocks (see `stages`). Raises `InvalidPattern`."""
        self._ignore_case, self._texts = ignore_case, chains
        self._engine = _compile(b"(?m)" + source, ignore_case=ignore_case)
        self.program_size: int = _size_of(self._engine)
        """The number of instructions, which bounds the time that one byte of text takes."""
        self._finder: Finder | None = None

    @classmethod
    def compile(cls, pattern: str, *, fixed: bool = False, ignore_case: bool = False) -> Re2Pattern:
        """Compile `pattern`: a regular expression, or plain text if `fixed`.

        Raises what `check` raises.
        """
        cls.check(pattern, fixed=fixed, ignore_case=ignore_case)
        source = _source(pattern, fixed=fixed)
        chains = ((source.decode(),),) if fixed else chains_of(pattern)
        compiled = cls(source, ignore_case=ignore_case, chains=chains)
        literals = literals_of(pattern, fixed=fixed, ignore_case=ignore_case)
        if literals and IS_AVAILABLE:
            compiled._finder = Finder(literals)
        return compiled

    @staticmethod
    def check(pattern: str, *, fixed: bool = False, ignore_case: bool = False) -> None:
        """Raise `InvalidPattern`, which names what is not supported and what to write instead.

        The result is remembered, so `compile` does not look again.
        """
        if refusal := _refusal(_source(pattern, fixed=fixed), ignore_case=ignore_case, fixed=fixed):
            raise InvalidPattern(refusal)

    @cached_property
    def chains(self) -> tuple[tuple[Re2Pattern, ...], ...] | None:
        """The blocks for which a line that is too long to search at once is searched; None if there are none.

        Each block matches at most `program_size` bytes.
        """
        if self._texts is None:
            return None
        try:
            return tuple(
                tuple(Re2Pattern(block.encode(), ignore_case=self._ignore_case) for block in chain)
                for chain in self._texts
            )
        except InvalidPattern:
            return None

    def search(self, data: bytes, start: int, stop: int) -> tuple[int, int] | None:
        r"""Return where the leftmost match between `start` and `stop` begins and ends, or None.

        The bytes around them count as context: `^`, `$` and `\b` hold only where they do in all of `data`.
        """
        span: tuple[int, int] = self._engine.Match(_ANYWHERE, data, start, stop)[0]
        return span if span[0] >= 0 else None

    def first_line(self, data: bytes, start: int, stop: int) -> int:
        """Return where the first line of `data[start:stop]` that may match begins; after `stop` if none."""
        if self._finder is None or not self._finder.applies_to(data):
            return start
        end = self._finder.first(data, start, stop)
        return stop + 1 if end < 0 else data.rfind(b"\n", start, end) + 1 or start

    def count(self, data: bytes, start: int, stop: int) -> int:
        """Return how many of the whole lines of `data[start:stop]` match."""
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


def _source(pattern: str, *, fixed: bool) -> bytes:
    source = encoded(pattern)
    return bytes(re2.RE2.QuoteMeta(source)) if fixed else source


@lru_cache(_REMEMBERED)
def _refusal(source: bytes, *, ignore_case: bool, fixed: bool) -> str | None:
    """Return why a pattern is refused, or None. Takes some milliseconds whatever the pattern."""
    try:
        if not fixed:
            check(source.decode())
            check_size(source.decode())
        _compile(source, ignore_case=ignore_case, memory=TRIAL_MEMORY)
    except InvalidPattern as error:
        return str(error)
    return None


def _compile(source: bytes, *, ignore_case: bool, memory: int = _MEMORY) -> re2.RE2:
    options = re2.RE2.Options()
    options.max_mem = memory
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = not ignore_case
    engine = re2.RE2(source, options)
    if not engine.ok():
        trouble = engine.error().decode(errors="replace")
    elif not 0 <= _size_of(engine) <= MAX_PROGRAM:
        trouble = "pattern too large"
    else:
        return engine
    del engine  # it may take megabytes, and an exception keeps what its frames hold
    raise InvalidPattern(_explained(trouble, source))


def _size_of(engine: re2.RE2) -> int:
    """Return the number of instructions of the larger of its two programs; -1 if one has no room."""
    sizes = int(engine.ProgramSize()), int(engine.ReverseProgramSize())
    return max(sizes) if min(sizes) >= 0 else -1


def _explained(error: str, source: bytes) -> str:
    """Return RE2's message (see its re2.h and re2/regexp.cc) with what to write instead."""
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
            return f"the pattern is too complex: it needs more than {MAX_PROGRAM} steps. {_smaller(source)}"
    return (
        f"the pattern is not valid: {error}. The syntax is RE2's (github.com/google/re2/wiki/Syntax); "
        "fixed=true searches for the text as it is"
    )


def _smaller(source: bytes) -> str:
    """Return what to write instead of a pattern that is too large."""
    if named := UNICODE_CLASS.search(source.decode()):
        return (
            f"A Unicode class like {named[0]} has hundreds each time it is repeated: write {named[0]}+ "
            "without a count, or an ASCII class as [A-Za-z]"
        )
    return "Use smaller repetitions, and fewer alternatives and classes like \\pL"
