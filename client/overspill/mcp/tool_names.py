"""The names and output schemas of a server's tools, and the names that are left for the reading tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overspill.mcp.rendering import definition
from overspill.mcp.schema_room import with_room

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import AgentTool


class ToolNames:
    """The tools of one server, as its lists name them, and the reading tools beside them.

    If `drops_schemas`, output schemas are taken out of the list, so that no client checks results by them.
    Those of `whole` tools stay as they are.
    """

    def __init__(
        self,
        reading_tools: tuple[AgentTool, ...],
        *,
        drops_schemas: bool,
        whole: frozenset[str] = frozenset(),
    ) -> None:
        self._own = reading_tools
        self._theirs: set[str] = set()
        self._drops_schemas = drops_schemas
        self._whole = whole
        self.schemas: dict[str, dict[str, Any]] = {}
        """The output schemas by tool, as the client gets them: with room for a notice."""
        self.reading: frozenset[str] = frozenset(tool.name for tool in reading_tools)
        """The reading tools' own names."""
        self.own: dict[str, AgentTool] = {tool.name: tool for tool in reading_tools}

    def begin(self) -> None:
        """Forget the last list, because the first page of another was requested."""
        self._theirs.clear()

    def use(self, reading_tools: tuple[AgentTool, ...]) -> None:
        """Replace the reading tools by others with the same names."""
        tools = {tool.name: tool for tool in reading_tools}
        self._own = reading_tools
        self.own = {name: tools[tool.name] for name, tool in self.own.items()}

    def listed(self, page: dict[str, Any], revision: str) -> dict[str, Any]:
        """Return a page of the list as the client gets it: the last page ends with the reading tools."""
        tools = [self._note_tool(tool) for tool in page["tools"]]
        if page.get("nextCursor") is not None:
            return {**page, "tools": tools}
        self.own = {self._free_name(tool.name): tool for tool in self._own}
        ours = [definition(tool, revision, name=name) for name, tool in self.own.items()]
        return {**page, "tools": [*tools, *ours]}

    def name_of(self, tool_name: str) -> str:
        """Return the client's name for the reading tool `tool_name`."""
        return next((name for name, tool in self.own.items() if tool.name == tool_name), tool_name)

    def _note_tool(self, tool: Any) -> Any:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            return tool
        name = tool["name"]
        self._theirs.add(name)
        self.schemas.pop(name, None)
        if name in self._whole or not isinstance(tool.get("outputSchema"), dict):
            return tool
        if self._drops_schemas:
            return {key: value for key, value in tool.items() if key != "outputSchema"}
        schema = self.schemas[name] = with_room(tool["outputSchema"])
        return tool if schema is tool["outputSchema"] else {**tool, "outputSchema": schema}

    def _free_name(self, name: str) -> str:
        names = (name, f"overspill_{name}", *(f"overspill_{name}_{number}" for number in range(2, 100)))
        return next(each for each in names if each not in self._theirs)
