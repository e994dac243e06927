"""The decision to capture, without I/O but for an output's own file: what is stored, what the model sees.

The guard asks `assess`, stores what a `Spill` holds in whatever way it likes, and tells the `Spill` how
that ended.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.guard import gain
from overspill.guard.policy import MODES, READER
from overspill.previews import notice
from overspill.previews.case import Case, Previews
from overspill.previews.notice import Facts, Kept
from overspill.previews.styles import Marked
from overspill.reading.chunks import Extent
from overspill.shapes import content
from overspill.shapes.chunk_stream import StreamShape
from overspill.shapes.envelope import Envelope
from overspill.shapes.fields import Unchangeable
from overspill.shapes.records import Reserve
from overspill.text import measure
from overspill.text.body import FileBody
from overspill.text.buffer import Buffer, BufferFull
from overspill.text.limits import PREVIEW_BYTES_PER_TOKEN, UNLIMITED, Limits, exceeds
from overspill.text.measure import extent_of
from overspill.text.rendering import JSON_TYPE
from overspill.transfer.store_request import Origin, StoreRequest
from overspill.wire import Outcome

if TYPE_CHECKING:
    from overspill.guard.policy import Policy
    from overspill.previews.notice import Notice
    from overspill.shapes.content import Shape
    from overspill.text.body import Body
    from overspill.text.tokens import TokenCount

__all__ = ["Spill", "assess", "reserve"]

_ANY_ID: Final = wire.capture_id("", "", b"")
_KEPT: Final = Kept(outcome=Outcome.CAPTURED, expires=datetime(2000, 1, 1, tzinfo=UTC))
_LOST: Final = Kept(outcome=Outcome.TRUNCATED, reason="no Overspill service is configured")
"""What may become of an output, where only the length of its notice matters."""
NOTICE_BYTES: Final = 1_536
"""Bytes of a notice around its preview, at most, in the guard's own words."""
_MOST_LINES: Final = 8
"""Lines of a notice around its preview, at most."""
_IN_DATA: Final = 512
"""Bytes that a notice in data has besides: names, quotes, the first items of a list."""
_RESERVED: Final = 900
"""Bytes that are held back for a stand-in which takes all the room that is left."""
_FILED: Final = 64 * 1024 * 1024
"""Characters above which a text is encoded into a file, not into as many bytes of memory again."""


def assess(result: Any, tool: str, policy: Policy) -> Shape | None:
    """The content of an output that has to spill; None for one that stays inline."""
    if tool in policy.exempt:
        return None
    found = content.examine(result)
    if found is None or not found.exceeds(policy.limits(tool)) or found.is_guarded():
        return None
    return found if saves_enough(found, policy, Origin(tool, "", "")) else None


def saves_enough(
    found: Shape,
    policy: Policy,
    origin: Origin,
    *,
    is_kept: bool = True,
    previews: Previews | None = None,
) -> bool:
    """Return whether the conversation gains by a notice in the place of an output; of a large one it does.

    `is_kept` says that there is a place to store it. Builds the notice: a thread is the place.
    """
    if policy.least_gain is None or policy.notice_style.fills:
        return True
    if not isinstance(found, Envelope) and not _is_small(found, policy):
        return True
    if _is_surely_gain(found, policy, policy.limits(origin.tool), is_kept=is_kept):
        return True
    spill = Spill.of(found, policy, origin, identify=False, previews=previews)
    if not spill.is_small:
        return True
    try:
        kept = _KEPT if is_kept else _LOST
        return spill.gains_by(replace(spill, id=_ANY_ID).notice(kept, counts_tokens=False))
    except Unchangeable:  # nothing can stand in its place, which the guard says
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Spill:
    """One output on its way out of the conversation. `origin` says whose it is.

    `content` is cut no more than its limits need, and `body` is what of it is cut: that is stored. `why` ends
    the sentence that says why it is not shown. `room` is how many bytes the whole result may have with the
    notice in it, where that is less than its limits allow. A spill of a guard with nowhere to
    store it is not identified: `id` and `sha256` are empty and `body` is as the tool returned it.
    """

    content: Shape
    policy: Policy
    origin: Origin
    body: Body
    sha256: bytes
    id: str
    size: int
    lines: int
    why: str = ""
    room: int = UNLIMITED
    previews: Previews = field(default_factory=Previews, compare=False, repr=False)

    @property
    def request(self) -> StoreRequest:
        """What a destination needs to store it; it must be identified."""
        assert not isinstance(self.body, str)
        return StoreRequest(
            id=self.id,
            sha256=self.sha256,
            body=self.body,
            size=self.size,
            lines=self.lines,
            origin=self.origin,
            content_type=self.content.content_type,
            ttl=self.policy.ttl,
            wait=self.policy.wait,
            deadline=self.policy.deadline(self.size),
            destinations=self.policy.band(self.size).destinations,
        )

    @classmethod
    def of(
        cls,
        content: Shape,
        policy: Policy,
        origin: Origin,
        *,
        why: str = "",
        room: int = UNLIMITED,
        identify: bool = True,
        previews: Previews | None = None,
    ) -> Spill:
        """Encodes and hashes unless told not to `identify`: about 1 ms a megabyte, so a thread is the place.

        `previews` are those that were made of the output already.

        Raises `OSError` where a long text cannot be written to a file.
        """
        content = _narrowed(content, policy, origin.tool, room)
        previews = Previews() if previews is None else previews
        made = partial(
            cls, content=content, policy=policy, origin=origin, why=why, room=room, previews=previews
        )
        body: Body = content.body
        lines = previews.newlines(body).lines if isinstance(body, str) else extent_of(body).lines
        if not identify:
            return made(body=body, sha256=b"", id="", size=measure.size(body), lines=lines)
        data = _encoded(body) if isinstance(body, str) else body
        sha256 = data.sha256 if isinstance(data, FileBody) else hashlib.sha256(data).digest()
        return made(
            body=data,
            sha256=sha256,
            id=wire.capture_id(origin.session, origin.call_id, sha256),
            size=len(data),
            lines=lines,
        )

    def notice(self, kept: Kept, *, same_as: str | None = None, counts_tokens: bool = True) -> Notice:
        """The notice of what became of it; `same_as` is an earlier capture of the session, the same bytes.

        Without `counts_tokens` it tells those that so many bytes have on average.
        Raises `OSError` where the output lies in a file that cannot be read.
        """
        is_lost = kept.outcome is Outcome.TRUNCATED
        left, body = self._limits(), self._seen()
        extent = Extent(self.size, self.lines) if body is self.content.body else extent_of(body)
        tokens = self._tokens(body, extent.size) if counts_tokens else None
        return self.policy.notice_style.notice(
            Case(
                facts=self._facts(same_as, tokens),
                kept=kept,
                body=body,
                extent=extent,
                content_type=self.content.content_type,
                limits=self.policy.limits(self.origin.tool),
                room=left._replace(max_bytes=min(left.max_bytes, extent.size)),
                shown=self._shown(left, is_lost=is_lost),
                strategy=self.policy.cut_strategy,
                read=self._read,
                fits=self.gains_by,
                previews=self.previews,
            )
        )

    def gains_by(self, made: Notice) -> bool:
        """Return whether the conversation gains enough by this notice in the output's place."""
        least = self.policy.least_gain
        if least is None or self.policy.notice_style.fills or not self.is_small:
            return True
        limits = self.policy.limits(self.origin.tool)
        return gain.is_gain(self.content, self.content.replaced(made), limits, least)

    def is_too_long(self, value: Any) -> bool:
        """Return whether `value` is not shorter enough than the output in whose place it stands."""
        least = 0.0 if self.policy.notice_style.fills else self.policy.least_gain
        if self.policy.least_gain is None or least is None or not self.is_small:
            return False
        return not gain.is_gain(self.content, value, self.policy.limits(self.origin.tool), least)

    @property
    def is_small(self) -> bool:
        """Whether a notice might be no shorter than the output."""
        return _is_small(self.content, self.policy)

    def truncated(self, reason: str) -> Notice:
        """The notice where it could not be stored; it shows more, for nothing else is left."""
        return self.notice(Kept(outcome=Outcome.TRUNCATED, reason=reason))

    def _seen(self) -> Body:
        """What a part is shown of: of an exception its traceback only where what matters is looked for."""
        is_searched = self.policy.cut_strategy.head is None
        return self.content.body if is_searched else content.visible_text(self.content)

    def _read(self, made: Notice) -> str:
        """What a model gets with that notice in the place of what is cut."""
        return self.content.read(made)

    def _limits(self) -> Limits:
        """What the notice may have: less than the output, even where that did not exceed its own limits."""
        limits = _within_room(self.policy.limits(self.origin.tool), self.room)
        if isinstance(self.content, (Envelope, StreamShape)) and self.content.left is not None:
            limits = self.content.left
        if not self.why or exceeds(self.content.body, limits):
            return limits
        return limits._replace(max_bytes=min(limits.max_bytes, self.policy.lost_preview))

    def _shown(self, limits: Limits, *, is_lost: bool) -> Limits:
        policy, band = self.policy, self.policy.band(self.size)
        usual = policy.preview_bytes if band.preview_bytes is None else band.preview_bytes
        size = policy.lost_preview if is_lost else usual
        if limits.max_tokens is not None:
            size = min(size, int(limits.max_tokens * PREVIEW_BYTES_PER_TOKEN))
        if self.room != UNLIMITED:
            size = min(
                size, max(0, limits.max_bytes - notice_overhead(self.content)) // escape_factor(self.content)
            )
        return Limits(min(size, limits.max_bytes), min(policy.preview_lines, limits.max_lines))

    def _facts(self, same_as: str | None, tokens: TokenCount | None) -> Facts:
        origin, reader = self.origin, self.policy.reader
        return Facts(
            id=self.id,
            tool=origin.tool,
            size=self.size,
            lines=self.lines,
            preview="",
            reader=reader,
            modes=MODES if reader == READER else "",
            why=self.why or notice.TOO_LONG,
            tokens=tokens,
            call_id="" if origin.is_minted else origin.call_id,
            status=origin.status,
            same_as=same_as if self.policy.identical else None,
            missing=self.content.missing if isinstance(self.content, StreamShape) else "",
        )

    def _tokens(self, body: Body, size: int) -> TokenCount | None:
        counter = self.policy.counter()
        return counter.count(body, size) if isinstance(body, str) else counter.count_data(body)


def _is_surely_gain(found: Shape, policy: Policy, limits: Limits, *, is_kept: bool) -> bool:
    """Whether any notice in our own words is so much shorter than a text that none has to be built."""
    text = content.sole_text(found)
    if text is None or policy.least_gain is None or not isinstance(policy.notice_style, Marked):
        return False
    if limits.max_tokens is not None or _MOST_LINES + policy.preview_lines > limits.max_lines:
        return False
    shown = max(policy.preview_bytes, *(band.preview_bytes or 0 for band in policy.bands))
    shown = shown if is_kept else max(shown, policy.lost_preview)
    most = NOTICE_BYTES + measure.size(policy.reader) + shown
    return most <= len(text) * (1 - policy.least_gain)


def _is_small(found: Shape, policy: Policy) -> bool:
    return len(content.visible_text(found)) <= _small(policy)


def reserve(policy: Policy) -> Reserve:
    """What is held back of a stream of records, for a notice and until one is known to be worth it."""
    notice_bytes = NOTICE_BYTES + _IN_DATA + policy.preview_bytes
    return Reserve(None if policy.notice_style.fills else notice_bytes, _small(policy))


def _small(policy: Policy) -> int:
    """Characters of an output up to which a notice might be no shorter."""
    return max(gain.SMALL, 4 * max(policy.preview_bytes, policy.lost_preview))


def _narrowed(content: Shape, policy: Policy, tool: str, room: int) -> Shape:
    """The content, cut no more than its limits and the room need."""
    if not isinstance(content, Envelope):
        return content
    fills = policy.notice_style.fills
    reserve = _RESERVED if fills else policy.preview_bytes + notice_overhead(content)
    return content.within(_within_room(policy.limits(tool), room), reserve, fills=fills)


def _within_room(limits: Limits, room: int) -> Limits:
    return limits._replace(max_bytes=min(limits.max_bytes, room))


def notice_overhead(content: Shape) -> int:
    """Bytes of a notice around its preview, at most."""
    return NOTICE_BYTES + (_IN_DATA if content.content_type == JSON_TYPE else 0)


def escape_factor(content: Shape) -> int:
    """How many bytes one of a preview becomes, at most: in data, quotes and newlines are escape_factor."""
    return 2 if content.content_type == JSON_TYPE else 1


def _encoded(text: str) -> bytes | FileBody:
    if len(text) <= _FILED:
        return measure.encode(text)
    gathering = Buffer(in_memory=0)
    try:
        gathering.write(text)
    except BufferFull:  # no room on the disk
        gathering.close()
        return measure.encode(text)
    body = gathering.finish()
    if gathering.missing:  # as above, found out at the end
        return measure.encode(text)
    return measure.encode(body) if isinstance(body, str) else body
