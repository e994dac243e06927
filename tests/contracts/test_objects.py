"""The contract of every object store, and abilities that only some have."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
import tracemalloc
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
        made = FileStore(tmp_path / "objects", page_size=7)
    else:
        made = S3Store(Location.from_url(request.getfixturevalue("s3_url")), page_size=7)
    yield made
    await made.close()


async def keys(store: ObjectStore, prefix: str) -> list[str]:
    return [stored.key async for stored in store.list(prefix)]


async def test_a_store_tells_the_time_by_the_clock_of_its_objects(store: ObjectStore) -> None:
    begun = await store.now() or time.time()
    await store.put(f"{CAPTURE}/a-00000", [b"x"])
    (stored,) = [each async for each in store.list(CAPTURE)]

    assert begun - 2 <= stored.modified <= (await store.now() or time.time()) + 2  # some tell whole seconds


async def test_a_store_says_that_it_keeps_no_versions(store: ObjectStore) -> None:
    assert await store.keeps_versions() is False


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
    are_new = [await store.put(f"{CAPTURE}/a-00000", [content]) for content in (b"first", b"second")]

    assert await store.read(f"{CAPTURE}/a-00000", -100, 0) == b"first"
    assert are_new == [True, False]


@pytest.mark.parametrize("start", [3, 10, 1000])
async def test_reading_past_the_end_says_that_the_object_is_damaged(store: ObjectStore, start: int) -> None:
    await store.put(f"{CAPTURE}/a-00000", [b"0123456789"])

    with pytest.raises(CaptureDamaged, match="ends"):
        await store.read(f"{CAPTURE}/a-00000", start, 8)


@pytest.mark.parametrize(("start", "length"), [(0, 1), (-10, 0)])
async def test_a_missing_object_is_a_key_error(store: ObjectStore, start: int, length: int) -> None:
    with pytest.raises(KeyError, match="b-00000"):
        await store.read(f"{CAPTURE}/b-00000", start, length)


async def test_a_listing_shows_what_begins_with_the_prefix_in_the_order_of_the_keys(
    store: ObjectStore,
) -> None:
    stored = [f"v1/tenant/cap_{name}/u-00000" for name in ("b", "a", "a-b", "a.b", "aa", "A", "a0")]
    for key in [*stored, "v1/tenant-2/cap_a/u-00000", "v1/tenan/cap_a/u-00000", "v2/tenant/cap_a/u-00000"]:
        await store.put(key, [b"x"])

    assert await keys(store, "v1/tenant/") == sorted(stored)


@pytest.mark.parametrize(
    "prefix", ["", "v", "v1", "v1/", "v1/t", "v1/tenant/cap_", "v1/tenant/cap_aa", f"{CAPTURE}/"]
)
async def test_a_prefix_may_end_anywhere(store: ObjectStore, prefix: str) -> None:
    await store.put(f"{CAPTURE}/u-00000", [b"x"])

    assert await keys(store, prefix) == [f"{CAPTURE}/u-00000"]


@pytest.mark.parametrize("prefix", ["v2", "v1/tenant/cap_b", f"{CAPTURE}/u-00000x", f"{CAPTURE}0/"])
async def test_a_prefix_that_no_key_has_lists_nothing(store: ObjectStore, prefix: str) -> None:
    await store.put(f"{CAPTURE}/u-00000", [b"x"])

    assert await keys(store, prefix) == []


async def test_a_listing_goes_on_past_one_page(store: ObjectStore) -> None:
    stored = [f"v1/tenant/cap_{number % 5}/u-{number:05d}" for number in range(20)]
    for key in stored:
        await store.put(key, [b"x"])

    assert await keys(store, "v1/") == sorted(stored)


async def test_a_listing_tells_sizes_and_times(store: ObjectStore) -> None:
    before = time.time()
    await store.put(f"{CAPTURE}/u-00000", [b"12345"])

    [stored] = [stored async for stored in store.list(CAPTURE)]
    assert stored.size == 5
    assert before - 2 <= stored.modified <= time.time() + 2


async def test_deleted_objects_are_gone_and_others_stay(store: ObjectStore) -> None:
    stored = [f"{CAPTURE}/u-{number:05d}" for number in range(12)]
    for key in stored:
        await store.put(key, [b"x"])

    await store.delete(key for key in stored[1:])
    assert await keys(store, "v1/") == stored[:1]
    with pytest.raises(KeyError):
        await store.read(stored[1], 0, 1)


@pytest.mark.parametrize("count", [0, 1, 9])
async def test_deleting_what_is_absent_is_no_error(store: ObjectStore, count: int) -> None:
    await store.delete(f"{CAPTURE}/u-{number:05d}" for number in range(count))


async def test_a_copy_has_the_bytes_and_outlives_what_it_was_made_of(store: ObjectStore) -> None:
    first, second = f"{CAPTURE}/a-00000", "v1/tenant/cap_bbbbbbbbbbbbbbbbbbbb/a-00000"
    await store.put(first, [b"one ", b"two"])
    for _ in range(2):  # as after an answer that was lost
        await store.copy(first, second)
    both = await keys(store, "v1/")
    await store.delete([first])

    assert both == [first, second]
    assert await store.read(second, -9, 0) == b"one two"
    assert await keys(store, "v1/") == [second]


async def test_a_copy_of_what_is_absent_is_a_key_error(store: ObjectStore) -> None:
    with pytest.raises(KeyError):
        await store.copy(f"{CAPTURE}/a-00000", f"{CAPTURE}/b-00000")
    assert await keys(store, "v1/") == []


async def test_a_deleted_key_can_be_put_again(store: ObjectStore) -> None:
    await store.put(f"{CAPTURE}/u-00000", [b"first"])
    await store.delete([f"{CAPTURE}/u-00000"])
    await store.put(f"{CAPTURE}/u-00000", [b"second"])

    assert await store.read(f"{CAPTURE}/u-00000", -100, 0) == b"second"


async def test_concurrent_puts_all_land(store: ObjectStore) -> None:
    stored = {f"v1/tenant/cap_{number}/u-00000": b"%d" % number for number in range(40)}

    await asyncio.gather(*(store.put(key, [data]) for key, data in stored.items()))
    assert {key: await store.read(key, -9, 0) for key in await keys(store, "v1/")} == stored


async def test_of_concurrent_puts_of_one_key_one_wins_whole(store: ObjectStore) -> None:
    bodies = [bytes([number]) * 5000 for number in range(10)]

    await asyncio.gather(*(store.put(f"{CAPTURE}/u-00000", [body]) for body in bodies))
    assert await store.read(f"{CAPTURE}/u-00000", -5001, 0) in bodies


async def test_a_large_object_reads_back_in_ranges(store: ObjectStore) -> None:
    pieces = [os.urandom(300_000) for _ in range(70)]
    digest = hashlib.sha256(b"".join(pieces)).digest()

    await store.put(f"{CAPTURE}/u-00000", pieces)
    read = hashlib.sha256()
    for number in range(7):
        read.update(await store.read(f"{CAPTURE}/u-00000", number * 3_000_000, 3_000_000))
    assert read.digest() == digest


async def test_storing_takes_little_memory_beyond_the_pieces(store: ObjectStore) -> None:
    if isinstance(store, MemoryStore):
        pytest.skip("this store is memory")
    await store.put(f"{CAPTURE}/warm-00000", [bytes(300_000)])
    pieces = [os.urandom(500_000) for _ in range(40)]

    # What other threads of this process allocate meanwhile counts too: the least of three is the store's own.
    assert (
        min([await peak_of_storing(store, f"{CAPTURE}/u-{number:05}", pieces) for number in range(3)]) < 2e6
    )


async def peak_of_storing(store: ObjectStore, key: str, pieces: list[bytes]) -> int:
    """The most bytes that were allocated while an object was stored, beyond those before."""
    tracemalloc.start()
    try:
        await store.put(key, pieces)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak


HOSTILE = [
    "",
    "/",
    "/etc/passwd",
    "v1/../../etc/passwd",
    "..",
    ".",
    "v1/./x",
    "v1//x",
    "v1/x/",
    "v1/x\x00",
    "v1/x\n",
    "v1/a b",
    "v1/é",
    "v1/a~b",
    "v1/a,b",
    "v1\\x",
    "v1/%2e%2e/x",
    "v1/" + "x" * 300,
]


async def test_a_key_that_could_escape_is_refused(store: ObjectStore) -> None:
    for key in HOSTILE:
        with pytest.raises(ValueError, match="is not an object key"):
            await store.put(key, [b"x"])
        with pytest.raises(ValueError, match="is not an object key"):
            await store.read(key, 0, 1)
        for pair in ((key, "v1/x"), ("v1/x", key)):
            with pytest.raises(ValueError, match="is not an object key"):
                await store.copy(*pair)
        with pytest.raises(ValueError, match="is not an object key"):
            await store.delete([key])


async def test_a_prefix_that_no_key_can_have_is_refused(store: ObjectStore) -> None:
    for prefix in ["/", "../", "v1/../", "v1//", "v1/*", "~", "x" * 300]:
        with pytest.raises(ValueError, match="is not a prefix"):
            await keys(store, prefix)


async def test_an_examination_finds_nothing_wrong_and_leaves_nothing(store: ObjectStore) -> None:
    if isinstance(store, MemoryStore):
        pytest.skip("there is nothing to examine")
    assert isinstance(store, FileStore | S3Store)

    results = await store.check()
    assert [result for result in results if not result.ok] == []
    assert {"put", "read the end", "copy", "list", "delete"} <= {result.name for result in results}
    assert await keys(store, "") == []


async def test_ping_returns_when_the_store_answers(store: ObjectStore) -> None:
    await store.ping()
