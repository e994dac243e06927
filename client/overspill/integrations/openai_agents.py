"""OpenAI Agents SDK: guards the tools of an agent, of those that it hands off to, and of its MCP servers.

agent = guard_agent(Agent(name="coder", model=model, tools=tools, mcp_servers=servers))
"""

from __future__ import annotations

import copy
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from weakref import WeakKeyDictionary

from agents import (
    AgentBase,
    CustomTool,
    FunctionTool,
    Handoff,
    LocalShellTool,
    ShellTool,
    ToolOutputGuardrail,
)
from agents.tool_guardrails import ToolGuardrailFunctionOutput
from pydantic_core import to_jsonable_python

from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import adapter_for
from overspill.integrations.openai_agents_server import (
    GuardedServer,
    awaited,
    call_of,
    extended,
    is_from_program,
    session_of,
)
from overspill.integrations.stand_in import StandIn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents import ToolOutputGuardrailData

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.integrations.adapter import Adapter

AgentT = TypeVar("AgentT", bound=AgentBase[Any])


def guard_agent(agent: AgentT, guard: Guard | None = None) -> AgentT:
    """Guard the tools of `agent` and give it `inspect_output` and `list_captures`; return the same agent.

    So are the agents that it hands off to, and those that are its tools. The agents themselves are changed,
    because handoffs refer to them. Their tools, handoffs and MCP servers become copies or stand-ins of the
    same class: the ones that you gave stay as they are. Call it again after you added some: they get the
    guard that the agent has. Raises `ValueError` if one of the agents has another guard than `guard`.

    The session of a capture is the run's `RunConfig.group_id`, or else that of the guard.
    `custom_data["overspill"]` of a tool's output item has `Guarded.metadata` if the output was cut. What
    programs call stays whole. Without `guard`: see `Adapter`.
    """
    agents = [agent] if guard is None else _reachable(agent)
    existing = [owner for each in agents for owner in _owners(each)]
    adapter = adapter_for(guard, [owner.adapter for owner in existing])
    owner = existing[0] if existing else _AgentGuard(adapter)
    owner.protect(agent)
    return agent


class _AgentGuard:
    """Guards one agent, and all agents that it can reach."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._reading = [self._reading_tool(each) for each in adapter.reading_tools]
        self._metadata: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
        self._lock = threading.Lock()  # two runs, in two threads, may hand off to one agent at once

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        """Return the same: copies of an agent share their guard."""
        return self

    def protect(self, agent: AgentBase[Any]) -> None:
        with self._lock:
            for each in _reachable(agent):
                self._protect(each)

    def _protect(self, agent: Any) -> None:
        names = {tool.name for tool in agent.tools}
        missing = [tool for tool in self._reading if tool.name not in names]
        _assign(agent, "tools", [*map(self.guarded_tool, agent.tools), *missing])
        _assign(agent, "mcp_servers", [self._server(server) for server in agent.mcp_servers])
        _assign(agent, "handoffs", [self._handoff(handoff) for handoff in agent.handoffs])
        if hasattr(agent, "capabilities"):  # of an agent in a sandbox
            _assign(agent, "capabilities", [self._capability(each) for each in agent.capabilities])

    def _reading_tool(self, tool: AgentTool) -> FunctionTool:
        return FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=copy.deepcopy(dict(tool.parameters)),
            on_invoke_tool=_ReadingInvoker(tool, self),
            strict_json_schema=False,
        )

    def guarded_tool(self, tool: Any) -> Any:
        """Return a guarded copy. Hosted tools stay: the provider runs them."""
        if isinstance(tool, FunctionTool) and tool.output_json_schema is not None:
            return self._with_guardrail(tool)
        if isinstance(tool, FunctionTool | CustomTool):
            return self._with_invoker(tool)
        if isinstance(tool, ShellTool | LocalShellTool) and callable(tool.executor):
            return _changed(tool, "executor", _Executor, self)
        return tool

    def _with_invoker(self, tool: FunctionTool | CustomTool) -> Any:
        if type(tool.on_invoke_tool) in {_Invoker, _ReadingInvoker}:
            return tool
        guarded = _changed(tool, "on_invoke_tool", _Invoker, self)
        guarded.custom_data_extractor = self._extractor(tool.custom_data_extractor)
        return guarded

    def _with_guardrail(self, tool: FunctionTool) -> FunctionTool:
        """Return a copy whose output is replaced after its schema no longer matters to the SDK.

        A notice would break the schema. What a guardrail puts in the place of an output is not checked.
        """
        existing = tool.tool_output_guardrails or []
        if any(each.name == METADATA for each in existing):
            return tool
        guarded = copy.copy(tool)
        guarded.tool_output_guardrails = [*existing, ToolOutputGuardrail(self._checked, name=METADATA)]
        guarded.custom_data_extractor = self._extractor(tool.custom_data_extractor)
        return guarded

    async def _checked(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        context = data.context
        if is_from_program(context.tool_call):
            return ToolGuardrailFunctionOutput.allow()
        plain = to_jsonable_python(data.output, fallback=str)
        guarded = await call_of(self.adapter, context, context.tool_name).process(plain)
        if guarded.notice is None:
            return ToolGuardrailFunctionOutput.allow()
        value = self.value_of(context, guarded)
        return ToolGuardrailFunctionOutput.reject_content(value if isinstance(value, str) else _json(value))

    def value_of(self, context: Any, guarded: Guarded) -> Any:
        """Return the guarded value, and keep the metadata until the SDK asks for the item's custom data."""
        if guarded.notice is not None:
            self._metadata[context] = guarded.metadata
        return guarded.value

    def _extractor(self, theirs: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
        async def extract(context: Any) -> Mapping[str, Any] | None:
            return await extended(theirs, context, self._metadata.pop(context.tool_context, None))

        return extract

    def _server(self, server: Any) -> Any:
        return server if type(server) is GuardedServer else GuardedServer(server, self)

    def _capability(self, capability: Any) -> Any:
        return capability if type(capability) is _Capability else _Capability(capability, self)

    def _handoff(self, handoff: Any) -> Any:
        """Return a copy that guards the agent that it names: only when called does it say which."""
        if not isinstance(handoff, Handoff):
            return handoff
        return _changed(handoff, "on_invoke_handoff", _HandoffInvoker, self)


class _Invoker(StandIn):
    """The `on_invoke_tool` of a guarded tool."""

    async def __call__(self, context: Any, arguments: str) -> Any:
        running = awaited(self._inner(context, arguments))
        tool_call = getattr(context, "tool_call", None)
        if is_from_program(tool_call):
            return await running
        call = call_of(self._owner.adapter, context, getattr(context, "tool_name", ""))
        async with call:
            result = await running
        is_printed = not isinstance(result, str)
        return self._owner.value_of(context, await call.process(result, is_printed=is_printed))

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name != "__agents_bind_function_tool__":
            return found
        # By it the SDK ties the invoker to a copy of the tool. The copy is guarded too.
        return lambda tool: _Invoker(found(tool), self._owner)


class _Executor(StandIn):
    """The `executor` of a shell tool that runs on this machine."""

    async def __call__(self, request: Any) -> Any:
        running = awaited(self._inner(request))
        if is_from_program(getattr(request.data, "raw", None)):
            return await running
        call = self._owner.adapter.call("shell", getattr(request.data, "call_id", None))
        return (await call.run(running)).value


class _HandoffInvoker(StandIn):
    """The `on_invoke_handoff` of a handoff."""

    async def __call__(self, context: Any, arguments: Any) -> Any:
        agent = await self._inner(context, arguments)
        if isinstance(agent, AgentBase):
            self._owner.protect(agent)
        return agent


class _Capability(StandIn):
    """A capability of a sandbox, whose tools are guarded. The SDK makes a copy of it for each run."""

    def clone(self) -> Self:
        return type(self)(self._inner.clone(), self._owner)

    def tools(self) -> list[Any]:
        return [self._owner.guarded_tool(tool) for tool in self._inner.tools()]


@dataclass(frozen=True)
class _ReadingInvoker:
    """The `on_invoke_tool` of a tool that reads captures."""

    tool: AgentTool
    _owner: _AgentGuard

    async def __call__(self, context: Any, arguments: str) -> str:
        return _json(await self.tool.acall(arguments, session=session_of(context)))


_WITH_OWNER: Final = frozenset(
    {_Invoker, _ReadingInvoker, _Executor, _HandoffInvoker, _Capability, GuardedServer}
)


def _owners(agent: Any) -> list[_AgentGuard]:
    """Return what guards the parts of an agent: they may be those of an agent that has another guard."""
    guardrails = (
        each for tool in agent.tools for each in getattr(tool, "tool_output_guardrails", None) or ()
    )
    parts = [
        *(getattr(tool, name, None) for tool in agent.tools for name in ("on_invoke_tool", "executor")),
        *(getattr(each, "on_invoke_handoff", None) for each in getattr(agent, "handoffs", ())),
        *agent.mcp_servers,
        *getattr(agent, "capabilities", ()),
    ]
    checking = (getattr(each.guardrail_function, "__self__", None) for each in guardrails)
    return [
        *(vars(part)["_owner"] for part in parts if type(part) in _WITH_OWNER),
        *(each for each in checking if isinstance(each, _AgentGuard)),
    ]


def _reachable(agent: Any) -> list[Any]:
    """Return an agent, those that it hands off to and those that are its tools, and all that these reach."""
    found: dict[int, Any] = {}
    waiting = [agent]
    while waiting:
        each = waiting.pop()
        if isinstance(each, AgentBase) and id(each) not in found:
            found[id(each)] = each
            waiting += map(_target, getattr(each, "handoffs", ()))
            waiting += [getattr(tool, "_agent_instance", None) for tool in each.tools]
    return list(found.values())


def _target(handoff: Any) -> Any:
    """Return the agent that a handoff names, if it does: a run that goes on elsewhere may begin with it."""
    existing = getattr(handoff, "_agent_ref", None)
    return handoff if existing is None else existing()


def _assign(agent: AgentBase[Any], name: str, items: list[Any]) -> None:
    """Give the agent a new list, if there is anything new in it: during a run that is a conflict."""
    existing = getattr(agent, name)
    if len(items) != len(existing) or any(new is not old for new, old in zip(items, existing, strict=True)):
        setattr(agent, name, items)


def _changed(item: Any, field: str, stand_in: type[StandIn], owner: _AgentGuard) -> Any:
    """Return a copy of `item` with a stand-in for the function in its field, or `item` if it has one."""
    if type(getattr(item, field)) is stand_in:
        return item
    copied = copy.copy(item)
    setattr(copied, field, stand_in(getattr(copied, field), owner))
    return copied


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
