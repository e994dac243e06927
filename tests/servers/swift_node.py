"""Swift's four servers as children of one process: its libraries, which take seconds, are imported once.

    python -m tests.servers.swift_node ROOT PORTS      with the ports as JSON, by the kind of server

Makes the rings in `ROOT/etc` first, if there are none. Each server logs into `ROOT/log`. When one ends, or
this process is told to, all end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

MODULES: Final = {"account": "account", "container": "container", "object": "obj", "proxy": "proxy"}
"""The package of each server."""


def _make_rings(etc: Path, ports: dict[str, int]) -> None:
    from swift.common.ring import RingBuilder  # noqa: PLC0415  (only where there is Swift)

    for kind in ports.keys() - {"proxy"}:
        builder = RingBuilder(4, 1, 0)
        place = {"ip": "127.0.0.1", "port": ports[kind]}
        replication = {f"replication_{name}": value for name, value in place.items()}
        device = {"id": 0, "region": 1, "zone": 1, "weight": 1.0, "device": "d1", "meta": ""}
        builder.add_dev({**device, **place, **replication})
        builder.rebalance()
        builder.get_ring().save(f"{etc}/{kind}.ring.gz")


def _forked(root: Path, kind: str) -> int:
    """Start one server, and return its process id."""
    module = import_module(f"swift.{MODULES[kind]}.server")
    pid = os.fork()
    if pid:
        return pid
    log = os.open(root / "log" / f"{kind}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = [f"swift-{kind}-server", str(root / "etc" / f"{kind}-server.conf"), "-v"]
    module.main()
    sys.exit()


def _end(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def main(root: Path, ports: dict[str, int]) -> None:
    if not (root / "etc" / "object.ring.gz").exists():
        _make_rings(root / "etc", ports)
    for name in ("swift.common.middleware.s3api.s3api", *(f"swift.{MODULES[kind]}.server" for kind in ports)):
        import_module(name)
    pids = [_forked(root, kind) for kind in ports]
    signal.signal(signal.SIGTERM, lambda *_: _end(pids))
    with suppress(ChildProcessError):
        os.wait()
        _end(pids)
        while True:
            os.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
