"""A line that reaches over chunks: searched once it is whole, or part by part if it is too long to hold.

Its pieces come as they are stored. So escape sequences, characters and line ends that are cut by the end of a
chunk are whole again before `text.normalize_lines` sees them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.reading.long_line import OutOfTime
from overspill.reading.text import LONGEST_ESCAPE, is_utf8, normalize_lines, seam, seams

if TYPE_CHECKING:
    from overspill.reading.long_line import Trail
    from overspill.reading.matching import Matcher

MAX_HELD_BYTES: Final = 8 * 2**20
"""A line of more bytes is searched part by part."""
SAMPLE_BYTES: Final = 64 * 1024
"""Bytes kept of the beginning of a line."""
_EXCERPT_BYTES: Final = 8 * 1024
"""Bytes kept around a match."""
LOOKBEHIND_BYTES: Final = 3 * 1024
"""Bytes kept before the text that is still to be searched: they are shown, and anchors see them."""
_ANCHOR_BYTES: Final = 4
"""Bytes left unsearched at a cut, so that anchors see what lies beyond it."""
_STEPS: Final = (64 * 1024, 512)


class LineResult(NamedTuple):
    """A line, or its beginning if it is long; `at` is where a match begins, None if there is none."""

    data: bytes
    at: int | None = None
    excerpt: bytes | None = None
    """The text around a match that is not in `data`. `at` is then a position in it."""
    is_sure: bool = True
    """Whether a line in which nothing was found is sure not to match."""
    is_utf8: bool = True


class StoppedInside(Exception):
    """Not an error: the time is up. The search is to go on at `offset` of the capture with these trails."""

    def __init__(self, offset: int, trails: tuple[Trail, ...]) -> None:
        super().__init__(offset, trails)
        self.offset = offset
        self.trails = trails


class UnsearchedLine:
    """A line that is shown around a match, but not searched: only its beginning is kept."""

    def __init__(self, *, backwards: bool, ansi: bool, beginning: LineResult | None = None) -> None:
        """`beginning` is what is known of the line already; backwards, its last piece."""
        self._backwards, self._ansi = backwards, ansi
        self._sample = beginning.data if beginning else b""
        self._utf8, self._is_clean = beginning is None or beginning.is_utf8, beginning is not None
        self.is_skipped = False
        """Whether pieces were left out that are not needed."""

    @property
    def is_enough(self) -> bool:
        """Whether a full sample is kept: backwards, one of the beginning as far as it is known."""
        return len(self._sample) >= SAMPLE_BYTES

    def forget(self) -> None:
        """Backwards: drop what is kept, since pieces before it were left out."""
        self._sample = b""

    def add(self, piece: bytes, *, utf8: bool) -> None:
        """Take the next piece, in the order of the search."""
        self._utf8 = self._utf8 and utf8
        self._sample = (piece + self._sample if self._backwards else self._sample + piece)[:SAMPLE_BYTES]

    def close(self, *, is_ended: bool) -> LineResult:
        r"""Return the line, now that it is whole. `is_ended`: it ends with `\n`."""
        kept = self._sample[: seam(self._sample, len(self._sample))] if self.is_enough else self._sample
        whole = normalize_lines(kept, ansi=self._ansi, utf8=self._utf8)
        is_good = self._utf8 or (not self._is_clean and is_utf8(self._sample))
        return LineResult(whole.removesuffix(b"\r") if is_ended else whole, is_utf8=is_good)


class SplitLine:
    """A line whose pieces are searched in order; backwards, from its end."""

    def __init__(
        self,
        matcher: Matcher,
        offset: int,
        *,
        backwards: bool,
        ansi: bool,
        is_ended: bool = False,
        trails: tuple[Trail, ...] | None = None,
        beginning: LineResult | None = None,
    ) -> None:
        r"""`offset` is where the line begins in the capture; backwards, where it ends.

        Backwards, `is_ended` says that it ends with `\n`.

        With `trails`, what lies beyond `offset` belongs to the line too and has been searched; `beginning` is
        that of the line then. Raises `ValueError` for trails of another pattern.
        """
        self._matcher, self._offset, self._backwards = matcher, offset, backwards
        self._ansi, self._is_ended = ansi, is_ended
        self._beginning = beginning or LineResult(b"")
        self._search = matcher.long_search(trails or ())
        self._is_cut = trails is not None
        self._pieces: list[bytes] = []
        self._held = 0
        self._utf8 = True
        self.match: LineResult | None = None
        """The text around a match that was found before the line's end."""
        self.is_skipped = False
        """Whether pieces were left out that are not needed."""

    @property
    def is_enough(self) -> bool:
        """Whether a match was found."""
        return self.match is not None

    def forget(self) -> None:
        """Backwards: drop what is kept of the beginning, since pieces before it were left out."""
        self._pieces, self._held = [], 0

    def shown(self, piece: bytes) -> UnsearchedLine:
        """Return the same line as one that is only shown. `piece` was added last."""
        beginning = (
            LineResult(piece[:SAMPLE_BYTES], is_utf8=self._utf8) if self._backwards else self._beginning
        )
        return UnsearchedLine(backwards=self._backwards, ansi=self._ansi, beginning=beginning)

    def add(self, piece: bytes, *, utf8: bool) -> None:
        """Take the next piece. Raises `StoppedInside`."""
        self._pieces.append(piece)
        self._held += len(piece)
        self._utf8 = self._utf8 and utf8
        if self._held > MAX_HELD_BYTES:
            self._shrink()

    def close(self, *, is_ended: bool) -> LineResult:
        r"""Return the line, now that it is whole. `is_ended`: it ends with `\n`. Raises `StoppedInside`."""
        self._is_ended = is_ended
        raw = self._joined()
        text = self._clean(raw)
        if not self._is_cut and self._matcher.is_short(len(text)):
            return LineResult(text, self._at_once(text), is_utf8=self._utf8 or is_utf8(raw))
        self._note(raw, text)
        if not self.match:
            self._find(raw, text, 0, len(text))
        if self.match:
            return self._beginning._replace(at=self.match.at, excerpt=self.match.excerpt)
        is_sure = self._search.is_exact and (is_ended or not text.endswith(b"\r"))
        return self._beginning._replace(is_sure=is_sure)

    def _note(self, raw: bytes, text: bytes) -> None:
        """Keep the line's beginning, and whether its bytes are UTF-8, from its next part."""
        beginning = text[:SAMPLE_BYTES] if self._backwards or not self._is_cut else self._beginning.data
        is_good = self._beginning.is_utf8 and (self._utf8 or is_utf8(raw))
        self._beginning = LineResult(beginning, is_utf8=is_good)

    def _at_once(self, line: bytes) -> int | None:
        r"""Return where a match begins. `$` also holds before a final `\r`, which may be half a line end."""
        at = self._matcher.in_line(line)
        if at is None and not self._is_ended and line.endswith(b"\r"):
            at = self._matcher.in_line(line[:-1])
        return at

    def _shrink(self) -> None:
        """Search the held text, and keep the part that is needed to go on."""
        raw, offset = self._joined(), self._offset
        if self._backwards:
            cut = seam(raw, 2 * LONGEST_ESCAPE)
            rest, part = raw[:cut], raw[cut:]
        else:
            cut = seam(raw, len(raw))
            part, rest = raw[:cut], raw[cut:]
        text = self._clean(part)
        self._note(part, text)
        if not self.match:
            low, high = (_ANCHOR_BYTES, len(text)) if self._backwards else (0, len(text) - _ANCHOR_BYTES)
            self._find(part, text, low, high)
        part = self._pass(part, len(text) if self.match else self._search.done - LOOKBEHIND_BYTES)
        raw = rest + part if self._backwards else part + rest
        self._pieces, self._held = [raw], len(raw)
        if self._is_cut and self._offset != offset and self._matcher.expired():
            raise StoppedInside(self._offset, tuple(self._search.trails))

    def _joined(self) -> bytes:
        return b"".join(reversed(self._pieces) if self._backwards else self._pieces)

    def _clean(self, raw: bytes) -> bytes:
        r"""Return a part of the line as it is searched, without a `\r` that belongs to the line end."""
        text = normalize_lines(raw, ansi=self._ansi, utf8=self._utf8)
        has_end = not (self._backwards and self._is_cut)
        return text.removesuffix(b"\r") if self._is_ended and has_end else text

    def _find(self, raw: bytes, text: bytes, low: int, high: int) -> None:
        """Search a part of the line."""
        if self._is_cut:
            low, high = (low, high - _ANCHOR_BYTES) if self._backwards else (max(low, _ANCHOR_BYTES), high)
        try:
            at = self._search.search(text, low, high)
        except OutOfTime:
            self._pass(raw, self._search.done - LOOKBEHIND_BYTES)
            raise StoppedInside(self._offset, tuple(self._search.trails)) from None
        if at is not None:
            start = max(0, at - _EXCERPT_BYTES // 2)
            self.match = LineResult(b"", at - start, text[start : start + _EXCERPT_BYTES])

    def _pass(self, raw: bytes, size: int) -> bytes:
        """Forget what has been searched, up to `size` bytes of text. Return what is left of `raw`."""
        position, passed = passed_over(raw, size, ansi=self._ansi, utf8=self._utf8, backwards=self._backwards)
        self._search.drop(passed)
        self._is_cut = self._is_cut or passed > 0
        self._offset += position - len(raw) if self._backwards else position
        return raw[:position] if self._backwards else raw[position:]


def passed_over(raw: bytes, size: int, *, ansi: bool, utf8: bool, backwards: bool) -> tuple[int, int]:
    """Return where to cut `raw` for at most `size` bytes of text, and how many bytes of text that gives.

    Backwards, the text lies behind the cut.
    """

    def length(start: int, stop: int) -> int:
        return len(normalize_lines(raw[start:stop], ansi=ansi, utf8=utf8))

    limit = max(0, size)
    total = length(0, len(raw)) if backwards else 0
    position = passed = 0
    for step in _STEPS:
        for cut in seams(raw, position, step):
            more = length(position, cut)
            if passed + more > (total - limit if backwards else limit):
                break
            position, passed = cut, passed + more
    if not backwards:
        return position, passed
    if passed < total - limit:
        cut = next(seams(raw, position, _STEPS[-1]))
        position, passed = cut, passed + length(position, cut)
    return position, total - passed
