"""`overspill put`, `stat`, `ls`, `ttl`, `rm`, `usage`."""

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from overspill import Client, SyncClient
from overspill.cli import parsers
from overspill.wire import Code

from tests.client.scripted import json as answered
from tests.client.scripted import problem, scripted_in_thread
from tests.client.shell import CAPTURE_ID, Shell
from tests.faults.traffic import until
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


async def test_stat_tells_who_has_read_a_capture(overspill: Shell, service: ServiceProcess) -> None:
    capture = overspill.put(b"x")
    before = json.loads(overspill("stat", "--json", capture).data)["readers"]
    async with Client(service.url) as client:
        await client.content(capture)

        async def is_noted() -> bool:
            return bool((await client.readers(capture)).readers)

        await until(is_noted)
    told = overspill("stat", capture).out
    [reader] = json.loads(overspill("stat", "--json", capture).data)["readers"]

    assert before == []
    assert (reader["name"], reader["on_page"]) == ("", False)
    assert f"\nread by no key  {reader['last_read'][:19]}Z\n" in told


@pytest.mark.parametrize("refusal", [Code.FORBIDDEN, Code.NO_ROUTE])
def test_stat_tells_the_rest_where_nobody_says_who_reads(
    overspill: Shell, service: ServiceProcess, refusal: Code
) -> None:
    with SyncClient(service.url) as client:
        entry = client.get(overspill.put(b"x"))
    with scripted_in_thread(answered(entry), problem(refusal)) as script:
        result = Shell(script.url)("stat", "--json", entry.id)

    assert (result.code, result.err) == (0, "")
    assert json.loads(result.data) == json.loads(msgspec.json.encode(entry))


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


def test_ls_lists_the_largest_of_all(own_service: ServiceProcess) -> None:
    overspill = Shell(own_service.url)
    stored = [overspill.put(b"x" * size) for size in (10, 400_000, 200)]
    largest = overspill("ls", "--largest", "--limit", "1")
    refused = overspill("ls", "--largest", "--session", "one")

    assert largest.out.split()[0] == stored[1]
    assert refused.code == 2
    assert "--largest takes no filter" in refused.err


def test_ls_of_nothing_says_what_to_do_next(overspill: Shell, own_service: ServiceProcess) -> None:
    filtered = overspill("ls", "--session", "nobody was ever here")
    empty = Shell(own_service.url)("ls")

    assert (filtered.code, filtered.data, empty.code, empty.data) == (0, b"", 0, b"")
    assert filtered.err == (
        "overspill: no capture has --session 'nobody was ever here'; `overspill ls` lists all\n"
    )
    assert "overspill run -- COMMAND" in empty.err


def test_a_pipe_gets_every_column_of_ls_whole(overspill: Shell, session: str) -> None:
    names = {"--tool": "t" * 60, "--session": session, "--call-id": "c" * 90}
    capture = overspill.put(b"x\n" * 1500, *(word for pair in names.items() for word in pair))
    entry = json.loads(overspill("stat", "--json", capture).data)
    created, expires = (entry[name][:19] + "Z" for name in ("created", "expires"))
    row = overspill("ls", "--session", session).out

    assert row.split() == [
        *(capture, created, "3000", "1500", "complete", expires),
        *("t" * 60, *session.split(), "c" * 90),
    ]


def test_put_of_known_content_says_what_stays_as_it_is(overspill: Shell, session: str) -> None:
    words = ("--session", session, "--call-id", "again", "--tool", "make", "--label", "a=1")
    first = overspill("put", "-", *words, stdin=b"the same")
    same = overspill("put", "-", *words, stdin=b"the same")
    other = overspill(
        "put", "-", *words[:4], "--tool", "ls", "--label", "b=2", "--ttl", "7d", stdin=b"the same"
    )
    shorter = overspill("put", "-", *words, "--ttl", "1h", stdin=b"the same")
    entry = json.loads(overspill("stat", "--json", first.out.strip()).data)

    assert (first.err, same) == ("", first)
    assert "--ttl changes nothing" in shorter.err
    assert (other.code, other.data) == (0, first.data)
    assert other.err == (
        f"overspill: {first.out.strip()} was stored before, and stays as it was: --label and --tool "
        "change nothing; another --call-id makes another capture, `overspill ttl` changes how long it lives\n"
    )
    assert (entry["tool"], entry["labels"]) == ("make", {"a": "1"})


def test_put_of_known_content_without_any_names_says_nothing(overspill: Shell, session: str) -> None:
    capture = overspill("put", "-", "--session", session, "--label", "a=1", stdin=b"named before")

    assert overspill("put", "-", "--session", session, stdin=b"named before") == capture


def test_ttl_moves_the_expiry(overspill: Shell) -> None:
    capture = overspill.put(b"kept longer")
    printed = datetime.fromisoformat(overspill("ttl", capture, "7d").out.strip())
    entry = json.loads(overspill("stat", "--json", capture).data)

    assert printed == datetime.fromisoformat(entry["expires"]).replace(microsecond=0)
    assert printed - datetime.fromisoformat(entry["created"]) > timedelta(days=6, hours=23)


@pytest.mark.parametrize(("given", "seconds"), [("1h30m", 5400), ("1D", 86_400), ("2w 1s", 1_209_601)])
def test_a_duration_may_have_several_parts_as_in_the_services_settings(given: str, seconds: int) -> None:
    assert parsers.seconds(given) == seconds


@pytest.mark.parametrize("wrong", ["0", "2 fortnights", "-5", "1.5h", "1h 30"])
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
    assert "one capture  at most 10,737,418,240 bytes" in told


@pytest.mark.parametrize("wrong", ["novalue", "=x", "bad name=x"])
def test_a_label_that_is_none_is_a_usage_error(overspill: Shell, wrong: str) -> None:
    assert overspill("put", "--label", wrong, stdin=b"x").code == 2


def test_a_file_that_cannot_be_read_is_told_without_a_traceback(overspill: Shell, tmp_path: Path) -> None:
    result = overspill("put", str(tmp_path / "absent"))

    assert result.code == 6
    assert result.err == f"overspill: {tmp_path / 'absent'}: No such file or directory\n"


def test_what_is_on_hold_stays_until_it_is_released(overspill: Shell, session: str) -> None:
    kept, other = [overspill.put(b"x%d" % number, "--session", session) for number in range(2)]
    held = overspill("hold", kept)
    told = overspill("stat", kept).out
    listed = overspill.terminal("ls", "--session", session)
    assert listed.ended() == 0
    refused = overspill("rm", kept)
    removed = overspill("rm", "--session", session, "--yes")
    released = overspill("hold", "--session", session, "--release")

    assert re.search("^size +2 bytes, 1 line$", told, re.MULTILINE)
    assert re.search("^expires +not before it is released$", told, re.MULTILINE)
    assert re.search(rf"{kept} .* on hold", listed.shown.decode())
    assert (held.code, refused.code) == (0, 4)
    assert "on hold" in refused.err
    assert "removed 1 capture, " in removed.err
    assert "; left on hold: 1\n" in removed.err
    assert "released 1 capture\n" in released.err
    assert overspill("hold").code == 2
    assert overspill("rm", kept).code == 0
    assert overspill("hold", other).code == 3
