"""A real nginx on loopback.

It serves one folder of files, as an oracle for ranges and preconditions, or passes requests on to a service.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.servers.keeper import keep
from tests.servers.ports import free_port
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONFIG: Final = """\
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    default_type text/plain;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {servers}
}}
"""
DEPLOYED: Final = Path(__file__).parents[2] / "service" / "deploy" / "nginx.conf"
"""The configuration for an operator. Only addresses change here."""
SECONDS: Final = 10


def executable() -> str:
    """The nginx of this machine; the test is skipped where there is none."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        pytest.skip("nginx is not on the PATH")
    return found


@contextmanager
def serving(folder: Path, **files: bytes) -> Iterator[int]:
    """Serve files by their names; the port."""
    (folder / "files").mkdir(parents=True)
    for name, content in files.items():
        (folder / "files" / name).write_bytes(content)
    with _running(folder, f"root {folder}/files; max_ranges 1;") as port:
        yield port


@contextmanager
def passing_on(folder: Path, service: int, *, patience: int = 60) -> Iterator[int]:
    """Pass requests on to the service at a port of loopback, as nginx does by default; the port.

    A service that is silent for `patience` seconds is given up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    passed = f"proxy_pass http://127.0.0.1:{service}; proxy_read_timeout {patience}s;"
    with _running(folder, f"location / {{ {passed} proxy_set_header Host $http_host; }}") as port:
        yield port


@contextmanager
def deployed(folder: Path, replicas: Sequence[int]) -> Iterator[int]:
    """Pass requests on to these ports of loopback as the deployment's nginx.conf says; the port."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    given = "".join(f"    server 127.0.0.1:{replica};\n" for replica in replicas)
    text, count = re.subn(r"(?:    server \S+;\n)+", given, DEPLOYED.read_text(encoding="utf-8"))
    assert count == 1, f"{DEPLOYED} has no replicas"
    assert text.count("listen 127.0.0.1:8080;") == 1
    with _serving_at(folder, port, text.replace("127.0.0.1:8080", f"127.0.0.1:{port}")):
        yield port


@contextmanager
def _running(folder: Path, server: str) -> Iterator[int]:
    port = free_port()
    with _serving_at(folder, port, f"server {{ listen 127.0.0.1:{port}; {server} }}"):
        yield port


@contextmanager
def _serving_at(folder: Path, port: int, servers: str) -> Iterator[None]:
    program = executable()
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, servers=servers))
    process = subprocess.Popen(
        [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")],
        start_new_session=True,
    )
    keep(process.pid)
    try:
        wait_until(lambda: _answers(process, port), "nginx")
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, "nginx does not start"
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except ConnectionError:
        return False
    finally:
        connection.close()
    return True
