"""`Reader`: decodes frames in threads, in order, and never takes one that is not as it is listed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import cache

import msgspec
import pytest
from overspill_service.archive.frame_reader import Reader
from overspill_service.errors import CaptureDamaged
from overspill_service.objects.memory import MemoryStore
from overspill_service.resources.cpu import CpuThreads
from overspill_service.resources.memory_budget import MemoryBudget
from overspill_service.store_format.frame_map import FrameMap
from overspill_service.store_format.frames import Frame

from tests.contracts.entries import entry
from tests.core.contents import frames_of, log

MEMORY = 64 * 2**20


def content() -> bytes:
    return log(8_000_000)


@cache
def written() -> list[tuple[Frame, bytes]]:
    return frames_of(content())


@cache
def stored() -> bytes:
    return b"".join(stored for _, stored in written())


def frames() -> list[Frame]:
    return [frame for frame, _ in written()]


@pytest.fixture
def cpu() -> Iterator[CpuThreads]:
    threads = CpuThreads(2)
    yield threads
    threads.close()


async def reader(cpu: CpuThreads, frames: list[Frame], memory: MemoryBudget | None = None) -> Reader:
    store, made = MemoryStore(), entry(size=len(content()))
    await store.put(made.segment_keys[0], [stored()])
    return Reader(store, cpu, (memory or MemoryBudget(MEMORY)).reads, made, FrameMap.of([frames]))


@pytest.mark.parametrize("memory", [1, 2**20, 8 * 2**20, MEMORY])
@pytest.mark.parametrize("is_reversed", [False, True])
async def test_every_frame_comes_once_and_in_order(cpu: CpuThreads, is_reversed: bool, memory: int) -> None:
    read = await reader(cpu, frames(), MemoryBudget(memory))
    numbers = range(1, len(frames()))
    batches = read.map(numbers, lambda chunk: chunk, is_reversed=is_reversed)
    chunks = [chunk async for batch in batches for chunk in batch]
    ordered = chunks[::-1] if is_reversed else chunks

    assert b"".join(chunk.data for chunk in ordered) == content()[frames()[0].size :]
    assert all(chunk.newlines == content().count(b"\n", 0, chunk.start) for chunk in chunks)


async def test_nothing_more_is_decoded_before_the_first_frame_is_taken(cpu: CpuThreads) -> None:
    read = await reader(cpu, frames())
    done = []
    batches = read.map(range(len(frames())), lambda chunk: done.append(chunk.start))
    await anext(batches)
    await batches.aclose()

    assert done == [0]


async def test_a_frame_listed_with_wrong_newlines_is_refused_each_time(cpu: CpuThreads) -> None:
    lying = [*frames()[:2], msgspec.structs.replace(frames()[2], newlines=1), *frames()[3:]]
    read = await reader(cpu, lying)
    for _ in range(2):
        with pytest.raises(CaptureDamaged, match="newlines"):
            [piece async for piece in read.content(0, len(content()))]


async def test_newlines_that_were_counted_once_are_not_counted_again(cpu: CpuThreads) -> None:
    read = await reader(cpu, frames())
    whole = b"".join([piece async for piece in read.content(0, len(content()))])

    assert whole == content()
    assert all(read.frames.newlines_checked)


@pytest.mark.parametrize("is_slow", [False, True])
async def test_stored_frames_come_whatever_memory_there_is(
    cpu: CpuThreads, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_slow:
        monkeypatch.setattr("overspill_service.archive.prefetch.SLOW_SECONDS", -1000)
    for memory in (1, 2**20, MEMORY):
        read = await reader(cpu, frames(), MemoryBudget(memory))

        assert b"".join([stored async for _, stored in read.stored_frames()]) == stored()
        assert b"".join([piece async for piece in read.content(0, len(content()))]) == content()


async def test_what_a_read_held_is_free_when_it_ends_wherever_it_does(cpu: CpuThreads) -> None:
    memory = MemoryBudget(MEMORY)
    lying = [*frames()[:9], msgspec.structs.replace(frames()[9], checksum=1), *frames()[10:]]
    read, damaged = await reader(cpu, frames(), memory), await reader(cpu, lying, memory)
    for count in range(len(frames()) + 1):
        pieces = read.content(0, len(content()))
        for _ in range(count):
            await anext(pieces)
        await pieces.aclose()

        assert memory.free == memory.size
    reads: list[AsyncIterator[object]] = [damaged.content(0, len(content())), damaged.stored_frames()]
    for each in reads:
        with pytest.raises(CaptureDamaged, match="checksum"):
            [piece async for piece in each]

        assert memory.free == memory.size


async def test_a_slow_reader_holds_one_frame_at_a_time(
    cpu: CpuThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.archive.prefetch.SLOW_SECONDS", -1000)
    memory = MemoryBudget(MEMORY)
    read = await reader(cpu, frames(), memory)
    largest = sum(read.frames.largest(range(len(frames()))))
    pieces = read.content(0, len(content()))
    for _ in range(6):  # these were fetched before it was known to be slow
        await anext(pieces)
    async for _ in pieces:
        assert memory.size - memory.free == largest


async def test_a_scan_has_its_memory_once_for_all_its_reads(cpu: CpuThreads) -> None:
    memory = MemoryBudget(MEMORY)
    read = await reader(cpu, frames(), memory)
    least = sum(read.frames.largest(range(len(frames()))))
    async with read.with_memory(2**20) as scan:
        for _ in range(2):
            pieces = scan.content(0, len(content()))
            await anext(pieces)
            await pieces.aclose()

            assert memory.free == memory.size - least - 2**20
        assert b"".join([piece async for piece in scan.content(0, len(content()))]) == content()
    assert memory.free == memory.size
