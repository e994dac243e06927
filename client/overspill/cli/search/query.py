"""The options of `grep`: what to search for, and what to print."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Final

import click

from overspill.cli.options import SessionFilter, Since
from overspill.cli.parameters import click_parameters, flag, option, parameters_of

_context: Final = partial(option, metavar="NUM", type=click.IntRange(min=0, max=100))
_NOT_REPEATED: Final = frozenset({"patterns", "max_matches", "everything", "cursor"})
"""Options that the command which goes on has anew: see `Search.words`."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """The options of `grep`, and how far the search goes."""

    patterns: Annotated[
        tuple[str, ...],
        option(
            "-e",
            "--regexp",
            metavar="PATTERN",
            help="A pattern to search for; may be repeated.",
            multiple=True,
        ),
    ] = ()
    ignore_case: Annotated[bool, flag("-i", "--ignore-case", help="Ignore case.")] = False
    fixed: Annotated[
        bool, flag("-F", "--fixed-strings", "--fixed", help="Search for PATTERN as plain text.")
    ] = False
    word: Annotated[bool, flag("-w", "--word-regexp", help="Match whole words only.")] = False
    invert: Annotated[
        bool, flag("-v", "--invert-match", "--invert", help="Print the lines that do not match.")
    ] = False
    only: Annotated[
        bool, flag("-o", "--only-matching", help="Print only the matching parts, each on a line.")
    ] = False
    count: Annotated[bool, flag("-c", "--count", help="Print only the number of matching lines.")] = False
    numbers: Annotated[
        bool,
        flag(
            "-n/-N",
            "--line-number/--no-line-number",
            help="Print line numbers (the default), or do not.",
        ),
    ] = True
    context: Annotated[
        int, _context("-C", "--context", help="Show NUM lines around each match; also -NUM.")
    ] = 0
    before: Annotated[
        int | None,
        _context("-B", "--before-context", "--before", help="Show NUM lines before each match."),
    ] = None
    after: Annotated[
        int | None, _context("-A", "--after-context", "--after", help="Show NUM lines after each match.")
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
    from_end: Annotated[bool, flag(help="Search from the end.")] = False
    cursor: Annotated[
        str | None, option(metavar="CURSOR", help="Continue an earlier search: the CURSOR that it printed.")
    ] = None
    extended: Annotated[bool, flag("-E", hidden=True)] = False
    """Changes nothing: RE2's expressions are extended ones."""
    since: Since = None
    session: SessionFilter = None

    @property
    def around(self) -> tuple[int, int]:
        """The numbers of lines to print before and after each match."""
        if self.only:
            return 0, 0
        before, after = (self.context if lines is None else lines for lines in (self.before, self.after))
        return before, after

    @property
    def is_around(self) -> bool:
        """Whether to print lines around the matches."""
        return any(self.around)

    def words(self) -> list[str]:
        """Return the options as they are typed, without the patterns and how far the search goes."""
        words: list[str] = []
        for parameter in parameters_of(Query):
            value = getattr(self, parameter.name)
            if value == parameter.default or parameter.name in _NOT_REPEATED:
                continue
            (typed,) = click_parameters([parameter])
            if isinstance(value, bool):
                words.append(typed.opts[0] if value else typed.secondary_opts[0])
            else:
                words += [typed.opts[0], value.isoformat() if isinstance(value, datetime) else str(value)]
        return words
