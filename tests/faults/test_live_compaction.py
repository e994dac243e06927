"""The segments of a finished capture become few objects, and nothing that happens meanwhile costs a byte."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from overspill_service.archive.sweep import sweep_orphans
from overspill_service.catalog.records import Entry
from overspill_service.errors import CatalogUnavailable, StoreUnavailable
from overspill_service.live import flusher as flushing
from overspill_service.store_format.frames import FRAME_SIZE

from tests.faults.traffic import advance, log_lines
from tests.web.live_producer import CAPTURE, Producer

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.store_format.frames import Frame

    from tests.web.conftest import Api

DAY = 24 * 3600.0
LARGE = log_lines(2 * FRAME_SIZE + FRAME_SIZE // 4)
SMALL = [log_lines(20_000, seed=number) for number in range(30)]
WHOLE = b"".join([*SMALL[:15], LARGE, *SMALL[15:]])


@pytest.fixture
async def api(start_api: Callable[..., Any]) -> Api:
    started: Api = await start_api(live_flush_seconds=3600.0)
    return started


@pytest.fixture
async def ended(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """A service with a finished capture of many segments."""
    with monkeypatch.context() as patch:
        patch.setattr(flushing, "is_worth_compacting", lambda entry: False)
        producer = Producer(api)
        await producer.begin(Overspill_Ttl=str(30 * 24 * 3600))
        for piece in (*SMALL[:15], LARGE, *SMALL[15:]):
            await producer.append(piece)
            await api.service.flusher.start("default", CAPTURE)
        await producer.complete()
    return api


async def entry_of(api: Api) -> Entry:
    found = await api.service.archive.catalog.get("default", CAPTURE)
    assert isinstance(found, Entry)
    return found


async def frames_of(api: Api) -> list[Frame]:
    reader = await api.service.archive.reader(await entry_of(api))
    return [reader.frames[number] for number in range(len(reader.frames))]


async def content(api: Api) -> bytes:
    response = await api.get(f"/v1/captures/{CAPTURE}/content")
    assert response.status == 200
    return await response.read()


async def test_small_frames_are_joined_and_large_ones_stay_as_they_are(ended: Api) -> None:
    before, segments = await frames_of(ended), len((await entry_of(ended)).segments)
    await ended.service.flusher.start("default", CAPTURE)
    after = await frames_of(ended)

    assert segments == len(SMALL) + 2  # the last one has nothing but the end
    assert len((await entry_of(ended)).segments) == 1
    assert await content(ended) == WHOLE
    large = [frame for frame in before if frame.size > FRAME_SIZE // 2]
    assert len(large) == 2
    assert [frame for frame in after if frame in large] == large
    assert len(after) <= 4


@pytest.mark.parametrize("step", ["first put", "after the put", "replace", "after the replace", "delete"])
async def test_a_move_that_breaks_off_anywhere_leaves_all_of_the_capture(ended: Api, step: str) -> None:
    archive = ended.service.archive
    target: Any = archive.catalog if "replace" in step else archive.store
    name = step.rsplit(maxsplit=1)[-1]
    method = getattr(target, name)
    failed: list[str] = []

    async def fail(*args: Any) -> Any:
        if failed:
            return await method(*args)
        failed.append(step)
        if step.startswith("after"):
            await method(*args)
        raise (CatalogUnavailable if "replace" in step else StoreUnavailable)("gone")

    setattr(target, name, fail)
    with pytest.raises((CatalogUnavailable, StoreUnavailable)):
        await ended.service.flusher.start("default", CAPTURE)
    read = await content(ended)
    delattr(target, name)
    await ended.service.flusher.start("default", CAPTURE)
    advance([ended], 2 * DAY)
    await sweep_orphans(archive, age=DAY)

    assert failed
    assert read == WHOLE
    assert await content(ended) == WHOLE
    entry = await entry_of(ended)
    assert len(entry.segments) == 1
    stored = [each.key async for each in archive.store.list("")]
    assert [key for key in stored if CAPTURE in key] == list(entry.segment_keys)


async def test_a_capture_that_reads_as_another_one_is_not_moved(ended: Api) -> None:
    store = ended.service.archive.store
    entry, read = await entry_of(ended), store.read
    flipped = random.Random(1).randrange(40, 60)

    async def damage(key: str, start: int, length: int) -> bytes:
        data = bytearray(await read(key, start, length))
        data[flipped] ^= 1
        return bytes(data)

    store.read = damage  # type: ignore[method-assign]
    with pytest.raises(Exception, match=r"decode|checksum|digest"):
        await ended.service.flusher.start("default", CAPTURE)
    store.read = read  # type: ignore[method-assign]

    assert (await entry_of(ended)).segments == entry.segments
    assert await content(ended) == WHOLE
