"""A read for which the service takes long: its progress is reported, and cancelling it ends the request."""

from __future__ import annotations

import json
import socket
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.client.shell import OVERSPILL
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.launcher import Piped

SCRIPTED: Final = str(Path(__file__).parent / "scripted_server.py")
COMMANDS: Final = [["mcp"], ["mcp-proxy", "--", sys.executable, SCRIPTED]]
HANDLE: Final = "cap_" + "a" * 20
SECONDS: Final = 60


@contextmanager
def begun(command: list[str], silent: socket.socket, mode: str = "grep") -> Iterator[Piped]:
    """Start a server, and begin a read; at the end of the block it is told to end."""
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    environment = {**clean_environment(), "OVERSPILL_URL": url, "OVERSPILL_SPOOL": "off"}
    with OVERSPILL.piped(command, environment, seconds=SECONDS) as process:
        begin(process, mode)
        yield process
        process.process.terminate()
        process.process.wait(SECONDS)


def begin(process: Piped, mode: str) -> None:
    info = {"name": "test", "version": "1"}
    send(
        process,
        id=1,
        method="initialize",
        params={"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info},
    )
    assert receive(process)["id"] == 1
    send(process, method="notifications/initialized")
    arguments = {"capture": HANDLE, "mode": mode, "pattern": "x"}
    params = {"name": "inspect_output", "arguments": arguments, "_meta": {"progressToken": "p"}}
    send(process, id=2, method="tools/call", params=params)


def send(process: Piped, **message: Any) -> None:
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def receive(process: Piped) -> Any:
    return json.loads(process.stdout.readline())


def asked_for_the_capture(silent: socket.socket) -> socket.socket:
    """Return the next connection on which the capture is asked for: others may ask for other things."""
    while True:
        connection, _ = silent.accept()
        connection.settimeout(SECONDS)
        if HANDLE.encode() in connection.recv(65_536):
            return connection


@pytest.mark.parametrize("command", COMMANDS, ids=["server", "proxy"])
def test_cancelling_a_read_ends_the_request_to_the_service(command: list[str], silent: socket.socket) -> None:
    with begun(command, silent) as process, asked_for_the_capture(silent) as connection:
        send(process, method="notifications/cancelled", params={"requestId": 2})

        assert connection.recv(65_536) == b""


@pytest.mark.parametrize("command", COMMANDS, ids=["server", "proxy"])
def test_cancelling_a_wait_ends_it_and_the_look_for_its_progress(
    command: list[str], silent: socket.socket
) -> None:
    with (
        begun(command, silent, "wait") as process,
        asked_for_the_capture(silent) as one,
        asked_for_the_capture(silent) as other,
    ):
        send(process, method="notifications/cancelled", params={"requestId": 2})

        assert (one.recv(65_536), other.recv(65_536)) == (b"", b"")


@pytest.mark.parametrize("command", COMMANDS, ids=["server", "proxy"])
def test_a_long_read_reports_its_progress(command: list[str], silent: socket.socket) -> None:
    with begun(command, silent) as process:
        message = receive(process)
        while message["method"] == "notifications/seen":  # the scripted server's own
            message = receive(process)

    assert message["method"] == "notifications/progress"
    assert message["params"]["progressToken"] == "p"
    assert message["params"]["progress"] > 0
