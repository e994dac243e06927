"""The text that replaces a secret, and the counts of secrets of each kind."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STARS: Final = "********"
_COUNT: Final = re.compile(r"([a-z0-9][a-z0-9-]{0,39})=([0-9]{1,12})")


class Redaction(StrEnum):
    """The treatment of secrets: they stay, become eight stars, or become a tag that says their kind."""

    OFF = "off"
    MASK = "mask"
    TAG = "tag"

    def mark(self, kind: str) -> str:
        """Return what stands for a secret of a kind."""
        return f"[REDACTED {kind}]" if self is Redaction.TAG else STARS


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts as text, sorted by kind."""
    return ", ".join(f"{kind}={count}" for kind, count in sorted(counts.items()))


def counts_of(text: str) -> dict[str, int]:
    """Return the counts in such a text. What is none, since anybody may have written it, is left out."""
    found = map(_COUNT.fullmatch, text.split(", "))
    return {match[1]: int(match[2]) for match in found if match is not None}
