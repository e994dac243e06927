"""What an agent asks of a capture and what it gets: one question, the read it stands for, a plain answer.

Arguments come from a model, so whatever they hold becomes an answer or an explanation: what was wrong, what
is allowed, what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from overspill import measure, wire
from overspill.client import call
from overspill.errors import (
    Absent,
    BadRequest,
    CaptureDamaged,
    Deleted,
    Denied,
    Expired,
    InvalidPattern,
    OverspillError,
    ProblemError,
    Unreachable,
)
from overspill.notice import sanitised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from overspill.client import Client
    from overspill.spools.local.capture import LocalCapture
    from overspill.sync import SyncClient

Mode: TypeAlias = Literal["head", "tail", "grep", "range", "summary"]
Answer: TypeAlias = dict[str, Any]

MODES: Final[tuple[str, ...]] = get_args(Mode)
MAX_MATCHES: Final = 50
MAX_CONTEXT: Final = 100
_MAX_ERROR: Final = 1_000
_MAX_SHOWN: Final = 100
_IN_ITS_WORDS: Final = (
    ("context=, before= and after= show", "context_lines shows"),
    ("context=, before= or after=", "context_lines"),
)
"""The service speaks of query parameters; a model knows the tool's arguments."""
_HANDLE: Final = (
    'a handle is "cap_" and 20 characters, exactly as it stands in the notice, '
    'or "call:" and the id of the tool call'
)


class Mistake(Exception):
    """Arguments that no read can be made of; the text says what is allowed."""


class Question(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The arguments of one call; `tools.InspectOutput` says what each is."""

    capture: str
    mode: str = "head"
    lines: int = 50
    pattern: str | None = None
    context_lines: int = 3
    start: int | None = None
    end: int | None = None
    ignore_case: bool = True
    fixed: bool = False
    invert: bool = False
    from_end: bool = False
    max_matches: int = MAX_MATCHES
    offset: int = 0
    cursor: str | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Question:
        """The question in a model's arguments: null is left out, "50" is 50. Raises `Mistake`."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            return _checked(msgspec.convert(given, cls, strict=False))
        except msgspec.ValidationError as error:
            raise Mistake(f"{error}".replace("`$.", "`")) from error

    def read(self, client: Client | SyncClient | LocalCapture, session: str | None) -> Any:
        """The bounded read: from a `Client` something to await, from the others what `answer` takes.

        `session` narrows a `call:` handle.
        """
        ref = self.capture
        if ref.startswith(wire.CALL_PREFIX):
            ref = call(ref.removeprefix(wire.CALL_PREFIX))
        else:
            session = None
        match self.mode:
            case "head":
                return client.head(ref, self.lines, session=session)
            case "tail":
                return client.tail(ref, self.lines, session=session)
            case "range":
                return client.lines(ref, self._first, self._last, offset=self.offset, session=session)
            case "grep":
                return self._grep(client, ref, session)
        return client.summary(ref, session=session)

    @property
    def _first(self) -> int:
        return 1 if self.start is None else self.start

    @property
    def _last(self) -> int:
        return self._first + max(1, self.lines) - 1 if self.end is None else self.end

    def _grep(self, client: Client | SyncClient | LocalCapture, ref: str, session: str | None) -> Any:
        return client.grep(
            ref,
            str(self.pattern),
            fixed=self.fixed,
            ignore_case=self.ignore_case,
            invert=self.invert,
            context=min(self.context_lines, MAX_CONTEXT),
            max_matches=min(self.max_matches, MAX_MATCHES),
            from_end=self.from_end,
            cursor=self.cursor,
            session=session,
        )

    def answer(self, found: wire.Text | wire.Summary) -> Answer:
        if isinstance(found, wire.Summary):
            return {"capture": self.capture, "mode": self.mode, **_described(found), "next": None}
        facts = msgspec.to_builtins(found)
        return {"capture": self.capture, **facts, "mode": self.mode, "next": self._next(found)}

    def _next(self, text: wire.Text) -> Answer | None:
        """The arguments of the call that reads on: None at the end, and where all that was named is there."""
        if self.mode == "grep":
            return {**msgspec.to_builtins(self), "cursor": text.next["cursor"]} if text.next else None
        is_open = self.mode != "tail" and self.end is None
        if text.next:
            place = text.place
            return self._page(place.pop("start"), place) if is_open else self._range(place)
        if text.end_line < text.start_line:
            return None
        if self.mode == "tail" and text.start_line > 1:
            return self._range({"start": max(1, text.start_line - self.lines), "end": text.start_line - 1})
        return self._page(text.end_line + 1, {}) if is_open and text.end_line < text.total_lines else None

    def _page(self, start: int, place: dict[str, int]) -> Answer:
        """The next `lines` lines, wherever they end."""
        inside = {"offset": place["offset"]} if "offset" in place else {}
        return self._range({"start": start, "lines": self.lines, **inside})

    def _range(self, place: dict[str, int]) -> Answer:
        return {"capture": self.capture, "mode": "range", **place}


def _checked(question: Question) -> Question:
    """With mode and handle as they are meant. Raises `Mistake`."""
    mode, capture = question.mode.strip().lower(), question.capture.strip()
    if capture == wire.CALL_PREFIX or not (
        wire.CAPTURE_ID.fullmatch(capture) or capture.startswith(wire.CALL_PREFIX)
    ):
        raise Mistake(f"{_shown(capture)} is not a handle: {_HANDLE}")
    if mode not in MODES:
        raise Mistake(f"{_shown(mode)} is not a mode; the modes are {', '.join(MODES)}")
    if mode == "grep" and not question.pattern:
        example = f'inspect_output(capture="{capture}", mode="grep", pattern="error")'
        raise Mistake(f"mode grep needs a pattern, as in {example}")
    return msgspec.structs.replace(question, mode=mode, capture=capture)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")


# --- summaries ------------------------------------------------------------------------------------


def _described(found: wire.Summary) -> Answer:
    """A summary in the shape of the other answers, its figures as text."""
    content = "".join(f"{line}\n" for line in _sections(found))
    return {
        "content": content,
        "start_line": 1,
        "end_line": found.total_lines,
        "total_lines": found.total_lines,
        "total_bytes": found.total_bytes,
        "content_type": found.content_type,
        "kind": found.kind,
        "truncated": found.truncated,
        "approx_tokens": wire.approx_tokens(measure.size(content)),
    }


def _sections(found: wire.Summary) -> Iterator[str]:
    yield f"{measure.counted(found.total_bytes, 'byte')}, {measure.counted(found.total_lines, 'line')}"
    if found.truncated:
        yield f"only the first {measure.counted(found.scanned_bytes, 'byte')} were looked at"
    yield f"content: {found.kind} ({found.content_type})"
    yield f"longest line: {measure.counted(found.longest_line, 'byte')}; empty lines: {found.empty_lines:,}"
    yield f"lines that look like errors: {_numbered(found.errors)}"
    yield f"lines that look like warnings: {_numbered(found.warnings)}"
    repeated = [f"{each.count:,} times from line {each.first_line}: {each.line}" for each in found.repeated]
    parts = {
        "most repeated, numbers aside": repeated,
        "shape of the JSON": (found.json_shape or "").splitlines(),
        "first lines": found.first_lines,
        "last lines": found.last_lines,
    }
    for title, lines in parts.items():
        if lines:
            yield f"{title}:"
            yield from (f"  {line}" for line in lines)


def _numbered(severity: wire.Severity) -> str:
    numbers = ", ".join(map(str, severity.line_numbers))
    more = ", …" if severity.count > len(severity.line_numbers) else ""
    return f"{severity.count:,}{f' (at {numbers}{more})' if numbers else ''}"


# --- what went wrong ------------------------------------------------------------------------------

_AGAIN: Final = (
    "The capture is kept: call again in a little while, and until then work with the preview in the notice"
)
_COPY: Final = (
    f"Check the handle ({_HANDLE}). If it is right, the output is gone: run the tool again if you need it"
)


def refusal(error: Exception) -> Answer:
    """What the agent is told instead of an answer. `code` is stable, `error` for the model."""
    return {"code": _code(error), "error": ". ".join(part.rstrip(".") for part in _explained(error))}


def _explained(error: Exception) -> Iterator[str]:
    """What was wrong, and what to do."""
    if isinstance(error, ProblemError):
        detail = (error.detail or error.title)[:_MAX_ERROR].partition("; GET ")[0]
        for theirs, ours in _IN_ITS_WORDS:
            detail = detail.replace(theirs, ours)
        yield detail
        yield from _advice(error)
    elif isinstance(error, Mistake):
        yield str(error)[:_MAX_ERROR]
    elif isinstance(error, Unreachable):
        yield f"the Overspill service {sanitised(str(error))}"
        yield _AGAIN
    elif isinstance(error, OverspillError):
        yield f"the Overspill service cannot be read from: {sanitised(str(error))}"
        yield _AGAIN
    else:
        yield f"the read failed: {sanitised(f'{type(error).__name__}: {error}')}"


def _advice(error: ProblemError) -> Iterator[str]:
    match error:
        case Expired() | InvalidPattern():
            return
        case Deleted():
            yield "Its content is gone: run the tool again if you need it"
        case Absent():
            yield _COPY
        case BadRequest():
            yield "Correct the arguments and call again"
        case Denied():
            yield "Calling again will not help: whoever runs this agent has to give it a key that may read"
        case CaptureDamaged():
            yield "Other parts of it may still be readable. Run the tool again if you need this one"
        case _:
            yield _AGAIN


def _code(error: Exception) -> str:
    if isinstance(error, ProblemError):
        return error.code
    if isinstance(error, Mistake):
        return str(wire.Code.INVALID_PARAMETER)
    return "unreachable" if isinstance(error, OverspillError) else "failed"
