"""LangChain: session directives in the state of the graph.

agent = create_agent(model, tools, middleware=[DirectivesMiddleware(), OverspillMiddleware()], checkpointer=…)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from overspill.integrations.directives.directives import METADATA, NAMES, THINK_PROMPT, Directives, report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from langchain.agents.middleware import ModelRequest, ModelResponse


class DirectivesState(AgentState):
    """The state of an agent with directives. A checkpointer keeps them for the thread."""

    overspill_directives: NotRequired[dict[str, bool]]  # type: ignore[valid-type]  # AgentState is a TypedDict


class DirectivesMiddleware(AgentMiddleware):
    """Takes directives off the front of a user's last message, and keeps them in the state of the graph.

    `/think` adds a prompt after the system message; `/verbose` appends the tool calls to the last answer.
    What runs tools asks `Directives.read(state)` for the rest: `auto_approve`, `restrict_to_workspace` and
    `allow_high_risk`. Directives that are not `allowed` have no effect.
    """

    state_schema = DirectivesState

    def __init__(self, allowed: Iterable[str] = NAMES) -> None:
        super().__init__()
        self._allowed = tuple(allowed)

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002  (its signature)
        """Read the directives of the message that starts the run."""
        last = state["messages"][-1] if state["messages"] else None
        if not isinstance(last, HumanMessage) or not isinstance(last.content, str):
            return None
        directives, message = Directives.read(state).after(last.content, allowed=self._allowed)
        if message == last.content:
            return None
        return {METADATA: directives.fields(), "messages": [last.model_copy(update={"content": message})]}

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        """Add the prompt of `/think`."""
        return handler(_directed(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Do the same as `wrap_model_call`, for asynchronous code."""
        return await handler(_directed(request))

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002  (its signature)
        """Append what `/verbose` shows to the last answer."""
        last = state["messages"][-1]
        if not Directives.read(state).verbose or not isinstance(last, AIMessage):
            return None
        text = report((each.name or "tool", each.text) for each in _results(state["messages"]))
        if not text or not isinstance(last.content, str):
            return None
        return {"messages": [last.model_copy(update={"content": last.content + text})]}


def _directed(request: ModelRequest) -> ModelRequest:
    if not Directives.read(request.state).think:
        return request
    return request.override(messages=[SystemMessage(THINK_PROMPT), *request.messages])


def _results(messages: list[Any]) -> list[ToolMessage]:
    """Return the results since the user's last message."""
    start = max((index for index, each in enumerate(messages) if isinstance(each, HumanMessage)), default=0)
    return [each for each in messages[start:] if isinstance(each, ToolMessage)]
