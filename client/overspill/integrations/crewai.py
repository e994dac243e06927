"""CrewAI: one line that guards every tool of a crew or of a single agent.

crew = guard_crew(Crew(agents=agents, tasks=tasks))
"""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from crewai.hooks.tool_hooks import get_after_tool_call_hooks, register_after_tool_call_hook
from crewai.tools import BaseTool
from pydantic import BaseModel, ConfigDict, PrivateAttr

from overspill.integrations.adapter import Adapter, adapter_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crewai.hooks.tool_hooks import ToolCallHookContext

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard

CrewT = TypeVar("CrewT", bound=Any)
AgentT = TypeVar("AgentT", bound=Any)


def guard_crew(crew: CrewT, guard: Guard | None = None) -> CrewT:
    """Guard every tool of all agents of a `Crew`, and give them `inspect_output` and `list_captures`.

    Return the same object. Tools that CrewAI adds itself, those of MCP servers and of delegation, are guarded
    too; its cache keeps whole results. A crew from a checkpoint has the guard of its environment. CrewAI
    tells hooks no id of a call and no session: captures have ids of their own, and the guard's session.
    Raises `ValueError` if an agent has another guard, as one that two crews share. Without `guard`: see
    `Adapter`.
    """
    owners = [*crew.agents, *crew.tasks]  # a manager may have no tools but those of its task
    adapter = adapter_for(guard, _adapters(owners))
    for each in owners:
        _add_reading_tools(each, adapter)
    _register()
    return crew


def guard_agent(agent: AgentT, guard: Guard | None = None) -> AgentT:
    """Do the same as `guard_crew`, for an `Agent` that works without a crew. Return the same object."""
    _add_reading_tools(agent, adapter_for(guard, _adapters([agent])))
    _register()
    return agent


def _adapters(owners: Iterable[Any]) -> list[Adapter]:
    """Return the adapters that guard these agents and tasks already."""
    tools = (tool for each in owners for tool in each.tools or ())
    return [
        tool.explicit_adapter
        for tool in tools
        if isinstance(tool, _ReadingTool) and tool.explicit_adapter is not None
    ]


def _add_reading_tools(owner: Any, adapter: Adapter) -> None:
    """Add them, unless another guard did: crews share agents, and tasks take the tools of theirs."""
    tools = owner.tools or []
    known = [tool for tool in tools if isinstance(tool, _ReadingTool)]
    for tool in known:
        tool.adopt(adapter)
    if not known:
        owner.tools = [*tools, *(_reading_tool(tool, adapter) for tool in adapter.reading_tools)]


def _register() -> None:
    """Add our hook to those of the process, once. Other agents' calls pass it."""
    if _after_tool_call not in get_after_tool_call_hooks():
        register_after_tool_call_hook(_after_tool_call)


def _after_tool_call(context: ToolCallHookContext) -> str | None:
    """Return what the model is shown of a result, or None if that is the result."""
    adapter = _adapter(context)
    if adapter is None:
        return None
    text, raw = context.tool_result, context.raw_tool_result
    is_data = isinstance(raw, dict | list) and text == str(raw)
    guarded = adapter.call(context.tool_name).process_sync(raw if is_data else text, is_printed=True)
    return None if guarded.notice is None else str(guarded.value)


def _adapter(context: ToolCallHookContext) -> Adapter | None:
    """Return the adapter of the agent that calls, unless it calls a reading tool."""
    if isinstance(getattr(context.tool, "_original_tool", context.tool), _ReadingTool):
        return None
    tools = (tool for owner in (context.agent, context.task) for tool in getattr(owner, "tools", None) or ())
    found = next((tool for tool in tools if isinstance(tool, _ReadingTool)), None)
    return found.adapter if found else None


class _ReadingTool(BaseTool):
    """A reading tool as CrewAI's own kind. It also tells the hooks whose agent has it.

    CrewAI makes one of what a checkpoint has of it: that has the guard of its environment, unless the crew is
    guarded again.
    """

    _adapter: Adapter | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Add our hook to those of the process, which may be another than that of `guard_crew`."""
        super().model_post_init(context)
        _register()

    @property
    def explicit_adapter(self) -> Adapter | None:
        """The adapter that it was given, if it is not from a checkpoint."""
        return self._adapter

    @property
    def adapter(self) -> Adapter:
        """The adapter of the agent that has this tool."""
        return self._adapter or _adapter_of_environment()

    def adopt(self, adapter: Adapter) -> None:
        """Read what this adapter's guard stores, unless there is another already."""
        self._adapter = self._adapter or adapter

    def _run(self, **arguments: Any) -> str:
        named = {name: value for name, value in arguments.items() if value is not None}
        tools = {tool.name: tool for tool in self.adapter.reading_tools}
        return json.dumps(tools[self.name].call(named), ensure_ascii=False)


@cache
def _adapter_of_environment() -> Adapter:
    return Adapter()


def _reading_tool(tool: AgentTool, adapter: Adapter) -> _ReadingTool:
    tool_model = _ReadingTool(
        name=tool.name, description=tool.description, args_schema=_schema(tool), cache_function=_never
    )
    tool_model.adopt(adapter)
    return tool_model


def _never(_arguments: Any, _answer: Any) -> bool:
    """Keep CrewAI from caching answers: captures are added, grow and expire."""
    return False


def _schema(tool: AgentTool) -> type[BaseModel]:
    """Return a model that takes any arguments, as the tool does, and shows the tool's schema.

    CrewAI makes every argument required for strict models, so those that are not may be null.
    """
    required = tool.parameters.get("required", ())
    properties = {
        name: each if name in required else {"anyOf": [dict(each), {"type": "null"}]}
        for name, each in tool.parameters["properties"].items()
    }
    schema = {**tool.parameters, "properties": properties}

    class Arguments(BaseModel):
        model_config = ConfigDict(extra="allow", json_schema_extra=lambda made: made.update(deepcopy(schema)))

    return Arguments
