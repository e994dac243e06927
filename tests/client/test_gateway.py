"""`overspill gateway`, as Docker's MCP gateway calls it."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from overspill import SyncClient

from tests.client.shell import OVERSPILL, Shell
from tests.lazy import LazyModule
from tests.mcp.scripted_server import LINE
from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    import mcp.types as mcp

    from tests.servers.overspill import ServiceProcess
else:
    mcp = LazyModule("mcp.types")

TOKEN: Final = "0123456789abcdef"
LONG: Final = LINE * 10_000
PICTURE: Final = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}


@contextmanager
def gateway(url: str, *words: str, **variables: str) -> Iterator[str]:
    """Run it; give the URL that it prints."""
    shell = Shell(url, OVERSPILL_SPOOL="off", **variables)
    process = subprocess.Popen(
        OVERSPILL.command("gateway", *words), env=shell.environment, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().removeprefix("--interceptor=after:http:")
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def url(service: ServiceProcess) -> Iterator[str]:
    with gateway(service.url, "--listen", f"127.0.0.1:{free_port()}") as url:
        yield url


def posted(url: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def intercepted(url: str, result: Any) -> Any:
    """Do what the gateway does with a result (`pkg/interceptors/interceptors.go`)."""
    _, out = posted(url, json.dumps(result).encode())
    if not out:
        return result
    mcp.CallToolResult.model_validate_json(out)
    return json.loads(out)


def test_a_long_result_becomes_a_notice_and_is_stored_whole(url: str, service: ServiceProcess) -> None:
    given = {"content": [{"type": "text", "text": LONG}, PICTURE], "isError": True, "_meta": {"a": 1}}
    shown = intercepted(f"{url}?tool=logs&session=team", given)
    with SyncClient(service.url) as client:
        entry = client.get(shown["_meta"]["overspill"]["capture"])
        stored = client.content(entry.id).decode()

    assert "[overspill]" in shown["content"][0]["text"]
    assert shown["content"][1] == PICTURE
    assert (shown["isError"], shown["_meta"]["a"]) == (True, 1)
    assert stored == LONG
    assert (entry.tool, entry.session) == ("logs", "team")


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"content": [{"type": "text", "text": "short"}]}).encode(),
        json.dumps({"content": []}).encode(),
        b"null",
        b"",
        b"[]",
        b"no JSON",
        b'{"content": "no list"}',
        b"[" * 100_000,
        json.dumps({"content": [{"type": "text", "text": LONG}]}).encode()[:-1] + b', "n": 1e999}',
    ],
    ids=["short", "empty", "null", "nothing", "list", "no JSON", "no list", "deep", "no number"],
)
def test_everything_else_is_answered_with_nothing(url: str, body: bytes) -> None:
    assert posted(url, body) == (200, b"")


def test_a_huge_result_is_answered_with_nothing(url: str) -> None:
    body = b'{"content": [{"type": "text", "text": "%s"}]}' % (b"x" * 70 * 2**20)

    assert posted(url, body) == (200, b"")


def test_bodies_that_trickle_keep_the_places_for_a_short_time(url: str) -> None:
    address = urllib.parse.urlsplit(url)
    with ExitStack() as open_ones:
        for _ in range(20):
            slow = open_ones.enter_context(socket.create_connection((address.hostname, address.port)))
            slow.sendall(
                f"POST {address.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{{".encode()
            )
        shown = intercepted(url, {"content": [{"type": "text", "text": LONG}]})

    assert "[overspill]" in shown["content"][0]["text"]


def test_structured_content_stays_an_object(url: str) -> None:
    rows = {"count": 5_000, "rows": [{"id": number, "name": "x" * 50} for number in range(5_000)]}
    shown = intercepted(
        url, {"content": [{"type": "text", "text": json.dumps(rows)}], "structuredContent": rows}
    )

    assert shown["structuredContent"]["count"] == 5_000
    assert len(json.dumps(shown)) < 60_000


def test_without_a_service_the_result_stays(nowhere: str) -> None:
    with gateway(nowhere, "--listen", f"127.0.0.1:{free_port()}") as url:
        given = {"content": [{"type": "text", "text": LONG}]}

        assert intercepted(url, given) == given


@pytest.mark.parametrize("headers", [{"Origin": "http://127.0.0.1:8752"}, {"Host": "evil.example:8752"}])
def test_a_web_page_is_refused(url: str, headers: dict[str, str]) -> None:
    body = json.dumps({"content": [{"type": "text", "text": LONG}]}).encode()

    assert posted(url, body, **headers) == (403, b"")


def test_other_machines_need_a_token(service: ServiceProcess) -> None:
    body = json.dumps({"content": [{"type": "text", "text": LONG}]}).encode()
    listen = f"0.0.0.0:{free_port()}"
    with gateway(service.url, "--listen", listen, "--token-variable", "TOKEN", TOKEN=TOKEN) as url:
        answers = [
            posted(f"{url}{query}", body)
            for query in ("", "?token=", "?token=wrong", "?token=%C3%A9", f"?token={TOKEN}")
        ]

    assert [status for status, _ in answers] == [403, 403, 403, 403, 200]
    assert b"[overspill]" in answers[-1][1]


def test_what_it_is_told_wrong_is_named() -> None:
    shell = Shell("http://127.0.0.1:1")

    assert "0.0.0.0 can be reached from other machines" in shell("gateway", "--listen", "0.0.0.0:1").err
    assert "the environment has no NONE" in shell("gateway", "--token-variable", "NONE").err
    assert "is not HOST:PORT" in shell("gateway", "--listen", "8752").err
