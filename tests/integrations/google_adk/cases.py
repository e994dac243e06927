"""Cases for ADK alone: sub-agents, tools that are agents, and callbacks of agents."""

from __future__ import annotations

import asyncio
import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.artifacts import InMemoryArtifactService, artifact_util
from google.adk.errors.input_validation_error import InputValidationError
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types
from overspill import Guard, SyncClient
from overspill.integrations.google_adk import OverspillPlugin
from overspill.integrations.google_adk_artifacts import OverspillArtifactService

from tests.integrations.google_adk.harness import USER, results, script_of
from tests.integrations.kit import tools
from tests.integrations.kit.cases import handle_in
from tests.integrations.kit.harness import Call

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = os.environ["OVERSPILL_URL"]
MANY = 20_000


@pytest.fixture
def session() -> str:
    return f"adk-{uuid.uuid4()}"


@pytest.fixture
def guard(session: str) -> Iterator[Guard]:
    with SyncClient(URL, session=session) as client, Guard(client, spool=False) as made:
        yield made


def run(agent: LlmAgent, guard: Guard, session: str) -> dict[str, Any]:
    app = App(name="kit", root_agent=agent, plugins=[OverspillPlugin(guard)])
    return asyncio.run(results(app, "async", session))


def lines_once() -> Any:
    return script_of([[Call("lines", {"count": MANY}, "call_of_child")]])


def test_an_agent_that_is_a_tool_is_guarded_and_offered_the_reading_tools(guard: Guard, session: str) -> None:
    script = lines_once()
    child = LlmAgent(name="child", model=script, tools=[tools.lines], description="reads lines")
    parent = LlmAgent(
        name="parent",
        model=script_of([[Call("child", {"request": "go"}, "call_1")]]),
        tools=[AgentTool(child)],
    )
    run(parent, guard, session)
    assert isinstance(guard.client, SyncClient)

    assert {"inspect_output", "list_captures"} <= set(script.offered)
    assert [entry.call_id for entry in guard.client.list(tool="lines", call_id="call_of_child").captures]


def test_a_sub_agent_that_takes_over_is_guarded(guard: Guard, session: str) -> None:
    script = lines_once()
    child = LlmAgent(name="child", model=script, tools=[tools.lines])
    transfer = script_of([[Call("transfer_to_agent", {"agent_name": "child"}, "call_1")]])
    parent = LlmAgent(name="parent", model=transfer, sub_agents=[child])
    shown = run(parent, guard, session)

    assert "[overspill]" in shown["call_of_child"].text


def test_the_result_of_a_call_that_took_longer_than_its_run_is_guarded(guard: Guard, session: str) -> None:
    def report() -> dict[str, Any]:
        """Begin a report."""
        return {"status": "pending"}

    script = script_of([[Call("report", {}, "call_1")]])
    agent = LlmAgent(name="agent", model=script, tools=[LongRunningFunctionTool(report)])
    done = {"status": "done", "log": tools.lines(MANY)}
    brought = types.FunctionResponse(id="call_1", name="report", response=done)
    said = [types.Part(text="go")], [types.Part(function_response=brought)]
    app = App(name="kit", root_agent=agent, plugins=[OverspillPlugin(guard)])
    *_, last = asyncio.run(responses(app, session, [types.Content(role="user", parts=each) for each in said]))

    assert last["status"] == "done"
    assert last["log"].startswith("[overspill] Output of report (call_1")
    assert isinstance(guard.client, SyncClient)
    assert guard.client.content(handle_in(last["log"])).decode() == tools.lines(MANY)
    assert brought.response == done


async def responses(app: App, session: str, said: list[types.Content]) -> list[dict[str, Any]]:
    """Say these messages; return the results of calls that the session has then."""
    runner = InMemoryRunner(app=app)
    names: dict[str, Any] = {"user_id": USER, "session_id": session}
    await runner.session_service.create_session(app_name=app.name, **names)
    for message in said:
        async for _ in runner.run_async(new_message=message, **names):
            pass
    found = await runner.session_service.get_session(app_name=app.name, **names)
    await runner.close()
    assert found is not None
    return [each.response or {} for event in found.events for each in event.get_function_responses()]


def test_a_callback_of_an_agent_keeps_the_last_word(guard: Guard, session: str) -> None:
    agent = LlmAgent(
        name="agent",
        model=lines_once(),
        tools=[tools.lines],
        before_tool_callback=lambda **_: {"result": "from a cache"},
    )

    assert run(agent, guard, session)["call_of_child"].text == "from a cache"


def test_users_whose_sessions_have_the_same_id_see_no_captures_of_each_other(session: str) -> None:
    ours = LlmAgent(name="agent", model=lines_once(), tools=[tools.lines])
    turn = [
        Call("list_captures", {}, "call_1"),
        Call("inspect_output", {"capture": "call:call_of_child"}, "call_2"),
    ]
    theirs = LlmAgent(name="agent", model=script_of([turn]))
    with SyncClient(URL) as client, Guard(client, spool=False) as guard:
        plugins = [OverspillPlugin(guard)]
        spilled = asyncio.run(results(App(name="kit", root_agent=ours, plugins=plugins), "async", session))
        asked = App(name="kit", root_agent=theirs, plugins=plugins)
        found = asyncio.run(results(asked, "async", session, user="bob"))
        listed = client.list(session=f"kit/{USER}/{session}").captures

    assert "[overspill]" in spilled["call_of_child"].text
    assert [each.call_id for each in listed] == ["call_of_child"]
    assert found["call_1"].structured == {"captures": [], "next": None}
    assert "error" in found["call_2"].structured


def test_the_type_and_the_identity_of_an_exception_stay(guard: Guard, session: str) -> None:
    raised = KeyError("x" * 100_000)

    def fail() -> None:
        """Fail."""
        raise raised

    agent = LlmAgent(name="agent", model=script_of([[Call("fail", {}, "call_1")]]), tools=[fail])
    with pytest.raises(KeyError) as caught:
        run(agent, guard, session)

    assert caught.value is raised
    assert len(str(caught.value)) < 10_000


# --- artifacts, beside the service that keeps them in memory --------------------------------------

WHO: dict[str, Any] = {"app_name": "desk", "user_id": "ada"}
PNG = types.Part.from_bytes(data=tools.PNG, mime_type="image/png")


@pytest.fixture
def both(session: str) -> Iterator[list[Any]]:
    with SyncClient(URL) as client:
        yield [OverspillArtifactService(client), InMemoryArtifactService()]


def from_each(services: list[Any], method: str, **given: Any) -> list[Any]:
    """Return what each service answers, or the class of what it raises."""

    async def ask(service: Any) -> Any:
        try:
            return await getattr(service, method)(**{**WHO, **given})
        except InputValidationError as error:
            return type(error)

    return [asyncio.run(ask(service)) for service in services]


def test_artifacts_are_what_they_would_be_in_memory(both: list[Any], session: str) -> None:
    user = f"user:{session}"
    saved = [
        ("a.txt", types.Part(text="one\n")),
        ("a.txt", types.Part(text="two\n")),
        ("a.txt", types.Part(text="one\n")),
        ("p/ü.png", PNG),
        (user, types.Part(text="of the user")),
        ("gone", PNG),
        ("rewound", artifact_util._new_rewind_tombstone()),
    ]
    for filename, part in saved:
        ours, theirs = from_each(both, "save_artifact", session_id=session, filename=filename, artifact=part)
        assert ours == theirs
    from_each(both, "delete_artifact", session_id=session, filename="gone")
    for filename in {name for name, _ in saved} | {"never"}:
        asked = {"session_id": session, "filename": filename}
        for version in (None, 0, 1, 2, 7):
            ours, theirs = from_each(both, "load_artifact", version=version, **asked)
            assert ours == theirs
        ours, theirs = from_each(both, "list_versions", **asked)
        assert ours == theirs
    for scope in (session, None):
        ours, theirs = from_each(both, "list_artifact_keys", session_id=scope)
        assert set(theirs) <= set(ours)
    ours, theirs = from_each(both, "load_artifact", filename="x")
    assert ours == theirs == InputValidationError


def test_metadata_of_a_version_stays(both: list[Any], session: str) -> None:
    given = {"session_id": session, "filename": "a.png"}
    from_each(both, "save_artifact", artifact=PNG, custom_metadata={"page": 3}, **given)
    ours, theirs = from_each(both, "get_artifact_version", **given)

    assert (ours.version, ours.mime_type, ours.custom_metadata) == (0, "image/png", {"page": 3})
    assert (theirs.version, theirs.mime_type, theirs.custom_metadata) == (0, "image/png", {"page": 3})
    assert ours.canonical_uri.startswith("overspill://cap_")
    assert from_each(
        both[:1], "save_artifact", artifact=PNG, custom_metadata={"x": "y" * 2_000}, **given
    ) == [InputValidationError]


def test_sessions_and_users_do_not_see_each_others_artifacts(both: list[Any], session: str) -> None:
    given = {"session_id": session, "filename": "a.txt"}
    from_each(both, "save_artifact", artifact=PNG, **given)
    for other in ({"user_id": "bob"}, {"app_name": "other"}, {"session_id": "other"}):
        assert from_each(both, "load_artifact", **{**given, **other}) == [None, None]
