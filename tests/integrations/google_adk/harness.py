"""ADK's runner and flow, with a model that says what the script says."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, ClassVar

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from overspill.integrations.google_adk import OverspillPlugin

from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import PNG, lines

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call

USER = "user"


class Script(BaseLlm):
    """Makes the calls of the turns, and remembers which tools it was offered."""

    turns: list[Any]
    offered: list[str]

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Return the calls of the next turn."""
        del stream
        self.offered[:] = llm_request.tools_dict
        made = sum(content.role == "model" for content in llm_request.contents)
        calls = self.turns[made] if made < len(self.turns) else []
        parts = [
            types.Part(
                function_call=types.FunctionCall(id=call.id, name=call.tool, args=dict(call.arguments))
            )
            for call in calls
        ]
        yield LlmResponse(content=types.Content(role="model", parts=parts or [types.Part(text="done")]))


def _function_call(call: Call) -> types.FunctionCall:
    return types.FunctionCall(id=call.id, name=call.tool, args=dict(call.arguments))


def picture(count: int) -> list[Any]:
    """Return lines and a picture."""
    return [lines(count), types.Part.from_bytes(data=PNG, mime_type="image/png")]


class GoogleAdk:
    page = "google-adk.md"
    ways: ClassVar = ("async", "stream")
    limits: ClassVar = {
        "code_that_calls_a_tool_gets_the_whole": "ADK has no code that calls its tools",
    }
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
        script = script_of(turns)
        agent = LlmAgent(name="agent", model=script, tools=list(tools))
        plugins = [] if guard is None else [OverspillPlugin(guard)]
        app = App(name="kit", root_agent=agent, plugins=plugins)
        return Run(script.offered, asyncio.run(results(app, way, session)))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        runs = []
        for example in examples:
            agent = LlmAgent(name="agent", model=script_of(turns), tools=list(tools))
            names: dict[str, Any] = {"agent": agent}
            exec(example, names)
            runs.append(Run([], asyncio.run(results(names["app"], "async", session))))
        return runs


def script_of(turns: Sequence[Sequence[Call]]) -> Script:
    return Script(model="script", turns=list(turns), offered=[])


async def results(app: App, way: str, session: str, user: str = USER) -> dict[str, Result]:
    """Run the app; return the results that its events have."""
    runner = InMemoryRunner(app=app)
    await runner.session_service.create_session(app_name=app.name, user_id=user, session_id=session)
    mode = StreamingMode.SSE if way == "stream" else StreamingMode.NONE
    asked = types.Content(role="user", parts=[types.Part(text="go")])
    found: dict[str, Result] = {}
    async for event in runner.run_async(
        user_id=user, session_id=session, new_message=asked, run_config=RunConfig(streaming_mode=mode)
    ):
        known = (event.custom_metadata or {}).get("overspill", {})
        found |= {each.id: result(each, known.get(each.id)) for each in event.get_function_responses()}
    await runner.close()
    return found


def result(response: types.FunctionResponse, metadata: Any) -> Result:
    value = response.response or {}
    text = value["result"] if set(value) == {"result"} else value
    if isinstance(text, list):
        text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in text)
    return Result(
        text=text if isinstance(text, str) else json.dumps(text),
        images=len(response.parts or ()),
        metadata=metadata,
        structured=value,
    )


harness = GoogleAdk()
