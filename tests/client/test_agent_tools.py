"""The tools of an agent as a framework holds them, against the real service and a real spool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from overspill import Client, Guard, Policy, Spool, SyncClient, inspection_tool
from overspill.agent_tools.agent_tool import AgentTool
from overspill.agent_tools.reading_tools import reading_tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

OUTPUT = "".join(f"line {number}\n" for number in range(20_000))


@pytest.fixture
def guard(service: ServiceProcess, request: pytest.FixtureRequest) -> Iterator[Guard]:
    with SyncClient(service.url, session=request.node.nodeid) as client, Guard(client, spool=False) as made:
        yield made


def listing(guard: Guard) -> AgentTool:
    return reading_tools(guard)[1]


def spilled(guard: Guard, call_id: str, tool: str = "pytest", session: str | None = None) -> str:
    output = f"{call_id}\n{OUTPUT}"
    made = guard.process_sync(output, tool=tool, call_id=call_id, session=session)
    assert made.capture is not None
    return made.capture


def test_an_agent_gets_a_tool_that_reads_and_one_that_lists(guard: Guard) -> None:
    names = [tool.name for tool in reading_tools(guard)]

    assert names == ["inspect_output", "list_captures"]
    assert set(names) <= guard.policy.exempt


def test_an_agent_gets_a_tool_that_reads_terminals_if_its_policy_says_so(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("version = 1\nterminals = true\n")
    guard = Guard(policy=Policy.load(tmp_path / "policy.toml"), spool=False)
    *_, third = reading_tools(guard)

    assert third.name == "get_terminal_output"
    assert "no service" in third.call({})["error"]
    assert len(reading_tools(guard, terminals=False)) == 2
    assert len(reading_tools(Guard(spool=False), terminals=True)) == 3
    with pytest.raises(ValueError, match="terminals must be true or false"):
        Policy(terminals="yes")  # type: ignore[arg-type]


async def test_a_call_answers_the_same_from_synchronous_and_asynchronous_code(guard: Guard) -> None:
    capture = spilled(guard, "call_1")
    inspect_output, list_captures = reading_tools(guard)
    arguments = {"capture": capture, "pattern": "LINE 77$"}

    assert inspect_output.call(arguments) == await inspect_output.acall(arguments)
    assert inspect_output.call(arguments) == inspection_tool(guard.client)(**arguments)  # type: ignore[arg-type]
    assert list_captures.call({}) == await list_captures.acall({})


async def test_an_asynchronous_client_serves_both_ways_of_calling(service: ServiceProcess) -> None:
    async with Client(service.url, session="both") as client, Guard(client, spool=False) as guard:
        guarded = await guard.process(OUTPUT, tool="pytest", call_id="call_1")
        inspect_output, _ = reading_tools(guard)

        answer = await inspect_output.acall({"capture": guarded.capture})
    assert answer["total_lines"] == 20_000


def test_the_list_has_the_captures_of_the_session_newest_first(guard: Guard) -> None:
    spilled(guard, "call_0", session="somebody else's")
    captures = [spilled(guard, f"call_{number}") for number in range(3)]
    rows = listing(guard).call({})["captures"]

    assert [row["capture"] for row in rows] == captures[::-1]
    assert rows[0]["tool"] == "pytest"
    assert rows[0]["call_id"] == "call_2"
    assert rows[0]["total_lines"] == 20_001


def test_the_session_of_a_call_comes_before_that_of_the_guard(guard: Guard) -> None:
    capture = spilled(guard, "call_1", session="thread-7")

    assert listing(guard).call({})["captures"] == []
    assert [row["capture"] for row in listing(guard).call({}, session="thread-7")["captures"]] == [capture]


def test_without_a_session_it_lists_captures_without_one(service: ServiceProcess) -> None:
    with SyncClient(service.url, session="") as client, Guard(client, spool=False) as guard:
        mine = spilled(guard, "call_without_session")
        theirs = spilled(guard, "call_1", session="a session")
        listed = {row["capture"] for row in listing(guard).call({"limit": 50})["captures"]}

        assert mine in listed
        assert theirs not in listed


def test_following_next_lists_every_capture_once(guard: Guard) -> None:
    captures = [spilled(guard, f"call_{number}") for number in range(5)]
    seen: list[str] = []
    arguments: dict[str, Any] | None = {"limit": "2", "tool": "pytest"}
    while arguments:
        answer = listing(guard).call(arguments)
        seen += [row["capture"] for row in answer["captures"]]
        arguments = answer["next"]

    assert seen == captures[::-1]


def test_the_longest_names_keep_the_answer_short(guard: Guard) -> None:
    for number in range(12):
        spilled(guard, f"{number}" + "\u0007é\u202e" * 300, tool="\U0001f600" * 250)
    answer = listing(guard).call({"limit": 50})

    assert len(json.dumps(answer)) <= 20_000
    assert "\u202e" not in json.dumps(answer, ensure_ascii=False)


def test_what_waits_on_this_machine_is_listed_and_read_without_the_service(
    nowhere: str, tmp_path: Path
) -> None:
    client = SyncClient(nowhere, session="alone", retries=0, connect_timeout=0.2)
    with client, Guard(client, spool=Spool(tmp_path / "spool")) as guard:
        capture = spilled(guard, "call_1")
        inspect_output, list_captures = reading_tools(guard)
        listed = list_captures.call({})
        read = inspect_output.call({"capture": capture, "mode": "tail", "lines": 1})

    assert [row["capture"] for row in listed["captures"]] == [capture]
    assert listed["incomplete"] is True
    assert listed["code"] == "unreachable"
    assert read["content"] == "line 19999\n"


def test_a_service_that_is_away_is_an_answer(nowhere: str) -> None:
    with SyncClient(nowhere, retries=0, connect_timeout=0.2) as client, Guard(client, spool=False) as guard:
        for tool in reading_tools(guard):
            answer = tool.call({"capture": "cap_" + "a" * 20} if tool.name == "inspect_output" else {})

            assert answer["code"] == "unreachable"
            assert "call again later" in answer["error"]


def test_a_closed_client_is_an_answer(guard: Guard) -> None:
    tools = reading_tools(guard)
    guard.client.close()  # type: ignore[union-attr]

    assert all("error" in tool.call({}) for tool in tools)


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        "",
        "{}",
        "[1]",
        "not json",
        7,
        ["a"],
        {"limit": "many"},
        {"nonsense": 1},
        {1: 2},
        b"\xff",
        {"self": 1},
    ],
)
async def test_no_arguments_whatever_make_it_raise(guard: Guard, arguments: Any) -> None:
    for tool in reading_tools(guard):
        answer = tool.call(arguments)

        assert answer == await tool.acall(arguments)
        assert "captures" in answer or answer["error"]


def test_arguments_as_json_text_are_understood(guard: Guard) -> None:
    capture = spilled(guard, "call_1")

    answer = reading_tools(guard)[0].call(json.dumps({"capture": capture, "lines": 1}))
    assert answer["content"] == "call_1\n"


def test_the_schemas_take_what_next_holds(guard: Guard) -> None:
    for number in range(2):
        spilled(guard, f"call_{number}")
    tool = listing(guard)
    following = tool.call({"limit": 1})["next"]

    jsonschema.Draft202012Validator(tool.parameters).validate(following)
    for each in reading_tools(guard):
        jsonschema.Draft202012Validator.check_schema(each.parameters)
        assert each.description
