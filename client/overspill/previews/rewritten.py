r"""Lines that were written again and again behind `\r`, as progress bars are: the last state says it all."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from overspill.text import quantities
from overspill.text.sanitize import sanitize

_RETURN: Final = re.compile(r"\r(?![\r\n]|\Z)")
"""A return behind which the line is written once more."""
_MAX_BLANK: Final = 3
"""States that are looked at for one that is not blank: a bar is erased at its end."""


def shown(line: str) -> str:
    """Return a line as it is safe to show: its last state if it was written again and that is shorter."""
    whole = sanitize(line)
    if "\r" not in line or _RETURN.search(line) is None:
        return whole
    states = [state for each in _RETURN.split(line.rstrip("\r\n")) if (state := sanitize(each)).strip()]
    if len(states) < 2:  # noqa: PLR2004
        return whole
    before = quantities.plural(len(states) - 1, "earlier state")
    last = f"… [{before} of this line] …{states[-1]}" + "\n" * line.endswith("\n")
    return min(last, whole, key=len)


def begin_of_last(part: str) -> int:
    """Return where the last state begins in the end of a line: 0 if it was not written again."""
    returns = [found.end() for found in _RETURN.finditer(part)]
    return next((at for at in reversed(returns[-_MAX_BLANK:]) if sanitize(part[at:]).strip()), 0)


def end_of_first(part: str) -> int:
    """Return where the first state ends in the beginning of a line: its end if it was not written again."""
    returns = (found.start() for found in islice(_RETURN.finditer(part), _MAX_BLANK))
    return next((at for at in returns if sanitize(part[:at]).strip()), len(part))
