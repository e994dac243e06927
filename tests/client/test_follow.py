"""Following a live capture, and waiting for what it says: through the client, and on the command line."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Client, SyncClient
from overspill.cli.following import FollowedTerminal, FollowedText
from overspill.errors import NotFound, Unreachable
from overspill.execution.backoff import Backoff
from overspill.transfer.connections import MAX_CALLS

from tests.client.shell import SECONDS, Shell, command
from tests.e2e.programs import program
from tests.servers.redis import wait_until
from tests.web.test_metrics import samples

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


async def test_a_follower_sees_what_is_written_as_it_comes(service: ServiceProcess) -> None:
    async with Client(service.url) as client, client.live() as out:
        await out.write("one\n")
        async with client.follow(out.id) as events:
            first = await anext(events)
            await out.write("two\n")
            second = await anext(events)
            await out.complete(exit_code=2)
            rest = [each async for each in events]

        assert (first.content, second.content, second.offset, rest) == ("one\n", "two\n", 4, [])
        assert events.end is not None
        assert (events.end.state, events.end.size, events.end.exit_code) == ("complete", 8, 2)


async def test_following_begins_where_it_is_asked_to(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        entry = await client.put("one\ntwo\nthree\n")
        last = [each.content async for each in client.follow(entry.id, lines=1)]
        rest = [each.content async for each in client.follow(entry.id, offset=4)]

        assert ("".join(last), "".join(rest)) == ("three\n", "two\nthree\n")
        with pytest.raises(NotFound):
            await anext(client.follow("cap_" + "a" * 20))


def test_following_goes_on_after_the_service_was_restarted(own_service: ServiceProcess) -> None:
    with SyncClient(own_service.url) as client, client.live() as out:
        out.write("before\n")
        with client.follow(out.id) as events:
            found = next(events).content
            out.flush()
            own_service.restart()
            out.write("after\n")
            while not found.endswith("after\n"):
                found += next(events).content

        assert found == "before\nafter\n"


async def test_following_goes_on_after_more_attempts_than_those_of_a_request(
    own_service: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Backoff, "pause", lambda *_: 0.01)
    async with Client(own_service.url, retries=1) as client, client.live() as out:
        await out.write("before\n")
        async with client.follow(out.id) as events:
            found = (await anext(events)).content
            await out.flush()
            own_service.kill()
            following = asyncio.ensure_future(anext(events))
            while not following.done() and events._failed < 5:  # noqa: ASYNC110  (nothing sets an event)
                await asyncio.sleep(0)
            await asyncio.to_thread(own_service.start)
            await out.write("after\n")
            found += (await following).content

    assert found == "before\nafter\n"


async def test_waiting_goes_on_after_more_attempts_than_those_of_a_request(
    own_service: ServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0

    def pause(_: Backoff, failures: int) -> float:
        nonlocal most
        most = max(most, failures)
        return 0.01

    async with Client(own_service.url, retries=1) as client, client.live() as out:
        await out.write("before\n")
        await out.flush()
        waiting = asyncio.ensure_future(client.wait(out.id, "after", timeout=60))
        await asyncio.to_thread(wait_until, lambda: waits(own_service) == 1, "the wait")
        monkeypatch.setattr(Backoff, "pause", pause)
        own_service.kill()
        while not waiting.done() and most < 5:  # noqa: ASYNC110  (nothing sets an event)
            await asyncio.sleep(0)
        await asyncio.to_thread(own_service.start)
        await out.write("after\n")
        found = await waiting

    assert (found.reason, [match.line for match in found.matches]) == ("pattern", ["after"])


def waits(service: ServiceProcess) -> float:
    with urlopen(f"{service.url}/metrics", timeout=SECONDS) as answer:
        return samples(answer.read().decode())["overspill_waits",]


async def test_a_wait_for_a_service_that_is_not_there_ends_after_the_attempts_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Backoff, "pause", lambda *_: 0.0)
    async with Client("http://127.0.0.1:1", retries=2) as client:
        with pytest.raises(Unreachable):
            await client.wait("cap_aaaaaaaaaaaaaaaaaaaa", timeout=600)


async def test_waiting_returns_the_line_that_it_waits_for(service: ServiceProcess) -> None:
    async with Client(service.url) as client, client.live() as out:
        await out.write("starting\n")
        await out.flush()
        waiting = asyncio.create_task(client.wait(out.id, "ready", timeout=SECONDS))
        await out.write("on port 80\nready\n")
        waited = await waiting
        again = await client.wait(out.id, lines=1, timeout=0, cursor=waited.cursor)

        assert (waited.reason, waited.content.splitlines()[-1]) == ("pattern", "ready")
        assert (again.reason, again.content) == ("timeout", "")


async def test_waits_leave_room_for_other_requests(service: ServiceProcess) -> None:
    async with Client(service.url) as client, client.live() as out:
        await out.write("one\n")
        await out.flush()
        waits = [asyncio.create_task(client.wait(out.id, "never", timeout=600)) for _ in range(MAX_CALLS + 1)]
        entry = await asyncio.create_task(client.get(out.id))
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    assert entry.size == 4


@pytest.mark.parametrize("words", [["tail"], ["lines", "1:"], ["summary"]])
def test_who_reads_the_end_of_a_partial_output_is_told(
    overspill: Shell, service: ServiceProcess, words: list[str]
) -> None:
    with SyncClient(service.url) as client, client.live() as out:
        out.write("half a li")
        out.abort()
    result = overspill(words[0], out.id, *words[1:])

    assert result.code == 0
    assert "The output ends here, at byte 9: its producer did not say that this is all of it." in result.err


def test_tail_f_prints_what_comes_and_how_it_ended(overspill: Shell, service: ServiceProcess) -> None:
    with SyncClient(service.url) as client, client.live() as out:
        out.write("first\nlast \x1b[31mred\x1b[0m \x1b]0;title\x07\n")
        out.flush()
        following = overspill.start(
            "tail", "-f", "-n", "1", out.id, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert following.stdout is not None
        assert following.stdout.readline() == b"last red \n"
        out.write("more\n")
        assert following.stdout.readline() == b"more\n"
        out.complete(exit_code=7)
        rest, told = following.communicate(timeout=SECONDS)

    assert (rest, following.returncode) == (b"", 0)
    assert told.decode() == f"overspill: {out.id} has ended: complete, exit code 7\n"


def test_tail_f_of_no_lines_prints_what_comes_alone(overspill: Shell, service: ServiceProcess) -> None:
    with SyncClient(service.url) as client, client.live() as out:
        out.write("before\n")
    result = overspill("tail", "-f", "-n", "0", out.id)

    assert (result.out, result.code) == ("", 0)
    assert overspill("tail", "-f", "-n", "+0", out.id).out == "before\n"
    assert overspill("tail", "-n", "0", out.id).code == 2


@given(st.lists(st.sampled_from(["a", "\r", "\n", "\x1b[31m", "\x1b]0;t\x07", "é", "\x07"])), st.data())
def test_followed_text_is_the_same_in_any_pieces(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces, whole = FollowedText(), FollowedText().feed(text, is_last=True)
    shown = "".join(pieces.feed(text[first:last]) for first, last in pairwise([0, *cuts, len(text)]))

    assert shown + pieces.feed("", is_last=True) == whole
    assert "\x1b" not in whole


TYPED: Final = [
    "$ ",
    "echo abcdef",
    "\b\b\b",
    "Xdef\b\b\b",
    "\r\nabcXdef\r\n",
    "1%\r",
    "2%",
    "\r3",
    "%\n",
    "name? ",
]
"""What a shell writes while a command is typed, edited and run."""


@pytest.mark.parametrize("is_drawn", [False, True])
def test_a_followed_terminal_shows_each_line_as_it_was_left(*, is_drawn: bool) -> None:
    terminal = FollowedTerminal(80, is_drawn=is_drawn)
    shown = "".join(terminal.feed(each, is_last=each == TYPED[-1]) for each in TYPED)
    left = [line.rpartition("\r\x1b[K")[2] for line in shown.split("\n")]

    assert left == ["$ echo abcXdef", "abcXdef", "3%", "name? "]
    assert ("\x1b" in shown) == is_drawn


def test_a_line_of_a_followed_terminal_is_drawn_while_it_is_written(
    overspill: Shell, service: ServiceProcess
) -> None:
    labels = {"overspill.terminal": "t", "overspill.terminal_size": "80x24"}
    with SyncClient(service.url) as client, client.live(labels=labels) as out:
        out.write("$ echo abc\b\bX")
        out.flush()
        terminal = overspill.terminal("tail", "-f", out.id)
        terminal.wait_for(b"$ echo aXc")
        out.write("d\nname? ")
        out.flush()
        terminal.wait_for(b"name? ")
        out.complete()
        terminal.ended()

    assert b"\r\x1b[K$ echo aXd\r\nname? " in terminal.shown


def test_a_followed_terminal_without_an_end_of_line_is_not_kept() -> None:
    terminal = FollowedTerminal(80, is_drawn=False)
    shown = [terminal.feed("x" * 10_000) for _ in range(20)]

    assert len("".join(shown)) > 100_000


def test_put_live_prints_the_handle_before_its_input_ends(overspill: Shell, service: ServiceProcess) -> None:
    storing = overspill.start(
        *("put", "--live", "--name", "pane", "--session", "put-live", "--label", "a=b"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert storing.stdin is not None
    assert storing.stdout is not None
    handle = storing.stdout.readline().decode().strip()
    storing.stdin.write(b"so far\n")
    storing.stdin.flush()
    with SyncClient(service.url) as client:
        waited = client.wait(handle, lines=1, timeout=SECONDS)
        listed = overspill("terminals", "--json", "--session", "put-live").out
        storing.communicate(timeout=SECONDS)

        assert waited.content == "so far\n"
        assert [each["labels"]["overspill.terminal"] for each in json.loads(listed)["captures"]] == ["pane"]
        assert client.get(handle).state == "complete"
        assert client.get(handle).labels["a"] == "b"


def test_tmux_pipes_a_pane_into_a_live_capture(
    overspill: Shell, service: ServiceProcess, tmp_path: Path
) -> None:
    tmux = [program("tmux"), "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]
    piped = shlex.join(command("put", "--live", "--name", "tmux", "--session", "tmux"))
    environment = overspill.environment
    subprocess.run([*tmux, "new-session", "-d", "sh"], check=True, env=environment, timeout=SECONDS)
    try:
        with SyncClient(service.url) as client:
            subprocess.run([*tmux, "pipe-pane", piped], check=True, env=environment, timeout=SECONDS)
            wait_until(lambda: client.list(session="tmux").captures, "the live capture")
            found = client.list(session="tmux").captures
            subprocess.run([*tmux, "send-keys", "echo $((6 * 7))", "Enter"], check=True, timeout=SECONDS)
            assert client.wait(found[0].id, "^42", timeout=SECONDS).reason == "pattern"
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, timeout=SECONDS)


def test_terminals_says_that_there_are_none(overspill: Shell) -> None:
    assert "no terminal is live" in overspill("terminals", "--session", "nobody").err


def test_a_pipe_gets_exact_times_of_terminals(overspill: Shell, service: ServiceProcess) -> None:
    with SyncClient(service.url, session="exact") as client:
        labels = {"overspill.terminal": "build", "overspill.command": "make all"}
        with client.live(labels=labels) as out:
            out.write("x\n")
            out.flush()
            row = overspill("terminals", "--session", "exact").out.split()
        ended = overspill("terminals", "--all", "--session", "exact").out.split()

    assert (row[0], row[1], row[2], row[5:]) == (out.id, "build", "live", ["2", "exact", "make", "all"])
    assert ended[2] == "complete"


def test_a_follower_that_leaves_ends_its_iteration(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client, client.live() as out:
        out.write("x\n")
        events = client.follow(out.id)
        next(events)
        closing = threading.Thread(target=events.close)
        closing.start()
        closing.join(SECONDS)

        assert list(events) == []
