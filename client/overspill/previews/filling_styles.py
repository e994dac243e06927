"""The marks of other designs: what stands where the middle or the end of an output is left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from overspill.previews.filling import Filling
from overspill.text.limits import UNLIMITED, Limits
from overspill.text.measure import MAX_BYTES_PER_CHARACTER
from overspill.text.tokens import estimate_from_size

if TYPE_CHECKING:
    from overspill.previews.case import Case
    from overspill.reading.chunks import Extent


_KIB: Final = 1024


def _clamped(case: Case, _omitted: Extent, _share: Limits) -> str:
    return (
        f"\n\n[tool output truncated: exceeded {_limits(case.limits)}; "
        "request smaller chunks (offset/limit) or specific sections]"
    )


def _limits(limits: Limits) -> str:
    """Return words such as `50KB or 2000 lines`, without a byte limit that follows from the characters."""
    size = limits.max_bytes
    if limits.max_chars is not None and size >= limits.max_chars * MAX_BYTES_PER_CHARACTER:
        size = UNLIMITED
    short = f"{size // _KIB}KB" if size and size % _KIB == 0 else f"{size} bytes"
    named = {
        short: size,
        f"{limits.max_lines} lines": limits.max_lines,
        f"{limits.max_chars} characters": limits.max_chars,
        f"{limits.max_tokens} tokens": limits.max_tokens,
    }
    return " or ".join(name for name, limit in named.items() if limit not in {None, UNLIMITED})


def _partial(_case: Case, _omitted: Extent, _share: Limits) -> str:
    return (
        "\n\n⚠️ [Content truncated — original was too large for the model's context window. "
        "The content above is a partial view. If you need more, request specific sections or use "
        "offset/limit parameters to read smaller chunks.]"
    )


def _counted(case: Case, _omitted: Extent, share: Limits) -> str:
    tokens = case.facts.tokens or estimate_from_size(case.facts.size)
    number = f"{'' if tokens.is_exact else '~'}{tokens.tokens}"
    limit, shown = f"limit of {case.limits.max_tokens}", f"first {share.max_tokens} tokens"
    if share.max_tokens is None:
        limit, shown = f"limits of {_limits(case.limits)}", "the beginning"
    return (
        f"\n\n⚠️ [Output truncated: {number} tokens exceeds {limit}. "
        f"Showing {shown}. Use pagination or filters to get specific data.]"
    )


def _capped(_case: Case, omitted: Extent, _share: Limits) -> str:
    return f"\n... [{omitted.size} bytes truncated; head + tail kept] ...\n"


CLAMPED: Final = Filling("clamped", _clamped, re.compile(r"\[(?=tool output truncated:)"))
PARTIAL: Final = Filling("partial", _partial, re.compile(r"\[(?=Content truncated —)"))
COUNTED: Final = Filling("counted", _counted, re.compile(r"\[(?=Output truncated:)"))
CAPPED: Final = Filling("capped", _capped, re.compile(r"\[(?=[0-9]+ bytes truncated; head \+ tail kept\])"))
