"""What only LangChain has: session directives in the state of the graph."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool as as_tool
from langgraph.checkpoint.memory import InMemorySaver
from overspill.integrations.directives.directives import THINK_PROMPT, Directives
from overspill.integrations.directives.langchain import DirectivesMiddleware

from tests.integrations.kit import tools


class Model(GenericFakeChatModel):
    """Remembers what it was asked."""

    asked: list[list[str]]

    def bind_tools(self, *_: Any, **__: Any) -> Model:
        return self

    def _generate(self, messages: Any, *given: Any, **more: Any) -> Any:
        self.asked.append([each.content for each in messages])
        return super()._generate(messages, *given, **more)


def test_directives_hold_for_the_thread() -> None:
    calling = AIMessage("", tool_calls=[{"name": "lines", "args": {"count": 3}, "id": "call_1"}])
    model = Model(messages=iter([calling, AIMessage("done"), AIMessage("done"), AIMessage("done")]), asked=[])
    agent = create_agent(
        model,
        [as_tool(tools.lines)],
        system_prompt="Be kind.",
        middleware=[DirectivesMiddleware(allowed=["think", "verbose"])],
        checkpointer=InMemorySaver(),
    )
    here: Any = {"configurable": {"thread_id": "a"}}
    there: Any = {"configurable": {"thread_id": "b"}}
    first = agent.invoke({"messages": [("user", "/think /verbose /elevated why?")]}, here)
    second = agent.invoke({"messages": [("user", "/verbose:off and now?")]}, here)
    other = agent.invoke({"messages": [("user", "and now?")]}, there)

    assert model.asked[0] == ["Be kind.", THINK_PROMPT, "why?"]
    assert first["messages"][0].content == "why?"
    assert first["messages"][-1].content.startswith("done\n- lines (about ")
    assert model.asked[2][:3] == ["Be kind.", THINK_PROMPT, "why?"]
    assert second["messages"][-1].content == "done"
    assert Directives.read(second) == Directives(think=True)
    assert model.asked[3] == ["Be kind.", "and now?"]
    assert Directives.read(other) == Directives()
    assert not any(isinstance(each, ToolMessage) for each in other["messages"])
