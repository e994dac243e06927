"""The tools of the cases: plain functions with types and docstrings, as every framework takes them."""

from __future__ import annotations

import base64
from typing import Any, Final

NEEDLE: Final = "needle 31415"
PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def lines(count: int) -> str:
    """Return so many lines, with one that differs from all others."""
    return "".join(f"{NEEDLE}\n" if number == count // 2 else f"line {number}\n" for number in range(count))


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


def nothing() -> None:
    """Return nothing."""
