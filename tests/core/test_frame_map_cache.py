"""`FrameMapCache`: what it says that it holds is what it holds, and that is bounded."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill_service.archive.frame_map_cache import FrameMapCache
from overspill_service.store_format.frame_map import FrameMap, pack
from overspill_service.store_format.frames import Frame

NAMES = st.sampled_from("abcdef")
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "discard", "get"]), NAMES, st.integers(0, 300)), max_size=40
)


def frame_map(frames: int) -> FrameMap:
    return FrameMap.unpack(pack([[Frame(100, 200, 3, utf8=True, checksum=7)] * frames]))


@given(STEPS)
def test_it_counts_what_it_holds_and_no_more_than_its_limit(steps: list[tuple[str, str, int]]) -> None:
    cache = FrameMapCache(20_000)
    for step, name, frames in steps:
        if step == "add":
            cache.add(name, frame_map(frames))
        else:
            getattr(cache, step)(name)

        assert cache.memory_size == sum(each.memory_size for each in cache._maps.values()) <= 20_000


@pytest.mark.parametrize("frames", [0, 1, 100, 5000])
def test_a_map_takes_no_more_memory_than_it_says(frames: int) -> None:
    packed, count = pack([[Frame(100, 200, 3, utf8=True, checksum=7)] * frames]), 50 if frames < 1000 else 10
    cache = FrameMapCache(2**30)
    gc.collect()
    tracemalloc.start()
    for number in range(count):
        cache.add(f"{number:016d}", FrameMap.unpack(packed))
    gc.collect()  # Python keeps some freed tuples for itself
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert cache.memory_size / 2 < taken < cache.memory_size


def test_what_was_used_last_stays() -> None:
    cache = FrameMapCache(2 * frame_map(10).memory_size)
    cache.add("first", frame_map(10))
    cache.add("second", frame_map(10))
    cache.get("first")
    cache.add("third", frame_map(10))

    assert (cache.get("second"), len(cache)) == (None, 2)


def test_a_map_that_is_too_large_drives_no_other_out() -> None:
    cache = FrameMapCache(frame_map(10).memory_size)
    cache.add("small", frame_map(10))
    cache.add("large", frame_map(1000))

    assert cache.get("small") is not None
    assert cache.get("large") is None
