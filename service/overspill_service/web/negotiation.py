"""Content negotiation and conditions of RFC 9110: pure functions over header fields."""

from __future__ import annotations


def accepts_zstd(accept_encoding: str) -> bool:
    """Whether an `Accept-Encoding` names zstd with a weight above 0, and not below identity's."""
    weights = {coding.strip().lower(): _weight(rest) for coding, _, rest in _members(accept_encoding)}
    wanted = weights.get("zstd", 0.0)
    return wanted > 0 and wanted >= weights.get("identity", 0.0)


def prefers_text(accept: str) -> bool:
    """Whether an `Accept` names text/plain with a weight above 0, and not below JSON's."""
    weights = {kind.strip().lower(): _weight(rest) for kind, _, rest in _members(accept)}
    wanted = weights.get("text/plain", 0.0)
    return wanted > 0 and wanted >= weights.get("application/json", 0.0)


def _members(field: str) -> list[tuple[str, str, str]]:
    return [member.partition(";") for member in field.split(",")]


def _weight(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether an `If-None-Match` field names this validator (weak comparison)."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    return any(member.strip().removeprefix("W/") == etag for member in if_none_match.split(","))
