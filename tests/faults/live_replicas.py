"""Replicas in this process on one store and one catalog, which can lose what it has, or go back to a copy."""

from __future__ import annotations

import asyncio
import shutil
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession, web
from overspill_service.app import make_app
from overspill_service.archive.recovery.rebuild import rebuild_if_due
from overspill_service.catalog.redis import key_names
from overspill_service.errors import StoreUnavailable
from overspill_service.server.process import runner_of
from overspill_service.settings.settings import Settings
from overspill_service.web.service import SERVICE, Service

from tests.web.conftest import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.redis import RedisServer

TIMEOUT = 300.0
"""Seconds after which a silent producer is taken for gone."""


class Replica:
    """One service. `ahead` is by how many seconds its clock is, which the test moves."""

    def __init__(self, folder: Path, catalog: str) -> None:
        self._folder, self._catalog = folder, catalog
        self._runner: web.AppRunner | None = None
        self.ahead = 0.0

    async def start(self) -> None:
        settings = Settings(
            store=f"file:{self._folder / 'objects'}",
            catalog=self._catalog,
            data=self._folder,
            sweep_interval=0.0,
            anonymous=True,
            live_flush_seconds=3600.0,  # the test says when
            live_timeout=TIMEOUT,
        )
        self._runner = runner_of(make_app(settings))
        await self._runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(self._runner, listener).start()
        self._session = ClientSession(auto_decompress=False, headers={"Accept-Encoding": "identity"})
        self.api = Api(self._runner, self._session, listener.getsockname()[1])
        shared = self.service.archive.clock
        self.service.archive.clock = lambda: shared() + self.ahead
        self.service.flusher.producers.begun += self.ahead

    @property
    def service(self) -> Service:
        assert self._runner is not None
        return self._runner.app[SERVICE]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._session.close()
            await self._runner.cleanup()
            self._runner = None

    async def flush(self, capture: str) -> None:
        """Work on a capture as if it were due. A failure is one of the test's own."""
        with suppress(StoreUnavailable):
            await self.service.flusher.start("default", capture)

    async def rebuilt(self) -> None:
        """Wait until the catalog is complete. Another replica that has just started may rebuild it."""
        archive = self.service.archive
        async with asyncio.timeout(60):
            while not await archive.catalog.is_complete():
                if await rebuild_if_due(archive, "test") is None:
                    await asyncio.sleep(0.01)

    async def settle(self) -> None:
        """Wait for the work on captures that is under way."""
        await asyncio.gather(*self.service.flusher._running.values(), return_exceptions=True)

    async def flush_until(self, capture: str, step: str) -> None:
        """Work on a capture until just before or behind a step."""
        with self.dying(step):
            await self.flush(capture)

    @contextmanager
    def dying(self, step: str) -> Iterator[list[str]]:
        """Fail before or after a step within the block, as a process that dies there.

        Give a list that has the step once for each time that it was reached.
        """
        where, _, name = step.partition(" ")
        archive = self.service.archive
        owner: Any = archive.store if name == "put" else archive.catalog
        method, reached = getattr(owner, name), list[str]()

        async def die(*args: Any, **kwargs: Any) -> Any:
            reached.append(step)
            if where == "after":
                await method(*args, **kwargs)
            raise StoreUnavailable("the process dies here")

        setattr(owner, name, die)
        try:
            yield reached
        finally:
            delattr(owner, name)


class RedisCopies:
    is_file = False

    def __init__(self, server: RedisServer) -> None:
        self._server, self.url = server, server.url
        self._dumped: dict[bytes, bytes] = {}

    def lose(self) -> None:
        self._server.command("FLUSHALL")

    def copy(self) -> None:
        keys = self._server.command("KEYS", "ov1:*")
        self._dumped = {key: dump for key in keys if (dump := self._server.command("DUMP", key))}

    def go_back(self) -> None:
        """As a server that restarted: it has another id, so the mark of a complete catalog is void."""
        self.lose()
        for key, dump in self._dumped.items():
            if key not in (key_names.COMPLETE.encode(), key_names.REBUILD.encode()):
                self._server.command("RESTORE", key, 0, dump)


class SqliteCopies:
    is_file = True

    def __init__(self, folder: Path) -> None:
        self._folder, self.url = folder, "sqlite:"
        self._copied = folder / "copy"

    def _files(self) -> list[Path]:
        return [*self._folder.glob("catalog.sqlite*")]

    def lose(self) -> None:
        for each in self._files():
            each.unlink()

    def copy(self) -> None:
        shutil.rmtree(self._copied, ignore_errors=True)
        self._copied.mkdir()
        for each in self._files():
            shutil.copy(each, self._copied)

    def go_back(self) -> None:
        self.lose()
        for each in self._copied.iterdir():
            shutil.copy(each, self._folder)


class Replicas:
    """Two replicas, and their catalog."""

    def __init__(self, folder: Path, catalog: RedisCopies | SqliteCopies) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.catalog = catalog
        self.both = [Replica(folder, catalog.url) for _ in range(2)]

    async def start(self) -> None:
        for each in self.both:
            await each.start()

    async def stop(self) -> None:
        for each in self.both:
            await each.stop()

    async def disturb(self, disturb: Callable[[], None]) -> None:
        """Change the catalog. A file is changed while nobody has it open."""
        if self.catalog.is_file:
            await self.stop()
        disturb()
        if self.catalog.is_file:
            await self.start()

    def advance(self, seconds: float) -> None:
        for each in self.both:
            each.ahead += seconds
