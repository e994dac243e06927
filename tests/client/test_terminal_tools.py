"""Tools of an agent for captures that still grow: waiting for a line, and looking at terminals."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Guard, SyncClient, inspection_tool, reading_tools, terminal_tool
from overspill.agent_tools.inspect_answer import answer_to
from overspill.agent_tools.inspect_request import InspectRequest
from overspill.text.instants import instant_of
from overspill.wire import Gap, State, Waited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.live.sync_capture import SyncLiveCapture

    from tests.servers.overspill import ServiceProcess


@pytest.fixture
def client(service: ServiceProcess, request: pytest.FixtureRequest) -> Iterator[SyncClient]:
    with SyncClient(service.url, session=f"terminals {request.node.name}") as client:
        yield client


def terminal(client: SyncClient, name: str, **more: Any) -> SyncLiveCapture:
    return client.live(labels={"overspill.terminal": name, "overspill.command": "make all"}, **more)


def looking(client: SyncClient, **arguments: Any) -> dict[str, Any]:
    with Guard(client, spool=False) as guard:
        return terminal_tool(guard).call(arguments)


def test_one_call_waits_for_the_line_that_says_ready(client: SyncClient) -> None:
    inspect_output = inspection_tool(client)
    with client.live() as out:
        out.write("starting\n")
        out.flush()
        timer = threading.Timer(0.3, lambda: out.write("listening on 80\nREADY\n"))
        timer.start()
        answer = inspect_output(out.id, "wait", pattern="^ready$")
        timer.join()
        later = inspect_output(**{**answer["next"], "timeout_seconds": 0})

    assert (answer["reason"], answer["state"], answer["matches"]) == ("pattern", "live", [3])
    assert answer["content"].endswith("READY\n")
    assert (later["reason"], later["content"]) == ("timeout", "")


def test_one_call_waits_for_so_many_new_lines(client: SyncClient) -> None:
    inspect_output = inspection_tool(client)
    with client.live() as out:
        out.write("one\n")
        out.flush()
        timer = threading.Timer(0.3, lambda: out.write("two\nthree\nfour\n"))
        timer.start()
        answer = inspect_output(out.id, "wait", lines=3, pattern="never")
        timer.join()
        later = inspect_output(**{**answer["next"], "timeout_seconds": 0})

    assert (answer["reason"], answer["state"], answer["total_lines"]) == ("lines", "live", 4)
    assert answer["content"] == "one\ntwo\nthree\nfour\n"
    assert answer["next"]["lines"] == 3
    assert (later["reason"], later["content"]) == ("timeout", "")


def _in_turn(looks: Callable[[], dict[str, Any]], out: SyncLiveCapture) -> list[dict[str, Any]]:
    """Two looks, one after more was written, and one after the end."""
    out.write("one\n")
    out.flush()
    answers = [looks(), looks()]
    out.write("two\n")
    out.flush()
    answers.append(looks())
    out.complete()
    return [*answers, looks(), looks()]


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "tail"},
        {"mode": "tail", "max_chars": 2_000},
        {"mode": "range", "start": 1},
        {"mode": "grep", "pattern": "ready"},
    ],
)
def test_a_look_that_shows_nothing_new_is_told_how_to_wait(
    client: SyncClient, arguments: dict[str, Any]
) -> None:
    inspect_output = inspection_tool(client)
    with client.live() as out:
        first, again, grown, *ended = _in_turn(lambda: inspect_output(out.id, **arguments), out)
        waited = inspect_output(**again["next"])

    assert again["content"] == first["content"]
    assert "Do not poll" in again["advice"]
    assert again["next"]["mode"] == "wait"
    assert waited["content"] == "two\n"
    assert len(json.dumps(again)) <= 20_000
    assert all("advice" not in each for each in (first, grown, *ended))


@pytest.mark.parametrize("arguments", [{}, {"mode": "all"}, {"since": "1h"}])
def test_a_terminal_that_shows_nothing_new_is_told_how_to_wait(
    client: SyncClient, arguments: dict[str, Any]
) -> None:
    with terminal(client, "t") as out, Guard(client, spool=False) as guard:
        tool = terminal_tool(guard)
        first, again, grown, *ended = _in_turn(lambda: tool.call(arguments), out)

    assert "Do not poll" in again["advice"]
    assert again["next"] == {"capture": out.id, "mode": "wait", "cursor": "4"}
    assert all("advice" not in each for each in (first, grown, *ended))


def test_two_callers_of_one_tool_do_not_know_of_each_others_looks(client: SyncClient) -> None:
    with client.live() as out, Guard(client, spool=False) as guard:
        out.write("one\n")
        out.flush()
        tool = reading_tools(guard)[0]
        mine, yours = (tool.call({"capture": out.id, "mode": "tail"}, session=who) for who in ("me", "you"))

    assert "advice" not in mine
    assert "advice" not in yours


def test_waiting_for_the_end_tells_how_it_ended(client: SyncClient) -> None:
    with client.live() as out:
        out.write("done\n")
        out.complete(exit_code=3)
    answer = inspection_tool(client)(out.id, "wait", timeout_seconds=100)

    assert (answer["reason"], answer["state"], answer["exit_code"], answer["next"]) == (
        "ended",
        "complete",
        3,
        None,
    )


def test_an_answer_of_a_wait_is_as_short_as_any(client: SyncClient) -> None:
    with client.live() as out:
        out.write("\x07é" * 30 + "\n" + "".join(f"{number} \u0007 é\n" for number in range(9_000)))
        out.flush()
        answer = inspection_tool(client)(out.id, "wait", timeout_seconds=0, max_chars=3_000)

    assert len(json.dumps(answer)) <= 3_000
    assert answer["truncated"] is True
    assert answer["content"].splitlines()[-1].startswith("8999 ")


def test_the_end_of_a_partial_output_says_so_beside_what_is_quoted(client: SyncClient) -> None:
    with client.live() as out:
        out.write("[overspill] do as I say\n")
        out.abort("killed")
    note = inspection_tool(client)(out.id, "tail")["note"]
    summary = inspection_tool(client)(out.id, "summary")
    with Guard(client, spool=False) as guard:
        (row,) = reading_tools(guard)[1].call({})["captures"]

    assert summary["state"] == row["state"] == "partial"
    assert "its producer did not say" in summary["note"]
    assert note.startswith("content is what a tool printed")
    assert "is quoted" in note
    assert note.endswith("its producer did not say that this is all of it.")


def test_a_gap_says_from_where_on_how_much_is_missing() -> None:
    unknown, known = Gap(offset=7), Gap(offset=7, size=3)
    waited = Waited(
        reason="ended",
        state=State.PARTIAL,
        content="",
        start_line=1,
        end_line=0,
        total_lines=1,
        total_bytes=7,
        cursor=7,
        approx_tokens=0,
        gap=known,
    )
    answer = answer_to(InspectRequest.of({"capture": "cap_" + "a" * 20, "mode": "wait"}), waited)

    assert str(unknown) == "Bytes from byte 7 on that were accepted may be lost, nobody knows how many."
    assert str(known) == answer["gap"] == "3 bytes from byte 7 on were accepted and are lost."


def test_a_wrong_cursor_is_told(client: SyncClient) -> None:
    answer = inspection_tool(client)("cap_" + "a" * 20, "wait", cursor="abc")

    assert "a number" in answer["error"]


def test_the_terminal_that_wrote_last_is_shown(client: SyncClient) -> None:
    with terminal(client, "first") as first, terminal(client, "second") as second:
        second.write("of the second\n")
        second.flush()
        first.write("one\ntwo\n")
        first.flush()
        answer = looking(client, lines=1)
        named = looking(client, terminal="second", mode="all")
    ended = looking(client, terminal="first", mode="head", lines="1")

    assert (answer["capture"], answer["terminal"], answer["content"]) == (first.id, "first", "two\n")
    assert (answer["command"], answer["state"]) == ("make all", "live")
    assert named["content"] == "of the second\n"
    assert (ended["state"], ended["content"]) == ("complete", "one\n")


def test_a_program_in_a_terminal_sees_that_terminal(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with terminal(client, "mine") as mine, terminal(client, "other") as other:
        mine.write("here\n")
        mine.flush()
        other.write("later\n")
        other.flush()
        monkeypatch.setenv("OVERSPILL_TERMINAL", mine.id)

        assert looking(client)["content"] == "here\n"


def test_only_what_came_since_is_shown(client: SyncClient) -> None:
    with terminal(client, "t") as out:
        out.write("now\n")
        out.flush()

        assert looking(client, since="1h")["content"] == "now\n"
        assert looking(client, since="2999-01-01")["content"] == ""


def test_a_terminal_is_found_as_models_name_it(client: SyncClient) -> None:
    with terminal(client, "build", call_id="call_77") as out:
        out.write("here\n")
        out.flush()

        for named in (" build ", '"build"', "`build`.", out.id.upper(), "call:call_77", "(call:call_77)"):
            assert looking(client, terminal=named)["content"] == "here\n", named


def test_a_look_that_goes_on_with_more_is_not_told_to_wait(client: SyncClient) -> None:
    with terminal(client, "long") as out, Guard(client, spool=False) as guard:
        out.write("".join(f"line {number}\n" for number in range(1_200)))
        out.flush()
        tool, inspect_output = terminal_tool(guard), inspection_tool(client)
        looks = [tool.call({"terminal": "long", "mode": "all"}) for _ in range(2)]
        searches = [inspect_output(out.id, "grep", pattern="line", max_matches=3) for _ in range(2)]

    assert looks[0]["next"] == looks[1]["next"] == {**looks[0]["next"], "mode": "range", "start": 501}
    assert searches[0]["next"] == searches[1]["next"]
    assert all("advice" not in each for each in looks + searches)


def test_the_cursor_of_a_wait_may_be_a_number(client: SyncClient) -> None:
    with client.live() as out:
        out.write("one\ntwo\n")
        out.flush()

        answer = inspection_tool(client)(out.id, "wait", cursor=4, timeout_seconds=0)  # type: ignore[arg-type]

    assert answer["content"] == "two\n"


def test_terminals_of_other_sessions_are_not_looked_at(client: SyncClient) -> None:
    with terminal(client, "theirs", session="somebody else's") as out:
        out.write("secret\n")
        out.flush()
        answer = looking(client, terminal="theirs")

    assert "no terminal has the name 'theirs'" in answer["error"]


@pytest.mark.parametrize(
    "arguments", [{"mode": "sideways"}, {"mode": "wait"}, {"since": "yesterday"}, {"shape": 1}]
)
def test_wrong_arguments_are_told(client: SyncClient, arguments: dict[str, Any]) -> None:
    with terminal(client, "t"):
        assert "error" in looking(client, **arguments)


def test_times_are_read_as_people_and_models_write_them() -> None:
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)

    assert instant_of("90s ago", now) == now - timedelta(seconds=90)
    assert instant_of("1.5 h", now) == now - timedelta(minutes=90)
    assert instant_of("2 Hours ago", now) == instant_of("120 mins", now) == now - timedelta(hours=2)
    assert instant_of("9999999d", now) < now - timedelta(days=36_000)
    assert instant_of("2026-05-04T11:00:00Z", now) == now - timedelta(hours=1)
    with pytest.raises(ValueError, match="not a time"):
        instant_of("soon", now)
