"""A real S3 server for the tests: OpenStack Swift on loopback, all in one folder, no root.

Four processes (account, container, object, proxy), one device, one replica. Needs the `swift` wheel and
a file system with user extended attributes. `s3_server` runs one for the session, `s3_url` is the store
URL of a fresh bucket on it; both leave the credentials in the `AWS_*` variables.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode
from urllib.request import urlopen

import boto3
import pytest
from botocore.config import Config

from tests.servers.keeper import keep
from tests.servers.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

READY_SECONDS: Final = 60
STOP_SECONDS: Final = 5
ATTEMPTS: Final = 3
BACKENDS: Final = ("account", "container", "object")
VARIABLES: Final = {"EVENTLET_NO_GREENDNS": "yes", "PYTHONWARNINGS": "ignore"}
"""Names are looked up by the system: the import of a library that does it takes a quarter of their start."""
REGION: Final = "us-east-1"

PROXY: Final = """\
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {etc}
log_level = WARNING
max_clients = 1024
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache lock listing_formats s3api tempauth copy slo dlo \
versioned_writes symlink {encryption} proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
node_timeout = 60
recoverable_node_timeout = 60
conn_timeout = 10
error_suppression_limit = 1000000
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
paste.filter_factory = swift_middleware:info_cache
[filter:lock]
paste.filter_factory = swift_middleware:put_lock
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = {region}
dns_compliant_bucket_names = true
multi_delete_concurrency = 8
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:versioned_writes]
use = egg:swift#versioned_writes
[filter:symlink]
use = egg:swift#symlink
[filter:keymaster]
use = egg:swift#keymaster
encryption_root_secret = b3ZlcnNwaWxsIG92ZXJzcGlsbCBvdmVyc3BpbGwgb3Y=
[filter:encryption]
use = egg:swift#encryption
"""

# Listings must show what was just written: requests wait for the container's update, because no daemon
# runs here that would deliver it later.
BACKEND: Final = """\
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {etc}
devices = {node}
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
log_level = WARNING
container_update_timeout = 60
node_timeout = 60
conn_timeout = 10
max_clients = 1024
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""

CLUSTER: Final = """\
[swift-hash]
swift_hash_path_suffix = overspill
[storage-policy:0]
name = one
default = yes
"""


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    region: str = REGION
    access_key: str = "test:tester"
    secret_key: str = "testing"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the usual AWS chain, with everything that could lead elsewhere shut off."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def url(self, bucket: str, prefix: str = "", *, endpoint: str = "") -> str:
        """A store URL; `endpoint` leads through something in front of the server."""
        query = {"endpoint": endpoint or self.endpoint, "region": self.region, "addressing": "path"}
        return f"s3://{bucket}/{prefix}?{urlencode(query)}"

    def client(self) -> S3Client:
        """boto3's own client: the tests' second opinion on what the server holds."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )

    def create_bucket(self) -> str:
        bucket = f"test-{uuid.uuid4().hex[:16]}"
        with closing(self.client()) as client:
            client.create_bucket(Bucket=bucket)
        return bucket


class StartError(Exception):
    """The server did not come up; the text carries the ends of its logs."""


@contextmanager
def swift(root: Path, *, encrypts: bool = False) -> Iterator[S3Server]:
    """Run a server in `root` until the block ends; its data stays there, so it can be started again.

    One that encrypts knows SSE-S3; one that does not refuses to be asked for it.
    """
    root.mkdir(parents=True, exist_ok=True)
    ports = _ports(root)
    _configure(root, ports, encryption="keymaster encryption" if encrypts else "")
    with _node(root, ports) as process:
        _await_ready(root, ports, process)
        yield S3Server(f"http://127.0.0.1:{ports['proxy']}")


def obstacle(folder: Path) -> str | None:
    """Why no server can run in this folder, if so."""
    if importlib.util.find_spec("swift") is None:
        return "the package `swift` is not installed: what it needs has wheels for Linux alone"
    with tempfile.NamedTemporaryFile(dir=folder) as probe:
        try:
            os.setxattr(probe.fileno(), "user.overspill", b"x" * 256)
        except (OSError, AttributeError) as error:
            return f"Swift needs user extended attributes, which {folder} lacks ({error})"
    return None


def _ports(root: Path) -> dict[str, int]:
    """The ports of this folder's server, chosen once: the rings hold them."""
    state = root / "ports.json"
    if not state.exists():
        kinds = (*BACKENDS, "proxy")
        state.write_text(json.dumps(dict(zip(kinds, free_ports(len(kinds)), strict=True))))
    ports: dict[str, int] = json.loads(state.read_text())
    return ports


def _configure(root: Path, ports: dict[str, int], *, encryption: str) -> None:
    etc, node = root / "etc", root / "node"
    for folder in (etc, node / "d1", root / "log", root / "lib"):
        folder.mkdir(parents=True, exist_ok=True)
    # a folder of its own: beside this file, `import swift` would find this file
    shutil.copy(Path(__file__).with_name("swift_middleware.py"), root / "lib")
    (etc / "swift.conf").write_text(CLUSTER)
    for kind, port in ports.items():
        template = PROXY if kind == "proxy" else BACKEND
        (etc / f"{kind}-server.conf").write_text(
            template.format(
                kind=kind,
                port=port,
                etc=etc,
                node=node,
                region=REGION,
                encryption=encryption,
            )
        )


@contextmanager
def _node(root: Path, ports: dict[str, int]) -> Iterator[subprocess.Popen[bytes]]:
    with (root / "log" / "node.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.swift_node", str(root), json.dumps(ports)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **VARIABLES, "PYTHONPATH": str(root / "lib")},
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
    keep(process.pid)
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await_ready(root: Path, ports: dict[str, int], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not all(_is_up(kind, port) for kind, port in ports.items()):
        if process.poll() is not None or time.monotonic() > deadline:
            logs = sorted((root / "log").iterdir())
            raise StartError("\n".join(f"{log.name}: {log.read_text()[-1000:]}" for log in logs))
        time.sleep(0.05)


def _is_up(kind: str, port: int) -> bool:
    try:
        if kind != "proxy":
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        with urlopen(f"http://127.0.0.1:{port}/healthcheck", timeout=1) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Swift for the whole session, and its credentials in the environment."""
    folder = tmp_path_factory.mktemp("swift")
    if reason := obstacle(folder):
        pytest.skip(f"no S3 server: {reason}")
    importlib.import_module("tests.servers.botocore_models")
    with ExitStack() as stack:
        server = stack.enter_context(_started(folder))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield server


@contextmanager
def _started(folder: Path) -> Iterator[S3Server]:
    """A running server, on other ports where somebody took one between choice and use."""
    with ExitStack() as stack:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                server = stack.enter_context(swift(folder / str(attempt)))
                break
            except StartError:
                if attempt == ATTEMPTS:
                    raise
        yield server


@pytest.fixture
def s3_url(s3_server: S3Server) -> str:
    """The store URL of a fresh bucket."""
    return s3_server.url(s3_server.create_bucket(), "captures")
