"""A real Prometheus server that scrapes plain processes, with the deployment's own rules.

It asks every second instead of every 15, so that a short load is enough. Tests that need it are skipped where
no `prometheus` is on the PATH.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.servers.keeper import keep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOST: Final = "127.0.0.1"
RULES: Final = Path(__file__).parents[2] / "service" / "deploy" / "rules.yml"
READY_SECONDS: Final = 30
STOP_SECONDS: Final = 10
SCRAPE_SECONDS: Final = 1


def executable() -> str:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus on the PATH (Debian: apt-get install prometheus)")
    return program


@dataclass(frozen=True)
class Prometheus:
    url: str

    def ask(self, path: str, **parameters: object) -> Any:
        """The data of an answer of the HTTP API; what it says of a wrong query is an error."""
        try:
            with urlopen(f"{self.url}/api/v1/{path}?{urlencode(parameters)}", timeout=30) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            with error:
                raise ValueError(json.load(error)["error"]) from error

    def query(self, expr: str) -> list[Any]:
        """The series of an expression now."""
        found: list[Any] = self.ask("query", query=expr)["result"]
        return found

    def query_range(self, expr: str, *, start: float, end: float, step: float = SCRAPE_SECONDS) -> list[Any]:
        """The series of an expression over time."""
        found: list[Any] = self.ask("query_range", query=expr, start=start, end=end, step=step)["result"]
        return found

    def value(self, expr: str) -> float:
        """The value of an expression with one series, or without any: then 0."""
        found = self.query(expr)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else 0.0

    def names(self) -> set[str]:
        """The names of all series that there are."""
        return set(self.ask("label/__name__/values"))


@contextmanager
def scraping(directory: Path, ports: Sequence[int]) -> Iterator[Prometheus]:
    """A Prometheus that scrapes services on these ports of loopback."""
    with closing(socket.create_server((HOST, 0))) as probe:
        port = probe.getsockname()[1]
    configuration = {
        "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{SCRAPE_SECONDS}s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": "overspill", "static_configs": [{"targets": [f"{HOST}:{each}" for each in ports]}]}
        ],
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "prometheus.yml").write_text(json.dumps(configuration))  # JSON is YAML
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                executable(),
                f"--config.file={directory}/prometheus.yml",
                f"--storage.tsdb.path={directory}/data",
                f"--web.listen-address={HOST}:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    keep(process.pid)
    try:
        started = Prometheus(f"http://{HOST}:{port}")
        _wait_until_ready(started, process, directory / "log")
        _wait_for_scrapes(started, len(ports))
        yield started
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _wait_until_ready(started: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(f"{started.url}/-/ready", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"Prometheus does not start: {log.read_text(errors='replace')}")


def _wait_for_scrapes(started: Prometheus, targets: int) -> None:
    """Wait until each target was scraped: counters grow only from a first sample. It may come after 5 s."""
    deadline = time.monotonic() + READY_SECONDS
    while started.value("count(up)") < targets:
        if time.monotonic() > deadline:
            raise RuntimeError(f"Prometheus has not asked all of its {targets} targets")
        time.sleep(0.05)
