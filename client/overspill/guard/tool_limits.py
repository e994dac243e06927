"""The limits of single tools, and those that are a share of the model's context window."""

from __future__ import annotations

from typing import Final

from overspill.guard.policy_defaults import SHARE_CEILING, SHARE_FLOOR
from overspill.text.limits import CHARS_PER_TOKEN, UNLIMITED, Limits

_SHARE_WORDS: Final = 1_000
"""Characters for a notice's own words, on top of the smallest share of a window."""


def whole_limits(limit: int | Limits, usual: Limits) -> Limits:
    """Return a tool's limits: a number replaces the usual bytes; whole limits count tokens as usual."""
    if not isinstance(limit, Limits):
        return usual._replace(max_bytes=limit)
    return limit._replace(counter=usual.counter) if limit.counter is None else limit


def most_tokens(max_tokens: int | None, context_tokens: int | None, context_share: float) -> int | None:
    """Return the lower one of a limit in tokens and a share of the window; None if there is neither."""
    if context_tokens is None:
        return max_tokens
    share = int(context_tokens * context_share)
    return share if max_tokens is None else min(share, max_tokens)


def share_in_chars(context_tokens: int, context_share: float) -> Limits:
    """Return a share of the window as limits in characters, 4 a token, within a floor and a ceiling."""
    share = min(int(context_tokens * context_share) * CHARS_PER_TOKEN, SHARE_CEILING)
    return Limits(UNLIMITED, max_chars=max(share, SHARE_FLOOR + _SHARE_WORDS))
