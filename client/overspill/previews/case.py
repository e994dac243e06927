"""The interface of a notice style, and the facts that a style gets about the output that it replaces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from overspill.previews import notice
from overspill.previews.excerpt import describe_binary

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.previews.cut import Strategy
    from overspill.previews.excerpt import Excerpt
    from overspill.previews.notice_facts import Facts, Notice, StoreResult
    from overspill.previews.remembered import Previews
    from overspill.reading.chunks import Extent
    from overspill.text.body import Body
    from overspill.text.limits import Limits


_MAX_READ_BYTES: Final = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One output that is replaced: its facts, whether it is stored, and how much of it may be shown.

    `extent` is the size of `body`. `limits` are the limits that it exceeded, `room` limits a style that
    `fills`, and `shown` limits a preview. `read` returns the text that a model gets with a given notice in
    the output's place. `fits` says whether that text is short enough.
    """

    facts: Facts
    stored: StoreResult
    body: Body
    extent: Extent
    content_type: str
    limits: Limits
    room: Limits
    shown: Limits
    strategy: Strategy
    read: Callable[[Notice], str]
    fits: Callable[[Notice], bool]
    previews: Previews

    def excerpt(self, limits: Limits) -> Excerpt | None:
        """Return the part of the output that a cut to `limits` may keep; None if the output is not text."""
        return self.previews.excerpt(self.body, self.extent, min(limits.max_bytes, _MAX_READ_BYTES) * 2)

    def preview(self, *, has_failed: bool) -> str:
        """Return the preview of the output within `shown`. Makes it once."""
        return self.previews.preview(
            self.body, self.content_type, self.shown, self.extent, has_failed=has_failed
        )

    def showing(self, text: str) -> Notice:
        """Return our own notice with this preview."""
        return notice.make_notice(replace(self.facts, preview=text), self.stored)

    def description(self) -> str:
        """Return the text that replaces a preview of binary data."""
        return describe_binary(self.body, self.content_type)


class Style(Protocol):
    """The style of the text that replaces an output."""

    @property
    def name(self) -> str:
        """Return the name of the style in policies."""

    @property
    def fills(self) -> bool:
        """Whether it shows as much of an output as the limits allow, instead of a preview."""

    def notice(self, case: Case) -> Notice:
        """Return the notice. Raises `OSError` if the output is in a file that cannot be read."""
