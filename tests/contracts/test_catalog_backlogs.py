"""Every catalog keeps the last report of each spool, for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from overspill_service.catalog import backlogs
from overspill_service.catalog.backlogs import Backlog

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog

NOON = 1_800_014_400.0
EMPTY = Backlog(0, 0, NOON)


async def note(
    catalog: Catalog, tenant: str, spool: str, backlog: Backlog, *, now: float = NOON, keep: float = 60.0
) -> None:
    await catalog.note_backlog(tenant, spool, backlog, now=now, keep=keep)


async def test_the_last_reports_of_all_spools_add_up_by_tenant(catalog: Catalog) -> None:
    await note(catalog, "a", "one", Backlog(9, 900, NOON - 9))
    await note(catalog, "a", "one", Backlog(2, 2**40, NOON - 5))
    await note(catalog, "a", "two", Backlog(3, 30, NOON - 7.5))
    await note(catalog, "b\n✓", "one", Backlog(1, 1, NOON))

    assert await catalog.backlogs(NOON) == {
        "a": Backlog(5, 2**40 + 30, NOON - 7.5),
        "b\n✓": Backlog(1, 1, NOON),
    }


async def test_an_empty_spool_is_forgotten(catalog: Catalog) -> None:
    await note(catalog, "a", "one", Backlog(2, 20, NOON))
    await note(catalog, "a", "two", Backlog(3, 30, NOON))
    await note(catalog, "a", "one", EMPTY)
    await note(catalog, "a", "never there", EMPTY)

    assert await catalog.backlogs(NOON) == {"a": Backlog(3, 30, NOON)}


async def test_a_spool_that_reports_no_more_is_forgotten(catalog: Catalog) -> None:
    await note(catalog, "a", "one", Backlog(2, 20, NOON))
    await note(catalog, "a", "two", Backlog(3, 30, NOON), now=NOON + 30)

    assert await catalog.backlogs(NOON + 59.9) == {"a": Backlog(5, 50, NOON)}
    assert await catalog.backlogs(NOON + 60) == {"a": Backlog(3, 30, NOON)}
    assert await catalog.backlogs(NOON + 90) == {}


async def test_each_tenant_has_a_bound_of_its_own(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("redis", "sqlite"):
        monkeypatch.setattr(f"overspill_service.catalog.{module}.backlogs.MAX_SPOOLS", 3)
    for number in range(9):
        await note(catalog, "a", f"{number}", Backlog(1, 1, NOON))
    await note(catalog, "a", "0", Backlog(5, 5, NOON))
    await note(catalog, "b", "0", Backlog(1, 1, NOON))

    assert backlogs.MAX_SPOOLS > 3
    assert await catalog.backlogs(NOON) == {"a": Backlog(7, 7, NOON), "b": Backlog(1, 1, NOON)}


async def test_a_tenant_is_known_again_after_it_had_nothing(catalog: Catalog) -> None:
    await note(catalog, "a", "one", Backlog(2, 20, NOON))
    await note(catalog, "a", "one", EMPTY)
    assert await catalog.backlogs(NOON) == {}
    await note(catalog, "a", "one", Backlog(3, 30, NOON))

    assert await catalog.backlogs(NOON) == {"a": Backlog(3, 30, NOON)}
