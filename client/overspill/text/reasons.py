"""Why something went wrong, in words that a model may read: one short line without anything secret."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from overspill.text.sanitize import sanitize

MAX_CHARS: Final = 200
"""Characters of a reason, at most."""
_MARK: Final = re.compile(r"\[(?=/?overspill\b)", re.IGNORECASE)
_SECRETS: Final = (
    (re.compile(r"(?<=://)[^/\s@]*@"), ""),
    (re.compile(r"(?<=[^\s?])\?[^\s'\"]*=[^\s'\"]*"), ""),
    (re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE), r"\1 …"),
    (
        re.compile(
            r"([\w-]*(?:key|token|secret|password|passwd|authorization|credential)s?[\"']?\s*[:=]\s*)\S+",
            re.IGNORECASE,
        ),
        r"\1…",
    ),
    (re.compile(r"[A-Za-z0-9+/_=-]{32,}"), "…"),
)
_FOR_OPERATORS: Final = (
    re.compile(r"\s*\((?:[\w -]*, )?HTTP \d{3}(?:, request [^)\s]*)?\)"),
    re.compile(r",? request (?=[\w-]*\d)[\w-]{6,}"),
    re.compile(r"(?<=\bwith )HTTP (?:status )?\d{3}|\bHTTP (?:status )?\d{3}\b"),
    re.compile(r"\bsince \d{4}-\d\d-\d\d[T ][\d:.]+(?:Z| UTC|[+-]\d\d:\d\d)?"),
)
"""What helps an operator and no model: a status, a request's id, a time of day. The order matters."""
_INSTEAD: Final = ("", "", "an error", "for a while")


def defuse(text: str) -> str:
    """Return `text` with nothing in it that looks like a mark; it keeps its length in bytes."""
    return _MARK.sub("(", text)


def one_safe_line(reason: str) -> str:
    """Return `reason` on one bounded line, without control characters, credentials or secrets."""
    return _bounded(_without_secrets(reason))


def for_model(reason: str) -> str:
    """As `sanitised`, without the HTTP status, the request's id and the times that only an operator needs.

    So the same failure reads the same at any time.
    """
    text = _without_secrets(reason)
    for pattern, instead in zip(_FOR_OPERATORS, _INSTEAD, strict=True):
        text = pattern.sub(instead, text)
    return _bounded(" ".join(text.split()))


def _without_secrets(reason: str) -> str:
    return _cleaned(reason[: 10 * MAX_CHARS])


@lru_cache(maxsize=100)
def _cleaned(reason: str) -> str:
    """Every output of a time of trouble has the same reason."""
    text = " ".join(sanitize(reason).split())
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _bounded(text: str) -> str:
    text = defuse(text).rstrip(".")
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
