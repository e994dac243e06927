"""The text that stands in for an output: a marker, how to read more, a preview, an end mark.

Byte-stable: the same output, policy and expiry give the same bytes. The preview is untrusted, so the
marks carry the capture id, which the content determines and therefore cannot contain, and anything in
it that looks like a mark is defused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from overspill import measure
from overspill.plain import clean
from overspill.wire import Outcome

if TYPE_CHECKING:
    from datetime import datetime

MAX_NOTICE: Final = 64 * 1024
"""A longer text is no notice, whatever marks it wears."""
_MAX_TOOL: Final = 100
_MAX_REASON: Final = 200
_DIGEST_DIGITS: Final = 12
_MARK: Final = re.compile(r"\[(?=/?overspill\b)", re.IGNORECASE)
_NOTICE: Final = re.compile(
    r"\[overspill (?P<id>cap_[a-z2-7]{20})(?: NOT STORED)?\] .*\n\[/overspill (?P=id)\]", re.DOTALL
)
_PLACEHOLDER: Final = re.compile(
    r"\[overspill cap_[a-z2-7]{20}: [0-9,]+ bytes? of text, (?:in the capture|not stored)\]"
)


TOO_LONG: Final = "is too long to show"
"""Why an output is not shown, as the end of a sentence about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a notice says of an output: sizes in bytes and lines of the whole, a `preview` safe to show.

    `same_as` is the id of an earlier capture of the same content in the same session.
    """

    id: str
    tool: str
    size: int
    lines: int
    sha256: bytes
    preview: str
    reader: str
    why: str = TOO_LONG
    same_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """`head` is the marker and what to do, `preview` the untrusted part; `str()` is the whole.

    `read_more` is the call in `head` that reads the capture, and empty where nothing is stored.
    """

    id: str
    outcome: Outcome
    size: int
    lines: int
    head: str
    read_more: str
    preview: str

    @property
    def stored(self) -> bool:
        """Whether the whole can be read, wherever it is."""
        return self.outcome is not Outcome.TRUNCATED

    def __str__(self) -> str:
        newline = "" if self.preview.endswith("\n") else "\n"
        shown = f"--- preview ---\n{self.preview}{newline}" if self.preview else ""
        return f"{self.head}\n{shown}[/overspill {self.id}]"


def captured(facts: Facts, expires: datetime) -> Notice:
    """The notice of an output that the service has whole until `expires`."""
    return _stored(facts, Outcome.CAPTURED, "It is stored whole", _call(facts), _kept(facts, expires))


def spooled(facts: Facts, expires: datetime | None, reason: str, path: str = "") -> Notice:
    """The notice of an output that is whole on this machine, at `path` if its agent can open that.

    `reason` says why the service does not have it; empty where nobody meant it to.
    """
    because = f", because the service could not take it ({sanitised(reason)})" if reason else ""
    if path:
        shown = _shown_path(path)
        where = f"It is stored whole in the file {shown}{because}"
        read_more = f"read that file in parts with your file-reading tool, or search it with grep: {shown}"
        return _stored(facts, Outcome.SPOOLED, where, read_more, _kept(facts, expires, "file"))
    later = "; it will be uploaded as soon as the service can take it" if reason else ""
    where = f"It is stored whole on this machine{because}{later}"
    return _stored(facts, Outcome.SPOOLED, where, _call(facts), _kept(facts, expires))


def truncated(facts: Facts, reason: str) -> Notice:
    """The notice of an output that could not be stored; what the preview leaves out is gone."""
    lost = "What the preview below leaves out" if facts.preview else "All of it"
    return _notice(
        facts,
        Outcome.TRUNCATED,
        f"[overspill {facts.id} NOT STORED] {_too_long(facts)} It could NOT be stored: {sanitised(reason)}.\n"
        f"{lost} is lost. If you need it, run the tool again with a narrower "
        f"question (a filter, a range, fewer files). {_digest(facts)}{_same(facts)}",
        "",
    )


def _stored(facts: Facts, outcome: Outcome, where: str, read_more: str, kept: str) -> Notice:
    shown = "; a preview is below" if facts.preview else ""
    head = (
        f"[overspill {facts.id}] {_too_long(facts)} {where}{shown}.\nTo read more: {read_more}\n"
        f"{kept}{_same(facts)}"
    )
    return _notice(facts, outcome, head, read_more)


def _call(facts: Facts) -> str:
    return facts.reader.replace("{id}", facts.id)


def _kept(facts: Facts, expires: datetime | None, what: str = "capture") -> str:
    until = "" if expires is None else f"Kept until {_instant(expires)}. "
    return f"{until}{_digest(facts)} Do not run the tool again to see more: read the {what}."


def _same(facts: Facts) -> str:
    if facts.same_as is None:
        return ""
    return (
        f" This output is byte for byte that of an earlier call of this session, whose handle is "
        f"{facts.same_as}."
    )


def _notice(facts: Facts, outcome: Outcome, head: str, read_more: str) -> Notice:
    return Notice(
        id=facts.id,
        outcome=outcome,
        size=facts.size,
        lines=facts.lines,
        head=head,
        read_more=read_more,
        preview=_MARK.sub("(", facts.preview),
    )


def placeholder(notice: Notice, size: int) -> str:
    """What stands in for `size` bytes of further text of the same output; the notice stands at the first."""
    where = "in the capture" if notice.stored else "not stored"
    return f"[overspill {notice.id}: {measure.counted(size, 'byte')} of text, {where}]"


def as_dict(notice: Notice) -> dict[str, Any]:
    """A notice for those who need a dict; its `notice` comes first and is complete but for the preview."""
    return {
        "notice": notice.head,
        "status": str(notice.outcome),
        "capture": notice.id,
        "total_bytes": notice.size,
        "total_lines": notice.lines,
        **({"read_more": notice.read_more} if notice.stored else {}),
        "preview": notice.preview,
    }


def is_notice(value: Any) -> bool:
    """Whether `value` is a notice or a placeholder, which is never spilled again.

    Any tool can print text that looks like one, so only a short text is believed.
    """
    if not isinstance(value, str) or len(value) > MAX_NOTICE or not value.startswith("[overspill cap_"):
        return False
    return _NOTICE.fullmatch(value) is not None or _PLACEHOLDER.fullmatch(value) is not None


def sanitised(reason: str) -> str:
    """`reason` on one bounded line, without control characters, credentials or anything like a secret."""
    text = " ".join(clean(reason[: 10 * _MAX_REASON]).split())
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    text = _MARK.sub("(", text).rstrip(".")
    return text if len(text) <= _MAX_REASON else text[: _MAX_REASON - 1] + "…"


_SECRETS: Final = (
    (re.compile(r"(?<=://)[^/\s@]*@"), ""),
    (re.compile(r"(?<=[^\s?])\?[^\s'\"]*=[^\s'\"]*"), ""),
    (re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE), r"\1 …"),
    (
        re.compile(
            r"([\w-]*(?:key|token|secret|password|passwd|authorization|credential)s?[\"']?\s*[:=]\s*)\S+",
            re.IGNORECASE,
        ),
        r"\1…",
    ),
    (re.compile(r"[A-Za-z0-9+/_=-]{32,}"), "…"),
)


def _tool(facts: Facts) -> str:
    name = _MARK.sub("(", " ".join(clean(facts.tool[:_MAX_TOOL]).split()))
    return name or "the tool"


def _too_long(facts: Facts) -> str:
    size = measure.counted(facts.size, "byte")
    readable = measure.readable(facts.size)
    in_short = "" if readable == size else f" ({readable})"
    return (
        f"The output of {_tool(facts)} {facts.why}: {size}{in_short}, "
        f"{measure.counted(facts.lines, 'line')}, about {measure.approx_tokens(facts.size):,} tokens."
    )


def _shown_path(path: str) -> str:
    return _MARK.sub("(", " ".join(clean(path).split("\n")))


def _digest(facts: Facts) -> str:
    return f"Its sha256 begins {facts.sha256.hex()[:_DIGEST_DIGITS]}."


def _instant(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
