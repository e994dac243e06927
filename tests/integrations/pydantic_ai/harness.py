"""Pydantic AI, with its own function model. Code calls tools as in code mode: by the tool manager."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from overspill.integrations.pydantic_ai import OverspillCapability
from pydantic_ai import Agent, BinaryContent, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from tests.integrations.kit.harness import Call, Result, Run
from tests.integrations.kit.tools import PNG, lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from overspill import Guard


@dataclass
class Script:
    """A model that makes the calls of the turns, and remembers which tools it was offered."""

    turns: Sequence[Sequence[Call]]
    offered: list[str] = field(default_factory=list)

    def answer(self, messages: list[Any], info: AgentInfo) -> ModelResponse:
        self.offered[:] = [tool.name for tool in info.function_tools]
        turn = sum(isinstance(each, ModelResponse) for each in messages)
        if turn == len(self.turns):
            return ModelResponse([TextPart("done")])
        return ModelResponse([part(call) for call in self.turns[turn]])

    async def stream(self, messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        for index, each in enumerate(self.answer(messages, info).parts):
            if isinstance(each, TextPart):
                yield each.content
            elif isinstance(each, ToolCallPart):
                yield {
                    index: DeltaToolCall(
                        each.tool_name, each.args_as_json_str(), tool_call_id=each.tool_call_id
                    )
                }

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self.answer, stream_function=self.stream)


def part(call: Call) -> ToolCallPart:
    """Return one call of the model; a program is code that makes the call."""
    if not call.is_program:
        return ToolCallPart(call.tool, dict(call.arguments), call.id)
    return ToolCallPart("run_code", {"tool": call.tool, "arguments": dict(call.arguments)}, call.id)


@dataclass
class CodeMode:
    """Keeps what the code got."""

    seen: list[Any] = field(default_factory=list)

    async def run_code(self, ctx: RunContext[Any], tool: str, arguments: dict[str, Any]) -> str:
        """Run code that calls a tool."""
        assert ctx.tool_manager is not None
        call = ToolCallPart(tool, arguments, f"{ctx.tool_call_id}__1")
        self.seen.append(await ctx.tool_manager.handle_call(call, wrap_validation_errors=False))
        return "done"


def picture(count: int) -> list[Any]:
    """Return lines and a picture."""
    return [lines(count), BinaryContent(PNG, media_type="image/png")]


class PydanticAI:
    page = "pydantic-ai.md"
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
        script, code = Script(turns), CodeMode()
        capabilities = [] if guard is None else [OverspillCapability(guard)]
        agent = Agent(script.model, tools=[*tools, code.run_code], capabilities=capabilities)
        results = _results(agent, way, session)
        if code.seen:
            results |= {call.id: Result(code.seen[-1]) for call in turns[0] if call.is_program}
        return Run(script.offered, results)

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"model": Script(turns).model, "tools": tools}
            exec(example, names)
            runs.append(Run([], _results(names["agent"], "async", session)))
        return runs


def _results(agent: Agent[Any, Any], way: str, session: str) -> dict[str, Result]:
    if way == "sync":
        messages = agent.run_sync("go", conversation_id=session).all_messages()
    elif way == "async":
        messages = asyncio.run(agent.run("go", conversation_id=session)).all_messages()
    else:
        messages = asyncio.run(_streamed(agent, session))
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return {part.tool_call_id: _result(part) for part in parts}


async def _streamed(agent: Agent[Any, Any], session: str) -> list[Any]:
    async with agent.run_stream("go", conversation_id=session) as run:
        await run.get_output()
        return run.all_messages()


def _result(part: ToolReturnPart) -> Result:
    return Result(
        text=part.model_response_str(),
        is_error=part.outcome != "success",
        images=len(part.files),
        metadata=(part.metadata or {}).get("overspill"),
    )


harness = PydanticAI()
