"""The contract of every catalog besides entries: leases, first times, completeness, API keys."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from overspill import wire
from overspill_service.catalog.key_records import KeyRecord
from overspill_service.live.flusher import COMPACTION_LEASE_SECONDS, LEASE_SECONDS

from tests.contracts.entries import NOW, TENANT, eventually, rebuilt

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog

KEEP = 60.0


# --- coordination ---------------------------------------------------------------------------------


async def test_a_lease_has_one_holder_who_may_renew_it(catalog: Catalog) -> None:
    assert await catalog.lease("sweep", "one", KEEP)
    assert not await catalog.lease("sweep", "two", KEEP)
    assert await catalog.lease("sweep", "one", KEEP)
    assert await catalog.lease("other", "two", KEEP)


async def test_a_lease_stays_with_its_holder_although_another_asks_for_a_shorter_one(
    catalog: Catalog,
) -> None:
    await catalog.lease("live", "compacts", COMPACTION_LEASE_SECONDS)

    assert not await catalog.lease("live", "stores", LEASE_SECONDS)


async def test_a_lease_given_back_is_free_but_only_its_holder_can_give_it(catalog: Catalog) -> None:
    await catalog.lease("sweep", "one", KEEP)
    await catalog.release("sweep", "two")
    assert not await catalog.lease("sweep", "two", KEEP)

    await catalog.release("sweep", "one")
    assert await catalog.lease("sweep", "two", KEEP)


async def test_whether_somebody_has_a_lease_can_be_asked(catalog: Catalog) -> None:
    await catalog.lease("sweep", "one", KEEP)

    assert [await catalog.is_leased(name) for name in ("sweep", "other")] == [True, False]
    await catalog.release("sweep", "one")
    assert not await catalog.is_leased("sweep")


async def test_a_lease_ends_by_itself(catalog: Catalog) -> None:
    await catalog.lease("sweep", "one", 0.001)

    await eventually(lambda: _is_free(catalog, "sweep"))
    await eventually(lambda: catalog.lease("sweep", "two", KEEP))


async def _is_free(catalog: Catalog, name: str) -> bool:
    return not await catalog.is_leased(name)


async def test_of_many_that_ask_at_once_one_is_first(catalog: Catalog) -> None:
    answers = await asyncio.gather(*(catalog.once("batch", KEEP) for _ in range(20)))

    assert sum(answers) == 1
    assert await catalog.once("another", KEEP)


async def test_a_name_is_first_again_when_its_time_is_over(catalog: Catalog) -> None:
    assert await catalog.once("batch", 0.001)

    await eventually(lambda: catalog.once("batch", 0.001))


async def test_a_new_catalog_is_not_complete_until_it_is_said(catalog: Catalog) -> None:
    assert not await catalog.is_complete()

    await rebuilt(catalog)
    assert await catalog.is_complete()


# --- keys -----------------------------------------------------------------------------------------


async def test_a_key_is_found_by_its_hash_until_it_is_revoked(catalog: Catalog) -> None:
    key = KeyRecord(
        hash="aa", tenant=TENANT, scopes=[wire.Scope.READ, wire.Scope.WRITE], name="ci", expires=NOW
    )
    await catalog.add_key(key)

    assert await catalog.find_key("aa") == key
    assert await catalog.find_key("bb") is None
    assert await catalog.revoke_key("aa")
    assert not await catalog.revoke_key("aa")
    assert await catalog.find_key("aa") is None


async def test_keys_are_listed_oldest_first(catalog: Catalog) -> None:
    records = [KeyRecord(hash=f"{9 - n}", tenant=TENANT, scopes=[], created=NOW + n) for n in range(3)]
    for record in reversed(records):
        await catalog.add_key(record)

    assert await catalog.keys() == records


async def test_a_catalog_tells_the_time_where_it_has_a_clock_of_its_own(catalog: Catalog) -> None:
    begun, told, ended = time.time(), await catalog.now(), time.time()

    assert told is None or begun - 1 <= told <= ended + 1


# --- what replicas tell each other ------------------------------------------------------------------


async def test_each_holder_hears_the_sum_of_what_the_others_told(catalog: Catalog) -> None:
    answers = [
        await catalog.tell("acme", holder, figure, keep=60.0)
        for holder, figure in (("a", 1.5), ("b", 2.25), ("c", 4.0), ("a", 0.5))
    ]

    assert answers == [0.0, 1.5, 3.75, 6.25]
    assert await catalog.tell("b", "b", 1.0, keep=60.0) == 0.0
    assert await catalog.tell("acme", "d", 0.0, keep=60.0) == 6.75


async def test_a_holder_that_tells_nothing_more_is_forgotten(catalog: Catalog) -> None:
    await catalog.tell("acme", "gone", 9.0, keep=0.02)
    await catalog.tell("acme", "here", 1.0, keep=60.0)

    async def heard() -> bool:
        return await catalog.tell("acme", "listener", 0.0, keep=60.0) == 1.0

    await eventually(heard)
