"""The decision to capture, without I/O: what goes to the service, and what the model sees afterwards.

The guard asks `assess`, stores what a `Spill` holds in whatever way it likes, and tells the `Spill` how
that ended.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from overspill import content, measure, notice, preview, wire
from overspill.measure import Extent
from overspill.notice import Facts
from overspill.wire import Outcome

if TYPE_CHECKING:
    from datetime import datetime

    from overspill.content import Content
    from overspill.notice import Notice
    from overspill.policy import Policy


def assess(result: Any, tool: str, policy: Policy) -> Content | None:
    """The content of an output that has to spill; None for one that stays inline."""
    if tool in policy.exempt:
        return None
    found = content.examine(result)
    if found is None or not content.exceeds(found, policy.limits(tool)) or found.is_guarded():
        return None
    return found


class Origin(NamedTuple):
    """Where an output comes from: tool, call, session, and how the call ended if that is known."""

    tool: str
    call_id: str
    session: str
    status: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What became of a spill, and until when.

    `reason` says why the service does not have it; `path` names the file that the agent itself can open.
    """

    outcome: Outcome
    expires: datetime | None = None
    reason: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spill:
    """One output on its way out of the conversation. `origin` says whose it is."""

    content: Content
    policy: Policy
    origin: Origin
    data: bytes
    sha256: bytes
    id: str
    lines: int
    why: str = ""

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def deadline(self) -> float:
        """Seconds within which it must be stored."""
        return self.policy.deadline(self.size)

    @classmethod
    def of(cls, content: Content, policy: Policy, origin: Origin, *, why: str = "") -> Spill:
        """Encodes and hashes: about 1 ms a megabyte, so large contents belong in a thread."""
        body = content.body
        data = measure.encode(body) if isinstance(body, str) else body
        sha256 = hashlib.sha256(data).digest()
        return cls(
            content=content,
            policy=policy,
            origin=origin,
            data=data,
            sha256=sha256,
            id=wire.capture_id(origin.session, origin.call_id, sha256),
            lines=measure.lines(body) if isinstance(body, str) else measure.lines_of_bytes(body),
            why=why,
        )

    def notice(self, kept: Kept, *, same_as: str | None = None) -> Notice:
        """The notice of what became of it; `same_as` is an earlier capture of the session, the same bytes."""
        lost = kept.outcome is Outcome.TRUNCATED
        facts = self._facts(self.policy.lost_preview_bytes if lost else self.policy.preview_bytes, same_as)
        if lost:
            return notice.truncated(facts, kept.reason)
        if kept.outcome is Outcome.CAPTURED and kept.expires is not None:
            return notice.captured(facts, kept.expires)
        return notice.spooled(facts, kept.expires, kept.reason, kept.path)

    def captured(self, expires: datetime) -> Notice:
        """The notice once the service has it until `expires`."""
        return notice.captured(self._facts(self.policy.preview_bytes), expires)

    def truncated(self, reason: str) -> Notice:
        """The notice where it could not be stored; it shows more, for nothing else is left."""
        return notice.truncated(self._facts(self.policy.lost_preview_bytes), reason)

    def _facts(self, preview_bytes: int, same_as: str | None = None) -> Facts:
        limits, policy = self.policy.limits(self.origin.tool), self.policy
        budget = min(preview_bytes, limits.max_bytes), min(policy.preview_lines, limits.max_lines)
        return Facts(
            id=self.id,
            tool=self.origin.tool,
            size=self.size,
            lines=self.lines,
            sha256=self.sha256,
            preview=self._preview(*budget),
            reader=policy.reader,
            why=self.why or notice.TOO_LONG,
            same_as=same_as,
        )

    def _preview(self, max_bytes: int, max_lines: int) -> str:
        text = self._text()
        if text is None:
            return preview.describe(self.data, self.content.content_type)
        return preview.preview(text, max_bytes, max_lines, Extent(self.size, self.lines)).text

    def _text(self) -> str | None:
        """The content as text; None where it is none."""
        body = self.content.body
        try:
            return body if isinstance(body, str) else body.decode()
        except UnicodeDecodeError:
            return None
