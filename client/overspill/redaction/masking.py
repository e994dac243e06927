"""What stands for a secret, and how many of each kind were found."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STARS: Final = "********"


class Redaction(StrEnum):
    """What becomes of secrets: they stay, become eight stars, or become a tag that says their kind."""

    OFF = "off"
    MASK = "mask"
    TAG = "tag"

    def mark(self, kind: str) -> str:
        """Return what stands for a secret of a kind."""
        return f"[REDACTED {kind}]" if self is Redaction.TAG else STARS


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts as text, sorted by kind."""
    return ", ".join(f"{kind}={count}" for kind, count in sorted(counts.items()))
