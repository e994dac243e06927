"""Streams of dicts, models and messages: they pass as they come while they fit, and are captured as lines."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from typing import TYPE_CHECKING, Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Guard, Policy, Spool, Workspace
from overspill.previews import styles
from overspill.previews.notice_forms import is_notice
from overspill.text.measure import size
from overspill.text.rendering import compact_json
from overspill.wire import Outcome

from tests.client.shell import printed_by
from tests.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from langchain_core import messages as chain
    from overspill import Guarded
else:
    chain = LazyModule("langchain_core.messages")

DEADLINE = 30


class Model(pydantic.BaseModel):
    number: int
    text: str


@dataclasses.dataclass(frozen=True)
class Row:
    id: str
    number: int
    output: str


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Workspace(tmp_path)


@pytest.fixture
def guard(spool: Spool) -> Guard:
    return Guard(spool=spool)


def rows(count: int) -> Iterator[dict[str, Any]]:
    return ({"id": number, "text": f"row {number} " + "x" * 80} for number in range(count))


def lines_of(spool: Spool, guarded: Guarded) -> list[Any]:
    assert guarded.notice is not None
    text = (spool.path.parent / guarded.notice.path).read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_long_stream_passes_as_far_as_it_fits_and_ends_with_one_more_like_its_items(
    guard: Guard, spool: Spool
) -> None:
    guarded = guard.process_sync(rows(5_000), tool="t")
    *passed, last = guarded.value

    assert passed == list(rows(5_000))[: len(passed)]
    assert passed
    assert last.keys() == {"id", "text"}
    assert (last["id"], is_notice(last["text"])) == (len(passed), True)
    assert sum(size(compact_json(row)) for row in [*passed, last]) <= 50_000
    assert guarded.bytes_after <= 50_000
    assert lines_of(spool, guarded) == list(rows(5_000))
    assert {outcome for _, outcome in guard.stats} == {Outcome.SPOOLED}


def test_one_large_record_is_as_much_as_many(guard: Guard) -> None:
    (record,) = guard.process_sync(iter([{"output": "line\n" * 20_000, "exitCode": 3}]), tool="t").value

    assert record["exitCode"] == 3
    assert is_notice(record["output"])


async def test_an_async_stream_is_the_same(guard: Guard, spool: Spool) -> None:
    async def tool() -> AsyncIterator[dict[str, Any]]:
        for row in rows(5_000):
            yield row

    items = [item async for item in guard.wrap(tool, name="t")()]
    guarded = await guard.process(tool(), tool="t")

    assert items[:-1] == list(guard.process_sync(rows(5_000), tool="t").value)[:-1]
    assert len([item async for item in guarded.value]) == len(items)
    assert is_notice(items[-1]["text"])
    assert lines_of(spool, guarded) == list(rows(5_000))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda number: Model(number=number, text="y" * 100), "text"),
        (lambda number: Row("row_0123456789", number, "y" * 100), "output"),
        (lambda _: chain.AIMessageChunk(content="token ", id="run-0123456789"), "content"),
    ],
)
def test_the_last_is_of_the_class_of_the_others(guard: Guard, make: Any, field: str) -> None:
    *_, before, last = guard.process_sync((make(number) for number in range(2_000)), tool="t").value

    assert type(last) is type(before)
    assert is_notice(getattr(last, field))
    assert getattr(last, "id", None) == getattr(before, "id", None)


def test_where_no_item_can_hold_a_notice_it_comes_alone(guard: Guard) -> None:
    *_, before, last = guard.process_sync(iter(range(20_000)), tool="t").value

    assert type(before) is int
    assert is_notice(last)


def test_streams_of_bytes_have_the_notice_where_the_bytes_were(guard: Guard) -> None:
    """As Docker's `exec_run(stream=True, demux=True)` gives them: pairs of standard output and error."""
    *_, (out, error) = guard.process_sync(((None, b"a line\n") for _ in range(20_000)), tool="t").value

    assert out is None
    assert is_notice(error.decode())


def test_lines_end_a_stream_as_bytes_do(guard: Guard) -> None:
    lines = guard.policy.limits("t").max_lines
    passed, last = guard.process_sync(({"log": "\n" * lines} for _ in range(10)), tool="t").value

    assert passed == {"log": "\n" * lines}
    assert is_notice(last["log"])


def test_short_records_count_by_their_bytes_not_by_their_number(guard: Guard) -> None:
    numbers = [{"n": number} for number in range(3_000)]

    assert list(guard.process_sync(iter(numbers), tool="t").value) == numbers


async def test_records_pass_before_the_stream_has_ended(guard: Guard) -> None:
    more = asyncio.Event()

    async def tool() -> AsyncIterator[dict[str, int]]:
        yield {"a": 1}
        await more.wait()
        yield {"a": 2}

    async with asyncio.timeout(DEADLINE):
        stream = guard.wrap(tool)()
        first = await anext(stream)
        more.set()

        assert [first, *[row async for row in stream]] == [{"a": 1}, {"a": 2}]


def test_a_failure_comes_behind_the_notice_and_the_capture_says_so(guard: Guard, spool: Spool) -> None:
    @guard.wrap
    def tool() -> Iterator[dict[str, Any]]:
        yield from rows(2_000)
        raise ValueError("boom")

    items: list[Any] = []
    with pytest.raises(ValueError, match="boom"):
        items.extend(tool())
    guarded = guard.process_sync(tool.__wrapped__(), tool="t")  # type: ignore[attr-defined]

    assert lines_of(spool, guarded)[-1] == {"overspill": "the stream failed here: ValueError: boom"}
    with pytest.raises(ValueError, match="boom"):
        list(guarded.value)


def test_a_stream_without_end_is_ended_at_the_policys_bound(spool: Spool) -> None:
    guard = Guard(policy=Policy(max_stream_bytes=1_000_000), spool=spool)
    closed = threading.Event()

    def endless() -> Iterator[dict[str, str]]:
        try:
            while True:
                yield {"text": "z" * 1_000}
        finally:
            closed.set()

    guarded = guard.process_sync(endless(), tool="t")

    assert closed.is_set()
    assert lines_of(spool, guarded)[-1] == {"overspill": "no more of the stream is kept: more than 1.0 MB"}


async def test_who_is_cancelled_closes_the_source(guard: Guard) -> None:
    closed, waiting = asyncio.Event(), asyncio.Event()

    async def tool() -> AsyncIterator[dict[str, Any]]:
        try:
            for row in rows(2_000):
                yield row
            waiting.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def read() -> None:
        async for _ in guard.wrap(tool)():
            pass

    async with asyncio.timeout(DEADLINE):
        reading = asyncio.create_task(read())
        await waiting.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await closed.wait()


def test_a_style_that_fills_its_limits_lets_nothing_pass_before(spool: Spool) -> None:
    guard = Guard(policy=Policy(style=styles.CLAMPED, max_bytes=20_000), spool=spool)
    (only,) = guard.process_sync(rows(1_000), tool="t").value

    assert size(only["text"]) <= 20_000


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), st.text(max_size=400) | st.integers()), max_size=60),
    st.integers(0, 12_000),
    st.none() | st.integers(0, 3_000),
)
def test_what_goes_on_is_never_more_than_what_came(
    records: list[dict[str, Any]], most: int, tokens: int | None
) -> None:
    guard = Guard(policy=Policy(max_bytes=most, max_tokens=tokens), spool=False)
    guarded = guard.process_sync(iter(records), tool="t")
    items = list(guarded.value)

    if guarded.notice is None:
        assert items == records
    else:
        assert sum(size(compact_json(item)) for item in items) < sum(
            size(compact_json(each)) for each in records
        )
        assert items[:-1] == records[: len(items) - 1]


def test_memory_stays_flat_however_long_the_stream_of_records_is() -> None:
    code = (
        "import resource\n"
        "from overspill.shapes.chunk_stream import ChunkStream\n"
        "from overspill.shapes.guarded_chunks import guarded_chunks\n"
        "from overspill.text.limits import Limits\n"
        "def run(megabytes):\n"
        "    rows = ({'text': 'x' * 1000} for _ in range(1000 * megabytes))\n"
        "    return list(guarded_chunks(rows, ChunkStream(Limits(50_000)), lambda c: c.body.size))\n"
        "run(8)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(run(24))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    told, growth = printed_by(code).splitlines()

    assert told == f"[{24_000 * 1_013}]"
    assert int(growth) < 4 * 1024
