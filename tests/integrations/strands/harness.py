"""Strands' own agent and event loop, with a model that says what the script says."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from overspill.integrations.strands import OverspillPlugin
from strands import Agent, ToolContext
from strands import tool as as_tool
from strands.models import Model

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import PNG, lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call


@dataclass
class Script(Model):
    """A model that makes the calls of the turns, and remembers which tools it was offered."""

    turns: Sequence[Sequence[Call]]
    offered: list[str] = field(default_factory=list)

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, tool_specs: Any = None, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.offered[:] = [spec["name"] for spec in tool_specs or ()]
        turn = sum(message["role"] == "assistant" for message in messages)
        calls = self.turns[turn] if turn < len(self.turns) else ()
        yield {"messageStart": {"role": "assistant"}}
        for call in calls:
            yield {"contentBlockStart": {"start": {"toolUse": use(call)}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments(call))}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def use(call: Call) -> dict[str, str]:
    return {"name": "run_code" if call.is_program else call.tool, "toolUseId": call.id}


def arguments(call: Call) -> dict[str, Any]:
    """Return the arguments of the model's call; a program is code that makes the call itself."""
    given = dict(call.arguments)
    return {"tool_name": call.tool, "arguments": given} if call.is_program else given


@dataclass
class Code:
    """Keeps what the code got."""

    seen: list[Any] = field(default_factory=list)

    def tool(self) -> Any:
        @as_tool(context=True)
        def run_code(tool_name: str, arguments: dict[str, Any], tool_context: ToolContext) -> str:
            """Run code that calls a tool."""
            call = getattr(tool_context.agent.tool, tool_name)
            self.seen.append(call(record_direct_tool_call=False, **arguments))
            return "done"

        return run_code


def picture(count: int) -> dict[str, Any]:
    """Return lines and a picture."""
    shown = {"image": {"format": "png", "source": {"bytes": PNG}}}
    return {"status": "success", "content": [{"text": lines(count)}, shown]}


class Strands:
    page = "strands.md"
    ways: ClassVar = ("sync", "async", "stream")
    limits: ClassVar[dict[str, str]] = {}
    names_calls = True
    picture = staticmethod(picture)

    def run(
        self,
        way: str,
        tools: Sequence[Any],
        turns: Sequence[Sequence[Call]],
        *,
        guard: Guard | None,
        session: str,
    ) -> Run:
        # Without a session manager the session is that of the guard.
        script, code = Script(turns), Code()
        plugins = [] if guard is None else [OverspillPlugin(guard)]
        made = [*map(as_tool, tools), code.tool()]
        agent: Any = Agent(script, tools=made, plugins=plugins, callback_handler=None)
        found = results(agent, way)
        if code.seen:
            found |= {call.id: result(code.seen[-1]) for call in turns[0] if call.is_program}
        return Run(script.offered, found)

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"model": Script(turns), "tools": [as_tool(each) for each in tools]}
            exec(example, names)
            runs.append(Run([], results(names["agent"], "sync")))
        return runs


def results(agent: Any, way: str) -> dict[str, Result]:
    """Run the agent; return the results that its conversation has."""
    if way == "sync":
        agent("go")
    elif way == "async":
        asyncio.run(agent.invoke_async("go"))
    else:
        asyncio.run(_streamed(agent))
    blocks = [block for message in agent.messages for block in message["content"]]
    found = [block["toolResult"] for block in blocks if "toolResult" in block]
    return {each["toolUseId"]: result(each) for each in found}


async def _streamed(agent: Any) -> None:
    async for _ in agent.stream_async("go"):
        pass


def result(found: Any) -> Result:
    content = found["content"]
    return Result(
        text="".join(
            each["text"] if "text" in each else json.dumps(each.get("json", "")) for each in content
        ),
        is_error=found["status"] == "error",
        images=sum("image" in each for each in content),
        metadata=(found.get("metadata") or {}).get("overspill"),
        structured=found.get("structuredContent"),
    )


harness = Strands()
