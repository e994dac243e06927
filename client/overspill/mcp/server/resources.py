"""Captures as resources: `overspill://cap_…` and parts of it, read by the same bounds as by the tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from mcp import types
from mcp.shared.exceptions import MCPError

from overspill.guard.guarded import METADATA

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import AgentTool, Answer

SCHEME: Final = "overspill://"
NOT_FOUND: Final = -32002
_ABSENT: Final = frozenset({"not_found", "expired", "deleted"})
_PAGE: Final = 50
_TEMPLATES: Final = (
    ("{capture}", "head", "The first lines of a capture."),
    ("{capture}/tail/{lines}", "tail", "Its last lines."),
    ("{capture}/lines/{start}/{end}", "lines", "Lines by number, from 1, both included."),
    (
        "{capture}/grep/{pattern}",
        "grep",
        "The lines that match a regular expression, with lines around them.",
    ),
)
_READS: Final = (
    (re.compile(r"[^/]+"), "head"),
    (re.compile(r"[^/]+/tail/(?P<lines>\d+)"), "tail"),
    (re.compile(r"[^/]+/lines/(?P<start>\d+)/(?P<end>\d+)"), "range"),
    (re.compile(r"[^/]+/grep/(?P<pattern>.+)"), "grep"),
)
_HEAD_LINES: Final = 1_000


def templates() -> list[types.ResourceTemplate]:
    """Return the forms of the addresses."""
    return [
        types.ResourceTemplate(
            name=name, uri_template=SCHEME + form, description=says, mime_type="text/plain"
        )
        for form, name, says in _TEMPLATES
    ]


async def page(listing: AgentTool, cursor: str | None) -> types.ListResourcesResult:
    """Return captures of the session, newest first. Raises `MCPError`."""
    answer = checked(await listing.acall({"limit": _PAGE, **({"cursor": cursor} if cursor else {})}))
    onward = answer["next"]
    return types.ListResourcesResult(
        resources=[types.Resource.model_validate(described(row)) for row in answer["captures"]],
        next_cursor=None if onward is None else onward["cursor"],
    )


def described(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `list_captures` as the protocol describes a resource."""
    return {
        "uri": SCHEME + row["capture"],
        "name": row["capture"],
        "title": f"Output of {row['tool']} ({row['call_id']})",
        "description": f"{row['total_lines']} lines, {row['created']}",
        "mimeType": "text/plain",
        "size": row["total_bytes"],
    }


async def read(inspecting: AgentTool, uri: str) -> types.ReadResourceResult:
    """Return a part of a capture, at most 20,000 characters. Raises `MCPError`."""
    answer = checked(await inspecting.acall(_arguments(uri)), uri)
    meta = {METADATA: {name: value for name, value in answer.items() if name != "content"}}
    contents = types.TextResourceContents.model_validate(
        {"uri": uri, "mimeType": "text/plain", "text": answer["content"], "_meta": meta}
    )
    return types.ReadResourceResult(contents=[contents])


def capture_of(uri: str) -> str:
    """Return the handle in an address. Raises `MCPError`."""
    return str(_arguments(uri)["capture"])


def _arguments(uri: str) -> dict[str, Any]:
    """Return the arguments of `inspect_output` that an address means. Raises `MCPError`."""
    path = uri.removeprefix(SCHEME).rstrip("/")
    for form, mode in _READS:
        match = form.fullmatch(path)
        if uri.startswith(SCHEME) and match is not None:
            parts = {name: unquote(value) for name, value in match.groupdict().items()}
            many = {"lines": _HEAD_LINES} if mode == "head" else {}
            return {"capture": unquote(path.partition("/")[0]), "mode": mode, **many, **parts}
    forms = ", ".join(SCHEME + form for form, *_ in _TEMPLATES)
    raise MCPError(types.INVALID_PARAMS, f"{uri!r} is not an address of a capture; these are: {forms}")


def checked(answer: Answer, uri: str = "") -> Answer:
    """Return the answer. Raises `MCPError` for one with an error."""
    if "error" not in answer:
        return answer
    code = NOT_FOUND if answer["code"] in _ABSENT else types.INTERNAL_ERROR
    if answer["code"].startswith("invalid"):
        code = types.INVALID_PARAMS
    raise MCPError(code, answer["error"], {"uri": uri, "code": answer["code"]})
