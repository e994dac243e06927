"""The cost of the MCP proxy: a call over standard input and output through it, over the same call without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

SERVER: Final = [sys.executable, str(Path(__file__).parent.parent / "mcp" / "sdk_server.py")]
PROXY: Final = [sys.executable, "-m", "overspill", "mcp-proxy", "--"]
CALLS: Final = 300
FEW_CALLS: Final = 30


class Connection:
    """A client of one server. It waits for each answer."""

    def __init__(self, command: list[str]) -> None:
        environment = {**os.environ, "OVERSPILL_URL": "http://127.0.0.1:1", "OVERSPILL_SPOOL": "off"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        info = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)

    def ask(self, method: str, **params: object) -> float:
        """Return the seconds that a request takes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        begun = time.perf_counter()
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        spent = time.perf_counter() - begun
        assert "result" in json.loads(answer), answer
        return spent

    def call(self) -> float:
        return self.ask("tools/call", name="kilobyte", arguments={})


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    with ExitStack() as ended:
        direct, proxied = Connection(SERVER), Connection([*PROXY, *SERVER])
        for connection in direct, proxied:
            ended.enter_context(connection.process)
            ended.callback(connection.process.terminate)
        pairs = [(direct.call(), proxied.call()) for _ in range(scale.pick(CALLS, FEW_CALLS))][5:]
        without, within = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    detail = f"{without * 1e3:.2f} ms without, {within * 1e3:.2f} ms with the proxy"
    yield Row("a call of 1 KB through mcp-proxy / directly", within / without, Goal(2), detail=detail)
    added = f"{(within - without) * 1e3:.2f} ms"
    yield Row("what mcp-proxy adds to a call, in ms", (within - without) * 1e3, Goal(2), detail=added)
