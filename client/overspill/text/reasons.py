"""Say why something failed in words that a model may read: one short line without secrets."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from overspill.text.lookalikes import defuse
from overspill.text.sanitize import sanitize

MAX_CHARS: Final = 200
"""The most characters of a reason."""
# User and password of a URL; its query; bearer tokens; `key=value` of telling names; long random words.
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
    (re.compile(r"\s*\((?:[\w -]*, )?HTTP \d{3}(?:, request [^)\s]*)?\)"), ""),
    (re.compile(r",? request (?=[\w-]*\d)[\w-]{6,}"), ""),
    (re.compile(r"(?<=\bwith )HTTP (?:status )?\d{3}|\bHTTP (?:status )?\d{3}\b"), "an error"),
    (re.compile(r"\bsince \d{4}-\d\d-\d\d[T ][\d:.]+(?:Z| UTC|[+-]\d\d:\d\d)?"), "for a while"),
)
"""Details that help an operator but no model, and their replacements. The order matters."""


def one_safe_line(reason: str) -> str:
    """Return `reason` on one line of at most 200 characters, without control characters and secrets."""
    return _bounded(_without_secrets(reason))


def for_model(reason: str) -> str:
    """Do the same as `one_safe_line`. Leave out HTTP status, request id and times: only operators need them.

    The same failure then reads the same at any time, which keeps a prompt cache warm.
    """
    return _for_model(reason[: 10 * MAX_CHARS]) if reason else ""


@lru_cache(maxsize=100)
def _for_model(reason: str) -> str:
    text = _cleaned(reason)
    for pattern, instead in _FOR_OPERATORS:
        text = pattern.sub(instead, text)
    return _bounded(" ".join(text.split()))


def _without_secrets(reason: str) -> str:
    return _cleaned(reason[: 10 * MAX_CHARS])


@lru_cache(maxsize=100)
def _cleaned(reason: str) -> str:
    """Remove the secrets. Cached, since all outputs of one outage have the same reason."""
    text = " ".join(sanitize(reason).split())
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def _bounded(text: str) -> str:
    text = defuse(text).rstrip(".")
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
