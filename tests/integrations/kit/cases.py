"""The cases for every adapter, whatever the framework. The environment names the harness to run."""

from __future__ import annotations

import json
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from overspill import Guard, Policy, SyncClient
from overspill.wire import COMMAND_LABEL, TERMINAL_LABEL

from tests.integrations.kit import tools
from tests.integrations.kit.fixtures import guard, possible, session, way
from tests.integrations.kit.harness import Call, Harness, Result

__all__ = ["guard", "possible", "session", "way"]

MANY = 20_000
PAGES = Path(__file__).parents[3] / "client" / "docs" / "integrations"
URL = os.environ["OVERSPILL_URL"]
HARNESS: Harness = import_module(f"tests.integrations.{os.environ['KIT_FRAMEWORK']}.harness").harness


def one(
    way: str, guard: Guard | None, session: str, tool: Any, *, is_program: bool = False, **given: Any
) -> Result:
    """Run one call of one tool; return what the model reads."""
    call = Call(tool.__name__, given, "call_1", is_program)
    return HARNESS.run(way, [tool], [[call]], guard=guard, session=session).results["call_1"]


def stored(guard: Guard, capture: str | None) -> bytes:
    assert isinstance(guard.client, SyncClient)
    assert capture is not None
    return guard.client.content(capture)


def handle_in(text: str) -> str:
    """Return the handle that a notice names."""
    _, found, rest = text.partition("cap_")
    assert found, text[:500]
    return found + rest[:20]


def test_a_small_result_is_what_it_would_be_without_us(way: str, guard: Guard, session: str) -> None:
    small: list[tuple[Any, dict[str, Any]]] = [
        (tools.lines, {"count": 3}),
        (tools.query, {"rows": 2}),
        (tools.nothing, {}),
    ]
    for tool, given in small:
        assert one(way, guard, session, tool, **given) == one(way, None, session, tool, **given)


def test_a_large_result_becomes_a_notice_and_is_stored_whole(way: str, guard: Guard, session: str) -> None:
    result = one(way, guard, session, tools.lines, count=MANY)

    assert len(result.text) < 8_000
    assert "[overspill]" in result.text
    assert not result.is_error
    assert stored(guard, handle_in(result.text)).decode() == tools.lines(MANY)


def test_programs_read_the_status_beside_the_notice(way: str, guard: Guard, session: str) -> None:
    result = one(way, guard, session, tools.lines, count=MANY)

    assert result.metadata is not None
    assert result.metadata["outcome"] == "captured"
    assert result.metadata["capture"] == handle_in(result.text)
    assert result.metadata["total_lines"] == MANY


def test_data_keeps_its_small_fields(way: str, guard: Guard, session: str) -> None:
    result = one(way, guard, session, tools.query, rows=5_000)

    assert len(result.text) < 12_000
    assert '"count": 5000' in result.text.replace('"count":5000', '"count": 5000').replace("'", '"')
    assert json.loads(stored(guard, handle_in(result.text)))


def test_a_picture_stays_beside_a_long_text(way: str, guard: Guard, session: str) -> None:
    without = one(way, None, session, HARNESS.picture, count=3)
    result = one(way, guard, session, HARNESS.picture, count=MANY)

    assert without.images == result.images == 1
    assert len(result.text) < 8_000
    assert "[overspill]" in result.text
    assert tools.NEEDLE in stored(guard, handle_in(result.text)).decode()


def test_a_long_error_stays_an_error(way: str, guard: Guard, session: str) -> None:
    without = outcome(way, None, session)
    result = outcome(way, guard, session)

    assert type(result) is type(without)
    assert len(str(result)) < 8_000
    assert "cannot compile" in str(result)
    if isinstance(without, Result) and isinstance(result, Result):
        assert result.is_error == without.is_error


def outcome(way: str, guard: Guard | None, session: str) -> Result | Exception:
    """Return the result of a tool that fails, or the exception that the framework lets through."""
    try:
        return one(way, guard, session, tools.fail, size=200_000)
    except Exception as error:  # noqa: BLE001  (whatever the framework raises)
        return error


def test_parallel_calls_keep_their_own_results(way: str, guard: Guard, session: str) -> None:
    calls = [Call("lines", {"count": MANY + number}, f"call_{number}") for number in range(3)]
    results = HARNESS.run(way, [tools.lines], [calls], guard=guard, session=session).results

    for number, call in enumerate(calls):
        content = stored(guard, handle_in(results[call.id].text))
        assert content.decode() == tools.lines(MANY + number)


def test_captures_carry_the_id_of_their_call(way: str, guard: Guard, session: str) -> None:
    if not HARNESS.names_calls:
        pytest.skip("the framework tells no adapter the id of a call")
    result = one(way, guard, session, tools.lines, count=MANY)
    assert isinstance(guard.client, SyncClient)

    assert guard.client.get(handle_in(result.text)).call_id == "call_1"


def test_an_unknown_tool_is_answered_by_the_framework(way: str, guard: Guard, session: str) -> None:
    def run(given: Guard | None) -> str:
        call = Call("no_such_tool", {}, "call_1")
        try:
            found = HARNESS.run(way, [tools.lines], [[call]], guard=given, session=session)
        except Exception as error:  # noqa: BLE001
            return type(error).__name__
        return str(found.results.get("call_1") and "answered")

    assert run(guard) == run(None)


def test_the_reading_tools_are_offered_before_anything_spills(way: str, guard: Guard, session: str) -> None:
    run = HARNESS.run(
        way, [tools.lines], [[Call("lines", {"count": 1}, "call_1")]], guard=guard, session=session
    )

    assert {"inspect_output", "list_captures", "lines"} <= set(run.offered)
    assert "get_terminal_output" not in run.offered


def test_the_agent_reads_its_capture_back(way: str, guard: Guard, session: str) -> None:
    spilled = one(way, guard, session, tools.lines, count=MANY)
    capture = handle_in(spilled.text)
    reads = [
        Call("inspect_output", {"capture": f"[{capture}]", "mode": "GREP", "pattern": "needle"}, "call_2"),
        Call("inspect_output", {"capture": capture, "lines": "1"}, "call_3"),
        Call("inspect_output", {"capture": "cap_invented"}, "call_4"),
        Call("list_captures", {}, "call_5"),
    ]
    results = HARNESS.run(way, [tools.lines], [reads], guard=guard, session=session).results

    assert tools.NEEDLE in results["call_2"].text
    assert "line 0" in results["call_3"].text
    assert "is not a handle" in results["call_4"].text
    assert capture in results["call_5"].text
    assert all("[overspill]" not in result.text for result in results.values())


def test_terminals_are_read_if_the_policy_says_so(way: str, session: str) -> None:
    calls = [
        Call("get_terminal_output", {"terminal": session, "lines": 300}, "call_1"),
        Call("get_terminal_output", {"terminal": "no such"}, "call_2"),
    ]
    labels = {TERMINAL_LABEL: session, COMMAND_LABEL: "make all"}
    with SyncClient(URL, session=session) as client, client.live(labels=labels, session="") as out:
        out.write(tools.lines(900))
        out.flush()
        guard = Guard(client, Policy(max_bytes=1_000, terminals=True), spool=False)
        run = HARNESS.run(way, [tools.lines], [calls], guard=guard, session=session)

    assert {"get_terminal_output", "inspect_output", "list_captures", "lines"} <= set(run.offered)
    assert "make all" in run.results["call_1"].text
    assert all(text in run.results["call_1"].text for text in ("line 600", "line 899"))
    assert "no terminal has the name" in run.results["call_2"].text
    assert all("[overspill]" not in result.text for result in run.results.values())


def test_a_question_about_a_log_of_20_mb_is_answered(guard: Guard, session: str) -> None:
    way = HARNESS.ways[0]
    notice = one(way, guard, session, tools.read_log, megabytes=20).text
    search = {"capture": handle_in(notice), "mode": "grep", "pattern": "declined", "context_lines": 1}
    read = Call("inspect_output", search, "call_2")
    found = HARNESS.run(way, [tools.read_log], [[read]], guard=guard, session=session).results["call_2"]

    assert tools.DECLINED in found.text
    assert len(notice) + len(found.text) < 8_000


def test_a_sub_agent_reads_what_its_parent_captured(way: str, guard: Guard, session: str) -> None:
    capture = handle_in(one(way, guard, session, tools.lines, count=MANY).text)
    call = Call("inspect_output", {"capture": capture, "mode": "tail", "lines": 1}, "call_1")
    with SyncClient(URL, session=f"{session}-child") as client, Guard(client, spool=False) as own:
        results = HARNESS.run(way, [], [[call]], guard=own, session=f"{session}-child").results

    assert f"line {MANY - 1}" in results["call_1"].text


def test_code_that_calls_a_tool_gets_the_whole(way: str, guard: Guard, session: str) -> None:
    result = one(way, guard, session, tools.lines, is_program=True, count=MANY)

    assert result.text.strip() == tools.lines(MANY).strip()


def test_a_tool_that_is_guarded_already_is_guarded_once(way: str, guard: Guard, session: str) -> None:
    result = one(way, guard, session, guard.wrap(tools.lines), count=MANY)

    assert result.text.count("[overspill]") == 1
    assert stored(guard, handle_in(result.text)).decode() == tools.lines(MANY)


def test_what_its_page_says_works_as_it_stands(session: str) -> None:
    page = (PAGES / HARNESS.page).read_text()
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    turns = [[Call("lines", {"count": MANY}, "call_1")]]
    runs = HARNESS.documented(examples, [tools.lines], turns, session=session)

    assert len(runs) == len(examples) > 0
    for run in runs:
        assert "[overspill]" in run.results["call_1"].text


def test_without_a_service_the_agent_goes_on(way: str, session: str) -> None:
    client = SyncClient("http://127.0.0.1:1", session=session, retries=0, connect_timeout=0.2)
    with client, Guard(client, Policy(wait=0.2), spool=False) as guard:
        result = one(way, guard, session, tools.lines, count=MANY)

    assert "NOT STORED" in result.text
    assert len(result.text) < 16_000
