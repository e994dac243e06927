"""The readers of captures, in every catalog."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace
from overspill import wire
from overspill_service.catalog.encoding import PAGE_BYTES, Page
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.readers import KEY_BYTES, MAX_BYTES, READER_BYTES, Reader, ReadNote

from tests.contracts.entries import NOW, TENANT, entry, tombstone

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog
    from overspill_service.catalog.records import Entry

LONGEST_TENANT = "t" * 63


def note(name: str, at: float = NOW, *, of: Entry | None = None, on_page: bool = False) -> ReadNote:
    read = of or entry()
    return ReadNote(read.id, read.upload, name, on_page, at)


async def noted(catalog: Catalog, *notes: ReadNote, most: int = 0) -> None:
    await catalog.note_readers(TENANT, notes, max_bytes=most)


async def names(catalog: Catalog, of: Entry | None = None) -> list[str]:
    return [each.name for each in await catalog.readers(TENANT, (of or entry()).id)]


async def test_readers_are_listed_with_their_first_and_last_read_the_last_one_first(catalog: Catalog) -> None:
    await catalog.commit(entry(), Quota())
    await noted(catalog, note("key-1", NOW + 0.25), note("key-2", NOW + 1), note("key-3", NOW + 2))
    await noted(catalog, note("key-1", NOW + 3.5), note("key-2", NOW))

    assert await catalog.readers(TENANT, entry().id) == [
        Reader("key-1", False, NOW + 0.25, NOW + 3.5),
        Reader("key-3", False, NOW + 2, NOW + 2),
        Reader("key-2", False, NOW, NOW + 1),
    ]


async def test_who_looks_on_the_page_is_apart_from_the_agents_of_the_same_key(catalog: Catalog) -> None:
    await catalog.commit(entry(), Quota())
    await noted(catalog, note("key", NOW), note("key", NOW + 1, on_page=True))

    assert await catalog.readers(TENANT, entry().id) == [
        Reader("key", True, NOW + 1, NOW + 1),
        Reader("key", False, NOW, NOW),
    ]


@pytest.mark.parametrize("name", ["", " ", "a\x00b", "größe ✓ 😀", "'; DROP TABLE readers", "T", "0" * 256])
async def test_a_reader_may_have_any_name(catalog: Catalog, name: str) -> None:
    await catalog.commit(entry(), Quota())
    for at in (NOW, NOW + 1):
        await noted(catalog, note(name, at))

    assert await catalog.readers(TENANT, entry().id) == [Reader(name, False, NOW, NOW + 1)]


async def test_of_many_readers_those_who_read_last_are_remembered(catalog: Catalog) -> None:
    await catalog.commit(entry(), Quota())
    await noted(catalog, *(note(f"key-{number}", NOW + number) for number in range(40)))
    await noted(catalog, note("key-24", NOW + 50), note("too late", NOW - 1))

    expected = ["key-24", *(f"key-{number}" for number in range(39, 24, -1))]
    assert await names(catalog) == expected
    assert len(expected) == wire.MAX_READERS


async def test_readers_with_long_names_take_no_more_than_others(catalog: Catalog) -> None:
    await catalog.commit(entry(), Quota())
    size = MAX_BYTES // 4 - READER_BYTES
    await noted(catalog, *(note(f"{number}" * size, NOW + number) for number in range(9)))

    assert await names(catalog) == [f"{number}" * size for number in (8, 7, 6, 5)]


async def test_the_readers_of_a_capture_go_with_it(catalog: Catalog) -> None:
    again = replace(entry(), upload="another")
    await catalog.commit(entry(), Quota())
    await noted(catalog, note("key"))
    await catalog.remove(entry(), tombstone(entry()), keep=60)
    await noted(catalog, note("late"))
    of_removed = await names(catalog)
    await catalog.commit(again, Quota())
    await noted(catalog, note("late"), note("key", of=again))

    assert of_removed == []
    assert await names(catalog) == ["key"]


async def test_readers_stay_if_the_capture_lives_longer_or_grows(catalog: Catalog) -> None:
    live = entry(state=wire.State.LIVE)
    await catalog.commit(live, Quota())
    await noted(catalog, note("key"))
    amended = await catalog.amend(live, expires=NOW + 99_999, marker=None)
    assert amended is not None
    await catalog.replace(amended, replace(amended, state=wire.State.COMPLETE, size=200))
    await noted(catalog, note("another", NOW + 1))

    assert await names(catalog) == ["another", "key"]


async def test_a_capture_that_nobody_has_read_has_no_readers(catalog: Catalog) -> None:
    await noted(catalog, note("key"))
    await catalog.commit(entry(), Quota())
    await noted(catalog)

    assert await names(catalog) == []


async def test_tenants_have_readers_of_their_own(catalog: Catalog) -> None:
    others = replace(entry(), tenant=LONGEST_TENANT)
    for each in (entry(), others):
        await catalog.commit(each, Quota())
    await noted(catalog, note("key"))
    await catalog.note_readers(LONGEST_TENANT, [note("other", of=others)], max_bytes=0)

    assert await names(catalog) == ["key"]
    assert [each.name for each in await catalog.readers(LONGEST_TENANT, others.id)] == ["other"]


async def test_notes_that_come_at_once_are_all_kept(catalog: Catalog) -> None:
    await catalog.commit(entry(), Quota())
    await asyncio.gather(*(noted(catalog, note(f"key-{number}", NOW + number)) for number in range(10)))

    assert await names(catalog) == [f"key-{number}" for number in range(9, -1, -1)]


async def test_a_tenant_fills_no_catalog_with_readers_and_removals_make_room(catalog: Catalog) -> None:
    entries = [entry(number) for number in range(10)]
    most = 5 * (KEY_BYTES + 60)
    for each in entries:
        await catalog.commit(each, Quota())
        await noted(catalog, note("the-id-a-key", of=each), most=most)
    await noted(catalog, *(note("the-id-a-key", NOW + 1, of=each) for each in entries), most=most)
    kept = [each for each in entries if await names(catalog, each)]
    await catalog.remove(entries[0], tombstone(entries[0]), keep=60)
    await noted(catalog, note("the-id-a-key", of=entries[9]), most=most)

    assert kept == entries[:5]
    assert [each.last for each in await catalog.readers(TENANT, entries[4].id)] == [NOW + 1]
    assert await names(catalog, entries[9]) == ["the-id-a-key"]


def test_pages_are_short_if_first_readers_have_long_names() -> None:
    page, long = Page(1_000), entry(first_reader="\x01" * 256)
    while page.add(long):
        pass

    size = len(msgspec.json.encode([each.to_wire() for each in page.entries]))
    assert size < PAGE_BYTES
    assert len(page.entries) > 100


async def test_of_a_forgotten_tenant_no_reader_counts(catalog: Catalog) -> None:
    settings: dict[str, Any] = {"most": KEY_BYTES + 60}
    for _ in range(2):
        await catalog.commit(entry(), Quota())
        await noted(catalog, note("key"), **settings)
        assert await names(catalog) == ["key"]
        await catalog.remove(entry(), tombstone(entry()), keep=0)
        await catalog.forget_tenant(TENANT)
