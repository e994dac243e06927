"""The processes that are measured, each started when it is first asked for."""

from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.servers import overspill, redis, swift

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tests.servers.cgroup import Cgroup
    from tests.servers.overspill import ServiceProcess
    from tests.servers.redis import RedisServer
    from tests.servers.swift import S3Server


class Unavailable(Exception):
    """What a benchmark needs is not on this machine; the text says what."""


class Servers:
    """Everything lives in `root` and ends with the block."""

    def __init__(self, root: Path, kind: type[ServiceProcess] = overspill.ServiceProcess) -> None:
        self._root, self._kind = root, kind
        self._stack, self._services, self._catalogs = ExitStack(), 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @cached_property
    def s3(self) -> S3Server:
        """Swift; its credentials are in the environment. Raises `Unavailable`."""
        if reason := swift.obstacle(self._root):
            raise Unavailable(reason)
        server = self._stack.enter_context(swift.swift(self._root / "s3"))
        environment = self._stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in server.environment.items():
            environment.setenv(name, value)
        return server

    @cached_property
    def redis(self) -> RedisServer:
        return self._stack.enter_context(redis.running(redis.RedisServer(self._root / "redis")))

    @cached_property
    def embedded(self) -> ServiceProcess:
        """A service on its embedded back ends."""
        return self.service()

    @cached_property
    def distributed(self) -> ServiceProcess:
        """A service on S3 and Redis."""
        return self.service(store=self.bucket(), catalog=self.catalog())

    def catalog(self) -> str:
        """The URL of an empty database of Redis.

        A store needs one of its own: a rebuild asks its store for the objects of every entry that it finds.
        """
        self._catalogs += 1
        return self.redis.url.removesuffix("/0") + f"/{self._catalogs}"

    def bucket(self, endpoint: str = "") -> str:
        """The store URL of a fresh bucket."""
        return self.s3.url(self.s3.create_bucket(), endpoint=endpoint)

    def service(self, group: Cgroup | None = None, **settings: object) -> ServiceProcess:
        """One more service, for its caller alone; in a cgroup where one is given.

        A tenant may ask at any rate, unless the settings say otherwise.
        """
        self._services += 1
        process = self._kind(self._root / f"service-{self._services}", **({"max_request_rate": 0} | settings))
        if group is not None:
            process.program = group.program
        return self._stack.enter_context(overspill.running(process))

    def path(self, name: str) -> Path:
        """Where a benchmark may write."""
        return self._root / name


def program(name: str) -> str:
    """A program of the environment's or on the PATH. Raises `Unavailable`."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise Unavailable(f"there is no `{name}` on the PATH")
    return found
