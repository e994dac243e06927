"""The command grep."""

from typing import Annotated, Any

import typer

from overspill.cli import output
from overspill.cli.arguments import Ref, Within
from overspill.cli.invocation import Invocation, command


def grep(  # noqa: PLR0913  (one option for each query parameter)
    at: Invocation,
    ref: Ref,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="An RE2 expression.")],
    *,
    ignore_case: Annotated[bool, typer.Option("-i", "--ignore-case", help="Ignore case.")] = False,
    fixed: Annotated[bool, typer.Option("-F", "--fixed", help="PATTERN is a plain string.")] = False,
    invert: Annotated[bool, typer.Option("-v", "--invert", help="Lines that do not match.")] = False,
    context: Annotated[int, typer.Option("-C", "--context", min=0, max=100, help="Lines around.")] = 0,
    before: Annotated[
        int | None, typer.Option("-B", "--before", min=0, max=100, help="Lines before.")
    ] = None,
    after: Annotated[int | None, typer.Option("-A", "--after", min=0, max=100, help="Lines after.")] = None,
    max_matches: Annotated[
        int, typer.Option("-m", "--max-matches", min=1, max=1000, help="Stop after so many.")
    ] = 50,
    from_end: Annotated[bool, typer.Option("--from-end", help="Search from the end.")] = False,
    count: Annotated[bool, typer.Option("-c", "--count", help="Only count all matching lines.")] = False,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Go on where an earlier search stopped.")
    ] = None,
    session: Within = None,
) -> None:
    """Print the lines that match, numbered as by grep -n; exit code 1 where none does."""
    search = {
        "fixed": fixed,
        "ignore_case": ignore_case,
        "invert": invert,
        "context": context,
        "before": before,
        "after": after,
        "from_end": from_end,
        "session": session,
    }
    limits = _Limits(max_matches, cursor, count=count)
    with at.source(ref, session) as source:
        found = limits.run(at, source, ref, pattern, search)
    if limits.cursor is not None and not at.json:
        matches = "1 match" if found == 1 else f"{found:,} matches"
        output.say(f"stopped at {matches}; go on: {at.command(*_words(ref, pattern, search, limits))}")
    if not found:
        raise typer.Exit(1)


class _Limits:
    """How far a search goes. One that the service stops early, for time or size, goes on."""

    def __init__(self, max_matches: int, cursor: str | None, *, count: bool) -> None:
        self.max_matches, self.cursor, self.count = max_matches, cursor, count

    def run(self, at: Invocation, source: Any, ref: str, pattern: str, search: dict[str, Any]) -> int:
        """Search and print; how many lines matched. `cursor` is left where there may be more."""
        extra = {"count": True} if self.count else {}
        found = 0
        while True:
            left = self.max_matches if self.count else self.max_matches - found
            text = source.grep(
                ref, pattern, **search, **extra, max_matches=left, cursor=self.cursor, ansi=at.raw
            )
            self._print(at, text.content, is_first=found == 0, is_around=_is_around(search))
            found += text.match_count
            self.cursor = (text.next or {}).get("cursor")
            if at.json:
                at.answer(text)
            if self.cursor is None or at.json or (found >= self.max_matches and not self.count):
                break
        if self.count and not at.json:
            output.line(str(found))
        return int(found)

    def _print(self, at: Invocation, content: str, *, is_first: bool, is_around: bool) -> None:
        if at.json or self.count:
            return
        if content and is_around and not is_first:
            output.line("--")
        output.text(content, raw=at.raw)
        output.flush()


def _is_around(search: dict[str, Any]) -> bool:
    return bool(search["context"] or search["before"] or search["after"])


def _words(ref: str, pattern: str, search: dict[str, Any], limits: _Limits) -> list[str]:
    """The words of the command that goes on."""
    words = ["grep"]
    for name, value in search.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value not in (None, False) and (value or name in ("before", "after")):
            words += [flag, str(value)]
    return [
        *words,
        "--max-matches",
        str(limits.max_matches),
        "--cursor",
        str(limits.cursor),
        "--",
        ref,
        pattern,
    ]


def add_to(app: typer.Typer) -> None:
    command(app)(grep)
