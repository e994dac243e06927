"""`KeptEvents`: what streams keep for followers is bounded, for each, for a tenant's and for all."""

from __future__ import annotations

from overspill_service.live.events import Event
from overspill_service.live.kept_events import Events, KeptEvents


def filled(kept: KeptEvents, tenant: str, count: int, events: Events | None = None) -> Events:
    """A stream with so many events of 10 bytes."""
    found = {} if events is None else events
    first = max(found, default=-1) + 1
    for offset in range(first, first + count):
        kept.add(tenant, found, Event(offset, offset + 1, b"x" * 10))
    return found


def test_a_stream_keeps_its_newest_events() -> None:
    kept = KeptEvents(of_stream=30)

    assert [*filled(kept, "one", 5)] == [2, 3, 4]
    assert kept.size == 30


def test_many_streams_of_a_tenant_keep_little_each_and_those_of_others_stay() -> None:
    kept = KeptEvents(of_stream=30, of_tenant=50)
    other = filled(kept, "other", 3)
    streams = [filled(kept, "greedy", 3) for _ in range(100)]

    assert sum(map(len, streams)) == 5
    assert len(streams[-1]) == 3
    assert len(other) == 3
    assert kept.size == 80


def test_of_all_tenants_the_one_with_the_most_gives_way() -> None:
    kept = KeptEvents(of_tenant=50, of_all=70)
    large, small = filled(kept, "large", 5), filled(kept, "small", 3)

    assert (len(large), len(small), kept.size) == (4, 3, 70)


def test_the_newest_event_is_kept_however_large_it_is() -> None:
    kept = KeptEvents(of_stream=5, of_tenant=5)

    assert len(filled(kept, "one", 3)) == 1


def test_a_stream_that_ends_leaves_nothing() -> None:
    kept = KeptEvents()
    first, second = filled(kept, "one", 3), filled(kept, "one", 2)
    kept.forget("one", first)
    assert kept.size == 20
    kept.forget("one", second)

    assert kept.size == 0
    assert not kept._order
    assert not kept._of_streams
