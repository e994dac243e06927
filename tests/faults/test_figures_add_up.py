"""A load generator's own counts equal those of metrics, statistics and `overspill top`.

Restarts and repeated batches change nothing of it.
"""

from __future__ import annotations

import random
import re
import secrets
import socket
import struct
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import msgspec
import pytest
from overspill import wire
from overspill.transfer.sync import SyncClient
from overspill.wire import Observation, Observations, Outcome
from prometheus_client import parser

from tests.client.shell import Shell
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess
    from tests.servers.redis import RedisServer

TOOLS = "grep", "ls", "read ✓"
OUTPUT_FIGURES = "tool_outputs", "tool_output_bytes", "tool_output_kept_bytes"
TOOL_FIGURES = (
    *("tool_output_tokens_kept_out", "identical_tool_outputs", "tool_rerun_bursts"),
    *("capture_bytes", "captures_read"),
)

EXACT = "OUTPUTS", "BYTES", "KEPT OUT", "TOKENS", "CAPTURES", "SAME", "BURSTS"
"""Columns of `overspill top` that are not ratios."""

Figures = Counter[tuple[str, str, str]]
"""Sums by metric, tool and outcome."""


class Load:
    """One client of both replicas, which counts what it does."""

    def __init__(self, number: int, urls: list[str]) -> None:
        self._random = random.Random(number)
        self._urls = urls
        self._number = number
        self.done: Figures = Counter()

    def run(self, rounds: int) -> None:
        for number in range(rounds):
            with SyncClient(self._random.choice(self._urls)) as client:
                self._report(client)
                self._capture(client, f"{self._number} {number} {secrets.token_hex(4)}")

    def _report(self, client: SyncClient) -> None:
        """Send a batch, now and then several times, as a client that gets no answer does."""
        seen = [self._observation(tool) for tool in TOOLS]
        batch = Observations(batch=secrets.token_hex(8), observations=seen)
        for _ in range(self._random.choice([1, 1, 3])):
            with SyncClient(self._random.choice(self._urls)) as another:
                another.observe(batch)
        client.observe(batch)
        for each in seen:
            amounts = each.count, each.bytes_before, each.bytes_after
            for figure, amount in zip(OUTPUT_FIGURES, amounts, strict=True):
                self.done[figure, each.tool, each.outcome] += amount
            self.done["tool_output_tokens_kept_out", each.tool, ""] += each.tokens_kept_out
            self.done["identical_tool_outputs", each.tool, ""] += each.identical
            self.done["tool_rerun_bursts", each.tool, ""] += each.bursts

    def _observation(self, tool: str) -> Observation:
        some = self._random.randrange
        return Observation(
            tool=tool,
            outcome=self._random.choice([*Outcome]),
            count=some(1, 9),
            bytes_before=some(10**9),
            bytes_after=some(1000),
            tokens_kept_out=some(10**6),
            identical=some(3),
            bursts=some(2),
        )

    def _capture(self, client: SyncClient, text: str) -> None:
        """Store a capture, send it again, and read it, now and then, by any replica."""
        tool = self._random.choice(TOOLS)
        entry = client.put(text, tool=tool, call_id=text)
        client.put(text, tool=tool, call_id=text)
        self.done["captures", tool, "created"] += 1
        self.done["captures", tool, "repeated"] += 1
        self.done["capture_bytes", tool, ""] += entry.size
        for number in range(self._random.choice([0, 1, 3])):
            with SyncClient(self._random.choice(self._urls)) as another:
                another.head(entry.id)
            self.done["captures_read", tool, ""] += number == 0


def under_load(urls: list[str], clients: int = 4, rounds: int = 3) -> Figures:
    """What the clients of one load have done together."""
    loads = [Load(number, urls) for number in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda load: load.run(rounds), loads))
    return sum((load.done for load in loads), Counter())


def metrics(service: ServiceProcess) -> Figures:
    """The same figures by /metrics of one replica, all its workers together."""
    with urlopen(f"{service.url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found: Figures = Counter()
    for family in parser.text_string_to_metric_families(text):
        figure = family.name.removeprefix("overspill_")
        if figure in (*OUTPUT_FIGURES, *TOOL_FIGURES, "captures"):
            for sample in family.samples:
                outcome = sample.labels.get("outcome") or sample.labels.get("result") or ""
                found[figure, sample.labels["tool"], outcome] += int(sample.value)
    return +found


def without_reads(figures: Figures) -> Figures:
    """All but the captures that were read: these are counted when they are written, within seconds."""
    return Counter({key: amount for key, amount in figures.items() if amount and key[0] != "captures_read"})


def statistics(url: str) -> Figures:
    """The same figures by the statistics of the last hour."""
    with SyncClient(url) as client:
        return summed(client.stats())


def shown_by_top(url: str) -> Figures:
    """The same figures as `overspill top` prints them."""
    return summed(msgspec.json.decode(Shell(url)("top", "--json").data, type=wire.Stats))


def totals_of_top(url: str) -> dict[str, dict[str, str]]:
    """The rows of the table that `overspill top` prints, by tool."""
    header, *rows = (re.split(r" {2,}", line) for line in Shell(url)("top").out.splitlines())
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


def table_of(done: Figures, tool: str) -> dict[str, float]:
    """What the row of a tool must say, or that of all of them."""
    of: Counter[str | tuple[str, str]] = Counter()
    for (figure, of_tool, outcome), amount in done.items():
        if tool in (of_tool, "TOTAL") and outcome != "repeated":
            of[figure] += amount
            of[figure, outcome] += amount
    return {
        "OUTPUTS": of["tool_outputs"],
        "SPILLED": 1 - of["tool_outputs", Outcome.INLINE] / of["tool_outputs"],
        "LOST": of["tool_outputs", Outcome.TRUNCATED] / of["tool_outputs"],
        "BYTES": of["tool_output_bytes"],
        "KEPT OUT": of["tool_output_bytes"] - of["tool_output_kept_bytes"],
        "TOKENS": of["tool_output_tokens_kept_out"],
        "CAPTURES": of["captures"],
        "READ": of["captures_read"] / of["captures"],
        "SAME": of["identical_tool_outputs"],
        "BURSTS": of["tool_rerun_bursts"],
    }


def summed(stats: wire.Stats) -> Figures:
    found: Figures = Counter()
    for row in stats.rows:
        for figure, amount in row.figures.items():
            if figure in (*OUTPUT_FIGURES, *TOOL_FIGURES, "captures"):
                found[figure, row.tool, row.outcome] += amount
    return found


def test_metrics_and_statistics_are_exactly_what_was_done(
    start_services: StartServices, own_redis: RedisServer, tmp_path: Path
) -> None:
    replicas = start_services(2, store=f"file://{tmp_path}/objects", catalog=own_redis.url, workers=2)
    urls = [each.url for each in replicas]
    first = under_load(urls)
    assert without_reads(metrics(replicas[0]) + metrics(replicas[1])) == without_reads(first)
    for each in replicas:  # what waits is written when a process ends, and its metrics begin at nothing
        each.stop()
    for each in replicas:
        each.start()
    assert +statistics(urls[0]) == +first
    second = under_load(urls)
    for each in replicas:
        each.stop()
    replicas[0].start()

    done = first + second
    table = totals_of_top(urls[0])

    assert statistics(urls[0]) == shown_by_top(urls[0]) == +done
    for tool in (*TOOLS, "TOTAL"):
        shown = {name: float(text) for name, text in table[tool].items() if name != "/MIN"}
        assert shown == pytest.approx(table_of(done, tool), rel=1e-5)
        assert {name: shown[name] for name in EXACT} == {name: table_of(done, tool)[name] for name in EXACT}


def test_captures_whose_sender_hangs_up_are_counted_if_they_are_stored(own_service: ServiceProcess) -> None:
    address = urlsplit(own_service.url)
    for number in range(50):
        content = f"content {number}".encode()
        head = f"POST /v1/captures HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
        with socket.create_connection((str(address.hostname), address.port or 0)) as connection:
            connection.sendall(head.encode() + content)
            time.sleep(random.Random(number).random() / 100)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with SyncClient(own_service.url) as client:
        while "overspill_uploads_in_progress 0" not in scraped(own_service.url):
            time.sleep(0.05)
        stored = len(list(client.iterate()))
    counted = re.search(r'overspill_captures_total\{result="created".*\} (\d+)', scraped(own_service.url))

    assert counted is not None
    assert int(counted[1]) == stored
    assert stored > 0


def test_followers_and_waits_of_all_workers_are_added_up_until_they_hang_up(
    start_services: StartServices,
) -> None:
    [service] = start_services(workers=2)
    address = urlsplit(service.url)
    capture, host = "cap_" + "a" * 20, (str(address.hostname), address.port or 0)
    begin = Request(f"{service.url}/v1/captures/{capture}/live", method="PUT")
    begin.add_header(wire.Header.PRODUCER, "me")
    urlopen(begin).close()

    def until_shown(followers: int, waits: int) -> None:
        wanted = {f"overspill_followers {followers}.0", f"overspill_waits {waits}.0"}
        wait_until(lambda: wanted <= {*scraped(service.url).splitlines()}, f"{wanted}")

    with ExitStack() as clients:
        for question in ["follow"] * 8 + ["wait?timeout=600"] * 4:
            client = clients.enter_context(socket.create_connection(host))
            target = f"/v1/captures/{capture}/{question}"
            client.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until_shown(8, 4)
    until_shown(0, 0)


def scraped(url: str) -> str:
    with urlopen(f"{url}/metrics") as answer:
        return str(answer.read().decode())
