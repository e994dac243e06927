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
from overspill.tokens import TokenCount, estimated
from overspill.wire import Outcome

if TYPE_CHECKING:
    from datetime import datetime

MAX_NOTICE: Final = 64 * 1024
"""A longer text is no notice, whatever marks it wears."""
TOO_LONG: Final = "is too long to show"
"""Why an output is not shown, as the end of a sentence about it."""
_MAX_TOOL: Final = 100
_MAX_REASON: Final = 200
_DIGEST_DIGITS: Final = 12
_MARK: Final = re.compile(r"\[(?=/?overspill\b)", re.IGNORECASE)
_ID: Final = "cap_[a-z2-7]{20}"
_NOTICE: Final = re.compile(
    rf"\[overspill (?:(?P<id>{_ID})(?: NOT STORED)?|NOT STORED)\] .*\n\[/overspill(?(id) (?P=id))\]",
    re.DOTALL,
)
_PLACEHOLDER: Final = re.compile(
    rf"\[overspill(?: {_ID})?: [0-9,]+ bytes? of text, (?:in the capture|not stored)\]"
)
_CLOSING: Final = re.compile(rf"\[overspill {_ID}: the whole output, [^\n]*\]")
_FAILED: Final = re.compile(
    r"Output too large \([0-9.]+ [KM]B\)\. Failed to save full output: .*\n\.\.\.", re.DOTALL
)


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
class Facts:
    """What a notice says of an output: sizes in bytes and lines of the whole, a `preview` safe to show.

    `id` and `sha256` are empty of what nobody tries to store. `tokens` is estimated where it is None;
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
    tokens: TokenCount | None = None
    same_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """`head` is the marker and what to do, `preview` the untrusted part; `str()` is the whole.

    `read_more` is the call in `head` that reads the capture, and empty where nothing is stored. `text` is
    the whole where it is anything else than head and preview between marks. One that `is_alone` leaves no
    room beside it: other texts of the output go without a placeholder.
    """

    id: str
    outcome: Outcome
    size: int
    lines: int
    head: str
    read_more: str
    preview: str
    text: str | None = None
    is_alone: bool = False

    @property
    def stored(self) -> bool:
        """Whether the whole can be read, wherever it is."""
        return self.outcome is not Outcome.TRUNCATED

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        newline = "" if self.preview.endswith("\n") else "\n"
        shown = f"--- preview ---\n{self.preview}{newline}" if self.preview else ""
        return f"{self.head}\n{shown}[/{_name(self.id)}]"


def _name(id: str) -> str:  # noqa: A002  (the notice's own word)
    return f"overspill {id}" if id else "overspill"


def of(facts: Facts, kept: Kept) -> Notice:
    """The notice of an output that went where `kept` says."""
    if kept.outcome is Outcome.TRUNCATED:
        return truncated(facts, kept.reason)
    if kept.outcome is Outcome.CAPTURED and kept.expires is not None:
        return captured(facts, kept.expires)
    return spooled(facts, kept.expires, kept.reason, kept.path)


def captured(facts: Facts, expires: datetime) -> Notice:
    """The notice of an output that the service has whole until `expires`."""
    return _stored(facts, Outcome.CAPTURED, "It is stored whole", reading(facts), _kept(facts, expires))


def spooled(facts: Facts, expires: datetime | None, reason: str, path: str = "") -> Notice:
    """The notice of an output that is whole on this machine, at `path` if its agent can open that.

    `reason` says why the service does not have it; empty where nobody meant it to.
    """
    kept = Kept(outcome=Outcome.SPOOLED, expires=expires, reason=reason, path=path)
    where = f"It is stored whole{_where(kept)}{_because(kept)}"
    return _stored(facts, kept.outcome, where, how_to_read(facts, kept), _kept(facts, expires, _what(kept)))


def _where(kept: Kept) -> str:
    if kept.outcome is Outcome.CAPTURED:
        return ""
    return f" in the file {shown_path(kept.path)}" if kept.path else " on this machine"


def _because(kept: Kept) -> str:
    """Why the service does not have it, and whether it will."""
    if kept.outcome is Outcome.CAPTURED or not kept.reason:
        return ""
    later = "" if kept.path else "; it will be uploaded as soon as the service can take it"
    return f", because the service could not take it ({sanitised(kept.reason)}){later}"


def how_to_read(facts: Facts, kept: Kept) -> str:
    if not kept.path:
        return reading(facts)
    path = shown_path(kept.path)
    return f"read that file in parts with your file-reading tool, or search it with grep: {path}"


def _what(kept: Kept) -> str:
    return "file" if kept.path else "capture"


def closing(facts: Facts, kept: Kept, *, says_how: bool = True) -> str:
    """One line with the handle, for a stand-in in another form; empty where nothing is stored.

    `says_how` to read more, unless the stand-in does.
    """
    if kept.outcome is Outcome.TRUNCATED:
        return ""
    until = "" if kept.expires is None else f" until {_instant(kept.expires)}"
    extent = f"{measure.counted(facts.size, 'byte')}, {measure.counted(facts.lines, 'line')}"
    how = f"To read more: {how_to_read(facts, kept)}. " if says_how else ""
    text = (
        f"the whole output, {extent}, is stored{_where(kept)}{until}{_because(kept)}. {how}"
        f"Do not run the tool again to see more: read the {_what(kept)}.{_same(facts)}"
    )
    return f"[overspill {facts.id}: {' '.join(text.split())}]"


def truncated(facts: Facts, reason: str) -> Notice:
    """The notice of an output that could not be stored; what the preview leaves out is gone."""
    lost = "What the preview below leaves out" if facts.preview else "All of it"
    return _notice(
        facts,
        Outcome.TRUNCATED,
        f"[{_name(facts.id)} NOT STORED] {_too_long(facts)} It could NOT be stored: {sanitised(reason)}.\n"
        f"{lost} is lost. If you need it, run the tool again with a narrower "
        f"question (a filter, a range, fewer files).{_digest(facts)}{_same(facts)}",
        "",
    )


def _stored(facts: Facts, outcome: Outcome, where: str, read_more: str, kept: str) -> Notice:
    shown = "; a preview is below" if facts.preview else ""
    head = (
        f"[overspill {facts.id}] {_too_long(facts)} {where}{shown}.\nTo read more: {read_more}\n"
        f"{kept}{_same(facts)}"
    )
    return _notice(facts, outcome, head, read_more)


def reading(facts: Facts) -> str:
    """The call that reads the capture."""
    return facts.reader.replace("{id}", facts.id)


def _kept(facts: Facts, expires: datetime | None, what: str = "capture") -> str:
    until = "" if expires is None else f"Kept until {_instant(expires)}. "
    return f"{until}{_digest(facts).lstrip()} Do not run the tool again to see more: read the {what}."


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
        preview=defused(facts.preview),
    )


def defused(text: str) -> str:
    """`text` with nothing in it that looks like a mark; of the same length in bytes."""
    return _MARK.sub("(", text)


def placeholder(notice: Notice, size: int) -> str:
    """What stands in for `size` bytes of further text of the same output; the notice stands at the first."""
    where = "in the capture" if notice.stored else "not stored"
    return f"[{_name(notice.id)}: {measure.counted(size, 'byte')} of text, {where}]"


def as_dict(notice: Notice) -> dict[str, Any]:
    """A notice for those who need a dict; its `notice` comes first and is complete but for the preview."""
    return {
        "notice": notice.head,
        "status": str(notice.outcome),
        "capture": notice.id or None,
        "total_bytes": notice.size,
        "total_lines": notice.lines,
        **({"read_more": notice.read_more} if notice.stored else {}),
        "preview": notice.preview,
    }


def is_notice(value: Any) -> bool:
    """Whether `value` is a notice or a placeholder, which is never spilled again.

    Any tool can print text that looks like one, so only a short text is believed.
    """
    if not isinstance(value, str) or len(value) > MAX_NOTICE:
        return False
    if value.startswith("[overspill"):
        return _NOTICE.fullmatch(value) is not None or _PLACEHOLDER.fullmatch(value) is not None
    if value.endswith("]"):
        return _CLOSING.fullmatch(value, value.rfind("\n") + 1) is not None
    return value.endswith("\n...") and _FAILED.fullmatch(value) is not None


def sanitised(reason: str) -> str:
    """`reason` on one bounded line, without control characters, credentials or anything like a secret."""
    text = " ".join(clean(reason[: 10 * _MAX_REASON]).split())
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    text = defused(text).rstrip(".")
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
    name = defused(" ".join(clean(facts.tool[:_MAX_TOOL]).split()))
    return name or "the tool"


def _too_long(facts: Facts) -> str:
    size = measure.counted(facts.size, "byte")
    readable = measure.readable(facts.size)
    in_short = "" if readable == size else f" ({readable})"
    return (
        f"The output of {_tool(facts)} {facts.why}: {size}{in_short}, "
        f"{measure.counted(facts.lines, 'line')}, {facts.tokens or estimated(facts.size)}."
    )


def shown_path(path: str) -> str:
    return defused(" ".join(clean(path).split("\n")))


def _digest(facts: Facts) -> str:
    return f" Its sha256 begins {facts.sha256.hex()[:_DIGEST_DIGITS]}." if facts.sha256 else ""


def _instant(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
