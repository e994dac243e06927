"""The answers of bounded reads: text, matches, a summary."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Struct, UnsetType

from overspill.wire.captures import State  # noqa: TC001  (msgspec resolves annotations at run time)


def approx_tokens(size: int) -> int:
    """Estimate how many tokens `size` bytes of text are, rounded up: 3.3 bytes a token.

    That is the median over logs, code, JSON and prose, which have 1.4 to 5.0 bytes a token. Except for the
    extremes the estimate is off by -24 to +36 %. For a budget that must hold, count 2.4 bytes a token.
    """
    return -(-10 * size // 33)


class Match(Struct, frozen=True, kw_only=True):
    """One line that a grep found, with the lines around it."""

    line_number: int
    line: str
    before: list[str]
    after: list[str]


class Text(Struct, frozen=True, kw_only=True):
    """The one shape of every bounded read of text.

    Lines count from 1 and both ends are inclusive; an empty answer has `end_line = start_line - 1`.
    `truncated` says that a cap cut the answer short; `next` then holds the whole query that goes on (of
    grep, or of lines for every other mode), also inside one very long line. It is None if a grep has
    reported all its matches and only lines around the last one are missing.
    """

    content: str
    start_line: int
    end_line: int
    total_lines: int
    total_bytes: int
    mode: str
    truncated: bool
    approx_tokens: int
    next: dict[str, str] | None = None
    replaced: bool = False
    """Bytes that are not UTF-8 were replaced by U+FFFD."""
    rewritten: bool | UnsetType = UNSET
    """Given as true if lines of a terminal were written over, as progress bars are, or erased: what the
    terminal showed in the end stands here, in as many lines, or what a grep has found. With `ansi` nothing is
    left out."""
    state: State | UnsetType = UNSET
    """Given unless the capture is complete. While it is live, the totals are as of this answer."""
    note: str | UnsetType = UNSET
    """What is missing of a partial capture. Given with text/plain too, as the last line."""
    matches: list[Match] | UnsetType = UNSET
    match_count: int | UnsetType = UNSET
    """Matching lines found in the part that was searched; a `cursor` in `next` goes on."""
    incomplete: list[int] | UnsetType = UNSET
    """Numbers of lines that may match, though they are not among `matches` nor counted; given by a grep where
    there are such lines. They are too long to be searched as a whole for this pattern."""

    @property
    def place(self) -> dict[str, int]:
        """The `start`, `end` and `offset` of `next`, as numbers."""
        return {name: int(value) for name, value in (self.next or {}).items() if name in _PLACES}


_PLACES: Final = frozenset({"start", "end", "offset"})


class Repeated(Struct, frozen=True, kw_only=True):
    """A group of lines that are equal once numbers are masked."""

    line: str
    count: int
    first_line: int


class Severity(Struct, frozen=True, kw_only=True):
    """The number of lines that look like errors or warnings, and the first few line numbers."""

    count: int
    line_numbers: list[int]


class Summary(Struct, frozen=True, kw_only=True):
    """A summary of a capture, for readers who have not read it."""

    total_lines: int
    total_bytes: int
    content_type: str
    kind: str
    longest_line: int
    mean_line: float
    empty_lines: int
    first_lines: list[str]
    last_lines: list[str]
    repeated: list[Repeated]
    errors: Severity
    warnings: Severity
    json_shape: str | None = None
    scanned_bytes: int = 0
    truncated: bool = False
    """The scan stopped at its budget: the figures hold for the first `scanned_bytes`."""
    mode: str = "summary"
    state: State | UnsetType = UNSET
    """The same as `Text.state`."""
    note: str | UnsetType = UNSET
    """What is missing of a partial capture."""
