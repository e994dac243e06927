"""Outputs as tools of real agents have them: what a simulated fleet works with. All of it is made up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_WORDS: Final = ("invoice", "customer", "shipment", "ledger", "session", "refund", "webhook", "retry", "cart")
_ERROR_SHARE: Final = 0.002
_LEVELS: Final = ("INFO", "INFO", "INFO", "INFO", "DEBUG", "WARN")


def run_tests(random: Random, lines: int) -> str:
    """A test run: one line for each test, and the failures at the end."""
    failing = {random.randrange(lines) for _ in range(random.randrange(4))}
    rows = [
        f"tests/test_{random.choice(_WORDS)}.py::test_{number} {'FAILED' if number in failing else 'PASSED'}"
        for number in range(lines)
    ]
    errors = [f"E   AssertionError: {random.choice(_WORDS)} {number} is wrong" for number in sorted(failing)]
    return "\n".join([*rows, *errors, f"== {len(failing)} failed, {lines - len(failing)} passed ==", ""])


def search_files(random: Random, lines: int) -> str:
    """A search: matching lines of a source tree."""
    return "".join(
        f"src/{random.choice(_WORDS)}/{random.choice(_WORDS)}.py:{random.randrange(1, 900)}:"
        f"    {random.choice(_WORDS)}_{random.choice(_WORDS)} = load({number})\n"
        for number in range(lines)
    )


def read_logs(random: Random, lines: int) -> str:
    """The log of a service, with an error now and then."""
    rows = []
    for number in range(lines):
        level = "\x1b[31mERROR\x1b[0m" if random.random() < _ERROR_SHARE else random.choice(_LEVELS)
        rows.append(
            f"2026-01-15T10:{number // 60 % 60:02d}:{number % 60:02d}Z {level} {random.choice(_WORDS)} "
            f"request={random.getrandbits(32):08x} took={random.randrange(2, 900)}ms\n"
        )
    return "".join(rows)


def query_database(random: Random, lines: int) -> str:
    """Rows of a database, as JSON."""
    rows = [
        {"id": number, "kind": random.choice(_WORDS), "amount": round(random.random() * 900, 2)}
        for number in range(lines)
    ]
    return json.dumps({"rows": rows, "count": lines})


def fetch_page(random: Random, lines: int) -> str:
    """The text of a web page."""
    return "\n".join(" ".join(random.choices(_WORDS, k=14)) + "." for _ in range(lines))


TOOLS: Final[dict[str, tuple[Callable[[Random, int], str], float]]] = {
    "run_tests": (run_tests, 700),
    "search_files": (search_files, 500),
    "read_logs": (read_logs, 900),
    "query_database": (query_database, 400),
    "fetch_page": (fetch_page, 250),
}
"""Each tool, and its usual number of lines."""
