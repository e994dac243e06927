"""One search as grep does it: what to search for, the pages of the answer, and the command that goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.cli import output
from overspill.cli.color import Paint
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.search.printing import LineFormat, MatchPrinter
from overspill.cli.search.spans import Matcher, combined
from overspill.reading.errors import InvalidPattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.cli.invocation import Invocation

_DEFAULT_MATCHES: Final = 50
_PAGE_MATCHES: Final = 1000
_MAX_ANSWERS_PER_LINE: Final = 256
"""The most answers that are read for one line: 16 MiB of it."""
_SWITCHES: Final = {
    "fixed": "-F",
    "ignore_case": "-i",
    "word": "-w",
    "invert": "-v",
    "only": "-o",
    "count": "-c",
    "from_end": "--from-end",
}
_VALUES: Final = {"context": "-C", "before": "-B", "after": "-A", "session": "--session"}


@dataclass(frozen=True, kw_only=True)
class Query:
    """What to search for, in the terms of grep's options."""

    patterns: tuple[str, ...]
    fixed: bool = False
    ignore_case: bool = False
    word: bool = False
    invert: bool = False
    only: bool = False
    count: bool = False
    numbers: bool = True
    context: int = 0
    before: int | None = None
    after: int | None = None
    from_end: bool = False
    session: str | None = None

    @property
    def is_around(self) -> bool:
        """Whether lines around the matches are printed."""
        return not self.only and bool(self.context or self.before or self.after)

    def on_the_wire(self) -> dict[str, Any]:
        """Return the arguments of `Client.grep`, without those of the page."""
        pattern, fixed = combined(self.patterns, fixed=self.fixed, word=self.word)
        around = {"context": self.context, "before": self.before, "after": self.after}
        return {
            "pattern": pattern,
            "fixed": fixed,
            "ignore_case": self.ignore_case,
            "invert": self.invert,
            "from_end": self.from_end,
            "session": self.session,
            **(around if self.is_around else {}),
            **({"count": True} if self.count else {}),
        }

    def form(self, *, is_raw: bool) -> LineFormat:
        """Return how the lines found are printed."""
        around = (0, 0) if self.only else (self.before, self.after)
        before, after = (self.context if lines is None else lines for lines in around)
        return LineFormat(self.only, self.numbers, before, after, self.from_end, is_raw)

    def matcher(self) -> Matcher:
        """Return what finds the matches in a line. Raises `InvalidPattern`."""
        return Matcher(self.patterns, fixed=self.fixed, word=self.word, ignore_case=self.ignore_case)

    def words(self) -> list[str]:
        """Return the options as they are typed."""
        words = [flag for name, flag in _SWITCHES.items() if getattr(self, name)]
        words += [] if self.numbers else ["-N"]
        for name, flag in _VALUES.items():
            value = getattr(self, name)
            if value is not None and (value or name != "context"):
                words += [flag, str(value)]
        return words


class SearchLimits:
    """How far a search goes, and the `cursor` at which it goes on."""

    def __init__(self, most: int | None, cursor: str | None, *, is_everything: bool) -> None:
        self.most = most
        self.cursor = cursor
        self.is_everything = is_everything

    def left(self, found: int, *, is_count: bool) -> int:
        """Return how many more lines may be found. A count goes to the end unless `-m` says how far."""
        if self.is_everything or (is_count and self.most is None):
            return _PAGE_MATCHES
        return (_DEFAULT_MATCHES if self.most is None else self.most) - found


class Search:
    """A search as `grep` runs it, in as many requests as its options need."""

    def __init__(self, ref: str, query: Query, limits: SearchLimits) -> None:
        """Set up the search. Raises `CommandFailure` for options that exclude each other."""
        if query.only and query.invert:
            raise CommandFailure(
                "-o and -v exclude each other: -o prints what matches, -v the lines without a match",
                ExitCode.USAGE,
            )
        self.ref = ref
        self.query = query
        self.limits = limits
        self.incomplete: list[int] = []
        """The numbers of lines that are too long to search as a whole, and may match too."""

    def run(self, invocation: Invocation, source: Any) -> int:
        """Search and print. Return how many lines matched. Continue if time or size stopped the search."""
        printer = self._printer(invocation, source)
        found = 0
        while True:
            left = self.limits.left(found, is_count=self.query.count)
            text = source.grep(
                self.ref,
                **self.query.on_the_wire(),
                max_matches=min(left, _PAGE_MATCHES),
                cursor=self.limits.cursor,
                ansi=invocation.raw,
            )
            found += int(text.match_count)
            self.incomplete += text.incomplete or []
            self.limits.cursor = (text.next or {}).get("cursor")
            if invocation.json:
                invocation.answer(text)
                return found
            is_last = self.limits.cursor is None or self.limits.left(found, is_count=self.query.count) <= 0
            if not self.query.count:
                printer.page(text.content, text.total_lines, is_last=is_last)
            if is_last:
                break
        if self.query.count:
            found = self._counted(found)
            output.line(str(found))
        return found

    def _counted(self, found: int) -> int:
        """Return the count, but no more than `-m` allows, as `grep -c -m NUM` does."""
        if self.limits.most is None or self.limits.is_everything or found < self.limits.most:
            return found
        self.limits.cursor = None
        return self.limits.most

    def words(self) -> list[str]:
        """Return the words of the command that goes on."""
        most = ["--all"] if self.limits.is_everything else ["-m", str(self.limits.most or _DEFAULT_MATCHES)]
        patterns = [word for pattern in self.query.patterns for word in ("-e", pattern)]
        return ["grep", *self.query.words(), *most, "--cursor", str(self.limits.cursor), *patterns, self.ref]

    def _printer(self, invocation: Invocation, source: Any) -> MatchPrinter:
        """Return the printer. Raises `CommandFailure` if `-o` cannot find what the pattern matches."""
        paint = Paint(invocation.color)
        return MatchPrinter(
            paint,
            _Lines(source, self.ref, self.query.session, is_raw=invocation.raw),
            self._matcher(paint),
            self.query.form(is_raw=invocation.raw),
        )

    def _matcher(self, paint: Paint) -> Matcher | None:
        if not self.query.only and (not paint.is_on or self.query.invert):
            return None
        try:
            return self.query.matcher()
        except InvalidPattern as error:
            if self.query.only:
                raise CommandFailure(
                    f"-o cannot say what this pattern matches: {error}", ExitCode.USAGE
                ) from error
            return None


class _Lines:
    """Whole lines of a capture by number. An answer to a search has only the beginning of a long line."""

    def __init__(self, source: Any, ref: str, session: str | None, *, is_raw: bool) -> None:
        self._source, self._ref, self._session, self._is_raw = source, ref, session, is_raw

    def __getitem__(self, number: int) -> str:
        text = self._source.lines(self._ref, number, number, ansi=self._is_raw, session=self._session)
        parts = [text.content]
        while text.next and len(parts) < _MAX_ANSWERS_PER_LINE:
            text = self._source.lines(self._ref, **text.place, ansi=self._is_raw, session=self._session)
            parts.append(text.content)
        return "".join(parts).removesuffix("\n")


def targets(first: str, second: str | None, patterns: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the reference and the patterns, whichever comes first. Raises `CommandFailure`."""
    if patterns and second is None:
        return first, patterns
    if patterns or second is None:
        wanted = "a handle alone, since -e gives the pattern" if patterns else "a handle and a pattern"
        raise CommandFailure(f"say {wanted}: overspill grep cap_... PATTERN", ExitCode.USAGE)
    if is_handle(first):
        return first, [second]
    if is_handle(second):
        return second, [first]
    raise CommandFailure(
        f"neither {first!r} nor {second!r} is a handle: that is cap_ and 20 characters of a-z and 2-7, "
        "as the notice gives it, or call: and a tool-call id",
        ExitCode.USAGE,
    )


def is_handle(word: str) -> bool:
    """Return whether `word` has the form of a capture id or a call: reference."""
    return wire.CAPTURE_ID.fullmatch(word) is not None or word.startswith(wire.CALL_PREFIX)
