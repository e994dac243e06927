"""Tools of every kind behind a guard: what they return, yield and raise."""

import asyncio
import contextlib
import inspect
import sqlite3
import threading
import traceback
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import pytest
from overspill.guard.call_context import calling
from overspill.guard.counts.tally import OutputCount
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.previews.notice_forms import is_notice
from overspill.spools.workspace import Workspace
from overspill.transfer.client import Client
from overspill.transfer.sync import SyncClient
from overspill.wire import Outcome

from tests.servers.overspill import ServiceProcess

LONG = "a line of text\n" * 10_000


@pytest.fixture
def guard() -> Guard:
    return Guard()


# --- exceptions -----------------------------------------------------------------------------------


def test_a_short_error_comes_out_as_it_was(guard: Guard) -> None:
    error = ValueError("no such file")

    @guard.wrap
    def tool() -> str:
        raise error

    with pytest.raises(ValueError) as caught:
        tool()
    assert caught.value is error
    assert guard.stats["tool", Outcome.INLINE].bytes_before == len("no such file")


async def test_a_long_error_keeps_its_type_and_says_the_notice(guard: Guard) -> None:
    @guard.wrap
    async def tool() -> str:
        raise FileNotFoundError(2, LONG, "x")

    with pytest.raises(FileNotFoundError) as caught:
        await tool()
    assert caught.value.errno == 2
    assert len(str(caught.value)) < 10_000
    assert "[overspill NOT STORED] Output of tool (failed) too long" in str(caught.value)


def test_a_long_error_brings_no_copy_of_itself_along(guard: Guard) -> None:
    @guard.wrap
    def tool() -> str:
        raise ValueError(LONG)

    with pytest.raises(ValueError) as caught:
        tool()
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert caught.traceback[-1].name == "tool"


async def test_the_traceback_is_in_the_capture(service: ServiceProcess) -> None:
    async with Client(service.url) as client:
        guarded = await Guard(client).process(failure(), tool="t")

        stored = (await client.content(str(guarded.capture))).decode()
    assert stored.startswith("Traceback (most recent call last):")
    assert stored.endswith(f"ValueError: {LONG}\n")


def failure() -> Exception:
    try:
        raise ValueError(LONG)  # noqa: TRY301  (for its traceback)
    except ValueError as error:
        return error


# --- streams --------------------------------------------------------------------------------------


async def test_a_short_stream_comes_out_chunk_by_chunk_as_it_went_in(guard: Guard) -> None:
    chunks = ["one\n", "two\n", "three"]

    @guard.wrap
    async def tool() -> AsyncIterator[str]:
        for chunk in chunks:
            yield chunk

    assert inspect.isasyncgenfunction(tool)
    passed = [chunk async for chunk in tool()]
    assert all(one is other for one, other in zip(passed, chunks, strict=True))
    assert guard.stats == {("tool", Outcome.INLINE): OutputCount(1, 13, 13)}


def test_a_long_stream_comes_out_as_one_notice(guard: Guard) -> None:
    @guard.wrap
    def tool() -> Iterator[str]:
        for _ in range(10_000):
            yield "a line of text\n"

    assert inspect.isgeneratorfunction(tool)
    (notice,) = tool()
    assert is_notice(notice)
    assert "150000 bytes, 10000 lines" in notice


async def test_a_long_stream_is_stored_whole(service: ServiceProcess) -> None:
    async def source() -> AsyncIterator[bytes]:
        for number in range(300):
            yield b"%07d\n" % number * 1_000

    async with Client(service.url) as client:
        guarded = await Guard(client).process(source(), tool="t", call_id="call_stream")

        stored = await client.content(str(guarded.capture))
    assert stored == b"".join(b"%07d\n" % number * 1_000 for number in range(300))
    assert guarded.lines == 300_000


def test_a_stream_is_read_to_its_end_by_process(guard: Guard) -> None:
    short = guard.process_sync(iter(["a", "b"]), tool="t")
    long = guard.process_sync((f"{number}\n" for number in range(5_000)), tool="t")

    assert list(short.value) == ["a", "b"]
    assert (short.outcome, short.bytes_before) == (Outcome.INLINE, 2)
    assert (long.outcome, long.lines) == (Outcome.TRUNCATED, 5_000)


def test_a_stream_of_other_things_flows_on(guard: Guard) -> None:
    rows = iter([{"id": 1}, {"id": 2}])

    assert list(guard.process_sync(rows, tool="t").value) == [{"id": 1}, {"id": 2}]


async def test_a_stream_that_fails_does_so_behind_what_came(guard: Guard) -> None:
    def source() -> Iterator[str]:
        yield "came"
        raise RuntimeError("broke")

    replayed = (await guard.process(source(), tool="t")).value
    assert next(replayed) == "came"
    with pytest.raises(RuntimeError, match="broke"):
        next(replayed)


def failing(error: Exception) -> Iterator[str]:
    yield "came"
    raise error


async def failing_async(error: Exception) -> AsyncIterator[str]:
    yield "came"
    raise error


def test_what_a_stream_raises_is_as_it_was_where_it_is_short(guard: Guard) -> None:
    error, cause = KeyError("k"), ValueError("why")
    error.__cause__ = cause

    with pytest.raises(KeyError) as caught:
        list(guard.wrap(failing)(error))
    assert caught.value is error
    assert (error.__cause__, error.__context__) == (cause, None)
    assert guard.stats["failing", Outcome.INLINE].count == 1


async def test_a_long_error_at_the_end_of_a_stream_says_the_notice(guard: Guard) -> None:
    with pytest.raises(ZeroDivisionError) as synchronous:
        list(guard.wrap(failing)(ZeroDivisionError(LONG)))
    with pytest.raises(ZeroDivisionError) as asynchronous:
        [chunk async for chunk in guard.wrap(failing_async)(ZeroDivisionError(LONG))]
    replayed = (await guard.process(failing(ZeroDivisionError(LONG)), tool="t")).value
    with pytest.raises(ZeroDivisionError) as later:
        list(replayed)

    for caught in (synchronous, asynchronous, later):
        assert str(caught.value).startswith("[overspill NOT STORED] Output of ")
        assert caught.value.__context__ is None


async def test_an_awaitable_of_any_kind_is_guarded_once_it_is_awaited(guard: Guard) -> None:
    @guard.wrap
    def tool() -> asyncio.Future[str]:
        return asyncio.get_running_loop().run_in_executor(None, lambda: LONG)

    assert is_notice(await tool())


def test_a_long_stream_whose_file_was_taken_away_is_said_to_be_lost(
    guard: Guard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def source() -> Iterator[str]:
        yield from [LONG] * 20
        for file in tmp_path.iterdir():
            file.unlink()

    guarded = guard.process_sync(source(), tool="t")
    assert str(guarded.value).startswith("[overspill NOT STORED] Output of t too long: 3000000 bytes, ")
    assert "No such file" in str(guarded.value).splitlines()[0], guarded.value
    assert "All of it is lost." in str(guarded.value)
    assert guard.stats["t", Outcome.TRUNCATED].bytes_before == 3_000_000


async def test_a_stream_that_nobody_reads_on_closes_its_source(guard: Guard) -> None:
    ended = asyncio.Event()

    @guard.wrap
    async def tool() -> AsyncIterator[dict[str, int]]:
        try:
            while True:
                yield {"a": 1}
        finally:
            ended.set()

    stream = tool()
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]

    assert ended.is_set()


async def test_a_stream_belongs_to_the_call_that_it_came_from(tmp_path: Path) -> None:
    guard = Guard(spool=Workspace(tmp_path), session="mine")
    with calling("call_9", "other"):
        stream = await guard.process((f"line {number}\n" for number in range(20_000)), tool="t")
        text = await guard.process("".join(f"line {number}\n" for number in range(20_000)), tool="t")

    assert stream.capture == text.capture


async def test_a_stream_passes_whole_where_all_does() -> None:
    guard = Guard()
    with guard.bypass():
        chunks = (await guard.process((LONG for _ in range(2)), tool="t")).value

    assert list(chunks) == [LONG, LONG]


async def test_a_stream_that_passes_whole_is_counted_as_a_text_is() -> None:
    async def chunks() -> AsyncIterator[str]:
        yield LONG

    guard = Guard()
    with guard.bypass():
        streams = [
            guard.process_sync(iter([LONG]), tool="t").value,
            (await guard.process(chunks(), tool="a")).value,
        ]
    list(streams[0])
    [chunk async for chunk in streams[1]]

    counts = [guard.stats[tool, Outcome.INLINE] for tool in ("t", "a")]
    assert [(each.count, each.bytes_before) for each in counts] == [(1, len(LONG))] * 2


async def test_a_stream_that_nobody_waits_for_any_more_counts_for_nothing(guard: Guard) -> None:
    entered, release, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> Iterator[str]:
        try:
            yield "early"
            entered.set()
            release.wait(60)
            yield "late"
        finally:
            ended.set()

    waiting = asyncio.create_task(guard.process(slow(), tool="t"))
    await asyncio.to_thread(entered.wait, 60)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    assert await asyncio.to_thread(ended.wait, 60)
    await asyncio.sleep(0.05)
    assert guard.stats == {}


async def test_a_slow_stream_leaves_the_guard_free_for_others() -> None:
    guard, release = Guard(), threading.Event()

    def slow() -> Iterator[str]:
        release.wait(60)
        yield "late"

    waiting = [asyncio.create_task(guard.process(slow(), tool="t")) for _ in range(8)]
    await asyncio.sleep(0)
    assert (await guard.process(LONG, tool="t")).outcome is Outcome.TRUNCATED
    release.set()
    assert [list((await task).value) for task in waiting] == [["late"]] * 8


def test_a_cursor_is_no_stream() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        cursor = database.execute("select 1")

        assert Guard().process_sync(cursor, tool="t").value is cursor


# --- turns ----------------------------------------------------------------------------------------


async def test_parallel_results_share_the_budget_of_their_turn_and_the_largest_goes() -> None:
    guard = Guard()
    sizes = [9_000, 40_000, 20_000, 3_000]

    @guard.wrap
    async def read(size: int) -> str:
        await asyncio.sleep(0)
        return "x" * size

    async with guard.turn(40_000):
        results = await asyncio.gather(*(read(size) for size in sizes))

    assert [is_notice(result) for result in results] == [False, True, False, False]
    assert "too long beside the other results of this turn" in results[1]
    assert sum(map(len, results)) <= 40_000


async def test_results_that_are_processed_at_once_share_it_too() -> None:
    guard = Guard()
    async with guard.turn(30_000):
        results = await asyncio.gather(
            *(guard.process("x" * size, tool="t", call_id=str(size)) for size in (12_000, 25_000, 3_000))
        )

    assert [each.outcome for each in results] == [Outcome.INLINE, Outcome.TRUNCATED, Outcome.INLINE]


def test_threads_share_it_too() -> None:
    guard = Guard()

    @guard.wrap
    def read(size: int) -> str:
        return "x" * size

    with guard.turn(40_000), ThreadPoolExecutor() as pool:
        jobs = [pool.submit(copy_context().run, read, size) for size in (9_000, 40_000, 20_000)]
        results = [job.result() for job in jobs]

    assert [is_notice(result) for result in results] == [False, True, False]


async def test_after_its_turn_a_tool_has_all_its_room_again() -> None:
    guard = Guard()
    async with guard.turn(100):
        pass

    assert (await guard.process("x" * 40_000, tool="t")).outcome is Outcome.INLINE


async def test_a_tool_within_a_tool_takes_no_part() -> None:
    guard = Guard()

    @guard.wrap
    async def inner() -> str:
        return "x" * 40_000

    @guard.wrap
    async def outer() -> str:
        return (await inner())[:10]

    async with guard.turn(1_000):
        assert await outer() == "x" * 10


# --- repeats --------------------------------------------------------------------------------------


def test_an_output_like_an_earlier_one_names_that_one(service: ServiceProcess) -> None:
    with SyncClient(service.url, session="repeats") as client:
        guard = Guard(client)
        first = guard.process_sync(LONG, tool="t", call_id="call_1")
        again = guard.process_sync(LONG, tool="t", call_id="call_1")
        second = guard.process_sync(LONG, tool="t", call_id="call_2")

    assert first.value.splitlines()[3:] == again.value.splitlines()[3:]
    assert str(first.capture) in second.value
    assert second.capture != first.capture


def test_it_need_not_be_named(service: ServiceProcess) -> None:
    with SyncClient(service.url, session="repeats-off") as client:
        guard = Guard(client, Policy(identical=False))
        first = guard.process_sync(LONG, tool="t", call_id="call_1")
        second = guard.process_sync(LONG, tool="t", call_id="call_2")

    assert str(first.capture) not in second.value


@pytest.mark.parametrize("message", ["short", "long " * 20_000])
def test_a_traceback_names_the_tools_own_frames_and_no_call_of_the_guard(message: str) -> None:
    def tool() -> None:
        raise ValueError(message)

    with pytest.raises(ValueError, match=r".") as raised:
        Guard().wrap(tool)()

    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert (names[-1], names.count("run")) == ("tool", 1)
