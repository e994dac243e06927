"""The cost of masking secrets, how many it finds, and how much harmless text it takes for a secret."""

from __future__ import annotations

import itertools
import os
import re
import site
import sysconfig
from functools import partial
from pathlib import Path
from statistics import median
from timeit import timeit
from typing import TYPE_CHECKING, Final

from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.redaction.groups import groups_of
from overspill.redaction.redactor import Redactor
from overspill.redaction.rules import RULES

from tests.bench import measuring, table
from tests.bench.table import Goal, Row
from tests.redaction.corpus import planted
from tests.redaction.harmless import code, logs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

LITERALS: Final = sorted({prefix for rule in RULES for prefix in rule.prefixes if len(prefix) > 2})
"""What one pass of `re` is measured with: the prefixes of the rules, of which the middle one counts."""
ENDINGS: Final = (".py", ".pyi", ".md", ".rst", ".txt", ".json", ".js", ".ts", ".css", ".html", ".h", ".c")
LARGEST_FILE: Final = 3_000_000
TEXT_BYTES: Final = 100_000
INLINE: Final = "2026-11-22 02:11:07 INFO worker-7 request 81723 served in 12 ms\n" * 16


def measure(_: Servers, scale: Scale) -> Iterator[Row]:
    """Yield the rows of the table."""
    for name, text in {"code": code(TEXT_BYTES), "logs": logs(TEXT_BYTES)}.items():
        yield _cost(f"{name}, with RE2", text, Redactor(), scale)
        yield _cost(f"{name}, with re alone", text, without_re2(), scale)
    yield _inline("1 KB inline, by default not masked", Policy(), scale)
    yield _inline("1 KB inline, masked (`redact_inline`)", Policy(redact_inline=True), scale)
    yield _found(scale)
    yield _harmless(scale)


def without_re2() -> Redactor:
    """Return the redactor of a machine without the extra `re2`."""
    redactor = Redactor()
    redactor._passes = tuple(groups_of(RULES))
    return redactor


def _cost(what: str, text: str, redactor: Redactor, scale: Scale) -> Row:
    """Return the CPU of masking 100 KB over that of one pass of `re`: medians of rounds."""
    calls = scale.pick(20, 1)
    patterns = [re.compile(re.escape(literal)) for literal in LITERALS]
    ratios = []
    for _ in range(scale.rounds + 1):
        ours = min(measuring.cost(partial(redactor.redact, text), measuring.own).cpu for _ in range(calls))
        passes = [
            min(measuring.cost(partial(pattern.findall, text), measuring.own).cpu for _ in range(3))
            for pattern in patterns
        ]
        ratios.append(ours / median(passes))
    return Row(f"CPU over one pass of re for a literal: {what}", median(ratios[1:]), Goal(6))


def _inline(what: str, policy: Policy, scale: Scale) -> Row:
    """Return the CPU seconds that 1 KB which stays costs more than with masking off."""
    number = scale.pick(20_000, 200)
    masking, plain = Guard(policy=policy), Guard(policy=Policy(redaction="off"))

    def took(guard: Guard) -> float:
        call = partial(guard.process_sync, INLINE, tool="tool")
        return timeit(call, number=number, timer=measuring.own) / number

    more = median(took(masking) - took(plain) for _ in range(scale.rounds))
    return Row(what, max(0.0, more), Goal(3e-6), table.microseconds)


def _found(scale: Scale) -> Row:
    redactor, everything = Redactor(), [each for seed in range(scale.rounds) for each in planted(seed)]
    found = sum(redactor.redact(each.text).counts.get(each.kind, 0) > 0 for each in everything)
    kinds = len({each.kind for each in everything})
    detail = f"{found} of {len(everything)}, of {kinds} kinds"
    return Row("secrets found", found / len(everything), Goal(0.98, is_least=True), table.fine_ratio, detail)


def _harmless(scale: Scale) -> Row:
    """Return how many finds there are in 10 MB of what is installed here, half of it, and of logs."""
    most = scale.pick(100_000_000, 1_000_000)
    redactor, size, finds = Redactor(), 0, list[str]()
    for text in itertools.chain([logs(most // 10)], _installed()):
        size += len(text)
        stream = redactor.find(text, 0, len(text), is_bytes=True)
        finds += [f"{found.kind} {text[max(0, found.start - 8) : found.end][:40]!r}" for found in stream]
        if size >= most:
            break
    rate = len(finds) / size * 10_000_000
    detail = f"{len(finds)} in {size / 1e6:.0f} MB: {', '.join(finds[:12])}"
    return Row("finds in 10 MB of code and logs without secrets", rate, Goal(1), detail=detail)


def _installed() -> Iterator[str]:
    for folder in [*site.getsitepackages(), sysconfig.get_path("stdlib"), "/usr/share", "/usr/lib"]:
        for root, _, names in os.walk(folder):
            for name in sorted(names):
                if name.endswith(ENDINGS):
                    with (Path(root) / name).open("rb") as file:
                        yield file.read(LARGEST_FILE).decode("latin-1")
