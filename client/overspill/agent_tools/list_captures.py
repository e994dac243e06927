"""The tool with which agents find captures again: `list_captures`, newest first, of their own session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Struct

from overspill import wire
from overspill.agent_tools.arguments import argument, request_of, schema_of
from overspill.agent_tools.error_answers import error_answer
from overspill.errors import OverspillError
from overspill.errors.client_errors import NotSpooled
from overspill.execution.threads import run_blocking
from overspill.text.reasons import one_safe_line

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import Answer, Arguments
    from overspill.agent_tools.capture_source import CaptureSource
    from overspill.transfer.client import Client

NAME: Final = "list_captures"
DESCRIPTION: Final = """\
List the tool outputs of this session that were too long to show and are stored whole, newest first.

Each has its handle (capture), its tool and call_id, when it was made, its size in bytes and lines, and how
the call ended. Read them with inspect_output. incomplete means that captures may be missing. next holds the
arguments for the next page, and is null if nothing is left. On failure, error says what is wrong and what to
do."""
MAX_CAPTURES: Final = 50
_FEW: Final = 20
_NAME_CHARS: Final = 80
"""Characters of a tool's name or a call's id that are shown."""


class ListRequest(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The arguments of one call."""

    tool: Annotated[str | None, argument("Only outputs of this tool.")] = None
    limit: Annotated[int, argument("List at most this many.", minimum=1, maximum=MAX_CAPTURES)] = _FEW
    cursor: Annotated[str | None, argument("Where to continue; copy it from `next`.")] = None

    @classmethod
    def of(cls, arguments: Arguments) -> ListRequest:
        """Read the request from a model's arguments, leniently. Raises `InvalidArguments`."""
        request = request_of(cls, arguments, NAME)
        return msgspec.structs.replace(request, limit=min(max(request.limit, 1), MAX_CAPTURES))


LIST_CAPTURES_SCHEMA: Final = schema_of(ListRequest)


async def list_captures(
    source: CaptureSource, client: Client | None, session: str, arguments: Arguments, max_chars: int
) -> Answer:
    """Answer one call with as many captures as fit in `max_chars`. Those on this machine come first.

    Raises `InvalidArguments`, and what listing raises.
    """
    request = ListRequest.of(arguments)
    waiting = [] if request.cursor else await run_blocking(_spooled, source, session, request.tool)
    limit = request.limit
    while True:
        shown = waiting[:limit]
        page, trouble = await _page(client, session, request, limit - len(shown), is_needed=not shown)
        answer = {**_listed(shown, page, request), **trouble}
        if limit == 1 or len(json.dumps(answer)) <= max_chars:
            return answer
        limit //= 2


async def _page(
    client: Client | None, session: str, request: ListRequest, limit: int, *, is_needed: bool
) -> tuple[wire.Listing, dict[str, Any]]:
    """Return what the service has, and what went wrong: an error is raised only if `is_needed`."""
    nothing = wire.Listing(captures=[])
    if client is None or limit == 0:
        return nothing, {}
    try:
        page = await client.list(session=session, tool=request.tool, cursor=request.cursor, limit=limit)
    except OverspillError as error:
        if is_needed:
            raise
        return nothing, {"incomplete": True, **error_answer(error)}
    return page, {"incomplete": True} if page.incomplete else {}


def _listed(shown: list[wire.Entry], page: wire.Listing, request: ListRequest) -> Answer:
    listed = {each.id for each in shown}
    entries = [*shown, *(each for each in page.captures if each.id not in listed)]
    onward = None if page.cursor is None else msgspec.structs.replace(request, cursor=page.cursor)
    return {
        "captures": [_row(each) for each in entries],
        "next": None if onward is None else msgspec.to_builtins(onward),
    }


def _row(entry: wire.Entry) -> dict[str, Any]:
    return {
        "capture": entry.id,
        "tool": one_safe_line(entry.tool)[:_NAME_CHARS],
        "call_id": one_safe_line(entry.call_id)[:_NAME_CHARS],
        "created": entry.created.isoformat(timespec="seconds"),
        "total_bytes": entry.size,
        "total_lines": entry.lines,
        "kind": entry.kind,
        "status": one_safe_line(entry.status)[:_NAME_CHARS],
        **({} if entry.state is wire.State.COMPLETE else {"state": str(entry.state)}),
        **({} if entry.gap is None else {"gap": str(entry.gap)}),
    }


def _spooled(source: CaptureSource, session: str, tool: str | None) -> list[wire.Entry]:
    """Return what waits on this machine, newest first."""
    try:
        return source.holder.entries(session=session, tool=tool)
    except (NotSpooled, OSError):
        return []
