"""Disturb a whole service for as long as you like, and hold it to what it acknowledged.

    uv run --group dev python -m tests.chaos --seconds 1200 --seed 7 --stack distributed

Prints the schedule of faults first, which the seed alone decides; then what was answered, and every wrong.
Exits with 1 where there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from tests.chaos.run import run
from tests.chaos.stacks import Distributed, Embedded
from tests.servers.swift import obstacle, swift


def folder_at(text: str) -> Path:
    """That folder, made where there is none. Servers with other working directories need its whole path."""
    folder = Path(text).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600, help="how long faults strike (default: 600)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(2**32), help="default: a new one each run"
    )
    parser.add_argument("--stack", choices=("embedded", "distributed"), default="distributed")
    parser.add_argument(
        "--keep", type=folder_at, help="a folder that is left behind, with the logs of all servers"
    )
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # all servers end then too
    print(f"seed {asked.seed}, {asked.seconds:g} s, {asked.stack}", flush=True)
    async with AsyncExitStack() as opened:
        folder = asked.keep or Path(
            opened.enter_context(tempfile.TemporaryDirectory(prefix="overspill-chaos-"))
        )
        stack: Embedded | Distributed
        if asked.stack == "embedded":
            stack = Embedded(folder)
        else:
            if reason := obstacle(folder):
                sys.exit(reason)
            server = opened.enter_context(swift(folder / "swift"))
            os.environ |= server.environment
            stack = Distributed(folder, server)
        await opened.enter_async_context(stack.running())
        ledger = await run(
            stack, seconds=asked.seconds, seed=asked.seed, say=lambda text: print(text, flush=True)
        )
    print(*ledger.wrongs, sep="\n")
    return 1 if ledger.wrongs else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
