"""The tools of the cases: plain functions with types and docstrings, as every framework takes them."""

from __future__ import annotations

import base64
from typing import Any, Final

NEEDLE: Final = "needle 31415"
DECLINED: Final = "2026-11-22T11:07:31 ERROR payment 000004711 was declined: the card is expired"
PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def lines(count: int) -> str:
    """Return so many lines, with one that differs from all others."""
    return "".join(f"{NEEDLE}\n" if number == count // 2 else f"line {number}\n" for number in range(count))


def read_log(megabytes: int) -> str:
    """Return a log of so many megabytes. One payment in it was declined."""
    line = "2026-11-22T10:00:00 INFO payment {:09} was accepted by the bank\n"
    one = len(line.format(0))
    count = megabytes * 1_000_000 // one
    half = "".join(line.format(number) for number in range(count // 2))
    return f"{half}{DECLINED}\n{half}"


def query(rows: int) -> dict[str, Any]:
    """Return rows of a table, with how many they are and whether there are more."""
    return {
        "count": rows,
        "has_more": False,
        "rows": [{"id": number, "name": f"customer {number}"} for number in range(rows)],
    }


def fail(size: int) -> str:
    """Fail with a message of this size."""
    raise ValueError(f"cannot compile: {'x' * size}")


def png() -> str:
    """Return a picture in base64."""
    return base64.b64encode(PNG).decode()


def nothing() -> None:
    """Return nothing."""
