"""`overspill spool`, and the reading commands on captures that wait in the spool."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec
import pytest
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool

from tests.client.shell import Shell
from tests.client.spooling import spilled
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

NOWHERE: Final = "http://127.0.0.1:1"
TEXT: Final = "".join(
    f"{number} größe{' error' if number % 700 == 0 else ''}\n" for number in range(1, 2_501)
)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def partition(spool: Spool) -> Partition:
    return spool.partition(NOWHERE, "")


@pytest.fixture
def offline(spool: Spool) -> Shell:
    """A shell whose service is not there."""
    return Shell(NOWHERE, OVERSPILL_SPOOL=str(spool.path))


def at(service: ServiceProcess, spool: Spool) -> Shell:
    return Shell(service.url, OVERSPILL_SPOOL=str(spool.path))


def told_by(*words: str) -> bytes:
    return subprocess.run(words, input=TEXT.encode(), capture_output=True, check=False).stdout


@pytest.mark.parametrize(
    ("asked", "oracle"),
    [
        (["cat"], ["cat"]),
        (["head", "-n", "2000"], ["head", "-n", "2000"]),
        (["tail", "-n", "2000"], ["tail", "-n", "2000"]),
        (["lines", "-", "3:1500"], ["sed", "-n", "3,1500p"]),
        (["grep", "-C", "1", "-", "^7.*error$"], ["grep", "-n", "-C", "1", "^7.*error$"]),
        (["grep", "-c", "-", "größe"], ["grep", "-c", "größe"]),
        (["grep", "-F", "-m", "1000", "-", "9 g"], ["grep", "-n", "-F", "9 g"]),
    ],
)
def test_the_reading_commands_print_what_waits_as_their_namesakes_do(
    offline: Shell, partition: Partition, asked: list[str], oracle: list[str]
) -> None:
    kept = partition.keep(spilled(TEXT), "down")
    words = [kept.id if word == "-" else word for word in asked]
    result = offline(*words, *([] if kept.id in words else [kept.id]))

    assert (result.code, result.data) == (0, told_by(*oracle))
    assert result.err == f"overspill: {kept.id} is on this machine only and is not uploaded yet\n"


def test_stat_and_summary_tell_of_what_waits(offline: Shell, partition: Partition) -> None:
    kept = partition.keep(spilled(TEXT, "call_3", session="mine", tool="build"), "down")
    entry = json.loads(offline("stat", "--json", kept.id).data)
    summary = offline("summary", "call:call_3", "--session", "mine").out

    assert (entry["id"], entry["size"], entry["lines"], entry["sha256"]) == (
        kept.id,
        len(TEXT.encode()),
        2_500,
        kept.sha256,
    )
    assert (entry["session"], entry["tool"], entry["kind"]) == ("mine", "build", "text")
    assert "2,500 lines, 0 empty" in summary
    assert "errors        3 (lines 700, 1,400, 2,100)" in summary


def test_ls_lists_what_waits_before_what_the_service_has(service: ServiceProcess, spool: Spool) -> None:
    shell = at(service, spool)
    stored = shell.put(b"stored\n", "--session", "cli-spool-ls")
    kept = spool.partition(service.url, "").keep(spilled(TEXT, session="cli-spool-ls"), "down")
    spool.partition(service.url, "").keep(spilled(TEXT, session="another"), "down")
    rows = [line.split() for line in shell("ls", "--session", "cli-spool-ls").out.splitlines()]

    assert [(row[0], row[4]) for row in rows] == [(kept.id, "spooled"), (stored, "complete")]


def test_ls_without_a_service_lists_what_waits_and_says_what_is_wrong(
    offline: Shell, partition: Partition
) -> None:
    kept = partition.keep(spilled(TEXT), "down")
    result = offline("ls")

    assert result.out.startswith(kept.id)
    assert (result.code, "cannot be reached: connection refused" in result.err) == (5, True)


def test_spool_list_says_since_when_and_why(offline: Shell, partition: Partition) -> None:
    kept = partition.keep(spilled(TEXT, tool="build", session="s"), "cannot be \x1b[31mreached")
    result = offline("spool", "list")

    assert result.out.split(maxsplit=7) == [
        kept.id,
        f"{len(TEXT.encode())}",
        "2500",
        f"{kept.created:%Y-%m-%dT%H:%M:%SZ}",
        f"{kept.expires:%Y-%m-%dT%H:%M:%SZ}",
        "build",
        "s",
        "cannot be ␛[31mreached\n",
    ]


def test_spool_list_has_others_captures_only_when_asked_for_them(offline: Shell, spool: Spool) -> None:
    theirs = spool.partition(NOWHERE, "their key").keep(spilled(TEXT), "down")

    assert offline("spool", "list").data == b""
    assert offline("spool", "list", "--all").capture == theirs.id
    assert json.loads(offline("spool", "list", "--all", "--json").data)[0]["id"] == theirs.id


def test_spool_flush_uploads_and_says_how_many(service: ServiceProcess, spool: Spool) -> None:
    shell = at(service, spool)
    kept = spool.partition(service.url, "").keep(spilled(TEXT, session="cli-flush"), "down")
    result = shell("spool", "flush")

    assert (result.code, result.data) == (0, b"")
    assert result.err == f"overspill: uploaded 1 capture, {kept.size:,} bytes\n"
    assert shell("cat", kept.id) == (0, TEXT.encode(), "")


def test_spool_flush_without_a_service_keeps_everything_and_says_what_is_wrong(
    offline: Shell, partition: Partition
) -> None:
    partition.keep(spilled(TEXT), "down")
    result = offline("spool", "flush")

    assert result.code == 5
    assert "uploaded 0 captures, 0 bytes; 1 wait still" in result.err
    assert len(partition.entries()) == 1


def test_spool_flush_tries_again_what_was_refused_once(service: ServiceProcess, spool: Spool) -> None:
    partition = spool.partition(service.url, "")
    kept = partition.keep(spilled(TEXT, session="cli-again"), "too large")
    partition.amend(msgspec.structs.replace(kept, refused="too large"))

    assert at(service, spool)("spool", "flush").code == 0
    assert partition.entries() == []


def test_spool_drop_removes_one_and_a_later_read_says_so(offline: Shell, partition: Partition) -> None:
    kept = partition.keep(spilled(TEXT, "one"), "down")
    other = partition.keep(spilled(TEXT, "other"), "down")
    dropped = offline("spool", "drop", kept.id)
    read = offline("head", kept.id)

    assert (dropped.code, dropped.err) == (0, "overspill: dropped 1 capture\n")
    assert [entry.id for entry in partition.entries()] == [other.id]
    assert read.code == 3
    assert (
        "was dropped from the local spool before it could be uploaded, because it was dropped by hand"
        in read.err
    )


def test_spool_drop_names_what_is_not_there(offline: Shell, partition: Partition) -> None:
    partition.keep(spilled(TEXT), "down")
    result = offline("spool", "drop", "call:never")

    assert result.code == 3
    assert "not in the spool: call:never" in result.err


def test_spool_drop_all_asks_first(offline: Shell, partition: Partition) -> None:
    partition.keep(spilled(TEXT), "down")
    asked = offline("spool", "drop", "--all")
    kept = len(partition.entries())
    sure = offline("spool", "drop", "--all", "--yes")

    assert (asked.code, kept, sure.code, partition.entries()) == (2, 1, 0, [])


@pytest.fixture
def of_two_sessions(partition: Partition) -> dict[str, str]:
    """The captures of one call id in two sessions, the later last."""
    return {
        session: partition.keep(spilled(f"{TEXT}{session}", "c0", session=session), "down").id
        for session in ("s1", "s2")
    }


@pytest.mark.parametrize(
    ("words", "variables"),
    [([], {"OVERSPILL_SESSION": "s1"}), (["--session", "s1"], {"OVERSPILL_SESSION": "s2"})],
    ids=["of the environment", "of the command line"],
)
def test_spool_drop_takes_a_calls_capture_of_the_session(
    spool: Spool,
    partition: Partition,
    of_two_sessions: dict[str, str],
    words: list[str],
    variables: dict[str, str],
) -> None:
    shell = Shell(NOWHERE, OVERSPILL_SPOOL=str(spool.path), **variables)

    assert shell("spool", "drop", "call:c0", *words).code == 0
    assert [entry.id for entry in partition.entries()] == [of_two_sessions["s2"]]


def test_spool_drop_of_a_call_in_several_sessions_drops_nothing_and_names_them(
    offline: Shell, partition: Partition, of_two_sessions: dict[str, str]
) -> None:
    other = partition.keep(spilled(TEXT, "other"), "down")
    result = offline("spool", "drop", other.id, "call:c0")

    assert result.code == 2
    assert all(f"{capture} ({session})" in result.err for session, capture in of_two_sessions.items())
    assert len(partition.entries()) == 3


def test_spool_drop_of_a_call_in_one_session_drops_the_newest(offline: Shell, partition: Partition) -> None:
    first = partition.keep(spilled(TEXT, "c0"), "down")
    partition.keep(spilled(f"{TEXT}again", "c0"), "down")

    assert offline("spool", "drop", "call:c0").code == 0
    assert [entry.id for entry in partition.entries()] == [first.id]


def test_an_empty_call_id_is_not_that_of_captures_without_one(offline: Shell, partition: Partition) -> None:
    partition.keep(spilled(TEXT, ""), "down")

    for command in ("spool drop call:", "cat call:", "stat call:", "grep call: x"):
        result = offline(*command.split())
        assert (result.code, "names no tool call" in result.err) == (2, True)
    assert len(partition.entries()) == 1


def test_spool_drop_all_of_an_empty_session_drops_nothing(offline: Shell, partition: Partition) -> None:
    partition.keep(spilled(TEXT, ""), "down")

    assert offline("spool", "drop", "--all", "--session", "", "--yes").code == 2
    assert len(partition.entries()) == 1


def test_spool_drop_all_of_a_session_leaves_the_others(
    offline: Shell, partition: Partition, of_two_sessions: dict[str, str]
) -> None:
    assert offline("spool", "drop", "--all", "--session", "s2", "--yes").code == 0
    assert [entry.id for entry in partition.entries()] == [of_two_sessions["s1"]]


@pytest.mark.parametrize("ref", ["nonsense", "call:c0", "cap_aaaaaaaaaaaaaaaaaaaa"])
def test_spool_drop_names_what_is_not_there_where_nothing_ever_was(offline: Shell, ref: str) -> None:
    result = offline("spool", "drop", ref)

    assert result.code == 3
    assert f"not in the spool: {ref}\n" in result.err


@pytest.mark.parametrize("words", [("list",), ("flush",), ("drop", "call:c0")], ids=lambda words: words[0])
def test_a_spool_that_cannot_be_is_no_empty_one(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    result = Shell(NOWHERE, OVERSPILL_SPOOL=str(tmp_path / "file" / "spool"))("spool", *words)

    assert (result.code, result.data) == (6, b"")
    assert f"there can be no local spool {tmp_path}/file/spool, because" in result.err


def test_a_spool_that_is_not_there_yet_is_empty_and_is_not_made(tmp_path: Path) -> None:
    result = Shell(NOWHERE, OVERSPILL_SPOOL=str(tmp_path / "deep" / "spool"))("spool", "list")

    assert (result.code, result.data) == (0, b"")
    assert "nothing waits on this machine" in result.err
    assert list(tmp_path.iterdir()) == []


def test_without_a_spool_the_commands_say_so(tmp_path: Path) -> None:
    result = Shell(NOWHERE, OVERSPILL_SPOOL="off")("spool", "list")

    assert (result.code, result.err) == (2, "overspill: there is no local spool: OVERSPILL_SPOOL is off\n")


def test_a_spool_that_is_not_safe_is_named_and_nothing_is_read_from_it(
    offline: Shell, partition: Partition
) -> None:
    partition.keep(spilled(TEXT), "down")
    partition.spool.path.chmod(0o777)
    result = offline("spool", "list")

    assert (result.code, result.data) == (6, b"")
    assert "other users can write to the local spool" in result.err


def test_run_spools_a_long_output_and_its_handle_is_read_at_once(offline: Shell) -> None:
    result = offline("run", "--", "sh", "-c", "seq 1 30000; exit 3")

    assert result.code == 3
    assert "; the service could not take it" in result.out
    assert result.err.startswith("overspill: the output is on this machine only, until it is uploaded: ")
    assert result.err.count("\n") == 1
    assert offline("tail", "-n", "1", result.capture).out == "30000\n"


def test_what_has_expired_is_listed_no_more(offline: Shell, partition: Partition) -> None:
    kept = partition.keep(spilled(TEXT, ttl=1), "down")

    assert until(lambda: datetime.now(UTC) > kept.expires)
    assert offline("spool", "list").data == b""
