"""One search as grep does it: what to search for, the pages of the answer, and the command that goes on."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.cli import output
from overspill.cli.color import Paint
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.search.printing import MatchPrinter
from overspill.cli.search.spans import SpanFinder, combined
from overspill.cli.text_printing import text_pages
from overspill.reading.errors import InvalidPattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.cli.invocation import Invocation
    from overspill.cli.search.query import Query

_DEFAULT_MATCHES: Final = 50
_PAGE_MATCHES: Final = 1000
_MAX_ANSWERS_PER_LINE: Final = 256
"""The most answers that are read for one line: 16 MiB of it."""


class PrintedSearch:
    """A search as `grep` runs it, in as many requests as its options need."""

    def __init__(self, ref: str, patterns: Sequence[str], query: Query) -> None:
        """Set up the search. Raises `CommandFailure` for options that exclude each other."""
        if query.only and query.invert:
            raise CommandFailure(
                "-o and -v exclude each other: -o prints what matches, -v the lines without a match",
                ExitCode.USAGE,
            )
        if query.since is not None and query.from_end:
            raise CommandFailure(
                "--since and --from-end exclude each other: a search since a time begins there",
                ExitCode.USAGE,
            )
        self.ref = ref
        self.query = query
        self.cursor: str | None = query.cursor
        """The cursor where the search goes on; None if it has come to its end."""
        self._patterns = patterns
        self.incomplete: list[int] = []
        """The numbers of lines that are too long to search as a whole, and may match too."""

    def run(self, invocation: Invocation, source: Any) -> int:
        """Search and print. Return how many lines matched. Continue if time or size stopped the search."""
        printer = self._printer(invocation, source)
        found = 0
        while True:
            text = source.grep(
                self.ref,
                **self._on_the_wire(),
                max_matches=min(self._lines_left(found), _PAGE_MATCHES),
                cursor=self.cursor,
                ansi=invocation.raw,
            )
            found += int(text.match_count)
            self.incomplete += text.incomplete or []
            self.cursor = (text.next or {}).get("cursor")
            if invocation.answered(text):
                return found
            is_last = self.cursor is None or self._lines_left(found) <= 0
            if not self.query.count:
                printer.page(text.content, text.total_lines, is_last=is_last)
            if is_last:
                break
        if self.query.count:
            found = self._counted(found)
            output.line(str(found))
        return found

    def _lines_left(self, found: int) -> int:
        """Return how many more lines may be found. A count goes to the end unless `-m` says how far."""
        limit = self.query.max_matches
        if self.query.everything or (self.query.count and limit is None):
            return _PAGE_MATCHES
        return (_DEFAULT_MATCHES if limit is None else limit) - found

    def _on_the_wire(self) -> dict[str, Any]:
        """Return the arguments of `Client.grep`, without those of the page."""
        query = self.query
        pattern, fixed = combined(self._patterns, fixed=query.fixed, word=query.word)
        before, after = query.around
        return {
            "pattern": pattern,
            "fixed": fixed,
            "ignore_case": query.ignore_case,
            "invert": query.invert,
            "from_end": query.from_end,
            "since": query.since,
            "session": query.session,
            **({"before": before, "after": after} if query.is_around else {}),
            **({"count": True} if query.count else {}),
        }

    def _counted(self, found: int) -> int:
        """Return the count, but no more than `-m` allows, as `grep -c -m NUM` does."""
        limit = self.query.max_matches
        if limit is None or self.query.everything or found < limit:
            return found
        self.cursor = None
        return limit

    def words(self) -> list[str]:
        """Return the words of the command that goes on."""
        query = self.query
        limit_words = ["--all"] if query.everything else ["-m", str(query.max_matches or _DEFAULT_MATCHES)]
        patterns = [word for pattern in self._patterns for word in ("-e", pattern)]
        return ["grep", *query.words(), *limit_words, "--cursor", str(self.cursor), *patterns, self.ref]

    def _printer(self, invocation: Invocation, source: Any) -> MatchPrinter:
        """Return the printer. Raises `CommandFailure` if `-o` cannot find what the pattern matches."""
        paint = Paint(invocation.color)
        return MatchPrinter(
            self.query,
            paint,
            partial(_whole_line, source, self.ref, session=self.query.session, ansi=invocation.raw),
            self._matcher(paint),
            is_raw=invocation.raw,
        )

    def _matcher(self, paint: Paint) -> SpanFinder | None:
        if not self.query.only and (not paint.is_on or self.query.invert):
            return None
        query = self.query
        try:
            return SpanFinder(
                self._patterns, fixed=query.fixed, word=query.word, ignore_case=query.ignore_case
            )
        except InvalidPattern as error:
            if self.query.only:
                raise CommandFailure(
                    f"-o cannot say what this pattern matches: {error}", ExitCode.USAGE
                ) from error
            return None


def _whole_line(source: Any, ref: str, number: int, **options: Any) -> str:
    """Return a line of a capture. An answer to a search has only the beginning of a long one."""
    pages = text_pages(source, ref, source.lines(ref, number, number, **options), **options)
    content = "".join(page.content for page in islice(pages, _MAX_ANSWERS_PER_LINE))
    return content.removesuffix("\n")


def targets(first: str, second: str | None, patterns: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the reference and the patterns, whichever comes first. Raises `CommandFailure`."""
    if patterns and second is None:
        return first, patterns
    if patterns or second is None:
        expected = "a handle alone, since -e gives the pattern" if patterns else "a handle and a pattern"
        raise CommandFailure(f"give {expected}: overspill grep cap_... PATTERN", ExitCode.USAGE)
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
