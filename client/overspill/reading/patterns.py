r"""The interface of a compiled pattern, and the choice of the engine that compiles it.

RE2 (the extra `re2`) compiles any pattern, within bounds. Without it Python's own engine is used. That may
backtrack for hours and cannot be stopped, so it gets only plain texts and alternatives of them.

Text to search has passed `text.normalize_lines`: it is valid UTF-8, and lines end at `\n` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from overspill.reading.plain_patterns import PlainPattern

try:
    from overspill.reading.re2_patterns import Re2Pattern
except ImportError:  # the extra is not installed, or has no wheel for this machine
    Re2Pattern = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from collections.abc import Sequence

IS_ANY_PATTERN_POSSIBLE: Final = Re2Pattern is not None


class Pattern(Protocol):
    """A compiled pattern. Safe to use from several threads at once."""

    program_size: int
    """The number of instructions, which bounds the time that one byte of text takes."""

    @property
    def chains(self) -> Sequence[Sequence[Pattern]] | None:
        """The blocks that are searched for in a line that is too long to search as a whole; None without any.

        Each block matches at most `program_size` bytes.
        """

    def search(self, data: bytes, start: int, stop: int) -> tuple[int, int] | None:
        r"""Return where the leftmost match between `start` and `stop` begins and ends, or None.

        The bytes around them count as context: `^`, `$` and `\b` hold only where they do in all of `data`.
        """

    def first_line(self, data: bytes, start: int, stop: int) -> int:
        """Return where the first line of `data[start:stop]` that may match begins; after `stop` if none."""

    def count(self, data: bytes, start: int, stop: int) -> int:
        """Return how many of the whole lines of `data[start:stop]` match."""


def check_pattern(pattern: str, *, fixed: bool = False, ignore_case: bool = False) -> None:
    """Raise `InvalidPattern` if RE2 will not compile the pattern.

    This is the first half of `compile_pattern`, which does not repeat it.
    """
    if Re2Pattern is not None:
        Re2Pattern.check(pattern, fixed=fixed, ignore_case=ignore_case)


def compile_pattern(pattern: str, *, fixed: bool = False, ignore_case: bool = False) -> Pattern:
    """Compile `pattern`: a regular expression, or plain text if `fixed`.

    Raises `InvalidPattern`, which names what is not supported and what to write instead.
    """
    engine = PlainPattern if Re2Pattern is None else Re2Pattern
    return engine.compile(pattern, fixed=fixed, ignore_case=ignore_case)
