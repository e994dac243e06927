"""Records of another version of the service in Redis: entries with other fields, reservations of less."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import redis
from msgspec.structs import replace
from overspill import wire
from overspill_service.catalog import encoding
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Segment
from overspill_service.catalog.redis import key_names
from overspill_service.catalog.urls import open_catalog
from overspill_service.errors import QuotaExceeded

from tests.contracts.entries import NOW, TENANT, entry, rebuilt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from overspill_service.catalog import Catalog
    from overspill_service.catalog.records import Entry

SOON = 10.0


@pytest.fixture
async def catalog(redis_url: str, tmp_path: Path) -> AsyncIterator[Catalog]:
    made = open_catalog(f"{redis_url}?deadline=60", data_dir=tmp_path)
    yield made
    await made.close()


@pytest.fixture
def server(redis_url: str) -> Any:
    """A client whose types do not tell that values are bytes."""
    return redis.Redis.from_url(redis_url)


def store_as_of_another_version(server: Any, stored: Entry) -> None:
    """Without a field that came later, and with one that went."""
    key = key_names.capture(TENANT, stored.id)
    fields: dict[str, Any] = msgspec.msgpack.decode(server.get(key)[1:])
    del fields["last_append"]
    server.set(key, encoding.ENTRY + msgspec.msgpack.encode(fields | {"gone": 1}))


async def test_an_entry_of_another_version_is_read_kept_for_longer_and_removed(
    catalog: Catalog, server: Any
) -> None:
    for number in (1, 2):
        await catalog.commit(entry(number), Quota())
        store_as_of_another_version(server, entry(number))
    async with asyncio.timeout(SOON):
        is_first = await catalog.note_read(entry(1), NOW, "reader")
        amended = await catalog.amend(entry(2), expires=NOW + 1, marker=None)

    assert is_first
    assert await catalog.get(TENANT, entry(1).id) == replace(entry(1), first_read=NOW, first_reader="reader")
    assert amended == await catalog.get(TENANT, entry(2).id) == replace(entry(2), expires=NOW + 1)


async def test_a_live_capture_that_another_version_began_grows(catalog: Catalog, server: Any) -> None:
    old = entry(1, state=wire.State.LIVE, segments=[], size=0)
    new = replace(old, segments=[Segment(5, 10, 1, "a")], size=10)
    await catalog.commit(old, Quota())
    store_as_of_another_version(server, old)

    assert await catalog.replace(old, new) == new == await catalog.get(TENANT, old.id)


async def test_what_another_version_has_reserved_counts_as_one_capture(catalog: Catalog, server: Any) -> None:
    await rebuilt(catalog)
    ends = server.time()[0] * 1000 + 60_000
    server.hset(key_names.reserved(TENANT), "upload", f"100 50 {ends}")

    await catalog.reserve(TENANT, "other", 0, 50, Quota(captures=2, stored_size=100), keep=1)
    with pytest.raises(QuotaExceeded, match="100 stored bytes"):
        await catalog.reserve(TENANT, "other", 0, 51, Quota(stored_size=100), keep=1)
    with pytest.raises(QuotaExceeded, match="1 captures"):
        await catalog.reserve(TENANT, "other", 0, 1, Quota(captures=1), keep=1)


async def test_what_is_reserved_is_read_by_versions_that_know_of_no_captures(
    catalog: Catalog, server: Any
) -> None:
    await rebuilt(catalog)
    await catalog.reserve(TENANT, "upload", 100, 50, Quota(captures=2), keep=60)
    size, stored_size, ends, captures = map(int, server.hget(key_names.reserved(TENANT), "upload").split())

    assert (size, stored_size, captures) == (100, 50, 1)
    assert ends > server.time()[0] * 1000
