"""Counts how often a preview of 2 KB has the line with the reason: ours, and other ways of cutting."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.guard.policy_defaults import PREVIEW_BYTES
from overspill.previews.preview import preview

from tests.bench import table
from tests.bench.failures import builds, logs, others, packages, runners, tools, wrapped
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.bench.failures.case import Case
    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

CASES: Final = (
    *builds.CASES,
    *runners.CASES,
    *packages.CASES,
    *tools.CASES,
    *logs.CASES,
    *others.CASES,
    *wrapped.CASES,
)
QUICK: Final = (
    "gcc",
    "bash",
    "sqlite3",
    "tar",
    "a flood",
    "JSON",
    "dmesg",
    "yaml",
    "argparse",
    "a bad setting",
)
GOAL: Final = Goal(0.95, is_least=True)


def ours(text: str) -> str:
    return preview(text, PREVIEW_BYTES)


def head_only(text: str) -> str:
    return _decoded(_encoded(text)[:PREVIEW_BYTES])


def tail_only(text: str) -> str:
    return _decoded(_encoded(text)[-PREVIEW_BYTES:])


def head_and_tail(text: str) -> str:
    data, half = _encoded(text), PREVIEW_BYTES // 2
    return f"{_decoded(data[:half])}\n…\n{_decoded(data[-half:])}"


WAYS: Final[dict[str, Callable[[str], str]]] = {
    "ours": ours,
    "head only": head_only,
    "tail only": tail_only,
    "head and tail": head_and_tail,
}


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _decoded(data: bytes) -> str:
    return data.decode(errors="ignore")


class Output(NamedTuple):
    case: Case
    text: str

    @property
    def shown_by(self) -> list[str]:
        """The ways of cutting that show its decisive line."""
        return [name for name, way in WAYS.items() if self.case.is_told_by(way(self.text))]


def outputs(cases: Iterable[Case]) -> list[Output]:
    """What the tools print, two at a time."""
    with tempfile.TemporaryDirectory(prefix="overspill-previews-") as root, ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda pair: _output(Path(root) / str(pair[0]), pair[1]), enumerate(cases)))


def _output(folder: Path, case: Case) -> Output:
    folder.mkdir()
    return Output(case, case.make(folder))


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    wanted = [case for case in CASES if not scale.is_quick or case.name.startswith(QUICK)]
    made = outputs(case for case in wanted if not case.missing)
    yield from _rows("tuned on", [each for each in made if not each.case.held_out])
    yield from _rows("held out", [each for each in made if each.case.held_out])
    missing = [case.name for case in wanted if case.missing]
    yield Row("cases without their tool", len(missing), Goal(len(wanted)), table.number, ", ".join(missing))


def _rows(group: str, made: list[Output]) -> Iterator[Row]:
    shown = [each.shown_by for each in made]
    counts = {name: sum(name in names for names in shown) for name in WAYS}
    best = Goal(counts["ours"] / len(made))
    lost = ", ".join(each.case.name for each, names in zip(made, shown, strict=True) if "ours" not in names)
    for name, count in counts.items():
        detail = f"{count} of {len(made)}" + f"; not: {lost}" * (name == "ours" and bool(lost))
        yield Row(f"{group}: {name}", count / len(made), GOAL if name == "ours" else best, detail=detail)
