"""The clock of a catalog file: the machine's, but for its jumps.

The file keeps what was told last, with the machine's start and the seconds since then by a clock that never
jumps. So a machine's clock that is set by more than a minute is noticed, by a process that runs and by one
that starts later, and the catalog goes on telling the time as it was. One row of `facts`:
`clock:BOOT:STEADY:TOLD:SURE`.
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
"""A change of the machine's clock that the catalog's follows."""
_CLOCK: Final = "clock:%"


class Reading(NamedTuple):
    """What the catalog's clock told once. Times in seconds."""

    boot: str
    """Names the start of the machine that `steady` counts from."""
    steady: float
    unix_time: float
    """Since the epoch."""
    is_sure: bool
    """False after a start with a clock that was behind: it is expected to be set forwards."""

    def later(self, steady: float) -> float:
        """What it tells later, in the same start of the machine."""
        return self.unix_time + steady - self.steady


def boot() -> str:
    """A name for the start of this machine; where the system has none, for this process."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return secrets.token_hex(8)


def steady_seconds() -> float:
    """Seconds by a clock that never jumps, and goes on while the machine sleeps where there is such a one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def reconciled(former: Reading | None, boot: str, steady: float, machine: float) -> Reading:
    """What the catalog's clock tells now, by what it told last and by the machine's clock."""
    if former is None:
        return Reading(boot, steady, machine, is_sure=True)
    if former.boot != boot:  # nobody knows how long the machine was off
        is_behind = machine < former.unix_time - MAX_FOLLOWED_SECONDS
        return Reading(boot, steady, former.unix_time if is_behind else machine, not is_behind)
    unix_time = former.later(steady)
    if abs(machine - unix_time) <= MAX_FOLLOWED_SECONDS or (not former.is_sure and machine > unix_time):
        return Reading(boot, steady, machine, is_sure=True)
    return Reading(boot, steady, unix_time, former.is_sure)


def stored(db: sqlite3.Connection) -> Reading | None:
    row = db.execute("SELECT name FROM facts WHERE name LIKE ?", (_CLOCK,)).fetchone()
    if row is None:
        return None
    _, name, steady, unix_time, sure = row[0].split(":")
    return Reading(name, float(steady), float(unix_time), sure == "1")


def store(reading: Reading, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM facts WHERE name LIKE ?", (_CLOCK,))
    fields = (reading.boot, f"{reading.steady:.3f}", f"{reading.unix_time:.3f}", str(int(reading.is_sure)))
    db.execute("INSERT INTO facts VALUES (?)", (":".join(("clock", *fields)),))


def advance(boot: str, steady: float, machine: float, db: sqlite3.Connection) -> Reading:
    """Tell the time and store it, in one step."""
    reading = reconciled(stored(db), boot, steady, machine)
    store(reading, db)
    return reading
