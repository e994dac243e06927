"""Bands of a policy: where an output goes, by its size."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from overspill.guard import number_checks

if TYPE_CHECKING:
    from collections.abc import Iterable

DestinationName: TypeAlias = Literal["service", "spool"]

DESTINATIONS: Final[tuple[DestinationName, ...]] = ("service", "spool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The destinations for outputs of more than `above` bytes, tried in order.

    If none of them takes an output, or if none is given, the output is truncated. `preview_bytes` bounds the
    preview; None takes the policy's. Raises `ValueError` for a value that makes no sense.
    """

    above: int = 0
    destinations: tuple[DestinationName, ...] = DESTINATIONS
    preview_bytes: int | None = None

    def __post_init__(self) -> None:
        number_checks.whole("above", self.above)
        number_checks.whole("preview_bytes", self.preview_bytes, is_optional=True)
        destinations: Any = self.destinations
        is_sequence = isinstance(destinations, Collection) and not isinstance(destinations, str)
        if not (is_sequence and all(each in DESTINATIONS for each in destinations)):
            raise ValueError(
                f"destinations must be a sequence of {' and '.join(DESTINATIONS)}, not {self.destinations!r}"
            )
        object.__setattr__(self, "destinations", tuple(self.destinations))


def all_go_to_service(bands: Iterable[Band]) -> bool:
    """Return whether outputs of any size are sent to the service first."""
    return all(band.destinations[:1] == ("service",) for band in bands)


def check_bands(bands: Any) -> None:
    """Check that `bands` are `Band`s, each above the one before."""
    if not isinstance(bands, Sequence) or not all(isinstance(band, Band) for band in bands):
        raise ValueError(f"bands must be a sequence of Band, not {bands!r}")
    edges = [band.above for band in bands]
    if edges != sorted(set(edges)):
        raise ValueError(f"each band must be above the one before it; they are above {edges}")
