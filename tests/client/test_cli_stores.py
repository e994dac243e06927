"""`overspill put`, `stat`, `ls`, `ttl`, `rm`, `usage`."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.client.shell import CAPTURE_ID, Shell
from tests.servers.overspill import ServiceProcess


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


@pytest.fixture
def session(request: pytest.FixtureRequest) -> str:
    return f"cli {request.node.name}"


def test_put_prints_the_capture_id_and_nothing_else(overspill: Shell, tmp_path: Path) -> None:
    (tmp_path / "output").write_bytes(b"one\n")
    result = overspill("put", str(tmp_path / "output"))

    assert (result.code, result.err) == (0, "")
    assert CAPTURE_ID.fullmatch(result.out.removesuffix("\n"))


def test_what_is_put_is_told_by_stat(overspill: Shell, session: str) -> None:
    capture = overspill.put(
        b"{}\n",
        *("--tool", "größe", "--call-id", "call\t0", "--session", session, "--ttl", "2h"),
        *("--label", "a=1", "--label", "b=x=y", "--content-type", "application/json", "--status", "exit 3"),
    )
    entry = json.loads(overspill("stat", "--json", capture).data)
    life = datetime.fromisoformat(entry["expires"]) - datetime.fromisoformat(entry["created"])

    assert entry["labels"] == {"a": "1", "b": "x=y"}
    assert (entry["tool"], entry["call_id"], entry["session"]) == ("größe", "call\t0", session)
    assert (entry["content_type"], entry["status"], entry["size"]) == ("application/json", "exit 3", 3)
    assert abs(life - timedelta(hours=2)) < timedelta(seconds=2)


def test_metadata_cannot_forge_lines_or_move_the_cursor(overspill: Shell, session: str) -> None:
    capture = overspill.put(b"x", "--tool", "evil\nsize  1\x1b[2J\u202e", "--session", session)
    told = overspill("stat", capture).out

    assert "tool     evil␊size  1␛[2J\\u202e\n" in told
    assert "\x1b" not in told


def test_global_options_stand_before_the_command_too(overspill: Shell) -> None:
    capture = overspill.put(b"x")

    assert overspill("--json", "stat", capture).data == overspill("stat", capture, "--json").data


def test_ls_lists_the_newest_first_up_to_the_limit_and_says_that_there_is_more(
    overspill: Shell, session: str
) -> None:
    stored = [overspill.put(b"%d" % number, "--session", session) for number in range(3)]
    result = overspill("ls", "--session", session, "--limit", "2")

    assert [line.split()[0] for line in result.out.splitlines()] == [stored[2], stored[1]]
    assert "--all" in result.err


def test_ls_finds_by_tool_and_by_tool_call_id(overspill: Shell, session: str) -> None:
    by_tool = overspill.put(b"1", "--session", session, "--tool", "mine")
    by_call = overspill.put(b"2", "--session", session, "--call-id", "c2")

    assert overspill("ls", "--session", session, "--tool", "mine").out.split()[0] == by_tool
    assert overspill("ls", "--session", session, "--call-id", "c2", "--all").out.split()[0] == by_call


def test_ls_of_nothing_prints_nothing(overspill: Shell) -> None:
    assert overspill("ls", "--session", "nobody was ever here") == (0, b"", "")


def test_ttl_moves_the_expiry(overspill: Shell) -> None:
    capture = overspill.put(b"kept longer")
    printed = datetime.fromisoformat(overspill("ttl", capture, "7d").out.strip())
    entry = json.loads(overspill("stat", "--json", capture).data)

    assert printed == datetime.fromisoformat(entry["expires"]).replace(microsecond=0)
    assert printed - datetime.fromisoformat(entry["created"]) > timedelta(days=6, hours=23)


@pytest.mark.parametrize("wrong", ["0", "2 fortnights", "-5", "1.5h"])
def test_a_duration_that_is_none_is_a_usage_error(overspill: Shell, wrong: str) -> None:
    result = overspill("put", "--ttl", wrong, stdin=b"x")

    assert result.code == 2
    assert "7d" in result.err


def test_rm_removes_all_that_it_can_and_reports_the_rest(overspill: Shell) -> None:
    first, second = overspill.put(b"first"), overspill.put(b"second")
    result = overspill("rm", first, "cap_aaaaaaaaaaaaaaaaaaaa", second)

    assert result.code == 3
    assert "cap_aaaaaaaaaaaaaaaaaaaa" in result.err
    assert [overspill("stat", capture).code for capture in (first, second)] == [3, 3]


def test_rm_with_a_variable_that_is_not_set_removes_nothing(overspill: Shell) -> None:
    unrelated = overspill.put(b"of no call")
    results = [overspill("rm", "call:"), overspill("rm", "--session", "", "--yes"), overspill("rm", "")]

    assert [result.code for result in results] == [2, 2, 2]
    assert "names no tool call" in results[0].err
    assert overspill("stat", unrelated).code == 0


def test_ls_of_an_empty_call_id_is_a_usage_error(overspill: Shell) -> None:
    assert overspill("ls", "--call-id", "").code == 2


def test_a_whole_session_is_removed_only_with_consent(overspill: Shell, session: str) -> None:
    for number in range(2):
        overspill.put(b"%d" % number, "--session", session)
    refused = overspill("rm", "--session", session)
    left = len(overspill("ls", "--session", session).out.splitlines())
    removed = overspill("rm", "--session", session, "--yes")

    assert (refused.code, left) == (2, 2)
    assert (removed.code, overspill("ls", "--session", session).out) == (0, "")


def test_a_person_is_asked_before_a_session_is_removed(overspill: Shell, session: str) -> None:
    overspill.put(b"stays", "--session", session)
    terminal = overspill.terminal("rm", "--session", session)
    terminal.wait_for(b"[y/N]")
    terminal.press(b"n\n")

    assert terminal.ended() == 1
    assert overspill("ls", "--session", session).out


def test_rm_of_nothing_is_a_usage_error(overspill: Shell) -> None:
    assert overspill("rm").code == 2


def test_usage_tells_totals_and_limits(overspill: Shell) -> None:
    overspill.put(b"something")
    told = overspill("usage").out

    assert "captures" in told
    assert "largest capture  10,737,418,240 bytes" in told


@pytest.mark.parametrize("wrong", ["novalue", "=x", "bad name=x"])
def test_a_label_that_is_none_is_a_usage_error(overspill: Shell, wrong: str) -> None:
    assert overspill("put", "--label", wrong, stdin=b"x").code == 2


def test_a_file_that_cannot_be_read_is_told_without_a_traceback(overspill: Shell, tmp_path: Path) -> None:
    result = overspill("put", str(tmp_path / "absent"))

    assert result.code == 6
    assert result.err == f"overspill: {tmp_path / 'absent'}: No such file or directory\n"
