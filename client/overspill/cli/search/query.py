"""What to search for: the options of `grep`."""

from dataclasses import dataclass
from typing import Annotated, Final

import typer

from overspill.cli.options import SessionFilter

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
    """The options of `grep`, and how far the search goes."""

    patterns: Annotated[
        list[str] | None,
        typer.Option("-e", "--regexp", metavar="PATTERN", help="A pattern; may be repeated."),
    ] = None
    ignore_case: Annotated[bool, typer.Option("-i", "--ignore-case", help="Ignore case.")] = False
    fixed: Annotated[
        bool, typer.Option("-F", "--fixed-strings", "--fixed", help="PATTERN is a plain text.")
    ] = False
    word: Annotated[bool, typer.Option("-w", "--word-regexp", help="Match whole words only.")] = False
    invert: Annotated[
        bool, typer.Option("-v", "--invert-match", "--invert", help="Print the lines that do not match.")
    ] = False
    only: Annotated[
        bool, typer.Option("-o", "--only-matching", help="Print only what matches, each on a line.")
    ] = False
    count: Annotated[bool, typer.Option("-c", "--count", help="Print only how many lines match.")] = False
    numbers: Annotated[
        bool,
        typer.Option(
            "-n/-N",
            "--line-number/--no-line-number",
            help="Print line numbers (the default), or leave them out.",
            show_default=False,
        ),
    ] = True
    context: Annotated[
        int,
        typer.Option(
            "-C",
            "--context",
            metavar="NUM",
            min=0,
            max=100,
            help="Show NUM lines around each match; also -NUM.",
        ),
    ] = 0
    before: Annotated[
        int | None,
        typer.Option(
            "-B",
            "--before-context",
            "--before",
            metavar="NUM",
            min=0,
            max=100,
            help="Show NUM lines before each match.",
        ),
    ] = None
    after: Annotated[
        int | None,
        typer.Option(
            "-A",
            "--after-context",
            "--after",
            metavar="NUM",
            min=0,
            max=100,
            help="Show NUM lines after each match.",
        ),
    ] = None
    max_matches: Annotated[
        int | None,
        typer.Option(
            "-m",
            "--max-count",
            "--max-matches",
            metavar="NUM",
            min=1,
            help="Stop after NUM lines (default 50).",
        ),
    ] = None
    everything: Annotated[bool, typer.Option("--all", help="Print all lines that match.")] = False
    from_end: Annotated[bool, typer.Option("--from-end", help="Search from the end.")] = False
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where an earlier search stopped.")
    ] = None
    extended: Annotated[bool, typer.Option("-E", hidden=True)] = False
    """Changes nothing: RE2's expressions are extended ones."""
    session: SessionFilter = None

    @property
    def is_around(self) -> bool:
        """Whether lines around the matches are printed."""
        return not self.only and bool(self.context or self.before or self.after)

    def words(self) -> list[str]:
        """Return the options as they are typed, without the patterns and how far the search goes."""
        words = [flag for name, flag in _SWITCHES.items() if getattr(self, name)]
        words += [] if self.numbers else ["-N"]
        for name, flag in _VALUES.items():
            value = getattr(self, name)
            if value is not None and (value or name != "context"):
                words += [flag, str(value)]
        return words
