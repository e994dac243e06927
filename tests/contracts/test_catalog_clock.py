"""The clock of a catalog file: it follows the machine's, but not its jumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from overspill_service.catalog.sqlite import clock
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.catalog.sqlite.clock import ClockReading, reconcile

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400.0
SURE, UNSURE = True, False


class Machine:
    """A machine's clock that can be set."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return 1_000_000.0 + clock.steady_seconds() + self.ahead


@pytest.mark.parametrize(
    ("former", "machine", "unix_time", "is_sure"),
    [
        (None, 5000.0, 5000.0, SURE),
        (ClockReading("now", 100, 1000, SURE), 1050.0, 1050.0, SURE),
        (ClockReading("now", 100, 1000, SURE), 1100.0, 1100.0, SURE),
        (ClockReading("now", 100, 1000, SURE), 1050.0 + DAY, 1050.0, SURE),
        (ClockReading("now", 100, 1000, SURE), 1050.0 - DAY, 1050.0, SURE),
        (ClockReading("before", 9000, 1000, SURE), 1000.0 + DAY, 1000.0 + DAY, SURE),
        (ClockReading("before", 9000, 1000, SURE), 990.0, 990.0, SURE),
        (ClockReading("before", 9000, DAY, SURE), 0.0, DAY, UNSURE),
        (ClockReading("now", 100, DAY, UNSURE), 50.0, DAY + 50, UNSURE),
        (ClockReading("now", 100, DAY, UNSURE), 5 * DAY, 5 * DAY, SURE),
    ],
    ids=[
        *("first", "same", "small step", "ahead", "behind"),
        *("machine was off", "started a little behind", "started behind", "still behind", "set at last"),
    ],
)
def test_a_jump_is_not_followed_and_a_start_is_believed_unless_time_went_back(
    former: ClockReading | None, machine: float, unix_time: float, *, is_sure: bool
) -> None:
    reading = reconcile(former, "now", 150, machine)

    assert (reading.unix_time, reading.is_sure) == (unix_time, is_sure)
    assert (reading.boot, reading.steady) == ("now", 150)


@pytest.mark.parametrize("days", [2, -2])
async def test_a_jump_is_noticed_while_the_file_is_open_and_when_it_is_opened_later(
    tmp_path: Path, days: int
) -> None:
    machine = Machine()
    catalog = SqliteCatalog(tmp_path / "catalog.sqlite", machine)
    before = await catalog.now()
    machine.ahead = days * DAY

    assert await catalog.now() == pytest.approx(before, abs=60)
    await catalog.close()
    again = SqliteCatalog(tmp_path / "catalog.sqlite", machine)
    assert await again.now() == pytest.approx(before, abs=60)
    assert await again.trust_clock() == pytest.approx(days * DAY, abs=60)
    assert await again.now() == pytest.approx(machine(), abs=60)
    await again.close()


async def test_a_lease_from_a_clock_that_was_ahead_is_over(tmp_path: Path) -> None:
    machine = Machine()
    machine.ahead = 2 * DAY
    catalog = SqliteCatalog(tmp_path / "catalog.sqlite", machine)
    assert await catalog.lease("sweep", "one", 300)
    assert not await catalog.lease("sweep", "other", 300)
    machine.ahead = 0
    await catalog.trust_clock()

    assert await catalog.lease("sweep", "other", 300)
    await catalog.close()
