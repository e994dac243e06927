"""Every catalog knows a tenant's largest captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from overspill import wire
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Entry, Segment

from tests.contracts.entries import NOW, TENANT, entry, tombstone

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog


async def stored(catalog: Catalog, *sizes: int, tenant: str = TENANT) -> list[Entry]:
    made = [
        entry(number, size=size, tenant=tenant, segments=[Segment(50, size, 3)])
        for number, size in enumerate(sizes, 1)
    ]
    for each in made:
        await catalog.commit(each, Quota())
    return made


async def largest(catalog: Catalog, *, limit: int = 10, now: float = NOW) -> list[int]:
    return [each.size for each in await catalog.largest(TENANT, now=now, limit=limit)]


async def test_the_largest_come_first_and_no_more_than_asked_for(catalog: Catalog) -> None:
    await stored(catalog, 5, 2**40, 70, 300_000_000_000, 0)
    await stored(catalog, 999, tenant="another")

    assert await largest(catalog) == [2**40, 300_000_000_000, 70, 5, 0]
    assert await largest(catalog, limit=2) == [2**40, 300_000_000_000]


async def test_what_has_expired_or_is_removed_is_not_among_the_largest(catalog: Catalog) -> None:
    made = await stored(catalog, 10, 20, 30)
    await catalog.remove(made[1], tombstone(made[1]), keep=60)
    await catalog.amend(made[2], expires=NOW - 1, marker=None)

    assert await largest(catalog) == [10]


async def test_a_capture_that_grows_moves_up(catalog: Catalog) -> None:
    await stored(catalog, 50)
    growing = entry(7, size=0, state=wire.State.LIVE, segments=[])
    await catalog.commit(growing, Quota())
    grown = replace(growing, size=60, segments=[Segment(10, 60, 1)])
    await catalog.replace(growing, grown)
    during = await largest(catalog)
    await catalog.replace(grown, replace(grown, size=40, state=wire.State.PARTIAL))

    assert (during, await largest(catalog)) == ([60, 50], [50, 40])


async def test_large_entries_come_in_a_short_answer(catalog: Catalog) -> None:
    for number in range(1, 41):
        await catalog.commit(entry(number, labels={"x": "y" * 60_000}), Quota())
    found = await largest(catalog, limit=100)

    assert 5 < len(found) < 30
    assert found == sorted(found, reverse=True)
    assert max(found) == 140
