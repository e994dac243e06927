"""Search for plain texts all at once with Hyperscan, which the extra `fast` installs.

It skips text that cannot match, so the pattern engine has less to search. Without it searches give the same
answers, more slowly.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

try:
    import hyperscan
except ImportError:  # the extra is not installed, or has no wheel for this machine
    hyperscan = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from overspill.reading.literals import Literals

IS_AVAILABLE: Final = hyperscan is not None
_MAX_REPEATS: Final = 64
"""How many more hits than lines there may be before counting stops: a loop over the lines is faster then."""


class Finder:
    """Safe to use from several threads at once."""

    def __init__(self, literals: Literals) -> None:
        """Compile the texts. It takes less than a millisecond, even for the most that there may be."""
        self.is_whole: bool = literals.is_whole
        self._needs_ascii = literals.needs_ascii
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        texts = [text.encode() for text in literals.texts]
        self._sizes = [len(text) for text in texts]
        flag = hyperscan.HS_FLAG_CASELESS if literals.ignore_case else 0
        self._database.compile(
            expressions=texts, ids=list(range(len(texts))), flags=[flag] * len(texts), literal=True
        )
        self._threads = threading.local()

    def applies_to(self, data: bytes) -> bool:
        """Return whether a search in this data says anything about the pattern."""
        return not self._needs_ascii or data.isascii()

    def first(self, data: bytes, start: int, stop: int) -> int:
        """Return the end of the first of the texts in `data[start:stop]`; -1 if there is none."""
        ends: list[int] = []

        def on_text(_text: int, _start: int, end: int, _flags: int, _context: object) -> bool:
            ends.append(end)
            return True

        self._scan(data, start, stop, on_text)
        return start + ends[0] if ends else -1

    def starts(self, data: bytes, start: int, stop: int, limit: int) -> list[int] | None:
        """Return where texts in `data[start:stop]` begin, in order; None if they are more than `limit`."""
        found: list[int] = []

        def on_text(text: int, _start: int, end: int, _flags: int, _context: object) -> bool:
            found.append(start + end - self._sizes[text])
            return len(found) > limit

        return sorted(set(found)) if self._scan(data, start, stop, on_text) else None

    def count(self, data: bytes, start: int, stop: int) -> tuple[int, int]:
        """Return how many whole lines of `data[start:stop]` have one of the texts, and where it stopped.

        It stops behind `stop`, or behind an earlier line if there are many texts in each line.
        """
        count, repeats, line_stop = 0, 0, start

        def on_text(_text: int, _start: int, end: int, _flags: int, _context: object) -> bool:
            nonlocal count, repeats, line_stop
            if start + end <= line_stop:
                repeats += 1
                return repeats > count + _MAX_REPEATS
            count += 1
            line_stop = data.find(b"\n", start + end, stop)
            if line_stop < 0:
                line_stop = stop
            return False

        is_whole = self._scan(data, start, stop, on_text)
        return count, (stop if is_whole else line_stop) + 1

    def _scan(self, data: bytes, start: int, stop: int, on_text: hyperscan.match_event_callback) -> bool:
        """Scan, and return whether that went to the end: `on_text` returns true to stop."""
        try:
            with memoryview(data)[start:stop] as view:
                self._database.scan(  # type: ignore[type-var]  # it takes any buffer
                    view, match_event_handler=on_text, scratch=self._scratch()
                )
        except hyperscan.ScanTerminated:
            return False
        return True

    def _scratch(self) -> hyperscan.Scratch:
        """Return this thread's scratch space: one must never serve two scans at once."""
        if not hasattr(self._threads, "scratch"):
            self._threads.scratch = hyperscan.Scratch(self._database)
        scratch: hyperscan.Scratch = self._threads.scratch
        return scratch
