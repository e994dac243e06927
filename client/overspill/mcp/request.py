"""A request of an MCP client, and its details: revision, client, tool, call and caller."""

from __future__ import annotations

import secrets
from typing import Any, Final

from msgspec import Struct

from overspill.guard.call_context import is_program, minted
from overspill.mcp.rendering import CLIENT_INFO, VERSION

_CALL_ID: Final = "claudecode/toolUseId"
"""The field in which Claude Code sends the provider's id of the tool call."""

_SESSION_HEADER: Final = "mcp-session-id"
CALL: Final = "tools/call"
LIST: Final = "tools/list"
"""Methods."""


class Request(Struct, frozen=True):
    """One request of the client. `revision` is the protocol's, if the request itself names it."""

    id: int | float | str | None
    method: str
    params: dict[str, Any]

    @property
    def meta(self) -> dict[str, Any]:
        """Return the request's `_meta`."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def revision(self) -> str | None:
        """Return the revision that the request names: from 2026-07-28 on each request does."""
        named = self.meta.get(VERSION)
        return named if isinstance(named, str) else None

    @property
    def client_name(self) -> str:
        """Return the client's name, or an empty text. `initialize` or each request has it."""
        info = self.params.get("clientInfo") or self.meta.get(CLIENT_INFO)
        name = info.get("name") if isinstance(info, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def tool(self) -> str:
        """Return the name of the tool that is called."""
        name = self.params.get("name")
        return name if isinstance(name, str) else ""

    @property
    def call_id(self) -> str:
        """Return the id that the model's provider gave the call, or a random one: JSON-RPC counts from 0."""
        named = self.meta.get(_CALL_ID)
        return named if isinstance(named, str) and named else minted()

    @property
    def is_from_program(self) -> bool:
        """Return whether the client says that code made the call."""
        return is_program(self.params.get("caller")) or is_program(self.meta.get("caller"))


def client_name_of(session: Any) -> str:
    """Return the name of the client of an SDK session, or an empty text."""
    parameters = session.client_params
    return "" if parameters is None or parameters.client_info is None else str(parameters.client_info.name)


def session_over_http(session: str, http: Any) -> str | None:
    """Return the session of a client's captures: over HTTP never that of another client.

    `session` is the guard's; `http` is the request as a framework has it, with `headers`, or None if there is
    none. From 2026-07-28 on the protocol has no sessions: then each request has one of its own.
    """
    if http is None:
        return None
    return f"{session}/{http.headers.get(_SESSION_HEADER) or secrets.token_hex(8)}"
