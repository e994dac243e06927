from __future__ import annotations

import hashlib
import threading
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from overspill.guard.decisions import Duplicates

from tests.clock import Clock

LOG = hashlib.sha256(b"log").digest()
OTHER = hashlib.sha256(b"other").digest()


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def told(repeats: Duplicates, session: str, content: bytes, own_id: str) -> str | None:
    earlier = repeats.earlier(session, content, own_id)
    return None if earlier is None else earlier.id


def test_a_second_call_with_the_same_output_is_told_the_first() -> None:
    repeats = Duplicates()
    repeats.remember("s", LOG, "cap_1", None)
    repeats.remember("s", LOG, "cap_2", None)

    assert [told(repeats, "s", LOG, own) for own in ("cap_2", "cap_3")] == ["cap_1", "cap_1"]


def test_the_first_call_repeated_is_told_nothing() -> None:
    repeats = Duplicates()
    before = told(repeats, "s", LOG, "cap_1")
    repeats.remember("s", LOG, "cap_1", None)
    repeats.remember("s", LOG, "cap_2", None)

    assert (before, told(repeats, "s", LOG, "cap_1")) == (None, None)


def test_what_was_not_stored_is_not_told() -> None:
    repeats = Duplicates()
    told(repeats, "s", LOG, "cap_1")

    assert told(repeats, "s", LOG, "cap_2") is None


def test_other_sessions_and_other_outputs_are_told_nothing() -> None:
    repeats = Duplicates()
    repeats.remember("s", LOG, "cap_1", None)

    assert told(repeats, "t", LOG, "cap_2") is None
    assert told(repeats, "s", OTHER, "cap_2") is None


def test_what_has_expired_is_not_told_and_the_next_is_the_first() -> None:
    clock = Clock()
    repeats = Duplicates(clock=clock)
    repeats.remember("s", LOG, "cap_1", at(2_000))
    clock.now = 1_999
    before = told(repeats, "s", LOG, "cap_2")
    clock.now = 2_000
    expired = told(repeats, "s", LOG, "cap_2")
    repeats.remember("s", LOG, "cap_2", at(3_000))

    assert (before, expired) == ("cap_1", None)
    assert [told(repeats, "s", LOG, own) for own in ("cap_1", "cap_2")] == ["cap_2", None]


def test_storing_the_first_again_lets_it_be_told_for_longer() -> None:
    clock = Clock()
    repeats = Duplicates(clock=clock)
    repeats.remember("s", LOG, "cap_1", at(2_000))
    repeats.remember("s", LOG, "cap_1", at(4_000))
    clock.now = 3_000

    assert told(repeats, "s", LOG, "cap_2") == "cap_1"


def test_only_the_most_recent_are_remembered() -> None:
    repeats = Duplicates(limit=2)
    contents = [bytes([number]) * 32 for number in range(3)]
    repeats.remember("s", contents[0], "cap_0", None)
    repeats.remember("s", contents[1], "cap_1", None)
    told(repeats, "s", contents[0], "cap_x")
    repeats.remember("s", contents[2], "cap_2", None)

    assert [told(repeats, "s", each, "cap_x") for each in contents] == ["cap_0", None, "cap_2"]


@given(st.text(), st.text())
def test_sessions_are_never_taken_for_one_another(one: str, other: str) -> None:
    repeats = Duplicates()
    repeats.remember(one, LOG, "cap_1", None)

    assert told(repeats, other, LOG, "cap_2") == ("cap_1" if one == other else None)


def test_any_text_names_a_session() -> None:
    repeats = Duplicates()
    for session in ("", "\ud800", "x" * 100_000):
        repeats.remember(session, LOG, "cap_1", None)

        assert told(repeats, session, LOG, "cap_2") == "cap_1"


def test_threads_agree_on_the_first() -> None:
    repeats = Duplicates(limit=100)
    everyone = threading.Barrier(8)

    def store(number: int) -> None:
        everyone.wait()
        for content in range(50):
            repeats.remember("s", bytes([content]) * 32, f"cap_{number}", None)

    threads = [threading.Thread(target=store, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for content in range(50):
        first = told(repeats, "s", bytes([content]) * 32, "cap_x")
        assert first is not None
        assert told(repeats, "s", bytes([content]) * 32, first) is None


def test_it_counts_how_many_followed_the_first() -> None:
    repeats = Duplicates()
    counts = []
    for own in ("cap_1", "cap_2", "cap_3", "cap_1", "cap_4"):
        earlier = repeats.earlier("s", LOG, own)
        counts.append(earlier and earlier.repeats)
        repeats.remember("s", LOG, own, None)

    assert counts == [None, 0, 1, None, 2]
