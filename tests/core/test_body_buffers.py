"""`BodyBuffers`: memory is used again, and never while somebody reads it."""

from __future__ import annotations

import asyncio

import pytest
from overspill_service.resources import body_buffers
from overspill_service.resources.body_buffers import MAX_KEPT, MIN_BYTES, BodyBuffers

from tests import waiting


def received(buffers: BodyBuffers, body: bytes, announced: int | None = None) -> bytes:
    """A body as it is received: piece by piece, in a buffer of the size that was announced."""
    buffer = buffers.take(len(body) if announced is None else announced)
    for start in range(0, len(body), 2**18):
        buffer.write(body[start : start + 2**18])
    buffer.truncate()
    return buffer.getvalue()


async def test_the_next_body_takes_the_place_of_one_that_nobody_needs() -> None:
    buffers = BodyBuffers()
    first = received(buffers, b"a" * MIN_BYTES)
    place = id(first)
    buffers.keep(first)
    del first
    second = received(buffers, b"b" * MIN_BYTES)

    assert id(second) == place
    assert second == b"b" * MIN_BYTES


async def test_a_body_that_somebody_still_reads_stays_as_it_is() -> None:
    buffers = BodyBuffers()
    first = received(buffers, b"a" * MIN_BYTES)
    view = memoryview(first)
    buffers.keep(first)
    del first
    second = received(buffers, b"b" * MIN_BYTES)

    assert view == b"a" * MIN_BYTES
    assert second == b"b" * MIN_BYTES


@pytest.mark.parametrize("size", [0, 1, MIN_BYTES - 1, MIN_BYTES, 3 * MIN_BYTES])
@pytest.mark.parametrize("announced", [0, MIN_BYTES, 2 * MIN_BYTES])
async def test_nothing_of_the_last_body_is_in_the_next(size: int, announced: int) -> None:
    buffers = BodyBuffers()
    buffers.keep(received(buffers, b"secret" * MIN_BYTES))

    assert received(buffers, b"b" * size, announced) == b"b" * size


async def test_few_are_kept_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_buffers, "KEEP_SECONDS", 0.01)
    buffers = BodyBuffers()
    for _ in range(MAX_KEPT + 2):
        buffers.keep(b"short")
        buffers.keep(bytes(MIN_BYTES))
    assert [*map(len, buffers._kept)] == [MIN_BYTES] * MAX_KEPT

    buffers.keep(received(buffers, b"a" * MIN_BYTES))  # one that was used is kept for longer
    assert len(buffers._kept) == MAX_KEPT
    assert await asyncio.to_thread(waiting.until, lambda: not buffers._kept)
