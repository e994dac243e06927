"""Microsoft's agent and its function loop, with a chat client that says what the script says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    ResponseStream,
)
from overspill.integrations.agent_framework import OverspillProvider

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import PNG, lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call


class Script(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Makes the calls of the turns, and remembers which tools it was offered."""

    def __init__(self, turns: Sequence[Sequence[Call]]) -> None:
        super().__init__(function_invocation_configuration={"include_detailed_errors": True})
        self.turns = turns
        self.offered: list[str] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        self.offered[:] = [tool.name for tool in options.get("tools") or ()]
        made = sum(message.role == "assistant" for message in messages)
        calls = self.turns[made] if made < len(self.turns) else ()
        contents = [_call(call) for call in calls] or [Content.from_text("done")]
        if stream:
            return ResponseStream(_updates(contents), finalizer=ChatResponse.from_updates)
        return _response(contents)


async def _response(contents: list[Content]) -> ChatResponse:
    return ChatResponse(messages=[Message(role="assistant", contents=contents)])


async def _updates(contents: list[Content]) -> AsyncIterator[ChatResponseUpdate]:
    yield ChatResponseUpdate(role="assistant", contents=contents)


def _call(call: Call) -> Content:
    """Return the model's call; a program is code that makes the call itself."""
    given = dict(call.arguments)
    if call.is_program:
        return Content.from_function_call(
            call.id, "run_code", arguments={"name": call.tool, "arguments": given}
        )
    return Content.from_function_call(call.id, call.tool, arguments=given)


class Code:
    """Keeps what the code got."""

    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.seen: list[Result] = []

    async def run_code(self, name: str, arguments: dict[str, Any]) -> str:
        """Run code that calls a tool."""
        [content] = await self.tools[name].invoke(arguments=arguments)
        self.seen.append(Result(content.text or ""))
        return "done"


def picture(count: int) -> list[Content]:
    """Return lines and a picture."""
    return [Content.from_text(lines(count)), Content.from_data(PNG, "image/png")]


class AgentFramework:
    page = "agent-framework.md"
    ways: ClassVar = ("async", "stream")
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
        made = [tool_of(each) for each in tools]
        script, code = Script(turns), Code(made)
        providers = [] if guard is None else [OverspillProvider(guard)]
        agent = Agent(client=script, tools=[*made, tool_of(code.run_code)], context_providers=providers)
        found = asyncio.run(results(agent, way, session))
        if code.seen:
            found |= {call.id: code.seen[-1] for call in turns[0] if call.is_program}
        return Run(script.offered, found)

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"client": Script(turns), "tools": [tool_of(each) for each in tools]}
            exec(example, names)
            runs.append(Run([], asyncio.run(results(names["agent"], "async", session))))
        return runs


def tool_of(function: Any) -> FunctionTool:
    return FunctionTool(name=function.__name__, description=function.__doc__ or "", func=function)


async def results(agent: Agent, way: str, session: str) -> dict[str, Result]:
    """Run the agent; return the results that its messages have."""
    known = AgentSession(session_id=session)
    if way == "stream":
        stream = agent.run("go", session=known, stream=True)
        async for _ in stream:
            pass
        response = await stream.get_final_response()
    else:
        response = await agent.run("go", session=known)
    contents = [content for message in response.messages for content in message.contents]
    return {each.call_id: result(each) for each in contents if each.type == "function_result"}


def result(content: Content) -> Result:
    items = content.items or []
    known = (each.additional_properties.get("overspill") for each in items)
    return Result(
        text=content.result or "",
        is_error=content.exception is not None,
        images=sum(each.type == "data" for each in items),
        metadata=next(filter(None, known), None),
    )


harness = AgentFramework()
