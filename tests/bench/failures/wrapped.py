"""Decisive lines as they stand in long logs of build servers, containers and services, behind their prefixes."""

from __future__ import annotations

import random
from hashlib import sha256
from re import escape
from typing import TYPE_CHECKING, Final

from tests.bench.failures.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable

WRAPPERS: Final[dict[str, tuple[Callable[[int], str], int]]] = {
    "GitHub Actions": (lambda n: f"2026-11-12T10:{n // 60 % 60:02}:{n % 60:02}.{n % 9_999_999:07}Z ", 9_000),
    "docker compose": (lambda n: f"web-{n % 3}  | ", 14_000),
    "a task's log": (
        lambda n: f"[task 2026-11-12T10:{n // 60 % 60:02}:{n % 60:02}.123Z] 10:00:01     ",
        20_000,
    ),
    "journald": (lambda n: f"Nov 12 10:{n // 60 % 60:02}:{n % 60:02} web1 worker[{n % 900}]: ", 5_000),
    "no prefix": (lambda _: "", 60_000),
}
"""What stands before the message of a line, by its number, and how many lines there are."""
REASONS: Final[dict[str, tuple[str, ...]]] = {
    "a linter": ("$ check-pages docs", "docs/a.md is older than its source", "check-pages exited with 3."),
    "ExUnit": ("  1) test prices an order (Shop.OrderTest)", "     ** (KeyError) key :xau not found"),
    "Swift": ("Fatal error: Index out of range: file Swift/Array.swift, line 600",),
    "a hung task": ("INFO: task kworker/u8:2:123 blocked for more than 120 seconds.",),
    "PHPUnit": ("There was 1 failure:", "", "1) OrderTest::price", "Failed asserting that 3 matches 4."),
    "a record": ('{"test":"prices an order","status":"FAIL"}',),
    "ScalaTest": ("[info] - prices an order *** FAILED ***",),
    "Helm": ("Error: UPGRADE FAILED: timed out waiting for the condition",),
    "Terraform": ("Error: Invalid value for variable",),
    "GHC": ("src/Orders.hs:94:10: error: Variable not in scope: rate",),
    "minitest": ("Minitest::Assertion: Expected true to not be truthy.",),
    "a sanitizer": ("ERROR: AddressSanitizer: heap-use-after-free on address 0x602",),
}
WORDS: Final = "resolve fetch unpack patch configure compile check strip install cache served order"


def _case(place: str, reason: str) -> Case:
    name = f"{reason}, in the log of {place}"
    digest = sha256(name.encode()).digest()
    decisive = REASONS[reason][-1] if reason != "a linter" else REASONS[reason][1]
    return Case(
        name,
        escape(decisive.strip()),
        lambda _: _log(place, reason),
        held_out=bool(digest[0] % 2),
    )


def _log(place: str, reason: str) -> str:
    rng = random.Random(f"{place} {reason}")
    prefix, count = WRAPPERS[place]
    words = WORDS.split()
    lines = [
        f"{rng.choice(words)} {rng.choice(words)}-{rng.getrandbits(24):x} in {n % 97} ms"
        for n in range(count)
    ]
    at = int(count * rng.uniform(0.05, 0.95))
    lines[at:at] = REASONS[reason]
    return "".join(f"{prefix(number)}{line}\n" for number, line in enumerate(lines))


CASES: Final = tuple(_case(place, reason) for place in WRAPPERS for reason in REASONS)
