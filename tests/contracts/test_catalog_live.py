"""The buffers of live captures, their schedule and their news, in every catalog."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from overspill.wire import State
from overspill_service.catalog.live import LOOK_AGAIN, MARK, UNKNOWN, Append, AppendStatus, LiveRecord
from overspill_service.catalog.quotas import Quota, Totals
from overspill_service.catalog.records import Entry, Query, Segment
from overspill_service.catalog.redis.catalog import RedisCatalog
from overspill_service.errors import QuotaExceeded

from tests.contracts.entries import NOW, TENANT, entry, rebuilt

if TYPE_CHECKING:
    from overspill_service.catalog import Catalog

PLENTY = 2**30


def live_entry(number: int = 1, **changes: Any) -> Entry:
    empty = {"size": 0, "lines": 0, "sha256": b"", "segments": [], "index": None}
    return replace(entry(number), **{"state": State.LIVE, "producer": "me", **empty, **changes})


async def begun(catalog: Catalog, number: int = 1) -> Entry:
    made = live_entry(number)
    await catalog.commit(made, Quota())
    record = LiveRecord(producer="me", accepted=0, start=0, durable=0, active=NOW)
    assert await catalog.open_live(TENANT, made.id, record)
    return made


async def append(
    catalog: Catalog, capture: str, offset: int, data: bytes, *, now: float = NOW, **limits: int
) -> tuple[int, ...]:
    limits = {"limit": PLENTY, "tenant_limit": PLENTY, **limits}
    return await catalog.append_live(TENANT, capture, Append("me", offset, data, now), **limits)


async def test_appends_follow_each_other(catalog: Catalog) -> None:
    made = await begun(catalog)

    answers = [await append(catalog, made.id, 0, b"one"), await append(catalog, made.id, 3, b"\0\xff")]

    assert answers == [(AppendStatus.DONE, 3, 0), (AppendStatus.DONE, 5, 0)]
    record = await catalog.live(TENANT, made.id)
    assert record is not None
    assert (record.buffer, record.start, record.accepted, record.durable) == (b"one\0\xff", 0, 5, 0)


async def test_an_append_at_another_offset_changes_nothing(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"one")

    for offset in (0, 2, 4):
        assert await append(catalog, made.id, offset, b"two") == (AppendStatus.WRONG_OFFSET, 3, 0)


async def record_of(catalog: Catalog, capture: str) -> LiveRecord:
    record = await catalog.live(TENANT, capture)
    assert record is not None
    return record


async def test_a_producer_that_asks_for_more_after_a_loss_tells_how_much_is_lost(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"one")
    await append(catalog, made.id, 9, b"nothing was lost: this is a mistake")
    healthy = (await record_of(catalog, made.id)).lost

    await catalog.doubt_live(TENANT, made.id)
    doubtful = (await record_of(catalog, made.id)).lost
    for offset in (9, 8, 2):
        assert (await append(catalog, made.id, offset, b"x"))[0] is AppendStatus.WRONG_OFFSET
    asked = (await record_of(catalog, made.id)).lost
    await catalog.doubt_live(TENANT, made.id)
    await append(catalog, made.id, 3, b"two")
    sent_in_part = (await record_of(catalog, made.id)).lost
    await append(catalog, made.id, 6, b"three")

    assert (healthy, doubtful, asked, sent_in_part) == (None, UNKNOWN, 6, 3)
    assert (await record_of(catalog, made.id)).lost is None


async def test_an_append_where_the_buffer_ends_ends_the_doubt(catalog: Catalog) -> None:
    made = live_entry()
    await catalog.commit(made, Quota())
    record = LiveRecord(producer="me", accepted=7, start=7, durable=7, active=NOW, reached=UNKNOWN)
    await catalog.open_live(TENANT, made.id, record)
    opened = (await record_of(catalog, made.id)).lost

    await append(catalog, made.id, 7, b"")

    assert opened == UNKNOWN
    assert (await record_of(catalog, made.id)).lost is None
    await catalog.doubt_live(TENANT, "cap_" + "a" * 20)  # one without a buffer
    assert await catalog.live(TENANT, "cap_" + "a" * 20) is None


async def test_another_producer_and_an_unknown_capture_are_told_apart(catalog: Catalog) -> None:
    made = await begun(catalog)

    foreign = await catalog.append_live(
        TENANT, made.id, Append("you", 0, b"x", NOW), limit=PLENTY, tenant_limit=PLENTY
    )

    assert foreign.status is AppendStatus.OTHER_PRODUCER
    assert (await append(catalog, "cap_" + "a" * 20, 0, b"x"))[0] is AppendStatus.UNKNOWN


async def test_a_buffer_is_begun_once(catalog: Catalog) -> None:
    made = await begun(catalog)

    again = LiveRecord(producer="you", accepted=7, start=7, durable=7, active=NOW)

    assert not await catalog.open_live(TENANT, made.id, again)


async def test_a_capture_that_is_live_no_more_gets_no_buffer(catalog: Catalog) -> None:
    made = live_entry()
    record = LiveRecord(producer="me", accepted=0, start=0, durable=0, active=NOW)
    unknown = await catalog.open_live(TENANT, made.id, record, only_of=made)
    await catalog.commit(made, Quota())
    earlier = replace(made, created=made.created - 1, upload="upload of another time")
    replaced = await catalog.open_live(TENANT, made.id, record, only_of=earlier)
    live = await catalog.open_live(TENANT, made.id, record, only_of=made)
    await catalog.replace(made, replace(made, state=State.PARTIAL))
    ended = await catalog.open_live(TENANT, made.id, record, only_of=made)

    assert (unknown, replaced, live, ended) == (False, False, True, False)
    assert await catalog.live(TENANT, made.id) is None


async def test_the_buffers_of_a_capture_and_of_a_tenant_have_limits(catalog: Catalog) -> None:
    first, second = await begun(catalog, 1), await begun(catalog, 2)
    await append(catalog, first.id, 0, b"12345")

    full = await append(catalog, first.id, 5, b"678", limit=7)
    all_full = await append(catalog, second.id, 0, b"678", tenant_limit=7)

    assert full == (AppendStatus.CAPTURE_FULL, 5, 0)
    assert all_full == (AppendStatus.TENANT_FULL, 0, 0)
    assert (await append(catalog, first.id, 5, b"", limit=1))[0] is AppendStatus.DONE  # a sign of life


@pytest.mark.parametrize("limits", [{"limit": 7}, {"tenant_limit": 7}])
async def test_a_producer_that_is_refused_for_lack_of_room_is_heard(
    catalog: Catalog, limits: dict[str, int]
) -> None:
    made = await begun(catalog)

    await append(catalog, made.id, 0, b"12345678", now=NOW + 60, **limits)

    assert (await record_of(catalog, made.id)).active == NOW + 60


async def test_a_replaced_entry_takes_its_bytes_out_of_the_buffer(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"12345")
    await append(catalog, made.id, 5, b"67890")
    grown = replace(made, size=7, lines=1, segments=[Segment(20, 7, 0)])

    stored = await catalog.replace(made, grown)
    again = await catalog.replace(made, grown)

    assert stored == again == grown
    record = await catalog.live(TENANT, made.id)
    assert record is not None
    assert (record.buffer, record.start, record.durable, record.accepted) == (b"890", 7, 7, 10)
    totals = await catalog.totals(TENANT)
    assert (totals.size, totals.stored_size, totals.metadata) == (7, 20, grown.metadata_size)
    assert (await append(catalog, made.id, 10, b"12345", tenant_limit=8))[0] is AppendStatus.DONE


async def test_a_read_leaves_out_more_than_its_caller_has_room_for(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"12345")
    await append(catalog, made.id, 5, b"67890")
    found = {
        (since, limit): await catalog.live(TENANT, made.id, since=since, limit=limit)
        for since, limit in ((0, 9), (0, 10), (8, 1), (8, 2), (12, 0), (0, 0))
    }

    buffers = {asked: record.buffer for asked, record in found.items() if record is not None}
    assert buffers == {
        (0, 9): b"",
        (0, 10): b"1234567890",
        (8, 1): b"",
        (8, 2): b"90",
        (12, 0): b"",
        (0, 0): b"",
    }
    assert {record.accepted for record in found.values() if record is not None} == {10}


async def test_a_read_leaves_out_what_its_caller_has(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"12345")
    await append(catalog, made.id, 5, b"67890")

    record = await catalog.live(TENANT, made.id, since=8)

    assert record is not None
    assert (record.buffer, record.start) == (b"90", 8)


async def test_an_entry_that_others_have_changed_stays(catalog: Catalog) -> None:
    made = await begun(catalog)
    amended = await catalog.amend(made, expires=made.expires + 1, marker="marker")

    stored = await catalog.replace(made, replace(made, size=1, segments=[Segment(20, 1, 0)]))

    assert stored == amended
    assert await catalog.replace(live_entry(2), live_entry(2, size=1)) is None


async def test_an_ended_capture_takes_no_appends_and_leaves_no_buffer(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"12345")

    too_early = await catalog.end_live(TENANT, made.id, 4, b"end")
    ended = [await catalog.end_live(TENANT, made.id, 5, end) for end in (b"end", b"another end")]
    late = await append(catalog, made.id, 5, b"late")
    record = await catalog.live(TENANT, made.id)
    whole = replace(made, state=State.PARTIAL, size=5, segments=[Segment(20, 5, 0)])
    stored = await catalog.replace(made, whole)

    assert (too_early, ended, late[0]) == (False, [True, True], AppendStatus.ENDED)
    assert record is not None
    assert record.ending == b"end"
    assert stored == whole
    assert await catalog.live(TENANT, made.id) is None
    assert await append(catalog, made.id, 5, b"late") == (AppendStatus.UNKNOWN, 0, 0)


async def test_the_end_of_a_capture_frees_what_it_had_reserved(catalog: Catalog) -> None:
    await rebuilt(catalog)
    made, quota = await begun(catalog), Quota(size=100)
    await catalog.reserve(TENANT, made.upload, 100, 0, quota, keep=60, captures=0)
    grown = replace(made, segments=[Segment(1, 0, 0)])
    await catalog.replace(made, grown)
    with pytest.raises(QuotaExceeded):
        await catalog.reserve(TENANT, "other", 1, 0, quota, keep=60)
    await catalog.replace(grown, replace(grown, state=State.COMPLETE, producer=""))

    await catalog.reserve(TENANT, "other", 100, 0, quota, keep=60)


async def test_a_capture_whose_end_was_told_does_not_grow_beyond_it(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"12345")
    await catalog.end_live(TENANT, made.id, 5, b"end")
    beyond = replace(made, size=6, segments=[Segment(20, 6, 0)])
    up_to_it = replace(made, size=5, segments=[Segment(20, 5, 0)])

    assert await catalog.replace(made, beyond) == made
    assert await catalog.replace(made, up_to_it) == up_to_it


async def test_the_listing_by_state_follows_a_capture_to_its_end(catalog: Catalog) -> None:
    made = await begun(catalog)

    async def states() -> list[int]:
        queries = [Query(state=state) for state in (State.LIVE, State.PARTIAL, State.COMPLETE)]
        return [len((await catalog.find(TENANT, each, now=NOW, limit=9))[0]) for each in queries]

    before = await states()
    await catalog.replace(made, replace(made, state=State.PARTIAL))

    assert before == [1, 0, 0]
    assert await states() == [0, 1, 0]


async def test_a_partial_capture_that_is_completed_is_listed_as_complete(catalog: Catalog) -> None:
    made = await begun(catalog)
    partial = replace(made, state=State.PARTIAL, producer="")
    await catalog.replace(made, partial)
    whole = replace(partial, state=State.COMPLETE, upload="b" * 16, size=6, segments=[Segment(9, 6, 1)])

    assert await catalog.replace(partial, whole) == whole

    for state, expected in ((State.COMPLETE, [made.id]), (State.PARTIAL, []), (State.LIVE, [])):
        entries, _ = await catalog.find(TENANT, Query(state=state), now=NOW, limit=10, cursor=None)
        assert [each.id for each in entries] == expected
    assert (await catalog.totals(TENANT)).size == 6


async def test_a_moved_capture_counts_what_it_takes_now(catalog: Catalog) -> None:
    whole = entry(1)
    await catalog.commit(whole, Quota())

    moved = await catalog.replace(whole, replace(whole, upload="b" * 16, segments=[Segment(7, 101, 2)]))

    assert moved is not None
    assert await catalog.totals(TENANT) == Totals(1, 101, 7, moved.metadata_size, whole.created)


async def test_the_end_of_a_segment_is_decided_once(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"1234567890")

    decided = [await catalog.plan_cut(TENANT, made.id, end) for end in (5, 8)]
    await catalog.replace(made, replace(made, size=5, segments=[Segment(20, 5, 0)]))

    assert decided == [5, 5]
    assert await catalog.plan_cut(TENANT, made.id, 9) == 9
    assert await catalog.plan_cut(TENANT, "cap_" + "a" * 20, 9) is None


async def test_the_timeline_has_a_mark_each_quarter_of_a_second(catalog: Catalog) -> None:
    made = await begun(catalog)
    for number, later in enumerate((0, 0.1, 0.25, 0.3, 0.6)):
        await append(catalog, made.id, number, b"x", now=NOW + later)

    record = await catalog.live(TENANT, made.id)

    assert record is not None
    base = round(NOW * 1000)
    assert [*MARK.iter_unpack(record.marks)] == [(base, 0), (base + 250, 2), (base + 600, 4)]


async def test_a_producer_is_never_heard_of_earlier_than_before(catalog: Catalog) -> None:
    made = await begun(catalog)
    heard = []
    for moment in (NOW + 10, NOW - 3600, NOW + 20):  # one replica's clock is wrong
        await append(catalog, made.id, 0, b"", now=moment)
        record = await catalog.live(TENANT, made.id)
        assert record is not None
        heard.append(record.active)

    assert heard == [NOW + 10, NOW + 10, NOW + 20]


async def test_a_removed_capture_leaves_nothing(catalog: Catalog) -> None:
    made = await begun(catalog)
    await append(catalog, made.id, 0, b"12345")
    await catalog.schedule(TENANT, made.id, NOW)

    await catalog.forget_live(TENANT, made.id)

    assert await catalog.live(TENANT, made.id) is None
    assert await catalog.due(NOW, 10) == []
    other = await begun(catalog, 2)
    assert (await append(catalog, other.id, 0, b"12345", tenant_limit=5))[0] is AppendStatus.DONE


async def test_what_is_live_of_a_tenant_is_added_up(catalog: Catalog) -> None:
    first, second = await begun(catalog, 1), await begun(catalog, 2)
    begun_both = await catalog.live_totals(TENANT)
    await append(catalog, first.id, 0, b"12345")
    await append(catalog, second.id, 0, b"678")
    appended = await catalog.live_totals(TENANT)
    grown = replace(first, size=4, lines=1, segments=[Segment(20, 4, 0)])
    await catalog.replace(first, grown)
    stored = await catalog.live_totals(TENANT)
    await catalog.replace(second, replace(second, state=State.COMPLETE, size=3, segments=[Segment(9, 3, 0)]))
    ended = await catalog.live_totals(TENANT)

    assert (begun_both, appended, stored, ended) == ((2, 0), (2, 8), (2, 4), (1, 1))
    assert await catalog.live_totals("nobody") == (0, 0)


async def test_captures_are_looked_at_when_they_are_due(catalog: Catalog) -> None:
    for number in (1, 2, 3):
        await catalog.schedule(TENANT, entry(number).id, NOW + number)
    await catalog.schedule(TENANT, entry(1).id, NOW + 2.5)

    due = await catalog.due(NOW + 2.6, 10)
    late = await catalog.scheduled_after(NOW + 2.5, 10)

    assert due == [(TENANT, entry(2).id), (TENANT, entry(1).id)]
    assert late == [(TENANT, entry(3).id)]
    assert await catalog.scheduled_after(NOW, 2) == [(TENANT, entry(2).id), (TENANT, entry(1).id)]
    assert await catalog.due(NOW + 2.6, 1, skip=1) == due[1:]
    assert await catalog.due(NOW + 2.6, 1, skip=2) == []
    assert await catalog.scheduled_count() == 3
    await catalog.schedule(TENANT, entry(2).id, None)
    assert await catalog.due(NOW + 9, 1) == [(TENANT, entry(1).id)]


async def test_who_watches_is_told_of_appends_and_changes(catalog: Catalog) -> None:
    made, other = await begun(catalog, 1), await begun(catalog, 2)
    news: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
    await catalog.watch(TENANT, made.id, lambda offset, data: news.put_nowait((offset, data)))
    await append(catalog, made.id, 0, b"")  # tells nobody

    async def told_of(wanted: tuple[int, bytes]) -> None:
        async with asyncio.timeout(30):
            while await news.get() != wanted:
                pass

    if isinstance(catalog, RedisCatalog):  # it says so once it is subscribed
        await told_of((LOOK_AGAIN, b""))
    await append(catalog, other.id, 0, b"other")
    await append(catalog, made.id, 0, b"12345")
    await told_of((0, b"12345"))
    await catalog.replace(made, replace(made, size=5, segments=[Segment(20, 5, 0)]))
    await told_of((LOOK_AGAIN, b""))
    await catalog.unwatch(TENANT, made.id)
    await append(catalog, made.id, 5, b"12345")

    assert (5, b"12345") not in [news.get_nowait() for _ in range(news.qsize())]
