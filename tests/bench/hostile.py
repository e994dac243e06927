"""One tenant that takes what it can get of a service, in a process of its own, until it is ended.

python -m tests.bench.hostile URL KEY WAY LARGE SMALL      with two captures that it may read

Once it has begun, the process is nice: a hostile tenant has machines of its own, and takes no CPU time of the
service's machine.
It comes from another address of the loopback than others.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import secrets
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

SLOW_PATTERN: Final = r"(?:[^a]{1,40}[^b]{1,40}q){3}"
"""Its automaton outgrows the memory for it, so every byte takes long."""
SECONDS: Final = 60
ADDRESS: Final = "127.0.0.2"
PAUSE_SECONDS: Final = 0.05
"""How long it waits after a refusal: not for as long as it is told."""
UPLOAD_BYTES: Final = 32 * 2**20
CONNECTIONS: Final = 2500
"""More than an address may have."""
SOME: Final = 500

Request = tuple[str, str, bytes | None, dict[str, str]]
"""Method, path, body and headers."""


class Tenant:
    def __init__(self, url: str, key: str, large: str, small: str) -> None:
        self._place = urlsplit(url).netloc
        self._headers = {"Authorization": f"Bearer {key}"}
        self._key, self.large, self.small = key, large, small
        self.under_way = threading.Semaphore(0)
        """Released by each thread once it is at work."""

    def ask(self, requests: Callable[[], Request]) -> None:
        """Send one request after the other over one connection."""
        while True:
            connection = http.client.HTTPConnection(self._place, timeout=SECONDS, source_address=(ADDRESS, 0))
            with suppress(OSError, http.client.HTTPException):
                connection.connect()
                self.under_way.release()
                while True:
                    method, path, body, headers = requests()
                    connection.request(method, path, body, self._headers | headers)
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status >= http.client.BAD_REQUEST:
                        time.sleep(PAUSE_SECONDS)
            time.sleep(PAUSE_SECONDS)

    def get(self, paths: Callable[[], str]) -> None:
        self.ask(lambda: ("GET", paths(), None, {}))

    def connect(self, buffer: int = 0) -> socket.socket:
        host, port = self._place.split(":")
        connection = socket.socket()
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.settimeout(SECONDS)
        connection.bind((ADDRESS, 0))
        connection.connect((host, int(port)))
        return connection

    def head(self, method: str, path: str, *lines: str) -> bytes:
        fields = (f"Host: {self._place}", f"Authorization: Bearer {self._key}", *lines)
        return "\r\n".join((f"{method} {path} HTTP/1.1", *fields, "")).encode()

    def trickle(self, number: int) -> None:
        """Send an upload, one byte a second."""
        while True:
            with suppress(OSError), self.connect() as connection:
                lines = f"Overspill-Call-Id: c{number}", "Content-Length: 9999"
                connection.sendall(self.head("POST", "/v1/captures", *lines) + b"\r\n")
                self.under_way.release()
                while True:
                    connection.sendall(b"x")
                    time.sleep(1)

    def read_nothing(self, _: int) -> None:
        """Ask for a long answer, and take next to nothing of it."""
        while True:
            with suppress(OSError), self.connect(buffer=4096) as connection:
                connection.sendall(self.head("GET", f"/v1/captures/{self.large}/content") + b"\r\n")
                self.under_way.release()
                while connection.recv(64):
                    time.sleep(1)
            time.sleep(PAUSE_SECONDS)

    def flood_headers(self, _: int) -> None:
        """Send heads that never end."""
        line = b"X-%d: " + b"x" * 30_000 + b"\r\n"
        while True:
            with suppress(OSError), self.connect() as connection:
                connection.sendall(self.head("GET", "/v1/captures"))
                self.under_way.release()
                for number in range(120):
                    connection.sendall(line % number)
                connection.recv(1)
            time.sleep(PAUSE_SECONDS)

    def hold_connections(self, _: int) -> None:
        held: list[socket.socket] = []
        while True:
            with suppress(OSError):
                held.append(self.connect())
            if len(held) == SOME:
                self.under_way.release()
            if len(held) > CONNECTIONS:
                time.sleep(PAUSE_SECONDS)
                held.pop(0).close()


def searches(tenant: Tenant, _: int) -> None:
    tenant.get(lambda: f"/v1/captures/{tenant.large}/grep?pattern={quote(SLOW_PATTERN)}")


def compilations(tenant: Tenant, number: int) -> None:
    """Each pattern is another one, nearly too large."""
    numbers = itertools.count()
    tenant.get(
        lambda: (
            f"/v1/captures/{tenant.small}/grep?pattern=" + quote(rf"(?:\PN{{10}}|{number}x{next(numbers)})")
        )
    )


def metadata(tenant: Tenant, number: int) -> None:
    """Captures of a byte with as many labels as there may be."""
    labels = {f"Overspill-Label-L{each}": "x" * 1800 for each in range(4)}
    numbers = itertools.count()
    tenant.ask(
        lambda: ("POST", "/v1/captures", b"x", labels | {"Overspill-Call-Id": f"m{number}-{next(numbers)}"})
    )


def listings(tenant: Tenant, number: int) -> None:
    """Pages of everything, and of what few captures meet."""
    filters = "" if number % 2 else "&tool=none&session=none"
    tenant.get(lambda: f"/v1/captures?limit=1000{filters}")


def tool_names(tenant: Tenant, number: int) -> None:
    """Reports of a thousand tools that nobody has."""
    numbers = itertools.count()

    def report() -> Request:
        at = next(numbers)
        seen = [
            {
                "tool": f"t{number}-{at}-{each}",
                "outcome": "inline",
                "count": 1,
                "bytes_before": 9,
                "bytes_after": 9,
            }
            for each in range(1000)
        ]
        body = json.dumps({"batch": secrets.token_hex(8), "observations": seen}).encode()
        return "POST", "/v1/observations", body, {"Content-Type": "application/json"}

    tenant.ask(report)


def uploads(tenant: Tenant, number: int) -> None:
    """Large captures that do not compress."""
    content, numbers = secrets.token_bytes(UPLOAD_BYTES), itertools.count()
    tenant.ask(lambda: ("POST", "/v1/captures", content, {"Overspill-Call-Id": f"u{number}-{next(numbers)}"}))


def small_requests(tenant: Tenant, _: int) -> None:
    tenant.get(lambda: f"/v1/captures/{tenant.small}")


WAYS: Final[dict[str, tuple[int, Callable[[Tenant, int], None]]]] = {
    "two hostile searches": (2, searches),
    "many compilations": (16, compilations),
    "64 trickling uploads": (64, Tenant.trickle),
    "large uploads": (8, uploads),
    "300 slow readers": (300, Tenant.read_nothing),
    "large metadata": (16, metadata),
    "long listings": (16, listings),
    "heads without end": (64, Tenant.flood_headers),
    "2,500 connections": (1, Tenant.hold_connections),
    "invented tool names": (4, tool_names),
    "small requests": (16, small_requests),
}


def main(url: str, key: str, way: str, large: str, small: str) -> None:
    tenant = Tenant(url, key, large, small)
    ways = WAYS.values() if way == "all together" else [WAYS[way]]
    threads = [
        threading.Thread(target=work, args=(tenant, number), daemon=True)
        for count, work in ways
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        tenant.under_way.acquire()
    give_way()
    print("begun", flush=True)
    threads[0].join()


def give_way() -> None:
    """Let all other processes run first. Before this, a busy machine would not let all threads begin."""
    os.nice(19)
    with suppress(
        OSError
    ):  # Linux shares cores among sessions first, and only then by each thread's niceness
        Path("/proc/self/autogroup").write_text("19")
        for thread in Path("/proc/self/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), 19)


if __name__ == "__main__":
    main(*sys.argv[1:])
