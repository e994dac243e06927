"""Where in a line a search matches: for `-o` and for colour. The service says only which lines do.

The patterns are RE2's, put into those of Python's `re`, which may take for ever over a line: so there is a
time limit. For the main thread only, where its signal arrives.
"""

from __future__ import annotations

import re
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from overspill.spools.local.pattern import Unsupported, compile_pattern, translated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

__all__ = ["Matcher", "TooSlow", "Unsupported", "combined"]

_SECONDS: Final = 2.0
_BLOCKS: Final = """
    AA-AA B5-B5 BA-BA C0-D6 D8-F6 F8-2C1 2C6-2D1 2E0-2E4 2EC-2EC 2EE-2EE 300-374 376-37D 37F-383 386-386
    388-3F5 3F7-481 483-559 560-588 591-5BD 5BF-5BF 5C1-5C2 5C4-5C5 5C7-5F2 610-61A 620-669 66E-6D3 6D5-6DC
    6DF-6E8 6EA-6FC 6FF-6FF 710-7F5 800-963 966-96F 971-E3E E40-E4E E50-E59 E5C-1FFF 200C-200D 203F-2040
    2054-2054 2071-2071 207F-207F 2090-209C 20D0-20F0 2102-2102 210A-2113 2115-2115 2119-211D 2124-2124
    2126-2126 2128-2128 212A-212D 212F-2139 2160-2188 24B6-24E9 2C00-2CE4 2CEB-2CF3 2D00-2DFF 3005-3007
    3021-302F 3031-3035 3038-303C 3041-309A 309D-309F 30A1-30FA 30FC-318F 31A0-31BF 31F0-31FF 3400-4DBF
    4E00-A48C A4D0-A4FD A500-D7FF F900-FD3D FD50-FDFB FE00-FE0F FE20-FE2F FE33-FE34 FE4D-FE4F FE70-FEFC
    FF10-FF19 FF21-FF3A FF3F-FF3F FF41-FF5A FF66-FFDC 10000-1CFFF 1D400-1DFFF 1E000-1EFFF 20000-3FFFF
"""
_IN_WORDS: Final = "0-9A-Za-z_" + re.sub(r"\s*(\w+)-(\w+)\s*", r"\\x{\1}-\\x{\2}", _BLOCKS.strip())
r"""Letters, digits and marks, by blocks: `\w` is ASCII, and `\pL` is not known everywhere."""


class TooSlow(Exception):
    """The pattern takes too long on a line."""


def combined(patterns: Sequence[str], *, fixed: bool, word: bool) -> tuple[str, bool]:
    """One pattern that matches the lines that any of `patterns` does, and whether it is a plain text.

    A pattern of several lines is one for each line, as for grep. With `word` a match has to have none but
    characters that are in no word around it.
    """
    every = [line for pattern in patterns for line in pattern.split("\n")]
    if len(every) == 1 and not word:
        return every[0], fixed
    either = "|".join(f"(?:{re.escape(each) if fixed else each})" for each in every)
    return (f"(?:^|[^{_IN_WORDS}])(?:{either})(?:$|[^{_IN_WORDS}])" if word else either), False


class Matcher:
    """Finds what `combined` would match in single lines. Raises `Unsupported`."""

    def __init__(self, patterns: Sequence[str], *, fixed: bool, word: bool, ignore_case: bool) -> None:
        pattern, is_text = combined(patterns, fixed=fixed, word=False)
        self._pattern = compile_pattern(pattern, fixed=is_text, ignore_case=ignore_case)
        if word:
            apart = translated(f"[{_IN_WORDS}]")
            self._pattern = re.compile(
                f"(?<!{apart})(?:{self._pattern.pattern})(?!{apart})", self._pattern.flags
            )

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Start and end of each match that is not empty. Raises `TooSlow`."""
        with _time_limit():
            return [match.span() for match in self._pattern.finditer(line) if match.end() > match.start()]


@contextmanager
def _time_limit() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  (as handlers are called)
        raise TooSlow

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
