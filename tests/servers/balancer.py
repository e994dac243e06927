"""The real load balancer in front of plain processes: HAProxy with the deployment's own configuration.

Only addresses change: the ports that it listens on, and the replicas, which Docker's name server would
name. Tests that need it are skipped where no `haproxy` is on the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.servers.keeper import keep
from tests.servers.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONFIGURATION: Final = Path(__file__).parents[2] / "service" / "deploy" / "haproxy.cfg"
READY_SECONDS: Final = 30
STOP_SECONDS: Final = 10
SERVICE_BIND: Final = 'bind :8750 "${BALANCER_BIND[*]}"'
PATIENCE: Final = "90s"
OPERATIONS_BIND: Final = "bind :8405"
REPLICAS: Final = re.compile(r"^ +server-template .*\n", re.MULTILINE)


def executable() -> str:
    """The HAProxy of this machine; the test is skipped where there is none."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("no haproxy on the PATH (Debian: apt-get install haproxy)")
    return program


def render(port: int, operations_port: int, replicas: Sequence[int], patience: str = PATIENCE) -> str:
    """The deployment's configuration, listening on these ports of loopback, with replicas on those.

    `patience`: how long a side may stay silent, as its timeouts say it.
    """
    text = CONFIGURATION.read_text(encoding="utf-8")
    for side in ("client", "server"):
        assert text.count(f"    timeout {side} {PATIENCE}\n") == 1
        text = text.replace(f"    timeout {side} {PATIENCE}\n", f"    timeout {side} {patience}\n")
    for line, bound in ((SERVICE_BIND, port), (OPERATIONS_BIND, operations_port)):
        assert text.count(f"    {line}\n") == 1, f"{CONFIGURATION} has no line {line!r}"
        _, _, options = line.removeprefix("bind ").partition(" ")
        text = text.replace(f"    {line}\n", f"    bind {HOST}:{bound} {options}\n")
    servers = "".join(f"    server replica-{port} {HOST}:{port}\n" for port in replicas)
    text, count = REPLICAS.subn("@replica\n", text)
    assert count, f"{CONFIGURATION} has no server-template"
    return text.replace("@replica\n", servers, 1).replace("@replica\n", "")


@dataclass(frozen=True)
class Balancer:
    """A running balancer: `url` for clients, `operations_url` for its own health and metrics."""

    url: str
    operations_url: str
    process: subprocess.Popen[bytes]
    log: Path

    def health(self) -> int:
        """The status of its health page: 200 while at least one replica serves, else 503."""
        return status_of(f"{self.operations_url}/healthz")

    def replicas_up(self) -> int:
        """How many replicas pass their health check."""
        with urlopen(f"{self.operations_url}/metrics", timeout=5) as answer:
            metrics = answer.read().decode()
        up = re.findall(
            r'^haproxy_server_status\{proxy="service",[^}]*state="UP"\} 1$', metrics, re.MULTILINE
        )
        return len(up)


def status_of(url: str) -> int:
    try:
        with urlopen(url, timeout=5) as answer:
            status: int = answer.status
            return status
    except HTTPError as error:
        with error:
            return error.code


@contextmanager
def run_balancer(
    directory: Path, replicas: Sequence[int], *, bind: str = "", patience: str = PATIENCE
) -> Iterator[Balancer]:
    """A balancer in front of services that listen on these ports of loopback.

    `bind` has options of TLS, `patience` is as `render` has it.
    """
    port, operations_port = free_ports(2)
    configuration, log = directory / "haproxy.cfg", directory / "haproxy.log"
    configuration.write_text(render(port, operations_port, replicas, patience), encoding="utf-8")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [executable(), "-db", "-f", configuration],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"BALANCER_BIND": bind},
        )
    keep(process.pid)
    try:
        _wait_for(operations_port, process, log)
        scheme = "https" if bind else "http"
        yield Balancer(f"{scheme}://{HOST}:{port}", f"http://{HOST}:{operations_port}", process, log)
    finally:
        _stop(process)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"haproxy does not listen: {log.read_text(encoding='utf-8', errors='replace')}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)


class StartBalancer(Protocol):
    def __call__(self, *replicas: int) -> Balancer: ...


@pytest.fixture
def start_balancer(tmp_path: Path) -> Iterator[StartBalancer]:
    """Starts the balancer in front of the given ports; it ends with the test."""
    executable()
    with ExitStack() as stack:

        def start(*replicas: int) -> Balancer:
            return stack.enter_context(run_balancer(tmp_path, replicas))

        yield start
