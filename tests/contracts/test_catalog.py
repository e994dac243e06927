"""The contract of every catalog."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from overspill import wire
from overspill_service.catalog.quotas import Quota, Totals
from overspill_service.catalog.records import Entry, Query
from overspill_service.errors import CatalogIncomplete, InvalidParameter, QuotaExceeded

from tests.contracts.entries import (
    NOW,
    TENANT,
    capture_id,
    entry,
    eventually,
    is_gone,
    listed,
    rebuilt,
    sums,
    tombstone,
)

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog

UNLIMITED = Quota()
KEEP = 60.0


# --- entries --------------------------------------------------------------------------------------


async def test_the_first_read_of_a_capture_is_noted_once(catalog: Catalog) -> None:
    await catalog.commit(entry(), Quota())
    answers = await asyncio.gather(
        *(catalog.note_read(entry(), NOW + number, f"key-{number}") for number in range(10))
    )
    found = await catalog.get(TENANT, entry().id)

    assert sum(answers) == 1
    first = answers.index(True)
    assert found == replace(entry(), first_read=NOW + first, first_reader=f"key-{first}")


async def test_a_first_read_and_a_changed_expiry_do_not_undo_each_other(catalog: Catalog) -> None:
    await catalog.commit(entry(), Quota())
    amended, is_first = await asyncio.gather(
        catalog.amend(entry(), expires=NOW + 99_999, marker="marker"), catalog.note_read(entry(), NOW, "key")
    )
    found = await catalog.get(TENANT, entry().id)

    assert is_first
    assert amended is not None
    assert found == replace(
        entry(), expires=NOW + 99_999, marker="marker", first_read=NOW, first_reader="key"
    )


async def test_no_read_of_a_capture_that_is_gone_is_noted(catalog: Catalog) -> None:
    assert not await catalog.note_read(entry(), NOW)
    await catalog.commit(entry(upload="another"), Quota())
    assert not await catalog.note_read(entry(), NOW)
    await catalog.remove(entry(upload="another"), tombstone(entry(upload="another")), keep=60)
    assert not await catalog.note_read(entry(upload="another"), NOW)


async def test_a_committed_entry_is_found_by_its_id_whole(catalog: Catalog) -> None:
    committed = await catalog.commit(entry(), UNLIMITED)

    assert committed == entry()
    assert await catalog.get(TENANT, entry().id) == entry()


async def test_an_unknown_id_is_none(catalog: Catalog) -> None:
    assert await catalog.get(TENANT, capture_id(1)) is None


async def test_the_second_upload_of_an_id_gets_the_first_ones_entry(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)

    assert await catalog.commit(entry(upload="another", tool="other"), UNLIMITED) == entry()
    assert await catalog.totals(TENANT) == sums([entry()])


async def test_of_many_uploads_at_once_exactly_one_wins(catalog: Catalog) -> None:
    uploads = [entry(upload=f"upload-{number}", stored_size=number) for number in range(40)]

    winners = await asyncio.gather(*(catalog.commit(upload, UNLIMITED) for upload in uploads))

    winner = await catalog.get(TENANT, entry().id)
    assert isinstance(winner, Entry)
    assert winners == [winner] * 40
    assert await catalog.totals(TENANT) == sums([winner])


async def test_tenants_never_see_each_others_entries(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)

    assert await catalog.get("other", entry().id) is None
    assert await listed(catalog, Query(), tenant="other") == []
    assert await catalog.totals("other") == Totals()


async def test_any_text_survives_in_an_entry(catalog: Catalog) -> None:
    odd = entry(session="s\x00\n}{:*", call_id="call_0" * 600, tool="🔧", labels={"": "\u2028"})
    await catalog.commit(odd, UNLIMITED)

    assert await catalog.get(TENANT, odd.id) == odd
    assert await listed(catalog, Query(session=odd.session, call_id=odd.call_id)) == [odd]


# --- quota ----------------------------------------------------------------------------------------


async def test_a_quota_of_captures_is_reached_but_never_passed(catalog: Catalog) -> None:
    await rebuilt(catalog)
    for number in range(3):
        await catalog.commit(entry(number), Quota(captures=3))

    with pytest.raises(QuotaExceeded, match="3 captures"):
        await catalog.commit(entry(3), Quota(captures=3))

    assert (await catalog.totals(TENANT)).captures == 3
    assert await catalog.get(TENANT, entry(3).id) is None


async def test_no_quota_is_held_to_totals_that_are_incomplete(catalog: Catalog) -> None:
    await catalog.commit(entry(1), UNLIMITED)

    for quota in (Quota(captures=9), Quota(stored_size=10**6)):
        with pytest.raises(CatalogIncomplete, match="limits cannot be checked"):
            await catalog.commit(entry(2), quota)
    assert await catalog.get(TENANT, entry(2).id) is None
    assert (await catalog.totals(TENANT)).captures == 1
    await rebuilt(catalog)
    assert await catalog.commit(entry(2), Quota(captures=9)) == entry(2)


async def test_a_quota_of_stored_bytes_is_reached_but_never_passed(catalog: Catalog) -> None:
    await rebuilt(catalog)
    await catalog.commit(entry(1, stored_size=60), Quota(stored_size=100))
    await catalog.commit(entry(2, stored_size=40), Quota(stored_size=100))

    with pytest.raises(QuotaExceeded, match="100 stored bytes"):
        await catalog.commit(entry(3, stored_size=1), Quota(stored_size=100))

    assert (await catalog.totals(TENANT)).stored_size == 100


async def test_a_full_tenant_still_gets_the_entry_that_is_there(catalog: Catalog) -> None:
    await rebuilt(catalog)
    await catalog.commit(entry(), Quota(captures=1))

    assert await catalog.commit(entry(upload="retry"), Quota(captures=1)) == entry()


async def test_concurrent_commits_do_not_pass_a_quota_together(catalog: Catalog) -> None:
    await rebuilt(catalog)
    commits = [catalog.commit(entry(number), Quota(captures=7)) for number in range(30)]

    results = await asyncio.gather(*commits, return_exceptions=True)

    assert sum(isinstance(result, QuotaExceeded) for result in results) == 23
    assert (await catalog.totals(TENANT)).captures == 7


async def test_sizes_beyond_four_billion_are_counted_exactly(catalog: Catalog) -> None:
    await rebuilt(catalog)
    huge = [entry(number, stored_size=2**40 + number, size=2**50 + 1) for number in range(3)]
    for each in huge:
        await catalog.commit(each, Quota(stored_size=2**42))

    assert await catalog.totals(TENANT) == sums(huge)
    assert sums(huge).size == 3 * 2**50 + 3


# --- removal and amendment ------------------------------------------------------------------------


async def test_a_removed_entry_leaves_its_tombstone_and_the_totals(catalog: Catalog) -> None:
    await catalog.commit(entry(1), UNLIMITED)
    await catalog.commit(entry(2), UNLIMITED)

    assert await catalog.remove(entry(1), tombstone(entry(1)), keep=KEEP)
    assert await catalog.get(TENANT, entry(1).id) == tombstone(entry(1))
    assert await listed(catalog, Query()) == [entry(2)]
    assert await listed(catalog, Query(session="session-1")) == [entry(2)]
    assert await listed(catalog, Query(call_id="call_1")) == []
    assert await catalog.totals(TENANT) == sums([entry(2)])


async def test_an_entry_is_removed_once_however_many_try(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)
    removals = [catalog.remove(entry(), tombstone(entry()), keep=KEEP) for _ in range(20)]

    assert sum(await asyncio.gather(*removals)) == 1
    assert await catalog.totals(TENANT) == Totals()


async def test_another_upload_of_the_id_is_not_removed(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)

    assert not await catalog.remove(entry(upload="other"), tombstone(entry()), keep=KEEP)
    assert await catalog.get(TENANT, entry().id) == entry()


async def test_an_entry_that_was_amended_meanwhile_is_removed_with_all_of_its_objects(
    catalog: Catalog,
) -> None:
    await catalog.commit(entry(), UNLIMITED)
    amended = await catalog.amend(entry(), expires=NOW + 5, marker="m")
    assert amended is not None

    assert not await catalog.remove(entry(), tombstone(entry()), keep=KEEP)
    assert await catalog.get(TENANT, entry().id) == amended
    assert await catalog.remove(entry(), tombstone(amended), keep=KEEP)
    assert await catalog.totals(TENANT) == Totals()


async def test_a_tombstone_goes_when_its_time_is_over(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)
    await catalog.remove(entry(), tombstone(entry()), keep=0.001)

    await eventually(lambda: is_gone(catalog, entry().id))


async def test_a_removal_that_keeps_no_tombstone_leaves_none_at_once(catalog: Catalog) -> None:
    for number in range(20):
        await catalog.commit(entry(number), UNLIMITED)
        removed = catalog.remove(entry(number), tombstone(entry(number)), keep=0)
        _, found = await asyncio.gather(removed, catalog.get(TENANT, entry(number).id))

        assert found is None or isinstance(found, Entry)
        assert await is_gone(catalog, entry(number).id)


async def test_a_tombstone_gives_way_to_a_new_upload_for_good(catalog: Catalog) -> None:
    again = entry(1, upload="again", created=NOW + 9)
    for number in (1, 2):
        await catalog.commit(entry(number), UNLIMITED)
    await catalog.remove(entry(1), tombstone(entry(1)), keep=0.05)
    assert await catalog.commit(again, UNLIMITED) == again

    await catalog.remove(entry(2), tombstone(entry(2)), keep=0.05)
    await eventually(lambda: is_gone(catalog, entry(2).id))  # so the first one's life is over too
    assert await catalog.get(TENANT, entry(1).id) == again
    assert await listed(catalog, Query(call_id=again.call_id)) == [again]


async def test_an_upload_that_was_removed_does_not_come_back(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)
    await catalog.remove(entry(), tombstone(entry()), keep=KEEP)

    assert await catalog.commit(entry(), UNLIMITED) == tombstone(entry())
    assert await catalog.get(TENANT, entry().id) == tombstone(entry())
    assert await catalog.totals(TENANT) == Totals()


async def test_an_expired_entry_whose_expiry_was_moved_meanwhile_is_not_removed(catalog: Catalog) -> None:
    await catalog.commit(entry(expires=NOW), UNLIMITED)
    await catalog.amend(entry(expires=NOW), expires=NOW + 5, marker="m")

    assert not await catalog.remove(entry(expires=NOW), tombstone(entry(), "expired"), keep=KEEP)
    assert await catalog.get(TENANT, entry().id) == entry(expires=NOW + 5, marker="m")


async def test_an_amended_entry_has_its_new_expiry_everywhere(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)
    amended = replace(entry(), expires=NOW + 5, marker="v1/acme/x-expires-5")

    assert await catalog.amend(entry(), expires=NOW + 5, marker=amended.marker) == amended
    assert await catalog.get(TENANT, entry().id) == amended
    assert await catalog.expired(TENANT, now=NOW + 5, limit=10) == [amended]
    assert await listed(catalog, Query(), now=NOW + 5) == []


async def test_an_amendment_of_a_stale_copy_changes_nothing_and_returns_what_came_first(
    catalog: Catalog,
) -> None:
    await catalog.commit(entry(), UNLIMITED)
    first = await catalog.amend(entry(), expires=NOW + 5, marker="first")
    assert first == replace(entry(), expires=NOW + 5, marker="first")

    assert await catalog.amend(entry(), expires=NOW + 9, marker="second") == first
    assert await catalog.get(TENANT, entry().id) == first
    second = await catalog.amend(first, expires=NOW + 9, marker="second")
    assert second == replace(entry(), expires=NOW + 9, marker="second")


async def test_of_many_amendments_at_once_exactly_one_comes_first(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)
    amendments = [catalog.amend(entry(), expires=NOW + number, marker=str(number)) for number in range(1, 21)]

    results = await asyncio.gather(*amendments)

    stored = await catalog.get(TENANT, entry().id)
    assert isinstance(stored, Entry)
    assert stored.marker is not None
    assert results == [stored] * 20
    assert await catalog.expired(TENANT, now=stored.expires, limit=5) == [stored]


async def test_what_is_gone_or_another_upload_is_not_amended(catalog: Catalog) -> None:
    assert await catalog.amend(entry(), expires=NOW + 5, marker=None) is None

    await catalog.commit(entry(), UNLIMITED)
    assert await catalog.amend(entry(upload="other"), expires=NOW + 5, marker=None) is None

    await catalog.remove(entry(), tombstone(entry()), keep=KEEP)
    assert await catalog.amend(entry(), expires=NOW + 5, marker=None) is None
    assert await catalog.totals(TENANT) == Totals()


# --- listings -------------------------------------------------------------------------------------


async def test_a_listing_is_newest_first_and_page_by_page_complete(catalog: Catalog) -> None:
    entries = [entry(number) for number in range(25)]
    await asyncio.gather(*(catalog.commit(each, UNLIMITED) for each in entries))

    assert await listed(catalog, Query(), limit=4) == entries[::-1]


async def test_large_entries_come_in_short_pages_and_all_come(catalog: Catalog) -> None:
    labels = {f"label-{number}": "x" * 4000 for number in range(30)}
    large = [entry(number, labels=labels) for number in range(40)]
    for each in large:
        await catalog.commit(each, UNLIMITED)
    page, cursor = await catalog.find(TENANT, Query(), now=NOW, limit=1000)
    expired = await catalog.expired(TENANT, now=NOW + 10**6, limit=1000)

    assert cursor is not None
    assert 1 < len(page) < 10
    assert 1 < len(expired) < 10
    assert await listed(catalog, Query(), limit=1000) == large[::-1]


async def test_the_last_page_has_no_cursor_even_when_it_is_full(catalog: Catalog) -> None:
    for number in range(4):
        await catalog.commit(entry(number), UNLIMITED)

    first, cursor = await catalog.find(TENANT, Query(), now=NOW, limit=2)
    last, end = await catalog.find(TENANT, Query(), now=NOW, limit=2, cursor=cursor)

    assert [len(first), len(last), end] == [2, 2, None]


async def test_captures_of_the_same_instant_are_neither_repeated_nor_skipped(catalog: Catalog) -> None:
    entries = [entry(number, created=NOW) for number in range(20)]
    await asyncio.gather(*(catalog.commit(each, UNLIMITED) for each in entries))

    found = await listed(catalog, Query(), limit=3)

    assert [each.id for each in found] == sorted((each.id for each in entries), reverse=True)


async def test_pages_go_on_where_they_were_when_captures_come_and_go(catalog: Catalog) -> None:
    for number in range(10):
        await catalog.commit(entry(number), UNLIMITED)
    _, cursor = await catalog.find(TENANT, Query(), now=NOW, limit=4)

    await catalog.remove(entry(6), tombstone(entry(6)), keep=KEEP)  # the last one shown
    await catalog.commit(entry(20), UNLIMITED)
    page, _ = await catalog.find(TENANT, Query(), now=NOW, limit=4, cursor=cursor)

    assert page == [entry(5), entry(4), entry(3), entry(2)]


@pytest.mark.parametrize("cursor", ["", "x", "ä", "AAAA", "A" * 43, "////////", "\x00", "f_AAAAAAAABjYXBfYQ"])
async def test_a_cursor_of_somebodys_own_making_is_refused(catalog: Catalog, cursor: str) -> None:
    with pytest.raises(InvalidParameter, match="cursor"):
        await catalog.find(TENANT, Query(), now=NOW, limit=4, cursor=cursor)


async def test_every_filter_of_a_query_must_hold(catalog: Catalog) -> None:
    wanted = entry(1, tool="grep", session="s", call_id="c", state=wire.State.PARTIAL)
    others = [
        replace(wanted, id=capture_id(2), tool="cat"),
        replace(wanted, id=capture_id(3), session="t"),
        replace(wanted, id=capture_id(4), call_id="d"),
        replace(wanted, id=capture_id(5), state=wire.State.COMPLETE),
        replace(wanted, id=capture_id(6), created=NOW + 0.5),
        replace(wanted, id=capture_id(7), created=NOW + 2),
        replace(wanted, id=capture_id(8), session="", call_id=""),
    ]
    for each in (wanted, *others):
        await catalog.commit(each, UNLIMITED)
    everything = Query(
        tool="grep", session="s", call_id="c", state=wire.State.PARTIAL, since=NOW + 1, until=NOW + 2
    )

    assert await listed(catalog, everything) == [wanted]
    assert {each.id for each in await listed(catalog, Query(tool="cat"))} == {capture_id(2)}
    assert {each.id for each in await listed(catalog, Query(state=wire.State.COMPLETE))} == {capture_id(5)}
    assert {each.id for each in await listed(catalog, Query(session="t"))} == {capture_id(3)}
    assert {each.id for each in await listed(catalog, Query(call_id="d"))} == {capture_id(4)}
    assert {each.id for each in await listed(catalog, Query(session=""))} == {capture_id(8)}
    assert {each.id for each in await listed(catalog, Query(since=NOW + 2))} == {capture_id(7)}
    assert {each.id for each in await listed(catalog, Query(until=NOW + 1))} == {capture_id(6)}


async def test_a_call_id_that_is_reused_lists_all_its_captures_newest_first(catalog: Catalog) -> None:
    entries = [entry(number, call_id="call_0", session=f"s{number % 2}") for number in range(6)]
    for each in entries:
        await catalog.commit(each, UNLIMITED)

    assert await listed(catalog, Query(call_id="call_0"), limit=4) == entries[::-1]
    assert await listed(catalog, Query(call_id="call_0", session="s1"), limit=1) == entries[5::-2]


async def test_a_filter_that_few_meet_fills_its_pages_from_many(catalog: Catalog) -> None:
    entries = [entry(number, tool="rare" if number % 50 == 0 else "common") for number in range(400)]
    await asyncio.gather(*(catalog.commit(each, UNLIMITED) for each in entries))

    found, cursor = await catalog.find(TENANT, Query(tool="rare"), now=NOW, limit=5)

    assert found == [entries[number] for number in (350, 300, 250, 200, 150)]
    assert cursor is not None
    assert await listed(catalog, Query(tool="rare"), limit=5) == entries[350::-50]


async def test_expired_captures_are_not_listed_though_they_are_still_there(catalog: Catalog) -> None:
    await catalog.commit(entry(1, expires=NOW + 10), UNLIMITED)
    await catalog.commit(entry(2, expires=NOW + 11), UNLIMITED)

    assert [each.id for each in await listed(catalog, Query(), now=NOW + 10)] == [entry(2).id]
    assert await catalog.get(TENANT, entry(1).id) == entry(1, expires=NOW + 10)


# --- ledger ---------------------------------------------------------------------------------------


async def test_tenants_are_those_that_ever_stored(catalog: Catalog) -> None:
    for tenant in ("zeta", "alpha", "alpha"):
        await catalog.commit(entry(tenant=tenant), UNLIMITED)
    await catalog.remove(entry(tenant="zeta"), tombstone(entry()), keep=KEEP)

    assert sorted(await catalog.tenants()) == ["alpha", "zeta"]


async def test_a_tenant_that_never_stored_has_empty_totals(catalog: Catalog) -> None:
    assert await catalog.totals("nobody") == Totals()


async def test_expired_entries_come_longest_expired_first_and_no_more_than_asked_for(
    catalog: Catalog,
) -> None:
    entries = [entry(number, expires=NOW + 100 - number) for number in range(10)]
    for each in entries:
        await catalog.commit(each, UNLIMITED)

    assert await catalog.expired(TENANT, now=NOW + 95, limit=3) == entries[9:6:-1]
    assert await catalog.expired(TENANT, now=NOW + 92, limit=10) == entries[9:7:-1]
    assert await catalog.expired(TENANT, now=NOW + 90, limit=10) == []


# --- service --------------------------------------------------------------------------------------


async def test_a_catalog_that_works_answers_a_ping(catalog: Catalog) -> None:
    await catalog.ping()


async def test_a_cancelled_commit_happened_or_not_and_harms_no_other(catalog: Catalog) -> None:
    tasks = [asyncio.create_task(catalog.commit(entry(number), UNLIMITED)) for number in range(60)]
    for rounds, task in enumerate(tasks[::2]):
        for _ in range(rounds % 5):
            await asyncio.sleep(0)
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    found = await asyncio.gather(*(catalog.get(TENANT, entry(number).id) for number in range(60)))
    assert found[1::2] == [entry(number) for number in range(1, 60, 2)]
    assert all(each in (None, entry(number)) for number, each in enumerate(found))
    totals = await catalog.totals(TENANT)
    assert totals.captures == len(await listed(catalog, Query()))


async def test_closing_twice_does_no_harm(catalog: Catalog) -> None:
    await catalog.commit(entry(), UNLIMITED)

    await catalog.close()
    await catalog.close()


async def test_the_last_use_of_a_key_is_known_until_it_is_revoked(catalog: Catalog) -> None:
    await catalog.note_uses({"a" * 64: NOW, "b" * 64: NOW})
    await catalog.note_uses({"b" * 64: NOW + 1.5})
    assert await catalog.uses() == {"a" * 64: NOW, "b" * 64: NOW + 1.5}

    await catalog.revoke_key("a" * 64)

    assert await catalog.uses() == {"b" * 64: NOW + 1.5}
