"""Finds where in a line a search matches, for `-o` and for colour. The service only names the lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from overspill.reading.errors import InvalidPattern
from overspill.reading.patterns import IS_ANY_PATTERN_POSSIBLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
r"""Letters, digits and marks by blocks, for `-w`. RE2's `\w` is ASCII only, and not every RE2 knows `\pL`."""


def combined(patterns: Sequence[str], *, fixed: bool, word: bool) -> tuple[str, bool]:
    """Return one pattern that matches the lines that any of `patterns` matches, and whether it is plain text.

    A pattern of several lines is one for each line, as for grep. With `word` a match has to have none but
    characters that are in no word around it.
    """
    every = [line for pattern in patterns for line in pattern.split("\n")]
    if len(every) == 1 and not word:
        return every[0], fixed
    either = "|".join(f"(?:{re.escape(each) if fixed else each})" for each in every)
    return (f"(?:^|[^{_IN_WORDS}])(?:{either})(?:$|[^{_IN_WORDS}])" if word else either), False


class SpanFinder:
    """Finds in single lines what the pattern of `combined` matches. Raises `InvalidPattern`."""

    def __init__(self, patterns: Sequence[str], *, fixed: bool, word: bool, ignore_case: bool) -> None:
        if not IS_ANY_PATTERN_POSSIBLE:
            raise InvalidPattern("that needs RE2: pip install google-re2")
        import re2  # noqa: PLC0415  (it may be missing)

        pattern, is_text = combined(patterns, fixed=fixed, word=False)
        pattern = re2.escape(pattern) if is_text else pattern
        apart = f"[^{_IN_WORDS}]"
        options = re2.Options()
        options.case_sensitive, options.log_errors = not ignore_case, False
        try:
            self._pattern = re2.compile(
                (f"(?:^|{apart})({pattern})(?:$|{apart})" if word else f"({pattern})").encode(), options
            )
        except (re2.error, UnicodeEncodeError) as error:
            raise InvalidPattern(str(error)) from error

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Return start and end of each match that is not empty, in characters."""
        data = line.encode(errors="replace")
        found, characters, counted = [], 0, 0
        for start, end in self._spans(data):
            first = characters + len(data[counted:start].decode(errors="ignore"))
            characters, counted = first + len(data[start:end].decode(errors="ignore")), end
            found.append((first, characters))
        return found

    def _spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        at = 0
        while at <= len(data) and (match := self._pattern.search(data, at)) is not None:
            start, end = match.span(1)
            if end > start:
                yield start, end
            at = end if end > start else match.start() + 1
