"""The part of a quota that incomplete uploads take, and the bounds on the rest of a tenant's room."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from overspill_service.catalog import encoding
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Entry, Tombstone
from overspill_service.catalog.urls import open_catalog
from overspill_service.errors import CatalogIncomplete, QuotaExceeded

from tests.contracts.entries import TENANT, entry, eventually, rebuilt, tombstone

if TYPE_CHECKING:
    from pathlib import Path

    from overspill_service.catalog import Catalog

QUOTA = Quota(stored_size=100, size=1000)
KEEP = 60.0
UNLIMITED = Quota()


@pytest.fixture
async def catalog(catalog: Catalog) -> Catalog:
    await rebuilt(catalog)
    return catalog


async def reserve(
    catalog: Catalog,
    upload: str,
    stored_size: int,
    *,
    size: int = 0,
    keep: float = KEEP,
    quota: Quota = QUOTA,
    captures: int = 1,
) -> None:
    await catalog.reserve(TENANT, upload, size, stored_size, quota, keep=keep, captures=captures)


async def test_reservations_of_all_uploads_and_the_totals_share_one_quota(catalog: Catalog) -> None:
    await catalog.commit(entry(1, stored_size=30), QUOTA)
    await reserve(catalog, "a", 30)
    await reserve(catalog, "b", 40)

    with pytest.raises(QuotaExceeded, match="100 stored bytes"):
        await reserve(catalog, "c", 1)
    with pytest.raises(QuotaExceeded, match="100 stored bytes"):
        await catalog.commit(entry(2, stored_size=1), QUOTA)
    await catalog.reserve("other", "c", 0, 100, QUOTA, keep=KEEP)


async def test_what_was_reserved_while_the_clock_was_ahead_takes_no_room(catalog: Catalog) -> None:
    await reserve(catalog, "killed", 100, keep=86_400)

    await reserve(catalog, "other", 100)


async def test_of_many_uploads_at_once_no_more_reserve_than_there_is(catalog: Catalog) -> None:
    attempts = (reserve(catalog, f"upload-{number}", 30) for number in range(20))
    results = await asyncio.gather(*attempts, return_exceptions=True)

    assert sum(isinstance(each, QuotaExceeded) for each in results) == 17


async def test_an_upload_replaces_what_it_had_reserved(catalog: Catalog) -> None:
    for stored_size in (50, 100, 70):
        await reserve(catalog, "a", stored_size)
    await reserve(catalog, "b", 30)

    with pytest.raises(QuotaExceeded):
        await reserve(catalog, "a", 71)
    await reserve(catalog, "a", 70)


async def test_a_commit_takes_the_place_of_its_reservation(catalog: Catalog) -> None:
    one = entry(1, stored_size=60)
    await reserve(catalog, one.upload, 100)

    assert await catalog.commit(one, QUOTA) == one
    await reserve(catalog, "b", 40)
    with pytest.raises(QuotaExceeded):
        await reserve(catalog, "c", 1)


async def test_a_capture_that_grows_is_counted_once(catalog: Catalog) -> None:
    quota = Quota(captures=2, stored_size=100)
    one, two = entry(1, stored_size=20), entry(2, stored_size=20)
    for each in (one, two):
        await reserve(catalog, each.upload, 1, quota=quota)
        await catalog.commit(each, quota)
        await reserve(catalog, each.upload, 25, quota=quota, captures=0)

    with pytest.raises(QuotaExceeded, match="2 captures"):
        await reserve(catalog, "third", 1, quota=quota)
    with pytest.raises(QuotaExceeded, match="100 stored bytes"):
        await reserve(catalog, two.upload, 36, quota=quota, captures=0)
    await reserve(catalog, two.upload, 35, quota=quota, captures=0)


async def test_a_freed_reservation_leaves_its_room_to_others(catalog: Catalog) -> None:
    await reserve(catalog, "a", 100)
    await catalog.free(TENANT, "a")
    await catalog.free(TENANT, "a")

    await reserve(catalog, "b", 100)


async def test_the_reservation_of_an_upload_that_is_gone_ends_by_itself(catalog: Catalog) -> None:
    await reserve(catalog, "killed", 100, keep=0.001)

    async def has_room() -> bool:
        try:
            await reserve(catalog, "b", 100)
        except QuotaExceeded:
            return False
        return True

    await eventually(has_room)


async def test_a_reservation_that_is_renewed_lasts(catalog: Catalog) -> None:
    await reserve(catalog, "a", 100, keep=0.001)
    await reserve(catalog, "a", 100, keep=KEEP)
    await reserve(catalog, "other", 0, quota=UNLIMITED, keep=0.001)

    with pytest.raises(QuotaExceeded):
        await reserve(catalog, "b", 1)


async def test_content_is_held_to_a_limit_of_its_own(catalog: Catalog) -> None:
    await catalog.commit(entry(1, size=400), QUOTA)
    await reserve(catalog, "a", 1, size=500)

    with pytest.raises(QuotaExceeded, match="1000 content bytes"):
        await reserve(catalog, "b", 1, size=101)
    with pytest.raises(QuotaExceeded, match="1000 content bytes"):
        await catalog.commit(entry(2, size=101, stored_size=1), QUOTA)
    assert isinstance(await catalog.commit(entry(2, size=100, stored_size=1), QUOTA), Entry)
    await catalog.remove(entry(1, size=400), tombstone(entry(1)), keep=KEEP)
    await reserve(catalog, "b", 1, size=400)


async def test_a_running_upload_counts_as_a_capture(catalog: Catalog) -> None:
    quota = Quota(captures=2)
    await catalog.commit(entry(1), quota)
    await reserve(catalog, "a", 5, quota=quota)

    with pytest.raises(QuotaExceeded, match="2 captures"):
        await reserve(catalog, "b", 5, quota=quota)


async def test_metadata_is_charged_and_released_with_its_capture(catalog: Catalog) -> None:
    large = entry(1, labels={"name": "ü" * 1000}, index=None)
    quota = Quota(metadata=large.metadata_size + 10)
    await catalog.commit(large, quota)

    assert large.metadata_size > 2000
    assert (await catalog.totals(TENANT)).metadata == large.metadata_size
    with pytest.raises(QuotaExceeded, match="metadata bytes"):
        await catalog.commit(entry(2), quota)
    amended = await catalog.amend(large, expires=large.expires + 9, marker="m" * 99)
    assert amended is not None
    await catalog.remove(amended, tombstone(amended), keep=KEEP)
    assert (await catalog.totals(TENANT)).metadata == 0
    assert await catalog.commit(entry(2), quota) == entry(2)


async def test_only_exact_limits_wait_for_the_totals(tmp_path: Path, redis_url: str) -> None:
    for url in ("sqlite:", redis_url):
        catalog = open_catalog(url, data_dir=tmp_path)
        try:
            with pytest.raises(CatalogIncomplete):
                await catalog.reserve(TENANT, "a", 0, 1, QUOTA, keep=KEEP)
            roughly = Quota(stored_size=100, is_exact=False)
            await catalog.reserve(TENANT, "a", 0, 50, roughly, keep=KEEP)
            with pytest.raises(QuotaExceeded):
                await catalog.commit(entry(1, stored_size=51), roughly)
            assert await catalog.commit(entry(1, stored_size=50), roughly) == entry(1, stored_size=50)
        finally:
            await catalog.close()


# --- tombstones -----------------------------------------------------------------------------------


@pytest.fixture
def few_tombstones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_TOMBSTONES", 3)


async def removed(catalog: Catalog, number: int, tenant: str = TENANT) -> None:
    one = entry(number, tenant=tenant)
    await catalog.commit(one, UNLIMITED)
    assert await catalog.remove(one, tombstone(one), keep=KEEP + number)


@pytest.mark.usefixtures("few_tombstones")
async def test_beyond_the_limit_of_a_tenant_its_oldest_tombstones_go(catalog: Catalog) -> None:
    await removed(catalog, 0, "other")
    for number in range(10):
        await removed(catalog, number)
    kept = [number for number in range(10) if await catalog.get(TENANT, entry(number).id) is not None]

    assert kept == [7, 8, 9]
    assert isinstance(await catalog.get("other", entry(0).id), Tombstone)


@pytest.mark.usefixtures("few_tombstones")
async def test_a_capture_that_took_the_place_of_an_old_tombstone_stays(catalog: Catalog) -> None:
    await removed(catalog, 0)
    again = entry(0, upload="again")
    assert await catalog.commit(again, UNLIMITED) == again
    for number in range(1, 6):
        await removed(catalog, number)

    assert await catalog.get(TENANT, again.id) == again
