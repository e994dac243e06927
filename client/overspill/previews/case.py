"""One output that is to be replaced, as the forms of stand-ins know it; and what such a form is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from overspill.previews import cut, excerpt, notice, preview
from overspill.text.measure import NewlineIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.cut import Strategy
    from overspill.previews.excerpt import Excerpt
    from overspill.previews.notice import Facts, Kept, Notice
    from overspill.reading.chunks import Extent
    from overspill.text.body import Body
    from overspill.text.limits import Limits


class Previews:
    """The previews of one output and where its lines end: found once, for its notice may be tried often."""

    def __init__(self) -> None:
        self._made: dict[tuple[Limits, bool], tuple[Body, str]] = {}
        self._newlines: NewlineIndex | None = None

    def newlines(self, text: str) -> NewlineIndex:
        """Return the newlines of the output's `text`, which are counted once."""
        if self._newlines is None or self._newlines.text is not text:
            self._newlines = NewlineIndex(text)
        return self._newlines

    def of(self, body: Body, shown: Limits, make: Callable[[], str], *, has_failed: bool) -> str:
        """Return the preview of `body` within the limits `shown`, which is made once."""
        found = self._made.get((shown, has_failed))
        if found is None or found[0] is not body:
            found = self._made[shown, has_failed] = body, make()
        return found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One output that is replaced: what is known of it, where it went, and how much of it may be shown.

    `extent` is that of `body`. `limits` are those it exceeded, `room` is what a stand-in that fills them may
    have, and `shown` are the limits of a preview. `read` gives the text that a model gets with a notice in
    the output's place, and `fits` says whether that is short enough to stand there.
    """

    facts: Facts
    kept: Kept
    body: Body
    extent: Extent
    content_type: str
    limits: Limits
    room: Limits
    shown: Limits
    strategy: Strategy
    read: Callable[[Notice], str]
    fits: Callable[[Notice], bool]
    previews: Previews = field(default_factory=Previews)

    def excerpt(self, limits: Limits) -> Excerpt | None:
        """The output as far as something within `limits` can be kept of it; None where it is no text."""
        return excerpt.excerpt_of_body(self.body, self.extent, min(limits.max_bytes, cut.CEILING) * 2)

    def preview(self, *, has_failed: bool) -> str:
        """Return the preview of the output within `shown`, made once."""
        return self.previews.of(
            self.body, self.shown, partial(self._preview, has_failed=has_failed), has_failed=has_failed
        )

    def _preview(self, *, has_failed: bool) -> str:
        newlines = self.previews.newlines(self.body) if isinstance(self.body, str) else None
        size, lines = self.shown.max_bytes, self.shown.max_lines
        made = preview.preview_body(
            self.body, self.content_type, size, lines, self.extent, has_failed=has_failed, newlines=newlines
        )
        return made.text

    def showing(self, text: str) -> Notice:
        """Return our own notice with this preview."""
        return notice.make_notice(replace(self.facts, preview=text), self.kept)

    def description(self) -> str:
        return preview.describe_binary(self.body, self.content_type)


class Style(Protocol):
    """How the stand-in of an output reads."""

    @property
    def name(self) -> str: ...

    @property
    def fills(self) -> bool:
        """Whether it shows as much of an output as its limits allow, not a preview."""

    def notice(self, case: Case) -> Notice:
        """Raises `OSError` where an output lies in a file that cannot be read."""
