"""`--since`: the reading commands print only what came after a time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pytest
from overspill import SyncClient
from overspill.spools.spool import Spool

from tests.client.shell import Shell
from tests.client.spooling import spilled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

NOWHERE: Final = "http://127.0.0.1:1"
READS: Final = (["head"], ["tail"], ["tail", "-n", "+1"], ["lines", "-", "1:"], ["grep", "-N", "-", "."])


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


@pytest.fixture(scope="module")
def capture(overspill: Shell) -> str:
    return overspill.put(b"one\ntwo\n", "--session", "cli-since")


def words_of(read: list[str], capture: str) -> list[str]:
    return [capture if word == "-" else word for word in read] + ([] if "-" in read else [capture])


@pytest.mark.parametrize("read", READS, ids=" ".join)
def test_only_what_came_since_is_printed(
    overspill: Shell, service: ServiceProcess, capture: str, read: list[str]
) -> None:
    with SyncClient(service.url) as client:
        created = client.get(capture).created
    words = words_of(read, capture)
    before = overspill(*words, "--since", (created - timedelta(seconds=1)).isoformat())
    after = overspill(*words, "--since", (created + timedelta(seconds=1)).isoformat())

    assert before == (0, b"one\ntwo\n", "")
    assert (after.code, after.data) == (int("grep" in read), b"")
    assert "grep" in read or after.err.startswith("overspill: no such line came after 20")


def test_a_time_ago_is_as_good_and_a_wrong_one_is_told(overspill: Shell, capture: str) -> None:
    wrong = overspill("head", capture, "--since", "yesterday")

    assert overspill("head", capture, "--since", "1h").out == "one\ntwo\n"
    assert (wrong.code, wrong.data) == (2, b"")
    assert '\'yesterday\' is not a time: use "30s", "5m", or ISO 8601' in wrong.err


def test_a_search_goes_on_since_the_very_same_time(overspill: Shell, capture: str) -> None:
    first = overspill("grep", capture, "o", "-m", "1", "--since", "1h")
    again = overspill.script(first.err.rpartition("go on: ")[2])

    assert (first.out, again.out) == ("1:one\n", "2:two\n")
    assert "--since 20" in first.err


@pytest.mark.parametrize("words", [["grep", "-", "o", "--from-end"], ["tail", "-f"]], ids=" ".join)
def test_what_does_not_go_with_a_time_is_told(overspill: Shell, capture: str, words: list[str]) -> None:
    result = overspill(*words_of(words, capture), "--since", "1h")

    assert (result.code, result.data) == (2, b"")
    assert "--since" in result.err


@pytest.mark.parametrize("read", READS, ids=" ".join)
def test_what_waits_on_this_machine_has_no_times(tmp_path: Path, read: list[str]) -> None:
    spool = Spool(tmp_path / "spool")
    kept = spool.partition(NOWHERE, "").keep(spilled("one\n"), "down")
    offline = Shell(NOWHERE, OVERSPILL_SPOOL=str(spool.path))
    words = words_of(read, kept.id)
    result = offline(*words, "--since", "1h")

    assert (result.code, result.data) == (2, b"")
    assert "--since cannot be answered: the capture waits on this machine" in result.err
    assert offline(*words).data == b"one\n"
