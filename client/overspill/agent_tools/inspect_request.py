"""One request of an agent: checks its arguments, and does the read.

The arguments come from a model. On wrong arguments the error says what is wrong, what is allowed and what to
do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from overspill import wire
from overspill.agent_tools.arguments import argument, cleaned
from overspill.agent_tools.error_answers import A_HANDLE, InvalidArguments
from overspill.guard.policy_defaults import ANSWER_CHARS
from overspill.spools.capture import LocalCapture
from overspill.transfer.client import call

if TYPE_CHECKING:
    from datetime import datetime

    from overspill.agent_tools.agent_tool import Arguments
    from overspill.transfer.client import Client

InspectMode: TypeAlias = Literal["head", "tail", "grep", "range", "summary", "wait"]

MODES: Final[tuple[str, ...]] = get_args(InspectMode)
MAX_MATCHES: Final = 50
MAX_CONTEXT: Final = 100
USUAL_CHARS: Final = 20_000
"""Characters of a whole answer, as JSON. Hosts cut what tools return at 30,000 to 50,000."""
OTHER_FIELDS_CHARS: Final = 1_500
"""About the characters of an answer without its text."""
MAX_CHARS: Final = ANSWER_CHARS
MIN_CHARS: Final = 2_000
"""The bounds of `max_chars`."""
LINES: Final = 50
"""The default number of lines."""
WAIT_SECONDS: Final = 45
"""Hosts end calls of tools after a minute or more."""
_IMPLIED_MODES: Final = (("pattern", "grep"), ("start", "range"), ("end", "range"))
"""The mode that an argument implies if no mode is given."""
_MAX_QUOTED: Final = 100
_NO_HANDLE: Final = "Object missing required field `capture`"
_PLAIN_WORDS: Final = (
    ("Expected `int`, got `str`", "Expected a whole number"),
    ("Expected `float`, got `str`", "Expected a number"),
    ("Expected `bool`, got `str`", "Expected true or false"),
)
"""Messages of msgspec about a wrong type, and their wording for a model."""


class InspectRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The arguments of one call, as the tool's schema describes them to a model."""

    capture: Annotated[
        str, argument('The handle from the notice ("cap_…"), or "call:" and the id of the tool call.')
    ]
    mode: Annotated[str, argument("How to read.", enum=list(MODES))] = "head"
    lines: Annotated[
        int | None,
        argument(
            f"head, tail, range: how many lines ({LINES}). wait: return once this many are new.", minimum=1
        ),
    ] = None
    pattern: Annotated[
        str | None,
        argument("grep, wait: a regular expression (RE2, without look-around and back-references)."),
    ] = None
    context_lines: Annotated[
        int, argument("grep: lines to show before and after each match.", minimum=0, maximum=MAX_CONTEXT)
    ] = 3
    start: Annotated[int | None, argument("range: the first line, counted from 1.", minimum=1)] = None
    end: Annotated[
        int | None, argument("range: the last line, inclusive; without it, read `lines` lines.", minimum=1)
    ] = None
    ignore_case: Annotated[bool, argument("grep: ignore case.")] = True
    fixed: Annotated[bool, argument("grep: pattern is plain text.")] = False
    invert: Annotated[bool, argument("grep: show the lines that do not match.")] = False
    from_end: Annotated[bool, argument("grep: search from the end; the last match comes first.")] = False
    max_matches: Annotated[
        int, argument("grep: stop after this many matches.", minimum=1, maximum=MAX_MATCHES)
    ] = MAX_MATCHES
    offset: Annotated[
        int, argument("range: bytes of line `start` to skip; copy it from `next`.", minimum=0)
    ] = 0
    cursor: Annotated[str | None, argument("grep, wait: where to continue; copy it from `next`.")] = None
    structured: Annotated[
        bool, argument("grep: return matches as objects with the lines around them, without content.")
    ] = False
    max_chars: Annotated[
        int, argument("The most characters of the whole answer.", minimum=MIN_CHARS, maximum=MAX_CHARS)
    ] = USUAL_CHARS
    timeout_seconds: Annotated[
        float, argument("wait: at most this many seconds.", minimum=0, maximum=wire.MAX_WAIT_SECONDS)
    ] = WAIT_SECONDS

    @classmethod
    def of(cls, arguments: Arguments) -> InspectRequest:
        """Read the request from a model's arguments, leniently. Raises `InvalidArguments`."""
        try:
            meant = cleaned(arguments, cls)
            if "mode" not in meant:
                meant |= next(({"mode": mode} for name, mode in _IMPLIED_MODES if name in meant), {})
            return _checked(msgspec.convert(meant, cls, strict=False))
        except msgspec.ValidationError as error:
            raise InvalidArguments(_error_text(error)) from error

    def read(
        self,
        client: Client | LocalCapture,
        session: str | None,
        max_bytes: int,
        since: datetime | None = None,
    ) -> Any:
        """Do the bounded read. Return the answer; for a `Client`, a coroutine that does.

        `session` narrows a `call:` handle. The text has at most `max_bytes`. Lines before `since` are left
        out.
        """
        ref = self.capture
        if ref.startswith(wire.CALL_PREFIX):
            ref = call(ref.removeprefix(wire.CALL_PREFIX))
        else:
            session = None
        more: dict[str, Any] = {"max_bytes": max_bytes, "session": session}
        match self.mode:
            case "head":
                return client.head(ref, self.line_count, since=since, **more)
            case "tail":
                return client.tail(ref, self.line_count, since=since, **more)
            case "range":
                return client.lines(ref, self._first, self._last, offset=self.offset, since=since, **more)
            case "grep":
                return client.grep(ref, str(self.pattern), **self._grep_options(), **more)
            case "wait":
                return self._wait(client, ref, **more)
        return client.summary(ref, session=session)

    @property
    def line_count(self) -> int:
        """The number of lines to read."""
        return LINES if self.lines is None else self.lines

    @property
    def _first(self) -> int:
        return 1 if self.start is None else self.start

    @property
    def _last(self) -> int:
        return self._first + max(1, self.line_count) - 1 if self.end is None else self.end

    def _grep_options(self) -> dict[str, Any]:
        return {
            "fixed": self.fixed,
            "ignore_case": self.ignore_case,
            "invert": self.invert,
            "context": min(self.context_lines, MAX_CONTEXT),
            "max_matches": min(self.max_matches, MAX_MATCHES),
            "from_end": self.from_end,
            "cursor": self.cursor,
        }

    def _wait(self, client: Client | LocalCapture, ref: str, **more: Any) -> Any:
        """Wait in the service. A spooled capture has ended: read its end."""
        if isinstance(client, LocalCapture):
            return client.tail(ref, self.line_count, **more)
        return client.wait(
            ref,
            self.pattern or None,
            fixed=self.fixed,
            ignore_case=self.ignore_case,
            lines=None if self.lines is None else max(1, self.lines),
            timeout=min(max(self.timeout_seconds, 0), wire.MAX_WAIT_SECONDS),
            cursor=int(self.cursor or 0),
            **more,
        )


def _error_text(error: msgspec.ValidationError) -> str:
    """Return what msgspec says of wrong arguments, in words for a model."""
    text = str(error).replace("`$.", "`").replace(" | null`", "`")  # null is the same as no argument
    if text == _NO_HANDLE:
        return f"the argument capture is missing: {A_HANDLE}"
    for theirs, ours in _PLAIN_WORDS:
        text = text.replace(theirs, ours)
    return f"{text}. Correct the argument and call again"


def _checked(request: InspectRequest) -> InspectRequest:
    """Return the request with a valid mode and handle. Raises `InvalidArguments`."""
    mode, capture = request.mode, request.capture
    if capture == wire.CALL_PREFIX or not (
        wire.CAPTURE_ID.fullmatch(capture) or capture.startswith(wire.CALL_PREFIX)
    ):
        raise InvalidArguments(f"{_quoted(capture)} is not a handle: {A_HANDLE}")
    if mode not in MODES:
        raise InvalidArguments(f"{_quoted(mode)} is not a mode; the modes are {', '.join(MODES)}")
    if mode == "grep" and not request.pattern:
        example = f'inspect_output(capture="{capture}", mode="grep", pattern="error")'
        raise InvalidArguments(f"mode grep needs a pattern, for example {example}")
    if capture.startswith(wire.CALL_PREFIX):
        capture = wire.CALL_PREFIX + wire.fit(capture.removeprefix(wire.CALL_PREFIX))
    if mode == "wait" and not (request.cursor or "0").isdecimal():
        raise InvalidArguments("mode wait needs a number as cursor: copy it from `next` of the last answer")
    max_chars = min(MAX_CHARS, max(MIN_CHARS, request.max_chars))
    return msgspec.structs.replace(request, capture=capture, max_chars=max_chars)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…")
