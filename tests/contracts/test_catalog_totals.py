"""The totals are the sum over the entries, whatever happened in whatever order."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Entry, Query, Tombstone
from overspill_service.catalog.urls import open_catalog
from overspill_service.errors import QuotaExceeded

from tests.contracts.entries import NOW, capture_id, entry, listed, rebuilt, sums, tombstone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from overspill_service.catalog import Catalog

IDS = 4
QUOTA = Quota(stored_size=250, captures=3)

Step = tuple[str, int, int, int]
"""What to do, to which capture, with which upload, and a number: its stored size or its new expiry."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["commit", "commit", "remove", "amend"]),
        st.integers(0, IDS - 1),
        st.integers(0, 1),
        st.integers(0, 120),
    ),
    max_size=25,
)


@pytest.fixture(params=["sqlite:", "redis_url"])
async def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Catalog]:
    url: str = request.param
    made = open_catalog(url if url.endswith(":") else request.getfixturevalue(url), data_dir=tmp_path)
    await rebuilt(made)
    yield made
    await made.close()


class Model:
    """What a catalog should hold, in a dictionary."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.tenant = uuid4().hex
        self.entries: dict[str, Entry] = {}
        self.graves: dict[str, Tombstone] = {}

    async def take(self, step: Step) -> None:
        what, number, upload, value = step
        made = self._entry(number, upload, value)
        held = self.entries.get(made.id)
        is_same = held is not None and held.upload == made.upload
        if what == "commit":
            await self._commit(made)
        elif what == "remove":
            assert await self.catalog.remove(made, tombstone(made), keep=60) == is_same
            if is_same:
                del self.entries[made.id]
                self.graves[made.id] = tombstone(made)
        else:
            amended = await self.catalog.amend(made, expires=NOW + value, marker=None)
            assert (amended is not None) == is_same
            if held is not None and is_same:
                self.entries[made.id] = replaced(held, expires=NOW + value)

    def _entry(self, number: int, upload: int, value: int) -> Entry:
        name = f"upload-{number}-{upload}"
        return entry(
            number, tenant=self.tenant, upload=name, stored_size=value, created=NOW + 10 * number + upload
        )

    async def _commit(self, made: Entry) -> None:
        after = sums([*self.entries.values(), made])
        fits = after.captures <= QUOTA.captures and after.stored_size <= QUOTA.stored_size
        grave = self.graves.get(made.id)
        if made.id not in self.entries and grave is not None and grave.is_of_upload(made):
            assert await self.catalog.commit(made, QUOTA) == grave
        elif made.id in self.entries or fits:
            expected = self.entries.setdefault(made.id, made)
            self.graves.pop(made.id, None)
            assert await self.catalog.commit(made, QUOTA) == expected
        else:
            with pytest.raises(QuotaExceeded):
                await self.catalog.commit(made, QUOTA)

    async def check(self) -> None:
        """Every view of the catalog shows the same entries."""
        newest_first = sorted(self.entries.values(), key=lambda each: -each.created)
        by_expiry = sorted(self.entries.values(), key=lambda each: (each.expires, each.id))
        assert await self.catalog.totals(self.tenant) == sums(newest_first)
        assert await listed(self.catalog, Query(), now=0, limit=2, tenant=self.tenant) == newest_first
        assert await self.catalog.expired(self.tenant, now=NOW * 2, limit=IDS) == by_expiry
        for number in range(IDS):
            one = await listed(self.catalog, Query(call_id=f"call_{number}"), now=0, tenant=self.tenant)
            assert [each.id for each in one] == [key for key in self.entries if key == capture_id(number)]


def replaced(held: Entry, **changes: Any) -> Entry:
    return entry(0, **{name: getattr(held, name) for name in held.__struct_fields__} | changes)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_totals_and_listings_agree_with_the_entries_after_any_steps(
    catalog: Catalog, steps: list[Step]
) -> None:
    model = Model(catalog)
    for step in steps:
        await model.take(step)
        assert await catalog.totals(model.tenant) == sums(model.entries.values())
    await model.check()


async def test_totals_agree_with_the_entries_after_many_tasks_changed_few_captures(catalog: Catalog) -> None:
    async def change(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(15):
            made = entry(
                chance.randrange(IDS),
                upload=f"upload-{chance.randrange(10**9)}",
                stored_size=chance.randrange(99),
            )
            held = await catalog.commit(made, Quota())
            assert isinstance(held, Entry)
            if chance.random() < 0.5:
                await catalog.amend(held, expires=NOW + chance.randrange(99), marker=None)
            if chance.random() < 0.7:
                await catalog.remove(held, tombstone(held), keep=60)

    await asyncio.gather(*(change(seed) for seed in range(12)))

    entries = await listed(catalog, Query(), now=0)
    assert await catalog.totals(entry().tenant) == sums(entries)
    assert {each.id for each in await catalog.expired(entry().tenant, now=NOW * 2, limit=99)} == {
        each.id for each in entries
    }
