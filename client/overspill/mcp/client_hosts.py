"""Chooses limits and reading tools for each client, as its program needs if that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill.agent_tools.reading_tools import reading_tools
from overspill.guard.hosts import HOSTS, host_of_client

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.policy import Policy


class ClientHosts:
    """The policies and reading tools of one guard, by the name of the MCP client (`clientInfo.name`).

    `terminals` is that of `reading_tools`.
    """

    def __init__(self, guard: Guard, *, terminals: bool | None = None) -> None:
        self._guard = guard
        self._terminals = terminals
        self._policies: dict[str, Policy] = {}
        self._tools: dict[str | None, tuple[AgentTool, ...]] = {}

    def policy(self, client_name: str) -> Policy | None:
        """Return the policy for a client, or None if its program is not known: then the guard's own holds."""
        host = host_of_client(client_name)
        if host is None:
            return None
        if host not in self._policies:
            self._policies[host] = self._guard.policy.for_host(host)
        return self._policies[host]

    def tools(self, client_name: str) -> tuple[AgentTool, ...]:
        """Return the reading tools for a client."""
        host = host_of_client(client_name)
        if host not in self._tools:
            max_chars = None if host is None else HOSTS[host].answer_chars
            self._tools[host] = reading_tools(self._guard, max_chars=max_chars, terminals=self._terminals)
        return self._tools[host]

    def tool(self, name: str, client_name: str) -> AgentTool:
        """Return the reading tool of that name for a client."""
        return next(tool for tool in self.tools(client_name) if tool.name == name)
