"""Programs of other users of this machine: the key file's key is not sent to them, and no face answers them.

The superuser gives sockets of its own to another user, which is what the kernel then says of them.
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from overspill import SyncClient
from overspill.errors import Unauthorized
from overspill.execution.socket_owners import can_tell_owners, client_owner, listener_owners
from overspill.mcp import callers

from tests.client.shell import OVERSPILL
from tests.client.test_gateway import gateway
from tests.servers.overspill import clean_environment
from tests.servers.ports import free_port
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

HOST = "127.0.0.1"
NOBODY = 65534
BODY = b'{"content": []}'

as_superuser = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser can give a socket away"
)
pytestmark = pytest.mark.skipif(not can_tell_owners(), reason="this system does not say who owns a socket")


@contextmanager
def listening(host: str = HOST, *, owner: int = -1) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        os.fchown(listener.fileno(), owner, -1)
        yield listener


@pytest.mark.parametrize("host", [HOST, "::1"])
@as_superuser
def test_the_system_says_who_listens_and_who_connects(host: str) -> None:
    with listening(host, owner=NOBODY) as listener:
        address = listener.getsockname()[:2]
        with socket.create_connection(address) as connection:
            here = connection.getsockname()[:2]
            own = client_owner(here, address)
            os.fchown(connection.fileno(), 12345, -1)

            assert (own, client_owner(here, address)) == (os.geteuid(), 12345)
        assert listener_owners(host, address[1]) == listener_owners("localhost", address[1]) == {NOBODY}
        assert client_owner((host, 1), address) is None
    assert listener_owners(host, address[1]) == set()


def test_who_listens_at_every_address_listens_here_too() -> None:
    with listening("0.0.0.0") as listener, listening("::") as dual:
        assert listener_owners(HOST, listener.getsockname()[1]) == {os.geteuid()}
        assert listener_owners(HOST, dual.getsockname()[1]) == {os.geteuid()}


@as_superuser
def test_who_has_taken_the_service_s_port_is_sent_neither_key_nor_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_file = tmp_path / "local-key"
    key_file.touch(0o600)
    key_file.write_text("ovl_secret")
    monkeypatch.setenv("OVERSPILL_KEY_FILE", str(key_file))
    monkeypatch.delenv("OVERSPILL_KEY", raising=False)

    with listening(owner=NOBODY) as squatter:
        squatter.settimeout(0.2)
        url = f"http://{HOST}:{squatter.getsockname()[1]}"
        with SyncClient(url, retries=0) as client, pytest.raises(Unauthorized) as raised:
            client.put(b"private")
        with pytest.raises(TimeoutError):  # nobody has even connected
            squatter.accept()
    assert f"a program of another user (uid {NOBODY}) listens at {url}" in str(raised.value)


def asked(url: str, *headers: str, owner: int = -1) -> int:
    """The status of a POST by a program of this user."""
    host, _, path = url.removeprefix("http://").partition("/")
    address, _, port = host.partition(":")
    fields = [f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(BODY)}", *headers]
    with socket.create_connection((address, int(port)), timeout=60) as connection:
        os.fchown(connection.fileno(), owner, -1)
        head = "\r\n".join([f"POST /{path} HTTP/1.1", "Connection: close", *fields, "", ""])
        connection.sendall(head.encode() + BODY)
        return int(connection.makefile("rb").readline().split()[1])


@contextmanager
def mcp_server(service: ServiceProcess, *words: str, **variables: str) -> Iterator[tuple[str, str]]:
    """A server over HTTP: its URL, and what it has printed of itself."""
    host = f"{HOST}:{free_port()}"
    environment = {**clean_environment(), "OVERSPILL_URL": service.url, **variables}
    with OVERSPILL.piped(["mcp", "--http", host, *words], environment, seconds=60) as server:
        assert until(lambda: is_listening(host))
        yield f"http://{host}/mcp", server.stdout.readline().decode().strip()
        server.process.terminate()
        server.process.wait(60)


def is_listening(host: str) -> bool:
    address, _, port = host.partition(":")
    with socket.socket() as connection:
        return connection.connect_ex((address, int(port))) == 0


@as_superuser
def test_the_mcp_server_answers_programs_of_its_own_user_only(service: ServiceProcess) -> None:
    with mcp_server(service) as (url, printed):
        assert printed == url
        assert asked(url) not in (401, 403)
        assert asked(url, owner=NOBODY) == 403
        assert asked(url, "Authorization: Bearer guessed", owner=NOBODY) == 403


def test_the_mcp_server_asks_for_its_token_if_it_has_one(service: ServiceProcess) -> None:
    with mcp_server(service, "--token-variable", "TOKEN", TOKEN="secret") as (url, printed):
        assert printed == f"{url} with the header Authorization: Bearer and the token"
        assert [asked(url), asked(url, "Authorization: Bearer wrong")] == [401, 401]
        assert asked(url, "Authorization: Basic secret") == 401
        assert asked(url, "authorization: bearer secret") not in (401, 403)


def test_where_users_cannot_be_told_apart_a_face_makes_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "can_tell_owners", lambda: False)
    made = callers.Callers()

    assert made.is_token_made
    assert len(made.token) == 32
    assert made.refusal("", (HOST, 1), (HOST, 2)) == "its token is wrong"
    assert made.refusal(made.token, (HOST, 1), (HOST, 2)) == ""


@as_superuser
def test_the_mcp_server_answers_anyone_if_it_is_told_to(service: ServiceProcess) -> None:
    with mcp_server(service, "--anyone") as (url, _):
        assert asked(url, owner=NOBODY) not in (401, 403)


@as_superuser
def test_the_gateway_s_interceptor_takes_results_of_its_own_user_only(service: ServiceProcess) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(gateway(service.url, "--listen", f"{HOST}:{free_port()}"))
        opened = stack.enter_context(gateway(service.url, "--listen", f"{HOST}:{free_port()}", "--anyone"))

        assert [asked(url), asked(url, owner=NOBODY)] == [200, 403]
        assert asked(opened, owner=NOBODY) == 200
