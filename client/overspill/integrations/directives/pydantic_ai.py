"""Pydantic AI: session directives, kept for each conversation.

agent = Agent(model, tools=tools, capabilities=[DirectivesCapability(sessions), OverspillCapability()])
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, SystemPromptPart, ToolReturnPart, UserPromptPart

from overspill.integrations.directives.directives import NAMES, THINK_PROMPT, Directives, report

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

    from pydantic_ai import AgentRunResult, RunContext
    from pydantic_ai.models import ModelRequestContext


class DirectivesCapability(AbstractCapability[Any]):
    """Takes directives off the front of a run's prompt, and keeps them in the metadata of its conversation.

    `sessions` maps the `conversation_id` to metadata. Without it, they live as long as this object.
    `/think` adds a prompt after the first system prompt; `/verbose` appends the tool calls to an output that
    is text. What approves calls asks `directives(ctx)`. Directives that are not `allowed` have no effect.
    """

    id: str | None = "overspill_directives"

    def __init__(
        self, sessions: MutableMapping[str, Any] | None = None, allowed: Iterable[str] = NAMES
    ) -> None:
        self._sessions = {} if sessions is None else sessions
        self._allowed = tuple(allowed)

    def directives(self, ctx: RunContext[Any]) -> Directives:
        """Return the directives of the conversation."""
        return Directives.read(self._sessions.get(ctx.conversation_id or ""))

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Read the directives of the run's prompt, and add the prompt of `/think`.

        Only the first request has the user's prompt. In later ones, tools may have added user content.
        """
        messages = request_context.messages
        if ctx.run_step == 1 and isinstance(ctx.prompt, str):
            ctx.messages[:] = [self._without_directives(ctx, each) for each in ctx.messages]
            messages = [self._without_directives(ctx, each) for each in messages]
        if self.directives(ctx).think:
            messages = _thinking(messages)
        return dataclasses.replace(request_context, messages=messages)

    def _without_directives(self, ctx: RunContext[Any], message: Any) -> Any:
        """Return a message of this run without directives at the front of its prompt."""
        if not isinstance(message, ModelRequest) or message.run_id != ctx.run_id:
            return message
        return dataclasses.replace(message, parts=[self._part(ctx, part) for part in message.parts])

    def _part(self, ctx: RunContext[Any], part: Any) -> Any:
        if not isinstance(part, UserPromptPart) or part.content != ctx.prompt:
            return part
        directives, text = self.directives(ctx).after(str(ctx.prompt), allowed=self._allowed)
        if text == part.content:
            return part
        stored = self._sessions.get(ctx.conversation_id or "")
        metadata = dict(stored) if isinstance(stored, dict) else {}
        directives.write(metadata)
        self._sessions[ctx.conversation_id or ""] = metadata
        return dataclasses.replace(part, content=text)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Append what `/verbose` shows to an output that is text."""
        if not self.directives(ctx).verbose or not isinstance(result.output, str):
            return result
        parts = [part for message in result.new_messages() for part in message.parts]
        returned = [part for part in parts if isinstance(part, ToolReturnPart)]
        shown = report((part.tool_name, part.model_response_str()) for part in returned)
        return dataclasses.replace(result, output=result.output + shown)


def _thinking(messages: list[Any]) -> list[Any]:
    """Return the messages with the prompt of `/think` after the first system prompt, or at the front."""
    if not messages or not isinstance(messages[0], ModelRequest):
        return messages
    first = messages[0]
    end = next((i for i, part in enumerate(first.parts) if not isinstance(part, SystemPromptPart)), 1)
    parts = [*first.parts[: min(end, 1)], SystemPromptPart(THINK_PROMPT), *first.parts[min(end, 1) :]]
    return [dataclasses.replace(first, parts=parts), *messages[1:]]
