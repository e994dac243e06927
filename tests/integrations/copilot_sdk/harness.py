"""The GitHub Copilot SDK with Copilot itself, before a scripted API on this machine."""

from __future__ import annotations

import asyncio
import base64
import os
import uuid
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from copilot import CopilotClient, RuntimeConnection, Tool, ToolInvocation, ToolResult
from copilot.session import PermissionHandler
from copilot.session_events import ToolExecutionCompleteData
from copilot.tools import ToolBinaryResult, _normalize_result
from overspill.integrations.copilot_sdk import guarded_session

from tests.integrations.copilot_sdk.runtime import FOLDER, runtime
from tests.integrations.copilot_sdk.scripted_api import ScriptedApi
from tests.integrations.kit.harness import Result, Run
from tests.integrations.kit.tools import PNG, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from overspill import Guard

    from tests.integrations.kit.harness import Call

SECONDS = 60


def picture(count: int) -> ToolResult:
    """Return lines and a picture."""
    shown = ToolBinaryResult(base64.b64encode(PNG).decode(), "image/png")
    return ToolResult(lines(count), binary_results_for_llm=[shown])


class CopilotSdk:
    page = "copilot-sdk.md"
    ways: ClassVar = ("async",)
    limits: ClassVar = {"code_that_calls_a_tool_gets_the_whole": "In Copilot no code calls tools"}
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
        def options(api: ScriptedApi) -> dict[str, Any]:
            given = {**usual(api, session), "tools": [own_tool(each) for each in tools]}
            return given if guard is None else guarded_session(guard, **given)

        return asyncio.run(conversation(turns, options))

    def documented(
        self, examples: Sequence[str], tools: Sequence[Any], turns: Sequence[Sequence[Call]], *, session: str
    ) -> list[Run]:
        def options(example: str, api: ScriptedApi) -> dict[str, Any]:
            given = {**usual(api, session), "tools": [own_tool(each) for each in tools]}
            names: dict[str, Any] = {"options": given}
            exec(example, names)
            made: dict[str, Any] = names["options"]
            return made

        return [asyncio.run(conversation(turns, partial(options, example))) for example in examples]


def usual(api: ScriptedApi, session: str) -> dict[str, Any]:
    """Return the options of a session whose model is the scripted one."""
    return {
        "on_permission_request": PermissionHandler.approve_all,
        "model": "gpt-5",
        "session_id": str(uuid.uuid5(uuid.NAMESPACE_URL, session)),
        "provider": {"type": "openai", "wire_api": "completions", "base_url": api.url, "api_key": "none"},
    }


def own_tool(function: Callable[..., Any]) -> Tool:
    """Return a function as a tool of the session. What it raises is a failure, with its message."""

    def call(invocation: ToolInvocation) -> ToolResult:
        try:
            return _normalize_result(function(**invocation.arguments))
        except Exception as error:  # noqa: BLE001  (whatever a tool raises)
            return ToolResult(str(error), "failure", str(error))

    schema = {"type": "object", "properties": {"count": {}, "rows": {}, "size": {}, "megabytes": {}}}
    return Tool(function.__name__, function.__doc__ or "", call, schema)


async def conversation(
    turns: Sequence[Sequence[Call]],
    options: Callable[[ScriptedApi], Mapping[str, Any]],
    ready: asyncio.Event | None = None,
) -> Run:
    """Return what the model was offered, and read, in one session of a Copilot that knows nobody.

    The model says nothing until `ready` is set, if that is given.
    """
    with TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": str(FOLDER), "COPILOT_HOME": home, "COPILOT_OFFLINE": "1"}
        async with (
            ScriptedApi(turns, ready).serving() as api,
            CopilotClient(
                connection=RuntimeConnection.for_stdio(path=runtime()),
                env=environment,
                working_directory=home,
                use_logged_in_user=False,
            ) as client,
            await client.create_session(**options(api)) as session,
        ):
            await session.send_and_wait("go", timeout=SECONDS)
            events = [each.data for each in await session.get_events()]
        completed = {
            each.tool_call_id: each for each in events if isinstance(each, ToolExecutionCompleteData)
        }
        return Run(
            [each["function"]["name"] for each in api.requests[0].get("tools", [])],
            {each["tool_call_id"]: _result(each, completed) for each in read(api)},
        )


def read(api: ScriptedApi) -> list[dict[str, Any]]:
    """Return the results that the model read last."""
    return [each for each in api.requests[-1]["messages"] if each["role"] == "tool"]


def _result(message: dict[str, Any], completed: Mapping[str, ToolExecutionCompleteData]) -> Result:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    event = completed[message["tool_call_id"]]
    shown = None if event.result is None else event.result.structured_content
    binaries = (None if event.result is None else event.result.binary_results_for_llm) or []
    return Result(
        text="\n".join(each.get("text", "") for each in parts),
        is_error=not event.success,
        images=len(binaries),
        metadata=shown.get("overspill") if isinstance(shown, dict) else None,
    )


harness = CopilotSdk()
