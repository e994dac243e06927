"""One record that cannot be decoded costs nothing but itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Query
from overspill_service.catalog.redis import key_names
from overspill_service.catalog.redis.catalog import RedisCatalog
from overspill_service.errors import RecordDamaged

from tests.contracts.entries import NOW, TENANT, entry, listed, tombstone

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog
    from overspill_service.catalog.records import Entry
    from overspill_service.catalog.sqlite.catalog import SqliteCatalog

GARBAGE = [b"", b"E", b"E\x81\xa6tenant\xc3", b"\x00\xff", b"X" * 100]


async def corrupt(catalog: Catalog, damaged: Entry, value: bytes) -> None:
    """Overwrite a record behind the catalog's back."""
    if isinstance(catalog, RedisCatalog):
        await catalog._client.call("SET", key_names.capture(damaged.tenant, damaged.id), value)
    else:
        update = "UPDATE captures SET value = ? WHERE tenant = ? AND id = ?"
        sqlite = cast("SqliteCatalog", catalog)
        await sqlite._writer.run(lambda db: db.execute(update, (value, damaged.tenant, damaged.id)))


async def committed(catalog: Catalog, count: int) -> list[Entry]:
    entries = [entry(number) for number in range(count)]
    for each in entries:
        await catalog.commit(each, Quota())
    return entries


@pytest.mark.parametrize("value", GARBAGE)
async def test_a_damaged_record_is_told_of_and_replaced(catalog: Catalog, value: bytes) -> None:
    one, other = await committed(catalog, 2)
    before = await catalog.totals(TENANT)
    await corrupt(catalog, one, value)

    with pytest.raises(RecordDamaged):
        await catalog.get(TENANT, one.id)
    with pytest.raises(RecordDamaged):
        await catalog.commit(one, Quota())
    assert await catalog.restore(one)
    assert await catalog.get(TENANT, one.id) == one
    assert await listed(catalog, Query()) == [other, one]
    assert await catalog.totals(TENANT) == before


async def test_listings_and_sweeps_pass_over_damaged_records_and_remember_them(catalog: Catalog) -> None:
    entries = await committed(catalog, 300)
    for each in entries[:290]:
        await corrupt(catalog, each, b"E")

    assert await listed(catalog, Query(), limit=4) == entries[:289:-1]
    assert await listed(catalog, Query(session="session-1")) == entries[:289:-1]
    late = entries[-1].expires
    assert await catalog.expired(TENANT, now=late, limit=5) == entries[290:295]
    assert await catalog.expired(TENANT, now=late, limit=500) == entries[290:]
    assert sorted(catalog.damaged()) == sorted((TENANT, each.id) for each in entries[:290])
    assert catalog.damaged() == []


async def test_each_damaged_record_is_logged_once(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    (one,) = await committed(catalog, 1)
    await corrupt(catalog, one, b"E")
    for _ in range(3):
        await listed(catalog, Query())

    assert [one.id in line.getMessage() for line in caplog.records] == [True]


async def test_a_replaced_record_can_be_listed_amended_and_removed(catalog: Catalog) -> None:
    (one,) = await committed(catalog, 1)
    await corrupt(catalog, one, b"E")
    await catalog.restore(one)

    amended = await catalog.amend(one, expires=NOW + 5, marker="m")
    assert amended == replace(one, expires=NOW + 5, marker="m")
    assert await catalog.expired(TENANT, now=NOW + 5, limit=5) == [amended]
    assert await catalog.remove(amended, tombstone(amended), keep=60)
    assert (await catalog.totals(TENANT)).captures == 0
    assert await listed(catalog, Query()) == []


async def test_a_sound_record_is_not_replaced(catalog: Catalog) -> None:
    one, other = await committed(catalog, 2)
    await catalog.remove(other, tombstone(other), keep=60)

    assert not await catalog.restore(replace(one, tool="another"))
    assert not await catalog.restore(other)
    assert not await catalog.restore(entry(7))
    assert await catalog.get(TENANT, one.id) == one
    assert await catalog.get(TENANT, other.id) == tombstone(other)
