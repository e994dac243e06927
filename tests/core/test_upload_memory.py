"""What an upload needs: a small one little, a large one its segments, whatever its encoding holds."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from overspill_service.archive.upload_memory import SEGMENT, SLACK, need_of, upload_memory
from overspill_service.archive.uploading import SEGMENT_SIZE
from overspill_service.resources.memory_budget import SMALL, Budget
from overspill_service.resources.memory_limit import LEAST_BUDGET
from overspill_service.store_format.frames import STORED_SIZE_LIMIT

MIB = 2**20
README = Path(__file__).parents[2] / "service" / "README.md"
OPERATORS_PAGE = README.parent / "deploy" / "README.md"
KINDS = [(None, None), ("gzip", 10), ("zstd", 10 * MIB), ("zstd", None), (None, 10**12)]


@pytest.mark.parametrize("size", [0, 1, 60_000, 300_000])
def test_a_small_body_needs_three_times_its_size(size: int) -> None:
    need = sum(need_of(None, size))

    assert need <= SMALL
    assert 3 * size < need <= 3.01 * size + 2 * SLACK


@pytest.mark.parametrize(("encoding", "length"), KINDS)
@pytest.mark.parametrize("is_copied", [False, True])
def test_a_large_or_unknown_body_needs_a_segment_and_fits_into_the_least_budget(
    encoding: str | None, length: int | None, is_copied: bool
) -> None:
    need = need_of(encoding, length, is_copied=is_copied)
    budget = Budget(LEAST_BUDGET)

    assert need.segments >= SEGMENT
    assert sum(need) <= budget.most(budget.line_for(sum(need)))


def test_the_page_says_how_much() -> None:
    page = README.read_text()
    mebibytes = [round(sum(need_of(*kind)) / MIB) for kind in ((None, None), ("zstd", None), ("gzip", None))]
    copied = sum(need_of(None, None, is_copied=True)) - sum(need_of(None, None))

    assert "{} MiB; {} MiB as zstd, whose window may have 8 MiB; {} MiB as gzip".format(*mebibytes) in page
    assert f"{round(copied / MIB)} MiB more, to copy segments" in page


def test_the_operators_page_says_how_many_fit() -> None:
    page = " ".join(OPERATORS_PAGE.read_text().split())
    fit = []
    for size in (192 * MIB, 448 * MIB):
        budget = Budget(size)
        most = budget.most(budget.large)
        fit += [most // sum(need_of(None, None)), most // sum(need_of("zstd", None))]
    full = 2 * (SEGMENT_SIZE + STORED_SIZE_LIMIT) / MIB

    sentence = "512 MiB take {} of them at once ({} compressed ones), 1 GiB takes {} ({})".format(*fit)
    assert sentence in page
    for encoding in (None, "zstd"):
        need = need_of(encoding, None)
        most_held = round(need.working / MIB + full)
        assert f"{round(sum(need) / MIB)} MiB at least, up to {most_held} MiB" in page


async def test_a_body_that_is_no_single_frame_waits_anew_with_nothing_in_its_hands() -> None:
    budget = Budget(LEAST_BUDGET)
    async with AsyncExitStack() as others, upload_memory(budget, "zstd", 1000, is_copied=False) as memory:
        room = budget.room_for(budget.large) - sum(need_of("zstd", None, is_copied=True))
        await others.enter_async_context(budget.large.shares(room))
        await memory.decode()

        assert memory.segments.try_use(SEGMENT)
    assert budget.free == LEAST_BUDGET
