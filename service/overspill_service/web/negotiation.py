"""Content negotiation and conditions of RFC 9110: pure functions over header fields."""

from __future__ import annotations


def accepts_zstd(accept_encoding: str) -> bool:
    """Whether an `Accept-Encoding` names zstd with a weight above 0, and not below identity's."""
    weights: dict[str, float] = {}
    for member in accept_encoding.split(","):
        coding, _, parameters = member.partition(";")
        weights[coding.strip().lower()] = _weight(parameters)
    wanted = weights.get("zstd", 0.0)
    return wanted > 0 and wanted >= weights.get("identity", 0.0)


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
