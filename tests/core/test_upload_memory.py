"""The memory of an upload: little for a small one, segments for a large one, whatever its encoding holds."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from overspill_service.archive.upload_memory import (
    OBJECT_OVERHEAD,
    SMALL_SEGMENT_BYTES,
    memory_need,
    upload_memory,
)
from overspill_service.archive.uploading import SEGMENT_SIZE
from overspill_service.resources.memory_budget import SMALL_UPLOAD_BYTES, MemoryBudget
from overspill_service.resources.memory_limit import MIN_BUDGET
from overspill_service.store_format.frames import STORED_SIZE_LIMIT

MIB = 2**20
MEMORY_PAGE = Path(__file__).parents[2] / "service" / "docs" / "memory.md"
OPERATORS_PAGE = Path(__file__).parents[2] / "service" / "deploy" / "README.md"
KINDS = [(None, None), ("gzip", 10), ("zstd", 10 * MIB), ("zstd", None), (None, 10**12)]


@pytest.mark.parametrize("size", [0, 1, 60_000, 300_000])
def test_a_small_body_needs_three_times_its_size(size: int) -> None:
    need = sum(memory_need(None, size))

    assert need <= SMALL_UPLOAD_BYTES
    assert 3 * size < need <= 3.01 * size + 2 * OBJECT_OVERHEAD


@pytest.mark.parametrize(("encoding", "length"), KINDS)
def test_a_large_or_unknown_body_needs_a_segment_and_fits_into_the_least_budget(
    encoding: str | None, length: int | None
) -> None:
    need = memory_need(encoding, length)
    budget = MemoryBudget(MIN_BUDGET)

    assert need.segments >= SMALL_SEGMENT_BYTES
    assert sum(need) <= budget.queue_for(sum(need)).largest_grant


def test_the_page_says_how_much() -> None:
    page = MEMORY_PAGE.read_text()
    mebibytes = [
        round(sum(memory_need(*kind)) / MIB) for kind in ((None, None), ("zstd", None), ("gzip", None))
    ]

    assert "{} MiB; {} MiB as zstd, whose window may have 8 MiB; {} MiB as gzip".format(*mebibytes) in page


def test_the_operators_page_says_how_many_fit() -> None:
    page = " ".join(OPERATORS_PAGE.read_text().split())
    fit = []
    for size in (192 * MIB, 448 * MIB):
        budget = MemoryBudget(size)
        largest_grant = budget.large.largest_grant
        fit += [
            largest_grant // sum(memory_need(None, None)),
            largest_grant // sum(memory_need("zstd", None)),
        ]
    full = 2 * (SEGMENT_SIZE + STORED_SIZE_LIMIT) / MIB

    sentence = "512 MiB take {} of them at once ({} compressed ones), 1 GiB takes {} ({})".format(*fit)
    assert sentence in page
    for encoding in (None, "zstd"):
        need = memory_need(encoding, None)
        most_held = round(need.working / MIB + full)
        assert f"{round(sum(need) / MIB)} MiB at least, up to {most_held} MiB" in page


async def test_a_body_that_is_no_single_frame_waits_anew_with_nothing_in_its_hands() -> None:
    budget = MemoryBudget(MIN_BUDGET)
    async with (
        AsyncExitStack() as others,
        upload_memory(budget, "acme", "zstd", 1000) as memory,
    ):
        room = budget.available_to(budget.large) - sum(memory_need("zstd", None))
        await others.enter_async_context(budget.large.shares("other", room))
        await memory.decode()

        assert memory.segments.try_use(SMALL_SEGMENT_BYTES)
    assert budget.free == MIN_BUDGET
