"""Plain HTTP to a service, from a client that does nothing but send and receive."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from itertools import count
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from overspill.wire import Path, capture_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.servers.overspill import ServiceProcess

BUFFER: Final = 1024 * 1024

_numbers: Iterator[int] = count()


def put(service: ServiceProcess, pieces: Iterable[bytes], size: int) -> str:
    """Store content of `size` bytes as it is, under a new id."""
    capture = capture_id("", f"bench-{next(_numbers)}", b"")
    with closing(_connection(service)) as connection:
        connection.request(
            "PUT", Path.CAPTURE.format(ref=capture), iter(pieces), {"Content-Length": str(size)}
        )
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 201, body
    return capture


def get(service: ServiceProcess, path: str, *, encoding: str = "identity") -> Iterator[memoryview]:
    """The body of an answer, in pieces that hold only until the next."""
    buffer = memoryview(bytearray(BUFFER))
    with closing(_connection(service)) as connection:
        connection.request("GET", path, headers={"Accept-Encoding": encoding})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.headers.get("Content-Encoding", "identity") == encoding
        while length := answer.readinto(buffer):
            yield buffer[:length]


def drain(service: ServiceProcess, path: str, *, encoding: str = "identity") -> int:
    """How many bytes an answer has."""
    return sum(len(piece) for piece in get(service, path, encoding=encoding))


def content(capture: str) -> str:
    return Path.CONTENT.format(ref=capture)


def _connection(service: ServiceProcess) -> HTTPConnection:
    return HTTPConnection(urlsplit(service.url).netloc, timeout=120)
