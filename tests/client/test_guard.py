"""The guard without a service, and against services that fail. See test_guard_service for the real one."""

import asyncio
import contextlib
import hashlib
import inspect
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.guard.call_context import calling
from overspill.guard.counts.tally import OutputCount
from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.previews.notice_forms import is_notice
from overspill.transfer.client import Client
from overspill.transfer.sync import SyncClient
from overspill.wire import Outcome, capture_id

LONG = "a line of text\n" * 10_000
SMALL = [
    "",
    "x" * 1_000,
    "漢" * 16_666,
    "\ud800\x00\r\n",
    None,
    7,
    b"bytes",
    {"a": [1]},
    ["a", "b"],
    [{"type": "text", "text": "a"}, {"type": "image", "data": "x" * 1_000_000}],
    {"content": [{"type": "text", "text": "a"}], "structuredContent": {"a": 1}, "isError": True},
    object(),
]


@contextlib.asynccontextmanager
async def failing_server() -> AsyncIterator[str]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()


@pytest.fixture
def silence() -> Iterator[str]:
    """The URL of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def nowhere() -> Iterator[str]:
    """The URL of a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


# --- inline ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", SMALL, ids=lambda result: type(result).__name__)
async def test_what_fits_comes_back_as_the_same_object(result: Any) -> None:
    guarded = await Guard().process(result, tool="t")

    assert guarded.value is result
    assert (guarded.outcome, guarded.capture, guarded.reason) == (Outcome.INLINE, None, None)


@pytest.mark.parametrize("result", SMALL, ids=lambda result: type(result).__name__)
def test_without_an_event_loop_what_fits_comes_back_as_the_same_object_too(result: Any) -> None:
    assert Guard().process_sync(result, tool="t").value is result


@pytest.mark.parametrize(("size", "outcome"), [(20_000, Outcome.INLINE), (20_001, Outcome.TRUNCATED)])
async def test_only_strictly_more_than_the_tools_limit_spills(size: int, outcome: Outcome) -> None:
    assert (await Guard().process("x" * size, tool="grep_search")).outcome is outcome


@pytest.mark.parametrize("tool", ["inspect_output", "mine"])
async def test_tools_that_read_captures_are_never_spilled(tool: str) -> None:
    policy = Policy(max_bytes=100, exempt=Policy().exempt | {"mine"})

    answer = LONG if tool == "mine" else "x" * 40_000

    assert (await Guard(policy=policy).process(answer, tool=tool)).value is answer


async def test_a_notice_is_never_spilled_again() -> None:
    guard = Guard(policy=Policy(max_bytes=100))
    first = (await guard.process(LONG, tool="t")).value

    assert (await guard.process(first, tool="t")).value is first


async def test_code_callers_get_everything() -> None:
    guard = Guard()
    with guard.bypass():
        assert (await guard.process(LONG, tool="t")).value is LONG
    assert (await guard.process(LONG, tool="t")).value is not LONG


async def test_a_small_output_whose_methods_raise_passes_as_it_is() -> None:
    class Broken(dict[str, int]):
        def get(self, *_: Any) -> Any:
            raise RuntimeError("no")

    result = Broken(a=1)
    guarded = await Guard().process(result, tool="t")

    assert guarded.value is result
    assert guarded.outcome is Outcome.INLINE


# --- truncated ------------------------------------------------------------------------------------


def test_text_whose_methods_raise_is_guarded_as_text() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Output(str):
        __slots__ = ()

        def isascii(self) -> bool:
            raise Unspeakable

    guarded = Guard().process_sync(Output(LONG), tool="t")

    assert guarded.value == Guard().process_sync(LONG, tool="t").value


def test_a_tool_whose_name_is_no_name_is_guarded_too() -> None:
    unhashable = cast("Any", [])

    assert Guard().process_sync(LONG, tool=unhashable).outcome is Outcome.TRUNCATED


async def test_without_a_service_the_output_is_cut_and_the_model_is_told() -> None:
    guarded = await Guard(session="s").process(LONG, tool="t", call_id="call_1")

    assert guarded.outcome is Outcome.TRUNCATED
    assert guarded.reason == "no Overspill service is configured"
    assert guarded.capture is None
    assert guarded.value.startswith("[overspill NOT STORED] Output of t (call_1) too long")
    assert (guarded.bytes_before, guarded.bytes_after, guarded.lines) == (
        150_000,
        len(guarded.value.encode()),
        10_000,
    )


async def test_with_and_without_an_event_loop_the_notice_is_the_same() -> None:
    guard = Guard(session="s")
    asynchronous = await guard.process(LONG, tool="t", call_id="call_1")

    assert guard.process_sync(LONG, tool="t", call_id="call_1") == asynchronous


@pytest.mark.usefixtures("no_spool")
async def test_a_service_that_is_not_there_is_named_in_the_notice(nowhere: str) -> None:
    async with Client(nowhere, retries=0) as client:
        guarded = await Guard(client, Policy(wait=5)).process(LONG, tool="t")

    assert guarded.outcome is Outcome.TRUNCATED
    assert nowhere in str(guarded.reason)
    assert str(guarded.reason) in guarded.value


def test_without_an_event_loop_a_service_that_is_not_there_is_named_too(nowhere: str) -> None:
    with SyncClient(nowhere, retries=0) as client:
        guarded = Guard(client, Policy(wait=5)).process_sync(LONG, tool="t")

    assert nowhere in str(guarded.reason)


@pytest.mark.usefixtures("no_spool")
async def test_a_service_that_fails_is_quoted() -> None:
    async with failing_server() as url, Client(url, retries=0) as client:
        guarded = await Guard(client, Policy(wait=5)).process(LONG, tool="t")

    assert guarded.outcome is Outcome.TRUNCATED
    assert "500" in str(guarded.reason)


async def test_a_service_that_never_answers_is_not_waited_for(silence: str) -> None:
    async with Client(silence) as client:
        guarded = await Guard(client, Policy(wait=0.2)).process(LONG, tool="t")

    assert guarded.reason == "the service did not store it within 0.2 s"


def test_without_an_event_loop_a_service_that_never_answers_is_not_waited_for_either(silence: str) -> None:
    with SyncClient(silence) as client:
        guarded = Guard(client, Policy(wait=0.2)).process_sync(LONG, tool="t")

    assert guarded.reason == "the service did not store it within 0.2 s"


async def test_a_cancelled_agent_is_cancelled(silence: str) -> None:
    async with Client(silence) as client:
        task = asyncio.create_task(Guard(client).process(LONG, tool="t"))
        await asyncio.sleep(0)
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task


@given(st.text(st.characters(exclude_categories=()), max_size=400), st.integers(0, 200), st.integers(0, 20))
def test_whatever_the_text_and_the_limits_nothing_is_raised_and_the_notice_is_bounded(
    text: str, max_bytes: int, max_lines: int
) -> None:
    guarded = Guard(policy=Policy(max_bytes=max_bytes, max_lines=max_lines)).process_sync(text, tool="t")

    assert guarded.reason is None or guarded.outcome is Outcome.TRUNCATED
    assert guarded.value is text or is_notice(guarded.value)
    assert guarded.bytes_after <= max(max_bytes * 4, max_bytes + 800)


@pytest.mark.parametrize(
    "text",
    ["\ud800" * 60_000, "\x00" * 60_000, "👩\u200d👩\u200d👧" * 10_000, "\r\n" * 60_000, "\x1b[31m" * 20_000],
    ids=["surrogates", "nul", "emoji", "crlf", "escapes"],
)
async def test_unusual_text_makes_a_notice_that_any_encoder_takes(text: str) -> None:
    guarded = await Guard().process(text, tool="t")

    assert is_notice(guarded.value)
    assert len(guarded.value.encode()) < 10_000


async def test_bytes_spill_as_text_where_they_are_text_and_are_described_where_not() -> None:
    text = await Guard().process(LONG.encode(), tool="t")
    image = await Guard().process(b"\x89PNG\r\n\x1a\n" + b"\xff" * 60_000, tool="t")

    assert b"\na line of text\n" in text.value
    assert b"\n(60,008 bytes of image/png, not text)\n" in image.value


async def test_fifty_megabytes_become_a_notice() -> None:
    guarded = await Guard().process("0123456789abcdef\n" * 3_000_000, tool="t")

    assert guarded.bytes_before == 51_000_000
    assert guarded.bytes_after < 10_000


# --- identity -------------------------------------------------------------------------------------


async def test_the_same_output_of_the_same_call_has_the_same_notice() -> None:
    one = await Guard(session="s").process(LONG, tool="t", call_id="call_0")
    two = await Guard(session="s").process(LONG, tool="t", call_id="call_0")

    assert one == two


async def test_the_id_is_that_of_the_contract(nowhere: str) -> None:
    async with Client(nowhere, session="s") as client:
        guarded = await Guard(client).process(LONG, tool="t", call_id="call_0")

    assert guarded.capture == capture_id("s", "call_0", hashlib.sha256(LONG.encode()).digest())


def test_ids_and_names_that_are_no_text_are_taken_as_text(nowhere: str) -> None:
    call: Any = {"call_id": 5, "session": 7, "status": None}
    nameless: Any = None
    with SyncClient(nowhere) as client:
        guarded = Guard(client).process_sync(LONG, tool=nameless, **call)
    assert guarded.capture == capture_id("7", "5", hashlib.sha256(LONG.encode()).digest())
    assert "Output of the tool (5) too long" in guarded.value


async def test_a_call_id_may_come_from_the_surroundings(nowhere: str) -> None:
    async with Client(nowhere, session="s") as client:
        guard = Guard(client)
        expected = (await guard.process(LONG, tool="t", call_id="call_7", session="other")).capture
        with calling("call_7", "other"):
            guarded = await guard.process(LONG, tool="t")

    assert guarded.capture == expected


async def test_without_a_call_id_two_outputs_have_two_ids(nowhere: str) -> None:
    async with Client(nowhere) as client:
        guard = Guard(client)
        one, two = [(await guard.process(LONG, tool="t")).capture for _ in range(2)]

    assert one != two


async def test_the_session_is_that_of_the_client_where_none_is_given(nowhere: str) -> None:
    with SyncClient(nowhere, session="mine") as client:
        assert Guard(client).session == "mine"


# --- wrapping -------------------------------------------------------------------------------------


def test_a_wrapped_function_keeps_its_name_signature_and_small_results() -> None:
    guard = Guard()
    result = "x" * 100

    @guard.wrap
    def tool(size: int, *, loud: bool = False) -> str:
        """Do it."""
        return result

    assert tool(1, loud=True) is result
    assert (tool.__name__, tool.__doc__) == ("tool", "Do it.")
    assert list(inspect.signature(tool).parameters) == ["size", "loud"]


async def test_a_wrapped_async_function_stays_one() -> None:
    guard = Guard()

    @guard.wrap
    async def tool() -> str:
        return LONG

    assert inspect.iscoroutinefunction(tool)
    assert is_notice(await tool())


async def test_a_coroutine_function_behind_a_plain_one_is_guarded_too() -> None:
    class Tool:
        async def __call__(self, text: str) -> str:
            return text

    guard = Guard()
    assert is_notice(await guard.wrap(Tool())(LONG))
    assert is_notice(await guard.wrap(lambda: Tool()(LONG), name="plain")())
    assert await guard.wrap(Tool())("short") == "short"


def test_a_wrapped_function_obeys_the_limit_of_its_name() -> None:
    guard = Guard(policy=Policy(tools={"tight": 1_000}))

    assert is_notice(guard.wrap(lambda: "x" * 1_001, name="tight")())
    assert guard.wrap(lambda: "x" * 1_000, name="tight")() == "x" * 1_000
    assert guard.wrap(lambda: "x" * 1_001, name="loose")() == "x" * 1_001


def test_the_exceptions_of_a_tool_pass() -> None:
    @Guard().wrap
    def tool() -> str:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tool()


def test_a_subclass_of_str_comes_back_as_itself() -> None:
    class Name(str):
        __slots__ = ()

    name = Name("x")

    assert Guard().wrap(lambda: name)() is name


# --- counting -------------------------------------------------------------------------------------


async def test_every_output_is_counted_once() -> None:
    guard = Guard()
    for _ in range(3):
        await guard.process("né", tool="a")
    guard.process_sync("y" * 30_000, tool="a")
    guard.wrap(lambda: "z", name="a")()
    spilled = await guard.process(LONG, tool="b")

    assert guard.stats == {
        ("a", Outcome.INLINE): OutputCount(5, 30_010, 30_010),
        ("b", Outcome.TRUNCATED): OutputCount(1, 150_000, spilled.bytes_after),
    }


async def test_the_figures_of_tool_and_guard_stay_apart() -> None:
    guarded = await Guard().process(LONG, tool="t", matches_dropped=12)

    assert (guarded.matches_dropped, guarded.bytes_before) == (12, 150_000)


def test_a_guard_works_from_many_threads() -> None:
    guard = Guard()

    @guard.wrap
    def t() -> str:
        return LONG

    threads = [threading.Thread(target=t) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert guard.stats["t", Outcome.TRUNCATED].count == 8


def test_beside_data_that_is_large_as_a_whole_only_little_stays() -> None:
    rows = [{"name": f"row {number}", "value": number} for number in range(20_000)]
    settings = {f"setting_{number}": "on" for number in range(2_000)}
    guard = Guard(spool=False)
    large = guard.process_sync({"rows": rows, "settings": settings, "count": 20_000}, tool="t")
    small = guard.process_sync({"rows": rows, "settings": {"a": "on"}, "count": 20_000}, tool="t")

    assert large.bytes_after < 16_000
    assert large.value.keys() == {"rows", "settings", "count"}
    assert large.value["count"] == 20_000
    assert small.value["settings"] == {"a": "on"}
