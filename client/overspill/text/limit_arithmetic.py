"""Limits made of other limits: a share of them, the stricter of two, with less or more room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.text import measure
from overspill.text.limits import UNLIMITED, Limits, least_token_limit

if TYPE_CHECKING:
    from collections.abc import Callable


def scaled(limits: Limits, share: float, rounded: Callable[[float], int] = int) -> Limits:
    """Return `limits` times `share`, rounded down unless said otherwise."""
    size, lines, chars, tokens = (
        limit if limit in {None, UNLIMITED} else rounded((limit or 0) * share) for limit in limits[:4]
    )
    return Limits(size or 0, lines or 0, chars, tokens, limits.counter)


def stricter(one: Limits, other: Limits) -> Limits:
    """Return limits that allow what both allow. Tokens are counted as `one` counts them."""
    size, lines, chars, tokens = (
        b if a is None else a if b is None else min(a, b) for a, b in zip(one[:4], other[:4], strict=True)
    )
    return Limits(size or 0, lines or 0, chars, tokens, one.counter)


def left_beside(limits: Limits, text: str, lines: int | None = None) -> Limits:
    """Return what `limits` leave beside `text`, which takes up `lines` (counted unless given)."""
    chars, tokens, counter = limits.max_chars, limits.max_tokens, limits.counter
    lines = measure.count_lines(text) if lines is None else lines
    return Limits(
        max_bytes=_reduced(limits.max_bytes, measure.size(text)),
        max_lines=_reduced(limits.max_lines, lines),
        max_chars=None if chars is None else max(0, chars - len(text)),
        max_tokens=None if tokens is None else max(0, tokens - least_token_limit(text, counter)),
        counter=counter,
    )


def with_room_for(limits: Limits, texts: list[str]) -> Limits:
    """Return limits that leave room for these texts too, even where JSON escapes them."""
    text = "\n".join([*texts, ""])
    chars, tokens = limits.max_chars, limits.max_tokens
    escaped = text.count("\n") + text.count('"') + text.count("\\")
    return limits._replace(
        max_bytes=_grown(limits.max_bytes, measure.size(text) + escaped),
        max_lines=_grown(limits.max_lines, measure.count_lines(text)),
        max_chars=None if chars is None else _grown(chars, len(text) + escaped),
        max_tokens=None if tokens is None else tokens + least_token_limit(text, limits.counter),
    )


def _grown(limit: int, number: int) -> int:
    return UNLIMITED if limit == UNLIMITED else limit + number


def _reduced(limit: int, number: int) -> int:
    return UNLIMITED if limit == UNLIMITED else max(0, limit - number)
