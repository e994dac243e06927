"""Text without secrets: real source code, and logs as services write them."""

from __future__ import annotations

import functools
import random
import sysconfig
from pathlib import Path

WORDS = (
    "cache warmed",
    "request finished",
    "retrying in 3 s",
    "GET /v1/captures/cap_{} 200",
    "user {} logged in",
)


@functools.cache
def code(size: int) -> str:
    """Return `size` characters of the standard library's sources."""
    found, length = [], 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        found.append(path.read_text(encoding="utf-8", errors="replace"))
        length += len(found[-1])
        if length >= size:
            break
    return "".join(found)[:size]


@functools.cache
def logs(size: int) -> str:
    """Return `size` characters of logs with the identifiers that services write."""
    random_ = random.Random(11)
    lines, length = [], 0
    while length < size:
        lines.append(_line(random_))
        length += len(lines[-1])
    return "".join(lines)[:size]


def _line(random_: random.Random) -> str:
    number = random_.getrandbits(128)
    words = random_.choice(WORDS).format(f"{number:032x}"[:22])
    stamp = f"2026-11-{number % 28 + 1:02}T{number % 24:02}:{number % 60:02}:07.{number % 1000:03}Z"
    trace = f"{number:032x}"
    uuid = f"{trace[:8]}-{trace[8:12]}-{trace[12:16]}-{trace[16:20]}-{trace[20:]}"
    ids = f"trace_id={trace} request_id={uuid}"
    return f"{stamp} INFO service-{number % 9} {ids} {words} sha256:{trace}{trace}\n"
