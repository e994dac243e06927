"""Redis as the deployment runs it: the compose file's own command and configuration, on the real server."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from redis import AuthenticationError, Redis
from redis import ConnectionError as RedisConnectionError

from tests.servers.ports import free_port
from tests.servers.redis import executable, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PASSWORD = "correct0horse"


class Catalog:
    """The compose file's Redis with its paths and port moved into a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        (folder / "data").mkdir()
        text = (ROOT / "service" / "deploy" / "redis.conf").read_text(encoding="utf-8")
        text = text.replace("port 6379", f"port {self.port}\nbind 127.0.0.1").replace(
            "/data", f"{folder}/data"
        )
        (folder / "given.conf").write_text(text, encoding="utf-8")
        stack = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
        service = stack["services"]["redis"]
        script = service["command"][0].replace("$$", "$").replace("/tmp/", f"{folder}/")
        script = script.replace("/etc/overspill/redis.conf", f"{folder}/given.conf")
        self.command = [*service["entrypoint"], script.replace("redis-server", executable())]

    def client(self, password: str | None = PASSWORD) -> Redis:
        return Redis(host="127.0.0.1", port=self.port, password=password, socket_timeout=5)

    @contextmanager
    def run(self) -> Iterator[Redis]:
        """Runs until the block ends, then is killed without warning."""
        environment = os.environ | {"REDIS_PASSWORD": PASSWORD}
        process = subprocess.Popen(
            self.command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            with self.client() as client:
                wait_until(partial(answers, client), "redis")
                yield client
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except RedisConnectionError:
        return False


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path)


def test_redis_keeps_its_entries_when_it_is_killed(catalog: Catalog) -> None:
    with catalog.run() as client:
        client.set("entry", "kept")

    with catalog.run() as client:
        assert client.get("entry") == b"kept"


def test_redis_refuses_whoever_does_not_know_the_password(catalog: Catalog) -> None:
    with catalog.run(), catalog.client(password=None) as stranger, pytest.raises(AuthenticationError):
        stranger.ping()


def test_redis_never_evicts_an_entry(catalog: Catalog) -> None:
    with catalog.run() as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
