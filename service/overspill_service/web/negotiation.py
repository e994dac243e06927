"""Content negotiation (RFC 9110, section 12): pure functions over `Accept` and `Accept-Encoding`.

`service/docs/http.md` lists the rules of RFC 9110 and the test of each.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from overspill_service.errors import NotAcceptable, UnsupportedEncoding

if TYPE_CHECKING:
    from collections.abc import Mapping

IDENTITY: Final = "identity"
ZSTD: Final = "zstd"
CODINGS: Final = "zstd, gzip"
"""The codings of bodies that this service decodes, for the `Accept-Encoding` of a 415."""
_UNNAMED: Final = 0.0001
"""The weight of identity if nothing names it: acceptable, but less than every named coding."""
# qvalue (section 12.4.2): 0 to 1 with at most three digits.
_WEIGHT: Final = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
LONGEST_KNOWN: Final = 200
"""Characters of a field whose parts are remembered."""
_SAME: Final = {"x-gzip": "gzip"}


def choose_coding(accept_encoding: str | None, *, is_range: bool = False) -> str:
    """Return the coding of a capture's content, `identity` or `zstd`. A range prefers `identity`.

    A tie goes to zstd only if it is named: a client that sends `*` may not be able to decode it. Raises
    `NotAcceptable` if both are excluded.
    """
    weights = _weights(accept_encoding or "")
    zstd = weights.get(ZSTD, weights.get("*", 0.0))
    identity = weights.get(IDENTITY, weights.get("*", _UNNAMED))
    if not zstd and not identity:
        raise NotAcceptable("Accept-Encoding rules out both forms of the content; allow identity or zstd")
    if identity and (is_range or zstd < identity or (zstd == identity and ZSTD not in weights)):
        return IDENTITY
    return ZSTD


def takes_gzip(accept_encoding: str | None) -> bool:
    """Return whether the client says that it decodes gzip."""
    return _weights(accept_encoding or "").get("gzip", 0.0) > 0


def require_identity(accept_encoding: str | None) -> None:
    """Raise `NotAcceptable` if the client excludes identity, the only form of the answer."""
    weights = _weights(accept_encoding or "")
    if not weights.get(IDENTITY, weights.get("*", _UNNAMED)):
        raise NotAcceptable("Accept-Encoding rules out identity, the one form that this answer has")


def prefers_text(accept: str) -> bool:
    """Return whether an `Accept` field weighs text/plain above 0 and at least as high as JSON."""
    weights = _weights(accept)
    text = weights.get("text/plain", weights.get("text/*", 0.0))
    json = weights.get("application/json", weights.get("application/*", weights.get("*/*", 0.0)))
    return text > 0 and text >= json


def prefers_openmetrics(accept: str) -> bool:
    """Return whether an `Accept` field weighs OpenMetrics above 0, and text/plain no higher."""
    weights = _weights(accept)
    openmetrics = weights.get("application/openmetrics-text", 0.0)
    return openmetrics > 0 and openmetrics >= weights.get("text/plain", 0.0)


def body_coding(content_encoding: str | None) -> str | None:
    """Return the one coding of a body in lower case, None if it has none.

    Raises `UnsupportedEncoding` for a body with several codings.
    """
    names = [name.strip().lower() for name in (content_encoding or "").split(",")]
    codings = [_SAME.get(name, name) for name in names if name not in ("", IDENTITY)]
    if len(codings) > 1:
        raise UnsupportedEncoding(
            f"the body has the encodings {content_encoding!r}; send one of {CODINGS} or none"
        )
    return codings[0] if codings else None


def _weights(field: str) -> Mapping[str, float]:
    """Return the weight of each member of the list, without members whose weight is malformed."""
    return _known_weights(field) if len(field) <= LONGEST_KNOWN else _parsed_weights(field)


@lru_cache(maxsize=256)
def _known_weights(field: str) -> Mapping[str, float]:
    """Return what `_parsed_weights` does, from a cache: clients send the same few fields again and again."""
    return _parsed_weights(field)


def _parsed_weights(field: str) -> Mapping[str, float]:
    weights = {}
    for member in field.split(","):
        name, *parameters = (part.strip().lower() for part in member.split(";"))
        weight_values = [
            value.strip() for key, _, value in (each.partition("=") for each in parameters) if key == "q"
        ]
        if name and all(_WEIGHT.fullmatch(value) for value in weight_values):
            weights[name] = float(weight_values[-1]) if weight_values else 1.0
    return weights
