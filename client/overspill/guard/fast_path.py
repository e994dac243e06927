"""The fast path: finds out at once that an output is short, without the guard's pipeline."""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final, Protocol

from overspill.shapes.examination import small_data_size
from overspill.shapes.lone_text import lone_text_of
from overspill.text import measure
from overspill.text.limits import UNLIMITED, has_more_lines, surely_fitting_bytes, surely_fitting_chars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.guard.counts.tally import InlineSizes
    from overspill.guard.policy import Policy

_SHORT_CHARS: Final = 128 * 1024
"""A text of more characters is not measured here: it would hold up the event loop."""


class Follower(Protocol):
    """The guard's pipeline, as far as a fast path knows it."""

    def follow_short(self, tool: str, session: str | None, size: int) -> None:
        """Count a burst if this output of the tool completes one, and count the output in its cohort."""


class FastPath:
    """Finds out in microseconds that an output stays inline: a short text, a message with only one, or data.

    Nearly every output is of this kind. A fast path belongs to one tool, and knows its limits and counts. A
    short output is within the limits of each policy that an output of the tool may get.
    """

    __slots__ = (
        *("_fits", "_masking", "_max_bytes", "_max_chars", "_max_lines", "_pipeline", "_sizes", "_tool"),
        "is_followed",
    )

    def __init__(self, policies: Sequence[Policy], tool: str, sizes: InlineSizes, pipeline: Follower) -> None:
        limits = [each.limits(tool) for each in policies]
        self._pipeline, self._tool, self._sizes = pipeline, tool, sizes
        self._fits = min(map(surely_fitting_chars, limits))
        self._max_bytes = min(_SHORT_CHARS, *map(surely_fitting_bytes, limits))
        self._max_chars = min(UNLIMITED if each.max_chars is None else each.max_chars for each in limits)
        self._max_lines = min(each.max_lines for each in limits)
        self._masking = [each for each in policies if each.masks_inline]
        """With these, only texts without secrets take this path."""
        self.is_followed: bool = False
        """Whether short outputs are followed: one may complete a burst of calls, or has a cohort."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process finds this: in the guard that was pickled with it."""
        return methodcaller("fast_path", self._tool), (self._pipeline,)

    def inline_size(self, result: Any, session: str | None = None) -> int | None:
        """Count a result that surely stays inline and return its bytes; return None for any other.

        Without a `session` it is that of the call, or of the guard.
        """
        if self._masking and type(result) is not str:
            return None
        text = result if type(result) is str else lone_text_of(result)
        if text is None:
            return self._note_size(small_data_size(result, self._fits), session)
        length = len(text)
        if text.isascii():
            size = length
        elif length <= _SHORT_CHARS:
            size = measure.size(text)
        else:
            return None
        if length > self._fits and (
            size > self._max_bytes
            or length > self._max_chars
            or (length > self._max_lines and has_more_lines(text, self._max_lines))
        ):
            return None
        for policy in self._masking:
            if not policy.has_no_secret(text):
                return None
        return self._note_size(size, session)

    def _note_size(self, size: int | None, session: str | None) -> int | None:
        if size is None:
            return None
        self._sizes.note(size)
        if self.is_followed:
            self._pipeline.follow_short(self._tool, session, size)
        return size
