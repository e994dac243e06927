"""Keys and secrets stand in no log, no list of processes and no tool's environment."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from overspill import Guard, SyncClient
from overspill.agent_tools.source_tools import source_tools
from overspill_service.telemetry.log_lines import without_secrets
from overspill_service.tenants.keys import new_key

from tests.client.shell import Shell
from tests.servers.overspill import ServiceProcess, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.redis import RedisServer

KEY = new_key()
MALFORMED = {
    "a control byte behind the key": f"Authorization: Bearer {KEY}\x01",
    "a zero byte": f"Authorization: Bearer {KEY}\0",
    "no colon": f"Authorization Bearer {KEY}",
    "a control byte in the name": f"Author\x01ization: Bearer {KEY}",
    "a header of another kind": f"X-Secret: {KEY}\x7f\x01",
    "a folded line": f"Authorization: Bearer\r\n {KEY}",
    "basic credentials": "Authorization: Basic c2VjcmV0OnNlY3JldA==\x01",
}


@pytest.fixture(scope="module")
def debugging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with running(ServiceProcess(tmp_path_factory.mktemp("logs"), log_level="debug")) as service:
        yield service


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_request_leaves_no_key_in_the_log(debugging: ServiceProcess, line: str) -> None:
    host, _, port = debugging.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"GET /v1/usage HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\n".encode())
        answer = connection.recv(4096)

    assert KEY.encode() not in answer
    assert b"c2VjcmV0" not in answer
    assert {b"Content-Type: application/problem+json", b"Cache-Control: no-store"} < set(answer.splitlines())
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert b"aiohttp" not in answer
    assert KEY not in debugging.logged()
    assert "c2VjcmV0" not in debugging.logged()
    assert "a malformed request was refused" in debugging.logged()
    assert "Traceback" not in debugging.logged()


def test_a_field_that_is_too_long_leaves_no_key_in_the_answer_and_in_the_log(
    debugging: ServiceProcess,
) -> None:
    host, _, port = debugging.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nCookie: overspill={KEY}{'a' * 40_000}\r\n\r\n".encode())
        answer = connection.recv(4096)

    assert b" 431 " in answer.partition(b"\r\n")[0]
    assert b'"detail":"a header field has more than 32768 bytes"' in answer
    assert KEY not in answer.decode() + debugging.logged()


@pytest.mark.parametrize(
    "target", ["http://s3cr3t@[", "http://localhost:99999/s3cr3t", "*s3cr3t", "/\x01s3cr3t"]
)
def test_a_malformed_target_is_quoted_neither_in_the_answer_nor_in_the_log(
    debugging: ServiceProcess, target: str
) -> None:
    host, _, port = debugging.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answer = connection.recv(4096)

    assert b'"detail":"Invalid target of the request"' in answer
    assert "s3cr3t" not in answer.decode() + debugging.logged()


def test_credentials_are_masked_wherever_a_log_line_has_them() -> None:
    for text in (f"refused {KEY}", f'{{"cause": "Bearer {KEY}"}}', f"b'Authorization: Bearer {KEY}\\x01'"):
        assert KEY not in without_secrets(text)
        assert KEY[4:] not in without_secrets(text)
    assert without_secrets("GET /v1/captures status=200") == "GET /v1/captures status=200"


def test_workers_show_no_secret_among_their_arguments(tmp_path: Path, own_redis: RedisServer) -> None:
    secret, password = "only-for-the-service", "only-for-redis"
    own_redis.command("CONFIG", "SET", "requirepass", password)
    catalog = own_redis.url.replace("redis://", f"redis://:{password}@")
    service = ServiceProcess(tmp_path, workers=2, key_secret=secret, catalog=catalog)
    with running(service):
        workers = [
            each
            for each in Path("/proc").glob("[0-9]*/stat")
            if _field(each, 3) == str(service.pid) and each.parent.name != str(service.pid)
        ]
        lines = [(each.parent / "cmdline").read_bytes() for each in workers]

    assert len(lines) == 2
    assert all(b"work" in line for line in lines)
    assert not any(each.encode() in line for line in lines for each in (secret, password))
    for name in ("KEY_SECRET", "CATALOG"):
        assert f"give it as OVERSPILL_{name} instead" in service.logged()
    assert not any(each in service.logged() for each in (secret, password))


def _field(stat: Path, number: int) -> str:
    try:
        return stat.read_text().rpartition(")")[2].split()[number - 2]
    except OSError:  # it has ended
        return ""


def test_tools_get_no_key_of_overspill(service: ServiceProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import json, os; print(json.dumps(sorted(n for n in os.environ if n.startswith('OVERSPILL_'))))"
    secrets = dict.fromkeys(
        ("OVERSPILL_NOTICE_KEY", "OVERSPILL_KEY_SECRET", "OVERSPILL_PREVIOUS_KEY_SECRET"), "s"
    )
    shell = Shell(service.url, OVERSPILL_KEY=KEY, OVERSPILL_SESSION="s", **secrets)

    assert json.loads(shell("run", "--", sys.executable, "-c", script).out) == [
        "OVERSPILL_SESSION",
        "OVERSPILL_URL",
    ]
    monkeypatch.setenv("OVERSPILL_KEY", KEY)
    with SyncClient(service.url) as client, Guard(client) as guard:
        run_command = source_tools(guard)[0]
        answer = run_command.call({"command": "env"})

    assert "OVERSPILL_KEY=" not in str(answer)
    assert f"HOME={os.environ['HOME']}" in str(answer)
