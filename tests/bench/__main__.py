"""Print every figure of Overspill beside its goal, as a table in Markdown.

Each is a ratio of two things that are measured in the same run, or a count. Takes some minutes; other work
on the machine moves even ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import zstandard

from tests import bytecode
from tests.bench import (
    dashboard,
    fetched,
    fleet,
    grep,
    guard,
    ingest,
    keys,
    live,
    live_crowd,
    mcp_proxy,
    memory,
    metrics,
    page,
    peers,
    previews,
    redaction,
    run,
    shares,
    small_captures,
    soak,
    spool,
    stored_size,
    sweep,
    table,
    tail,
    tracing,
    undecoded,
    uploads,
)
from tests.bench.scale import Scale
from tests.bench.servers import Servers, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.bench.table import Row

BENCHMARKS: Final[dict[str, Callable[[Servers, Scale], Iterator[Row]]]] = {
    "fetched": fetched.measure,
    "stored-size": stored_size.measure,
    "ingest": ingest.measure,
    "grep": grep.measure,
    "tail": tail.measure,
    "small-captures": small_captures.measure,
    "sweep": sweep.measure,
    "undecoded": undecoded.measure,
    "memory": memory.measure,
    "metrics": metrics.measure,
    "uploads": uploads.measure,
    "guard": guard.measure,
    "mcp-proxy": mcp_proxy.measure,
    "fleet": fleet.measure,
    "page": page.measure,
    "dashboard": dashboard.measure,
    "keys": keys.measure,
    "live": live.measure,
    "live-crowd": live_crowd.measure,
    "peers": peers.measure,
    "previews": previews.measure,
    "redaction": redaction.measure,
    "run": run.measure,
    "shares": shares.measure,
    "soak": soak.measure,
    "spool": spool.measure,
    "tracing": tracing.measure,
}
ROUNDS: Final = 5


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    scale = Scale(
        rounds=options.rounds or (1 if options.quick else ROUNDS),
        is_quick=options.quick,
        minutes=options.minutes,
    )
    print(f"{_machine()}, {scale.rounds} rounds{', quick: no figures to rely on' * scale.is_quick}\n")
    print(table.head(), flush=True)
    missing = []
    with tempfile.TemporaryDirectory(prefix="overspill-bench-") as root, Servers(Path(root)) as servers:
        bytecode.keep(Path(root) / "bytecode")
        for name in options.names or BENCHMARKS:
            try:
                for row in BENCHMARKS[name](servers, scale):
                    print(table.line((name, *row.cells)), flush=True)
            except Unavailable as reason:
                missing.append(f"Not measured: {name}: {reason}")
    print(*missing, sep="\n")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", type=_name, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="small sizes and one round: only a try-out")
    parser.add_argument("--rounds", type=int, help=f"rounds of every comparison (default {ROUNDS})")
    parser.add_argument("--minutes", type=float, default=0, help="also a soak of `shares` of so many minutes")
    return parser.parse_args(arguments)


def _name(text: str) -> str:
    if text not in BENCHMARKS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(BENCHMARKS)}")
    return text


def _machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, libzstd {'.'.join(map(str, zstandard.ZSTD_VERSION))}"
    )


if __name__ == "__main__":
    main()
