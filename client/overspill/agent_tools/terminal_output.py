"""The tool with which agents read terminals: `get_terminal_output`."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from overspill import wire
from overspill.agent_tools.arguments import argument, handle_in, request_of, schema_of, without_punctuation
from overspill.agent_tools.capture_source import CaptureSource
from overspill.agent_tools.error_answers import InvalidArguments
from overspill.agent_tools.inspect_output import NAME as READER
from overspill.agent_tools.inspect_output import answered
from overspill.agent_tools.inspect_request import LINES, USUAL_CHARS, InspectRequest
from overspill.agent_tools.repeated_looks import RepeatedLooks
from overspill.text.instants import instant_of
from overspill.text.reasons import one_safe_line
from overspill.transfer.client import call

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import AgentTool, Answer, Arguments
    from overspill.guard.guard import Guard
    from overspill.transfer.client import Client

NAME: Final = "get_terminal_output"
DESCRIPTION: Final = """\
Read what a terminal shows, or a command that was started in the background, while it runs or afterwards.

terminal is a name or a handle; without it, you get the terminal that you run in, or else the one that wrote
last. Modes: "tail" and "head" give the last and the first lines, "all" all lines from the beginning, page by
page. since gives only lines that came after a time ("30s" ago, "5m", or an ISO 8601 time). To wait for
output, call inspect_output with the handle (capture) and mode "wait". On failure, error says what is wrong
and what to do."""
TERMINAL_VARIABLE: Final = "OVERSPILL_TERMINAL"
"""The variable in which programs inside a terminal find its handle."""
_MODES: Final = ("tail", "head", "all")
_PAGE_LINES: Final = 500
_MAX_LOOKED_AT: Final = 200
_NAME_CHARS: Final = 200


class TerminalRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of one call."""

    terminal: Annotated[str, argument("A name or a handle; else the current or the latest terminal.")] = ""
    mode: Annotated[str, argument("How to read.", enum=[*_MODES])] = "tail"
    lines: Annotated[int, argument("How many lines.", minimum=1)] = LINES
    since: Annotated[str, argument('Only lines after this: "30s", "5m", or a time.')] = ""

    @classmethod
    def of(cls, arguments: Arguments) -> TerminalRequest:
        """Read the request from a model's arguments, leniently. Raises `InvalidArguments`."""
        request = request_of(cls, arguments, NAME)
        if request.mode not in _MODES:
            wrong = f"{request.mode[:_NAME_CHARS]!r} is not a mode; the modes are {', '.join(_MODES)}"
            raise InvalidArguments(f"{wrong}. To wait, call {READER} with the handle")
        return request

    def inspect_request(self, capture: str, max_chars: int) -> InspectRequest:
        """Return the read of the capture, without `since`."""
        mode, lines = ("range", _PAGE_LINES) if self.mode == "all" else (self.mode, max(1, self.lines))
        return InspectRequest(capture=capture, mode=mode, lines=lines, max_chars=max_chars)


TERMINAL_OUTPUT_SCHEMA: Final = schema_of(TerminalRequest)


def terminal_tool(guard: Guard, *, max_chars: int = USUAL_CHARS) -> AgentTool:
    """Return `get_terminal_output`, which reads the terminals of the guard's session.

    Those are the captures of `overspill run`, `overspill shell` and `overspill put --live --name`, of that
    session or of none.
    """
    source = CaptureSource(guard.client, session=guard.session, spool=guard.spool)
    answer = partial(terminal_output, max_chars=min(max_chars, USUAL_CHARS), looks=RepeatedLooks(READER))
    return source.tool(NAME, DESCRIPTION, TERMINAL_OUTPUT_SCHEMA, answer)


async def terminal_output(
    client: Client | None, session: str, arguments: Arguments, max_chars: int, looks: RepeatedLooks
) -> Answer:
    """Answer one call with at most `max_chars` characters.

    Raises `InvalidArguments`, and what reading raises.
    """
    if client is None:
        raise InvalidArguments("no service is configured, and only a service has terminals")
    terminal_request = TerminalRequest.of(arguments)
    entry = await _find_terminal(client, session, terminal_request.terminal)
    request, since = terminal_request.inspect_request(entry.id, max_chars), _instant(terminal_request.since)
    return {**_described(entry), **await answered(request, client, session, looks, since)}


def _instant(text: str) -> datetime | None:
    """Return the time that a `since` says, if it says one. Raises `InvalidArguments`."""
    try:
        return instant_of(text, datetime.now(UTC)) if text else None
    except ValueError as error:
        raise InvalidArguments(str(error)) from None


async def _find_terminal(client: Client, session: str, terminal: str) -> wire.Entry:
    """Return the terminal that the arguments name. Raises `InvalidArguments`, and the service's problems."""
    handle = handle_in(terminal or os.environ.get(TERMINAL_VARIABLE, ""))
    if wire.CAPTURE_ID.fullmatch(handle):
        return await client.get(handle)
    if handle.startswith(wire.CALL_PREFIX):
        return await client.get(call(handle.removeprefix(wire.CALL_PREFIX)), session=session)
    terminal = without_punctuation(terminal)
    for state in (wire.State.LIVE, None):
        for where in dict.fromkeys((session, "")):
            page = await client.list(session=where, state=state, limit=_MAX_LOOKED_AT)
            if found := [each for each in page.captures if _is_meant(each, terminal)]:
                return max(found, key=_last_active)
    text = f"no terminal has the name {terminal[:_NAME_CHARS]!r}" if terminal else "there is no terminal"
    raise InvalidArguments(f"{text}; `overspill run -- COMMAND` and `overspill shell` start one")


def _is_meant(entry: wire.Entry, terminal: str) -> bool:
    name = entry.labels.get(wire.TERMINAL_LABEL)
    return name is not None and (not terminal or terminal == without_punctuation(name))


def _last_active(entry: wire.Entry) -> datetime:
    return entry.last_append or entry.created


def _described(entry: wire.Entry) -> dict[str, Any]:
    gap = {} if entry.gap is None else {"gap": str(entry.gap)}
    return {
        "terminal": one_safe_line(entry.labels.get(wire.TERMINAL_LABEL, ""))[:_NAME_CHARS],
        "command": one_safe_line(entry.labels.get(wire.COMMAND_LABEL, ""))[:_NAME_CHARS],
        "state": str(entry.state),
        "last_active": _last_active(entry).isoformat(timespec="seconds"),
        "status": one_safe_line(entry.status)[:_NAME_CHARS],
        **gap,
    }
