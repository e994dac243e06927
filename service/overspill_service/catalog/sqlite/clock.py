"""The clock of a catalog file: the machine's clock without its jumps.

The file keeps the last reading with the machine's boot and the seconds of a steady clock. So a running
process, and one that starts later, notice that the machine's clock was set by more than a minute. Then the
catalog continues with its own time. One row of `facts`: `clock:BOOT:STEADY:TIME:SURE`.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import sqlite3

MAX_FOLLOWED_SECONDS: Final = 60.0
"""The largest change of the machine's clock that the catalog's clock follows."""
_CLOCK: Final = "clock:%"


class ClockReading(NamedTuple):
    """One reading of the catalog's clock. Times in seconds."""

    boot: str
    """The boot of the machine that `steady` counts from."""
    steady: float
    unix_time: float
    """Seconds since the epoch."""
    is_sure: bool
    """False after a boot with a clock that was behind: the clock is expected to be set forwards."""

    def later(self, steady: float) -> float:
        """Return the time at a later `steady` of the same boot."""
        return self.unix_time + steady - self.steady


def boot() -> str:
    """Return a name for the boot of this machine, or for this process if the system has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return secrets.token_hex(8)


def steady_seconds() -> float:
    """Return seconds by a clock that never jumps.

    It also runs while the machine sleeps: on Linux by CLOCK_BOOTTIME, on macOS by CLOCK_MONOTONIC, which
    `time.monotonic` is not there.
    """
    if not hasattr(time, "clock_gettime"):
        return time.monotonic()
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def reconcile(former: ClockReading | None, boot: str, steady: float, machine: float) -> ClockReading:
    """Return the reading now, by the last reading and by the machine's clock."""
    if former is None:
        return ClockReading(boot, steady, machine, is_sure=True)
    if former.boot != boot:  # nobody knows how long the machine was off
        is_behind = machine < former.unix_time - MAX_FOLLOWED_SECONDS
        return ClockReading(boot, steady, former.unix_time if is_behind else machine, not is_behind)
    unix_time = former.later(steady)
    if abs(machine - unix_time) <= MAX_FOLLOWED_SECONDS or (not former.is_sure and machine > unix_time):
        return ClockReading(boot, steady, machine, is_sure=True)
    return ClockReading(boot, steady, unix_time, former.is_sure)


def stored(db: sqlite3.Connection) -> ClockReading | None:
    row = db.execute("SELECT name FROM facts WHERE name LIKE ?", (_CLOCK,)).fetchone()
    if row is None:
        return None
    _, name, steady, unix_time, sure = row[0].split(":")
    return ClockReading(name, float(steady), float(unix_time), sure == "1")


def store(reading: ClockReading, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM facts WHERE name LIKE ?", (_CLOCK,))
    fields = (reading.boot, f"{reading.steady:.3f}", f"{reading.unix_time:.3f}", str(int(reading.is_sure)))
    db.execute("INSERT INTO facts VALUES (?)", (":".join(("clock", *fields)),))


def advance(boot: str, steady: float, machine: float, db: sqlite3.Connection) -> ClockReading:
    """Read the clock and store the reading, in one step."""
    reading = reconcile(stored(db), boot, steady, machine)
    store(reading, db)
    return reading
