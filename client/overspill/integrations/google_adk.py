"""Google's Agent Development Kit: a plugin that guards every tool of an app, sub-agents' included.

app = App(name="desk", root_agent=agent, plugins=[OverspillPlugin()])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from overspill.guard.call_context import begin, end, minted
from overspill.guard.guarded import METADATA
from overspill.integrations.adapter import Adapter
from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.sessions import Session
    from google.adk.tools.tool_context import ToolContext

    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded

_MAX_REMEMBERED: Final = 1_000
_OF_ADK: Final = "adk_request_"
"""Begins the names of calls by which ADK asks a person, whose answers it reads itself."""


class OverspillPlugin(BasePlugin):
    """Guards the results of every tool, and gives every agent `inspect_output` and `list_captures`.

    Put it last: ADK asks no plugin after one that replaced a result. The session of a capture is that of ADK,
    as `APP/USER/ID`. `event.custom_metadata["overspill"]` has `Guarded.metadata` by the id of the call.
    Without `guard`: see `Adapter`.
    """

    def __init__(self, guard: Guard | None = None) -> None:
        super().__init__(name="overspill")
        self.adapter: Adapter = Adapter(guard)
        self._tools = [_ReadingTool(tool) for tool in self.adapter.reading_tools]
        self._metadata: Latest[tuple[str, str], dict[str, Any]] = Latest(_MAX_REMEMBERED)
        """By session and call, until the event of the result comes. If it never does, they go one day."""

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Guard the results of calls that took longer than their run: a later message brings them."""
        session = _session(invocation_context.session)
        message_parts = user_message.parts or []
        parts = [await self._brought(part, session) for part in message_parts]
        if all(new is old for new, old in zip(parts, message_parts, strict=True)):
            return None
        return user_message.model_copy(update={"parts": parts})

    async def before_model_callback(
        self,
        *,
        callback_context: CallbackContext,  # noqa: ARG002  (the plugin's interface)
        llm_request: LlmRequest,
    ) -> None:
        """Offer the reading tools. A tool of the agent with the name of one keeps it."""
        llm_request.append_tools([tool for tool in self._tools if tool.name not in llm_request.tools_dict])

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        """Let what the tool captures itself belong to its call."""
        del tool, tool_args
        begin(tool_context.function_call_id or minted(), _session(tool_context.session))

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> Any:
        """Return the replacement for a result that is too long, or None."""
        del tool_args
        end()
        if isinstance(tool, _ReadingTool):
            return None
        guarded = await self._guarded(result, tool, tool_context)
        if guarded.notice is None:
            return None
        if tool_context.function_call_id is not None:
            key = (_session(tool_context.session), tool_context.function_call_id)
            self._metadata[key] = guarded.metadata
        return guarded.value

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: BaseException
    ) -> None:
        """Shorten the message of an exception, which goes on as the same object."""
        del tool_args
        end()
        if isinstance(error, Exception):
            guarded = await self._guarded(error, tool, tool_context)
            if guarded.notice is not None and str(guarded.value) != str(error):
                error.args = (str(guarded.value),)

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        """Put the guard's metadata beside the results that were cut."""
        if not self._metadata:
            return None
        session = _session(invocation_context.session)
        ids = {str(each.id) for each in event.get_function_responses()}  # a model may use one twice
        found = {
            each: self._metadata.pop((session, each)) for each in ids if (session, each) in self._metadata
        }
        if not found:
            return None
        return event.model_copy(
            update={"custom_metadata": {**(event.custom_metadata or {}), METADATA: found}}
        )

    async def _brought(self, part: types.Part, session: str) -> types.Part:
        response = part.function_response
        if response is None or not response.response or (response.name or "").startswith(_OF_ADK):
            return part
        guarded = await self.adapter.call(response.name or "", response.id, session).process(
            response.response
        )
        if guarded.notice is None:
            return part
        shown = response.model_copy(update={"response": guarded.value})
        return part.model_copy(update={"function_response": shown})

    async def _guarded(self, result: Any, tool: BaseTool, context: ToolContext) -> Guarded:
        call = self.adapter.call(tool.name, context.function_call_id, _session(context.session))
        return await call.process(result)


class _ReadingTool(BaseTool):
    """A reading tool as ADK's own kind."""

    def __init__(self, tool: AgentTool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        schema = dict(self._tool.parameters)
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Answer a call."""
        return await self._tool.acall(args, session=_session(tool_context.session))


def _session(session: Session) -> str:
    """Return the name of a session. ADK's ids are unique among those of one user of one app only."""
    app, user = (quote(each, safe="@") for each in (session.app_name, session.user_id))
    return f"{app}/{user}/{session.id}"
