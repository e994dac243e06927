"""One tenant that takes what it can get of a service, in a process of its own, until it is ended.

python -m tests.bench.hostile URL KEY WAY LARGE SMALL      with two captures that it may read
"""

from __future__ import annotations

import http.client
import itertools
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

SLOW_PATTERN: Final = r"(?:[^a]{1,40}[^b]{1,40}q){3}"
"""Its automaton outgrows the memory for it, so every byte takes long."""
SECONDS: Final = 60


class Tenant:
    def __init__(self, url: str, key: str, large: str, small: str) -> None:
        self._place = urlsplit(url).netloc
        self._headers = {"Authorization": f"Bearer {key}"}
        self._key, self.large, self.small = key, large, small

    def get(self, paths: Callable[[], str]) -> None:
        """Ask for one path after the other over one connection."""
        while True:
            connection = http.client.HTTPConnection(self._place, timeout=SECONDS)
            with suppress(OSError, http.client.HTTPException):
                while True:
                    connection.request("GET", paths(), headers=self._headers)
                    answer = connection.getresponse()
                    answer.read()
                    if answer.status == http.client.TOO_MANY_REQUESTS:
                        time.sleep(0.05)  # a hostile client does not wait for as long as it is told

    def trickle(self, number: int) -> None:
        """Send an upload, one byte a second."""
        host, port = self._place.split(":")
        while True:
            with suppress(OSError), socket.create_connection((host, int(port)), SECONDS) as connection:
                head = (
                    f"POST /v1/captures HTTP/1.1\r\nHost: {self._place}\r\nOverspill-Call-Id: c{number}\r\n"
                )
                connection.sendall(
                    f"{head}Authorization: Bearer {self._key}\r\nContent-Length: 9999\r\n\r\n".encode()
                )
                while True:
                    connection.sendall(b"x")
                    time.sleep(1)


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


WAYS: Final[dict[str, tuple[int, Callable[[Tenant, int], None]]]] = {
    "two hostile searches": (2, searches),
    "many compilations": (16, compilations),
    "64 trickling uploads": (64, Tenant.trickle),
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
    print("begun", flush=True)
    threads[0].join()


if __name__ == "__main__":
    main(*sys.argv[1:])
