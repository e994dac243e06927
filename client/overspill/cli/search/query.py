"""What to search for: the options of `grep`."""

from dataclasses import dataclass
from typing import Annotated, Final

import click

from overspill.cli.options import SessionFilter, Since
from overspill.cli.parameters import flag, option

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
        tuple[str, ...],
        option("-e", "--regexp", metavar="PATTERN", help="A pattern; may be repeated.", multiple=True),
    ] = ()
    ignore_case: Annotated[bool, flag("-i", "--ignore-case", help="Ignore case.")] = False
    fixed: Annotated[bool, flag("-F", "--fixed-strings", "--fixed", help="PATTERN is a plain text.")] = False
    word: Annotated[bool, flag("-w", "--word-regexp", help="Match whole words only.")] = False
    invert: Annotated[
        bool, flag("-v", "--invert-match", "--invert", help="Print the lines that do not match.")
    ] = False
    only: Annotated[bool, flag("-o", "--only-matching", help="Print only what matches, each on a line.")] = (
        False
    )
    count: Annotated[bool, flag("-c", "--count", help="Print only how many lines match.")] = False
    numbers: Annotated[
        bool,
        flag(
            "-n/-N",
            "--line-number/--no-line-number",
            help="Print line numbers (the default), or leave them out.",
        ),
    ] = True
    context: Annotated[
        int,
        option(
            "-C",
            "--context",
            metavar="NUM",
            help="Show NUM lines around each match; also -NUM.",
            type=click.IntRange(min=0, max=100),
        ),
    ] = 0
    before: Annotated[
        int | None,
        option(
            "-B",
            "--before-context",
            "--before",
            metavar="NUM",
            help="Show NUM lines before each match.",
            type=click.IntRange(min=0, max=100),
        ),
    ] = None
    after: Annotated[
        int | None,
        option(
            "-A",
            "--after-context",
            "--after",
            metavar="NUM",
            help="Show NUM lines after each match.",
            type=click.IntRange(min=0, max=100),
        ),
    ] = None
    max_matches: Annotated[
        int | None,
        option(
            "-m",
            "--max-count",
            "--max-matches",
            metavar="NUM",
            help="Stop after NUM lines (default 50).",
            type=click.IntRange(min=1),
        ),
    ] = None
    everything: Annotated[bool, flag("--all", help="Print all lines that match.")] = False
    from_end: Annotated[bool, flag("--from-end", help="Search from the end.")] = False
    cursor: Annotated[
        str | None, option("--cursor", metavar="CURSOR", help="Go on where an earlier search stopped.")
    ] = None
    extended: Annotated[bool, flag("-E", hidden=True)] = False
    """Changes nothing: RE2's expressions are extended ones."""
    since: Since = None
    session: SessionFilter = None

    @property
    def is_around(self) -> bool:
        """Whether lines around the matches are printed."""
        return not self.only and bool(self.context or self.before or self.after)

    def words(self) -> list[str]:
        """Return the options as they are typed, without the patterns and how far the search goes."""
        words = [switch for name, switch in _SWITCHES.items() if getattr(self, name)]
        words += [] if self.numbers else ["-N"]
        words += [] if self.since is None else ["--since", self.since.isoformat()]
        for name, spelled in _VALUES.items():
            value = getattr(self, name)
            if value is not None and (value or name != "context"):
                words += [spelled, str(value)]
        return words
