"""LangChain's `create_agent`, with a model that says what the script says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool as as_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from overspill.integrations.langchain import OverspillMiddleware

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import lines, png

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call


class ScriptedModel(GenericFakeChatModel):
    """Remembers which tools it was offered."""

    offered: list[str]

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:
        self.offered[:] = [each.name for each in tools]
        return self


def picture(count: int) -> list[dict[str, Any]]:
    """Return lines and a picture."""
    return [
        {"type": "text", "text": lines(count)},
        {"type": "image", "base64": png(), "mime_type": "image/png"},
    ]


class LangChain:
    page = "langchain.md"
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
        model = model_of(turns)
        middleware = [] if guard is None else [OverspillMiddleware(guard)]
        agent = create_agent(model, [as_tool(each) for each in tools], middleware=middleware)
        return Run(model.offered, results_of(agent, way, session))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            names: dict[str, Any] = {"model": model_of(turns), "tools": [as_tool(each) for each in tools]}
            exec(example, names)
            agent = names["agent"] if "agent" in names else _graph(names["node"], names["model"])
            runs.append(Run([], results_of(agent, "sync", session)))
        return runs


def model_of(turns: Sequence[Sequence[Call]]) -> ScriptedModel:
    return ScriptedModel(messages=iter([*map(_message, turns), AIMessage("done")]), offered=[])


def _graph(node: ToolNode, model: ScriptedModel) -> Any:
    """Return a graph of a model and a node of tools, as LangGraph's own pages draw it."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", node)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


def results_of(agent: Any, way: str, session: str) -> dict[str, Result]:
    given: Any = {"messages": [("user", "go")]}
    config: Any = {"configurable": {"thread_id": session}}
    if way == "stream":
        *_, state = agent.stream(given, config, stream_mode="values")
    else:
        state = agent.invoke(given, config) if way == "sync" else asyncio.run(agent.ainvoke(given, config))
    messages = [each for each in state["messages"] if isinstance(each, ToolMessage)]
    return {each.tool_call_id: _result(each) for each in messages}


def _message(calls: Sequence[Call]) -> AIMessage:
    """One turn of the model, in the form that Anthropic's messages have."""
    return AIMessage(
        content=[
            {
                "type": "tool_use",
                "id": call.id,
                "name": call.tool,
                "input": dict(call.arguments),
                "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
                if call.is_program
                else {"type": "direct"},
            }
            for call in calls
        ],
        tool_calls=[{"name": call.tool, "args": dict(call.arguments), "id": call.id} for call in calls],
    )


def _result(message: ToolMessage) -> Result:
    blocks = (
        []
        if isinstance(message.content, str)
        else [each for each in message.content if isinstance(each, dict)]
    )
    return Result(
        text=message.text,
        is_error=message.status == "error",
        images=sum(each.get("type") in {"image", "image_url"} for each in blocks),
        metadata=message.response_metadata.get("overspill"),
    )


harness = LangChain()
