"""Remembers what was computed of one output, because several notices may be tried for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.previews.excerpt import END_BYTES, describe_binary, excerpt_of_body
from overspill.previews.preview import preview_of
from overspill.text.limits import Limits, exceeds
from overspill.text.measure import NewlineIndex
from overspill.text.sanitize import WINDOW

if TYPE_CHECKING:
    from overspill.previews.excerpt import Excerpt
    from overspill.reading.chunks import Extent
    from overspill.text.body import Body


class Previews:
    """Remembers the newlines, the excerpt and the previews of one output."""

    def __init__(self) -> None:
        self._newlines: NewlineIndex | None = None
        self._excerpt: tuple[Body, int, Excerpt | None] | None = None
        self._made: dict[tuple[Limits, bool], tuple[Body, str]] = {}

    def newlines(self, text: str) -> NewlineIndex:
        """Return the newlines of the output's `text`. Counts them once."""
        if self._newlines is None or self._newlines.text is not text:
            self._newlines = NewlineIndex(text)
        return self._newlines

    def excerpt(self, body: Body, extent: Extent, min_reach: int) -> Excerpt | None:
        """Return the same as `excerpt_of_body`. Keeps it for the next look at it, until `release`.

        Raises `OSError` if a file cannot be read.
        """
        reach, remembered = max(END_BYTES, min_reach), self._excerpt
        if remembered is None or remembered[0] is not body or remembered[1] != reach:
            counted = self.newlines(body) if isinstance(body, str) else None
            remembered = self._excerpt = body, reach, excerpt_of_body(body, extent, reach, counted)
        return remembered[2]

    def release(self) -> None:
        """Forget the excerpt, which may take megabytes."""
        self._excerpt = None

    def preview(
        self, body: Body, content_type: str, shown: Limits, extent: Extent, *, has_failed: bool
    ) -> str:
        """Return the preview of `body` within `shown`, or what describes binary data. Makes it once.

        Raises `OSError` if a file cannot be read.
        """
        found = self._made.get((shown, has_failed))
        if found is None or found[0] is not body:
            max_bytes, max_lines = shown.max_bytes, shown.max_lines
            excerpt = self.excerpt(body, extent, max_bytes * WINDOW)
            if excerpt is None:
                description = describe_binary(body, content_type)
                text = "" if exceeds(description, Limits(max_bytes, max_lines)) else description
            else:
                text = preview_of(excerpt, max_bytes, max_lines, has_failed=has_failed)
            found = self._made[shown, has_failed] = body, text
        return found[1]
