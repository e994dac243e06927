"""One output that has to spill: the part to store, and the notice that replaces it for the model.

The guard stores `Spill.request` and then asks for `Spill.notice` with what became of it. Nothing here waits;
the only I/O is the output's own temporary file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overspill import wire
from overspill.guard import gain
from overspill.guard.gain import cut_to_fit, escape_factor, notice_overhead, within_room
from overspill.guard.policy_defaults import MODES, READER
from overspill.guard.redacting import masked_content
from overspill.previews.case import Case
from overspill.previews.cut import HEAD
from overspill.previews.notice_facts import TOO_LONG, Facts, StoreResult
from overspill.previews.remembered import Previews
from overspill.previews.seen_lines import seen_lines
from overspill.reading.chunks import Extent
from overspill.redaction.masking import counts_text
from overspill.shapes.masked_copy import masked_copy
from overspill.spools.store_request import Origin, StoreRequest
from overspill.text import measure
from overspill.text.hashing import hashed
from overspill.text.limits import PREVIEW_BYTES_PER_TOKEN, UNLIMITED, Limits, exceeds
from overspill.text.measure import extent_of
from overspill.text.tokens import estimate_from_size
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.guard.decisions import Earlier
    from overspill.guard.policy import Policy
    from overspill.previews.notice_facts import Notice
    from overspill.redaction.redactor import Redactor
    from overspill.shapes.shape import Shape
    from overspill.text.body import Body
    from overspill.text.tokens import TokenCount

_STORED: Final = StoreResult(outcome=Outcome.CAPTURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spill:
    """One output that leaves the conversation.

    `origin` names the tool, the call and the session. `shape` is the output, cut no more than its limits
    need. `body` is the part that is cut, and is what gets stored. `why` ends the notice's first sentence:
    "Output of pytest too long". `room` is the most bytes that the whole result may have with the notice in
    it, if that is less than its limits allow. If the guard has nowhere to store outputs, the spill is not
    identified: `id` and `sha256` are empty and `body` is what the tool returned. `masked` is how many secrets
    of each kind were masked in `body`. `seen` is the lines of `body` that the preview shows whole, as
    `1-18,433`: they are stored as a label.
    """

    shape: Shape
    policy: Policy
    origin: Origin
    body: Body
    sha256: bytes
    id: str
    size: int
    lines: int
    why: str = ""
    room: int = UNLIMITED
    masked: Mapping[str, int] = field(default_factory=dict)
    seen: str = ""
    previews: Previews = field(default_factory=Previews, compare=False, repr=False)
    """The previews computed so far, for the output's next notice."""
    redactor: Redactor | None = field(default=None, compare=False, repr=False)
    """The redactor that masked `body`, with the environment's secrets at that time."""

    @property
    def request(self) -> StoreRequest:
        """The request to a destination to store the output. Only for a spill that is identified."""
        assert not isinstance(self.body, str)
        origin = self.origin
        return StoreRequest(
            description=origin.description(
                self.id,
                content_type=self.shape.content_type,
                ttl=self.policy.ttl,
                labels=self._labels(),
            ),
            sha256=self.sha256,
            body=self.body,
            size=self.size,
            lines=self.lines,
            origin=origin,
            wait=self.policy.wait,
            deadline=self.policy.deadline(self.size),
            destinations=self.policy.band(self.size).destinations,
        )

    def _labels(self) -> dict[str, str]:
        preview = {wire.PREVIEW_LABEL: self.policy.cut_strategy(self.origin.tool).name}
        redacted = {wire.REDACTED_LABEL: wire.fit(counts_text(self.masked))} if self.masked else {}
        cohort = {wire.COHORT_LABEL: self.origin.cohort} if self.origin.cohort else {}
        seen = {wire.SEEN_LABEL: self.seen} if self.seen else {}
        begun = {} if self.origin.live is None else self.origin.live.labels
        return {**begun, **preview, **redacted, **cohort, **seen}

    def with_seen_lines(self) -> Spill:
        """Return the spill with the lines that its preview shows whole, which are stored as a label.

        The preview is made here, and not again for the notice. Raises `OSError` as `notice` does.
        """
        if not self.id or self.policy.notice_style.fills:
            return self
        try:
            found = self.previews.excerpt(self.shape.body, Extent(self.size, self.lines), 0)
            if found is None:
                return self
            return replace(self, seen=seen_lines(self.notice(_STORED, counts_tokens=False).preview, found))
        finally:
            self.previews.release()

    @classmethod
    def of(
        cls,
        shape: Shape,
        policy: Policy,
        origin: Origin,
        *,
        why: str = "",
        room: int = UNLIMITED,
        identify: bool = True,
        previews: Previews | None = None,
    ) -> Spill:
        """Cut, mask, encode and hash an output. It takes about 6 ms a megabyte: call it in a thread.

        Without `identify` nothing is encoded or hashed. `previews` has the previews that were made of the
        output before. Raises `OSError` if a long text cannot be written to a temporary file.
        """
        shape = cut_to_fit(shape, policy, origin.tool, room)
        previews = Previews() if previews is None else previews
        redactor = policy.redactor()
        shape, masked = masked_content(shape, redactor)
        made = partial(
            cls,
            shape=shape,
            policy=policy,
            why=why,
            room=room,
            previews=previews,
            masked=masked,
            redactor=redactor,
        )
        body: Body = shape.body
        lines = previews.newlines(body).lines if isinstance(body, str) else extent_of(body).lines
        if not identify:
            return made(origin=origin, body=body, sha256=b"", id="", size=measure.size(body), lines=lines)
        data, sha256 = hashed(body)
        if origin.live is not None and not origin.live.is_beginning_of(data):
            origin = origin._replace(capture="", live=None)
        handle = origin.capture or wire.capture_id(origin.session, origin.call_id, sha256)
        return made(origin=origin, body=data, sha256=sha256, id=handle, size=len(data), lines=lines)

    def notice(
        self, stored: StoreResult, *, earlier: Earlier | None = None, counts_tokens: bool = True
    ) -> Notice:
        """Build the notice, given what became of the output.

        `earlier` is an earlier capture of this session with the same bytes. Without
        `counts_tokens` the notice estimates the tokens from the size. Raises `OSError` if the output is in a
        file that cannot be read.
        """
        is_lost = stored.outcome is Outcome.TRUNCATED
        left, body = self._limits(), self._previewed()
        extent = Extent(self.size, self.lines) if body is self.shape.body else extent_of(body)
        tokens = self._tokens(body, extent.size) if counts_tokens else None
        made = self.policy.notice_style.notice(
            Case(
                facts=self._facts(earlier if self.policy.identical else None, tokens),
                stored=stored,
                body=body,
                extent=extent,
                content_type=self.shape.content_type,
                limits=self.policy.limits(self.origin.tool),
                room=left._replace(max_bytes=min(left.max_bytes, extent.size)),
                shown=self._preview_limits(left, is_lost=is_lost),
                strategy=self.policy.cut_strategy(self.origin.tool),
                read=self.shape.read,
                fits=self.gains_by,
                previews=self.previews,
            )
        )
        whole = estimate_from_size(extent.size) if tokens is None else tokens
        return replace(made, tokens=whole.tokens)

    def replaced(self, made: Notice) -> Any:
        """Return what replaces the output: the notice in its shape, without secrets.

        Raises `Unchangeable`.
        """
        value = self.shape.replaced(made)
        return value if self.redactor is None else masked_copy(value, self.redactor).value

    def gains_by(self, made: Notice) -> bool:
        """Return whether the result with this notice in it is enough shorter than the output."""
        least = self.policy.least_gain
        if least is None or self.policy.notice_style.fills or not self.is_small:
            return True
        limits = self.policy.limits(self.origin.tool)
        return gain.is_gain(self.shape, self.shape.replaced(made), limits, least)

    def is_too_long(self, value: Any) -> bool:
        """Return whether `value`, which stands for the output, is not enough shorter than the output."""
        least = self.policy.least_gain
        if least is None or not self.is_small:
            return False
        least = 0.0 if self.policy.notice_style.fills else least
        return not gain.is_gain(self.shape, value, self.policy.limits(self.origin.tool), least)

    @property
    def is_small(self) -> bool:
        """Whether a notice might be no shorter than the output."""
        return gain.is_small(self.shape, self.policy)

    def with_small_preview(self) -> Spill:
        """Return the same spill with a preview of its beginning only, which takes little memory."""
        return replace(self, policy=replace(self.policy, strategy=HEAD), previews=Previews())

    def _previewed(self) -> Body:
        """Choose the text to preview. Include an exception's traceback only if errors are searched for."""
        is_searched = self.policy.cut_strategy(self.origin.tool).head is None
        return self.shape.body if is_searched else self.shape.visible_text

    def _limits(self) -> Limits:
        """Return the limits of the notice.

        An output that spills for another reason than its limits gets at most `lost_preview_bytes`.
        """
        limits = within_room(self.policy.limits(self.origin.tool), self.room)
        if self.shape.remaining is not None:
            limits = self.shape.remaining
        if not self.why or exceeds(self.shape.body, limits):
            return limits
        return limits._replace(max_bytes=min(limits.max_bytes, self.policy.lost_preview))

    def _preview_limits(self, limits: Limits, *, is_lost: bool) -> Limits:
        """Return the limits of the preview alone, inside a notice of these limits."""
        policy, band = self.policy, self.policy.band(self.size)
        usual = policy.preview_bytes if band.preview_bytes is None else band.preview_bytes
        size = policy.lost_preview if is_lost else usual
        if limits.max_tokens is not None:
            size = min(size, int(limits.max_tokens * PREVIEW_BYTES_PER_TOKEN))
        if self.room != UNLIMITED:
            size = min(
                size, max(0, limits.max_bytes - notice_overhead(self.shape)) // escape_factor(self.shape)
            )
        return Limits(min(size, limits.max_bytes), min(policy.preview_lines, limits.max_lines))

    def _facts(self, earlier: Earlier | None, tokens: TokenCount | None) -> Facts:
        origin, reader = self.origin, self.policy.reader
        return Facts(
            id=self.id,
            tool=origin.tool,
            size=self.size,
            lines=self.lines,
            preview="",
            reader=reader,
            modes=MODES if reader == READER else "",
            why=self.why or TOO_LONG,
            tokens=tokens,
            call_id="" if origin.is_minted else origin.call_id,
            status=origin.status,
            same_as=None if earlier is None else earlier.id,
            repeats=0 if earlier is None else earlier.repeats + 1,
            missing=self.shape.missing,
            masked=self.masked,
        )

    def _tokens(self, body: Body, size: int) -> TokenCount | None:
        counter = self.policy.counter()
        return counter.count(body, size) if isinstance(body, str) else counter.count_data(body)
