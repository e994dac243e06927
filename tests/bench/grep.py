"""grep over HTTP against `rg -z` on the same zstd file: the service's CPU against that of rg and zstd."""

from __future__ import annotations

import subprocess
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.transfer.sync import SyncClient

from tests.bench import http, measuring, table, texts
from tests.bench.measuring import compared, cost
from tests.bench.servers import program
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.bench.measuring import Cost
    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

    Answer = list[tuple[int, str]] | int
    """Matching lines with their numbers, or how many there are."""

FEW: Final = 50
QUICK: Final = Goal(0.7)
COUNTED: Final = Goal(1.6)


class Pattern(NamedTuple):
    text: str
    ignore_case: bool = False


RARE: Final = (
    Pattern("segmentation fault"),
    Pattern("killed process [0-9]+"),
    Pattern("kernel panic|deadlock|out of memory", ignore_case=True),
    Pattern(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}:[0-9]{5}"),
)
FREQUENT: Final = (
    Pattern("ERROR"),
    Pattern("error|failed|exception", ignore_case=True),
    Pattern(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"),
    Pattern(r"GET /v1/[a-z]+/[0-9]+ 200"),
)


class Both:
    """One capture, and the same stored bytes as a file."""

    def __init__(self, servers: Servers, client: SyncClient, size: int) -> None:
        self.service, self._client = servers.embedded, client
        self._ref = http.put(self.service, texts.blocks(texts.LOG, size), size)
        self._file = servers.path("capture.zst")
        with self._file.open("wb") as file:
            for piece in http.get(self.service, http.content(self._ref), encoding="zstd"):
                file.write(piece)

    def ours(self, pattern: Pattern, *, count: bool) -> Answer:
        text = self._client.grep(
            self._ref, pattern.text, ignore_case=pattern.ignore_case, max_matches=FEW, count=count
        )
        if count:
            assert isinstance(text.match_count, int)
            return text.match_count
        assert isinstance(text.matches, list)
        return [(match.line_number, match.line) for match in text.matches]

    def theirs(self, pattern: Pattern, *, count: bool) -> Answer:
        output = _ripgrep(self._file, pattern, *(["--count"] if count else ["--line-number", f"-m{FEW}"]))
        if count:
            return int(output or 0)
        numbered = (line.split(":", 1) for line in output.splitlines())
        return [(int(number), line) for number, line in numbered]


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    size = scale.pick(250 * texts.MB, 2 * texts.MB)
    program("zstd")  # which `rg -z` runs
    with SyncClient(servers.embedded.url) as client:
        both = Both(servers, client, size)
        yield from _rows(both, scale, "rare pattern, all matches", RARE, count=False)
        yield from _rows(both, scale, f"frequent pattern, first {FEW}", FREQUENT, count=False)
        yield from _rows(both, scale, "frequent pattern, counted", FREQUENT, count=True)


def _rows(
    both: Both, scale: Scale, what: str, patterns: tuple[Pattern, ...], *, count: bool
) -> Iterator[Row]:
    """The worst of these patterns, in CPU and in wall time."""
    ratios = {pattern.text: _compared(both, scale.rounds, pattern, count=count) for pattern in patterns}
    goal = COUNTED if count else QUICK
    for measure in ("cpu", "wall"):
        values = {f"`{text}`": getattr(ratio, measure) for text, ratio in ratios.items()}
        name = {"cpu": "CPU", "wall": "wall time"}[measure]
        yield Row(f"grep, {what}: {name}, worst", max(values.values()), goal, detail=table.listed(values))


def _compared(both: Both, rounds: int, pattern: Pattern, *, count: bool) -> Cost:
    """Raises `AssertionError` where the two do not find the same."""
    found: dict[str, Answer] = {}

    def run(name: str, search: Callable[..., Answer]) -> None:
        found[name] = search(pattern, count=count)

    ours = partial(cost, partial(run, "ours", both.ours), measuring.of_process(both.service.pid))
    theirs = partial(cost, partial(run, "theirs", both.theirs), measuring.of_children)
    ratio = compared(rounds, ours, theirs)
    assert found["ours"] == found["theirs"], f"{pattern}: {found}"
    return ratio


def _ripgrep(file: Path, pattern: Pattern, *options: str) -> str:
    command = [program("rg"), "--no-config", "--search-zip", "--color=never", "--no-filename", *options]
    case = ["--ignore-case"] if pattern.ignore_case else []
    done = subprocess.run(
        [*command, *case, "-e", pattern.text, str(file)], stdout=subprocess.PIPE, check=False
    )
    assert done.returncode in (0, 1), command
    return done.stdout.decode()
