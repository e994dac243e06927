"""Free ports for servers that cannot choose one themselves."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from typing import Final

HOST: Final = "127.0.0.1"
FIRST: Final = 10_000
COUNT: Final = 12_000
"""The system gives outgoing connections ports from 32,768 on, which may be taken before the server has them.
The bus of a Redis cluster is below that too."""
BUS_OFFSET: Final = 10_000
"""A cluster node's bus listens this far above its port."""


def free_port() -> int:
    """A port that is free now, and whose cluster bus port is free too."""
    while True:
        port = FIRST + secrets.randbelow(COUNT)
        with socket.socket() as probe, socket.socket() as bus, suppress(OSError):
            probe.bind((HOST, port))
            bus.bind((HOST, port + BUS_OFFSET))
            return port


def free_ports(count: int) -> list[int]:
    """Different ports that are free now."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)
