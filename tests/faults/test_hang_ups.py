"""Clients that have gone before their request is read: the logs say who they were, and no failure."""

from __future__ import annotations

import os
import signal
import socket
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.servers.overspill import ForkedService, ServiceProcess, running
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CAPTURE = "/v1/captures/cap_" + "a" * 20
ADDRESS = "127.0.0.2"
RESET = struct.pack("ii", 1, 0)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    with running(ForkedService(tmp_path / "service", audit_log=tmp_path / "audit.json")) as service:
        yield service


@contextmanager
def paused(service: ServiceProcess) -> Iterator[None]:
    os.kill(service.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(service.pid, signal.SIGCONT)


def send_and_go(service: ServiceProcess, request: str, *, resets: bool = False) -> None:
    """Send a request and hang up, both before the service looks."""
    place = urlsplit(service.url)
    with (
        paused(service),
        socket.create_connection((place.hostname, place.port), source_address=(ADDRESS, 0)) as connection,
    ):
        connection.sendall(request.replace("\n", "\r\n").encode())
        if resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def test_who_has_gone_when_the_request_is_read_is_in_both_logs_with_the_address(
    service: ServiceProcess, tmp_path: Path
) -> None:
    send_and_go(service, f"DELETE {CAPTURE} HTTP/1.1\nHost: localhost\n\n", resets=True)
    audit = tmp_path / "audit.json"

    assert until(lambda: "DELETE" in service.logged() and audit.exists() and audit.stat().st_size)
    assert f"address={ADDRESS}" in service.logged()
    assert f'"address":"{ADDRESS}"' in audit.read_text()


@pytest.mark.parametrize(
    ("request_line", "field"),
    [
        (f"PUT {CAPTURE}/live", "Overspill-Producer: x"),
        (f"PATCH {CAPTURE}", "Content-Type: application/json"),
    ],
)
def test_who_has_gone_instead_of_waiting_to_continue_is_no_failure_of_the_service(
    service: ServiceProcess, request_line: str, field: str
) -> None:
    head = f"{request_line} HTTP/1.1\nHost: localhost\n{field}\nExpect: 100-continue\nContent-Length: 5\n\n"
    send_and_go(service, head)

    assert until(lambda: "received=0" in service.logged())
    assert "unexpected failure" not in service.logged()


@pytest.mark.parametrize(("expectation", "status"), [("100-continue", 404), ("\xff", 417), ("\xff, x", 417)])
def test_where_there_is_no_route_expectations_are_answered_as_elsewhere(
    service: ServiceProcess, expectation: str, status: int
) -> None:
    head = f"PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nExpect: {expectation}\r\nContent-Length: 5\r\n\r\n"
    line = answer_to(service, head).partition(b"\r\n")[0]

    assert line.startswith(b"HTTP/1.1 %d " % status)
    assert "Traceback" not in service.logged()


@pytest.mark.parametrize("body", ["", "Content-Length: 5\r\n"])
def test_an_unknown_expectation_is_the_last_request_of_its_connection(
    service: ServiceProcess, body: str
) -> None:
    answer = answer_to(service, f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: x\r\n{body}\r\n")

    assert answer.startswith(b"HTTP/1.1 417 ")
    assert b"\r\nConnection: close\r\n" in answer
    assert until(lambda: "GET /healthz" in service.logged())
    assert " status=417 " in service.logged()
    assert " code=expectation_failed" in service.logged()


def answer_to(service: ServiceProcess, head: str) -> bytes:
    """Send a head. Return that of the answer."""
    place = urlsplit(service.url)
    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.sendall(head.encode("latin-1"))
        with connection.makefile("rb") as answer:
            return b"".join(iter(answer.readline, b"\r\n"))
