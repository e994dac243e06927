"""A real nginx on loopback that serves one folder of files: an oracle for ranges and preconditions."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Final

import pytest

from tests.servers.redis import free_port, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    server {{ listen 127.0.0.1:{port}; root {folder}/files; max_ranges 1; }}
}}
"""
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
    program, port = executable(), free_port()
    (folder / "files").mkdir(parents=True)
    for name, content in files.items():
        (folder / "files" / name).write_bytes(content)
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=port))
    process = subprocess.Popen(
        [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    )
    try:
        wait_until(lambda: _answers(process, port), "nginx")
        yield port
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
