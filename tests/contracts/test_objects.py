"""What every object store does, and what only some do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from overspill_service.errors import CaptureDamaged
from overspill_service.objects.file import FileStore
from overspill_service.objects.memory import MemoryStore
from overspill_service.objects.s3 import Location, S3Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from overspill_service.objects import ObjectStore

CAPTURE = "v1/tenant/cap_aaaaaaaaaaaaaaaaaaaa"


@pytest.fixture(params=["memory", "file", "s3"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    made: ObjectStore
    if request.param == "memory":
        made = MemoryStore()
    elif request.param == "file":
        made = FileStore(tmp_path / "objects")
    else:
        made = S3Store(Location.from_url(request.getfixturevalue("s3_url")), page_size=7)
    yield made
    await made.close()


async def keys(store: ObjectStore, prefix: str) -> list[str]:
    return [stored.key async for stored in store.list(prefix)]


async def test_an_object_reads_back_as_its_pieces_joined(store: ObjectStore) -> None:
    await store.put(f"{CAPTURE}/a-00000", [b"one ", b"", b"two ", b"three"])

    assert await store.read(f"{CAPTURE}/a-00000", 0, 13) == b"one two three"


async def test_a_range_gives_exactly_its_bytes(store: ObjectStore) -> None:
    await store.put(f"{CAPTURE}/a-00000", [bytes(range(256))])

    assert await store.read(f"{CAPTURE}/a-00000", 100, 3) == b"def"


async def test_a_range_may_end_where_the_object_ends(store: ObjectStore) -> None:
    await store.put(f"{CAPTURE}/a-00000", [b"0123456789"])

    assert await store.read(f"{CAPTURE}/a-00000", 9, 1) == b"9"


async def test_a_negative_start_reads_the_last_bytes_and_ignores_the_length(store: ObjectStore) -> None:
    await store.put(f"{CAPTURE}/a-00000", [b"0123456789"])

    assert await store.read(f"{CAPTURE}/a-00000", -4, 1) == b"6789"


async def test_a_suffix_longer_than_the_object_is_the_whole_object(store: ObjectStore) -> None:
    await store.put(f"{CAPTURE}/a-00000", [b"short"])

    assert await store.read(f"{CAPTURE}/a-00000", -65536, 0) == b"short"


async def test_the_suffix_of_an_empty_object_is_empty(store: ObjectStore) -> None:
    await store.put(f"{CAPTURE}/a-00000", [])

    assert await store.read(f"{CAPTURE}/a-00000", -100, 0) == b""


async def test_a_second_put_of_a_key_changes_nothing(store: ObjectStore) -> None:
    await store.put(f"{CAPTURE}/a-00000", [b"first"])
    await store.put(f"{CAPTURE}/a-00000", [b"second"])

    assert await store.read(f"{CAPTURE}/a-00000", -100, 0) == b"first"


@pytest.mark.parametrize("start", [3, 10, 1000])
async def test_reading_past_the_end_says_that_the_object_is_damaged(store: ObjectStore, start: int) -> None:
    await store.put(f"{CAPTURE}/a-00000", [b"0123456789"])

    with pytest.raises(CaptureDamaged, match="ends"):
        await store.read(f"{CAPTURE}/a-00000", start, 8)


@pytest.mark.parametrize(("start", "length"), [(0, 1), (-10, 0)])
async def test_a_missing_object_is_a_key_error(store: ObjectStore, start: int, length: int) -> None:
    with pytest.raises(KeyError, match="b-00000"):
        await store.read(f"{CAPTURE}/b-00000", start, length)


async def test_ping_returns_when_the_store_answers(store: ObjectStore) -> None:
    await store.ping()
