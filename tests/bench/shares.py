"""The effect of an abusive tenant on a quiet one: its 99th percentile with it and without, in one run.

All of it runs with the usual scheduling, also if the benchmark was started with a real-time priority (chrt):
under that no niceness counts, so the abusive client and the threads that give way would have all cores.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from overspill.wire import Entry
from overspill_service.settings.settings import Settings
from overspill_service.tenants.keys import hash_key, new_key

from tests.bench import texts
from tests.bench.hostile import WAYS
from tests.bench.measuring import Memory
from tests.bench.table import Goal, Row, listed, mebibytes
from tests.servers.keeper import keep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

GOAL: Final = Goal(2.0)
MEMORY_GOAL: Final = Goal(512 * 2**20)
GROWTH_GOAL: Final = Goal(64 * 2**20)
SOAK_PARTS: Final = 5
HOSTILE, QUIET = new_key(), new_key()
SMALL: Final = b"the first line\n" + b"one line like any other\n" * 2_000 + b"error: the last line\n"


def measure(servers: Servers, scale: Scale) -> Iterator[Row]:
    file = servers.path("tenants.toml")
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\n[[tenants.keys]]\nhash = "{hash_key(key)}"\n'
            'scopes = ["read", "write", "observe"]\n'
            for name, key in (("hostile", HOSTILE), ("quiet", QUIET))
        )
    )
    with usual_scheduling():
        service = servers.service(
            tenants=file,
            anonymous=False,
            metrics_from="127.0.0.1",
            max_request_rate=Settings().max_request_rate,
        )
        url = service.url
        with closing(Caller(url, HOSTILE)) as hostile, closing(Caller(url, QUIET)) as quiet:
            yield from rows(url, hostile, quiet, Memory(service.pid), scale)


@contextmanager
def usual_scheduling() -> Iterator[None]:
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameter)


def rows(url: str, hostile: Caller, quiet: Caller, memory: Memory, scale: Scale) -> Iterator[Row]:
    large = hostile.post(texts.text("service log", scale.pick(200_000_000, 2_000_000)))
    small, own = hostile.post(SMALL), quiet.post(SMALL)
    requests = scale.pick(100, 5)
    # The tests of faults try each of them: quickly, one is enough.
    for way in [*WAYS][:1] if scale.is_quick else [*WAYS, "all together"]:
        alone: list[Times] = []
        beside: list[Times] = []
        memory.begin()
        for _ in range(scale.rounds):
            alone.append(quiet.times(own, requests))
            with abusing(url, HOSTILE, way, large, small):
                beside.append(quiet.times(own, requests))
        ratios = {
            what: percentile(beside, what) / percentile(alone, what) for what in (*Caller.READS, "upload")
        }
        yield Row(
            f"{way}: p99 of a quiet tenant, of its own p99 without",
            percentile(beside, "") / percentile(alone, ""),
            GOAL,
            detail=listed(ratios),
        )
        yield Row(f"{way}: peak memory of the service", memory.peak, MEMORY_GOAL, mebibytes)
    if scale.minutes:
        with abusing(url, HOSTILE, "all together", large, small):
            yield from soak(quiet, own, memory, 60 * scale.minutes)


def soak(quiet: Caller, own: str, memory: Memory, seconds: float) -> Iterator[Row]:
    """Yield how much memory the service takes beside a tenant that goes on for long, and whether it grows."""
    peaks: list[float] = []
    requests = 0
    for _ in range(SOAK_PARTS):
        memory.begin()
        until = time.monotonic() + seconds / SOAK_PARTS
        while time.monotonic() < until:
            quiet.times(own, 1)
            requests += 1
        peaks.append(memory.peak)
    detail = f"{requests} rounds of the quiet tenant; peaks {', '.join(map(mebibytes, peaks))}"
    what = f"all together for {seconds / 60:g} minutes"
    yield Row(f"{what}: peak memory of the service", max(peaks), MEMORY_GOAL, mebibytes, detail)
    yield Row(f"{what}: peak of the last fifth over the first", peaks[-1] - peaks[0], GROWTH_GOAL, mebibytes)


Times = dict[str, list[float]]
"""Seconds of every request, by what was asked for."""


class Caller:
    """One tenant's client, with one connection."""

    READS: Final = ("head", "tail", "grep", "summary")

    def __init__(self, url: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._headers = {"Authorization": f"Bearer {key}"}
        self._posted = 0

    def close(self) -> None:
        self._connection.close()

    def post(self, content: bytes) -> str:
        """Store a capture, and return its id."""
        self._posted += 1
        headers = {"Overspill-Call-Id": f"call_{self._posted}"}
        return msgspec.json.decode(self._ask("POST", "/v1/captures", content, headers), type=Entry).id

    def metrics(self) -> str:
        return self._ask("GET", "/metrics").decode()

    def times(self, capture: str, requests: int) -> Times:
        found: Times = {what: [] for what in (*self.READS, "upload")}
        for number in range(requests):
            for what in self.READS:
                pattern = "?pattern=error" if what == "grep" else ""
                with timed(found[what]):
                    self._ask("GET", f"/v1/captures/{capture}/{what}{pattern}")
            with timed(found["upload"]):
                self.post(SMALL + str(number).encode())
        return found

    def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> bytes:
        self._connection.request(method, path, body, self._headers | (headers or {}))
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise RuntimeError(f"{method} {path}: {answer.status} {content!r}")
        return content


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    since = time.perf_counter()
    yield
    into.append(time.perf_counter() - since)


def percentile(rounds: list[Times], what: str) -> float:
    """The 99th percentile of one kind of request, or of all."""
    each = sorted(
        seconds
        for times in rounds
        for name, found in times.items()
        for seconds in found
        if what in ("", name)
    )
    return each[min(len(each) - 1, len(each) * 99 // 100)]


@contextmanager
def abusing(url: str, key: str, way: str, large: str, small: str) -> Iterator[None]:
    """Run the abusive tenant's process within the block."""
    command = [sys.executable, "-m", "tests.bench.hostile", url, key, way, large, small]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        keep(process.pid)
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield
        finally:
            process.kill()
