"""A real service in this process, on a real socket, on back ends in memory."""

from __future__ import annotations

import hashlib
import io
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack
from functools import lru_cache
from typing import Any

import msgspec
import pytest
from aiohttp import ClientResponse, ClientSession, web, web_app
from overspill import wire
from overspill_service.app import make_app
from overspill_service.server.process import runner_of
from overspill_service.settings.settings import Settings
from overspill_service.web.service import SERVICE, Service
from yarl import URL

from tests.web.live_producer import Producer


class Api:
    """Speaks HTTP to one service, with no help from the SDK."""

    def __init__(self, runner: web.AppRunner, session: ClientSession, port: int) -> None:
        self.service: Service = runner.app[SERVICE]
        self._runner, self._session, self.port = runner, session, port

    @property
    def sockets(self) -> list[socket.socket]:
        """What the service listens on."""
        return [site._sock for site in self._runner.sites if isinstance(site, web.SockSite)]

    async def stop(self) -> None:
        """Stop the service as its process would."""
        await self._runner.cleanup()

    def url(self, path: str) -> URL:
        """The path as it is: what is percent-encoded in it stays so."""
        return URL(f"http://127.0.0.1:{self.port}{path}", encoded=True)

    async def send(self, method: str, path: str, **kwargs: Any) -> ClientResponse:
        if isinstance(kwargs.get("data"), bytes):
            kwargs["data"] = io.BytesIO(kwargs["data"])
            if method == "PATCH" or path.startswith(wire.Path.OBSERVATIONS):
                kwargs["headers"] = {"Content-Type": "application/json"} | kwargs.get("headers", {})
        url = self.url(path)
        if "params" in kwargs:
            url = url.with_query(kwargs.pop("params"))
        return await self.request(method, url, **kwargs)

    async def request(self, method: str, url: URL | str, **kwargs: Any) -> ClientResponse:
        """Ask any server over the same session; the body is read."""
        response = await self._session.request(method, url, **kwargs)
        await response.read()
        return response

    async def get(self, path: str, **kwargs: Any) -> ClientResponse:
        return await self.send("GET", path, **kwargs)

    async def put(self, content: bytes, call_id: str = "call_0", **headers: str) -> wire.Entry:
        """Store content under its right id; headers by name, with `_` for `-`."""
        response = await self.send(
            "PUT", path_of(content, call_id), data=content, headers=named(call_id, headers)
        )
        assert response.status in (200, 201), await response.text()
        return msgspec.json.decode(await response.read(), type=wire.Entry)


def named(call_id: str, headers: dict[str, str]) -> dict[str, str]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return {wire.Header.CALL_ID: wire.encode_header(call_id), **given}


@lru_cache(maxsize=8)  # of large contents, which a test asks for again and again
def id_of(content: bytes, call_id: str = "call_0") -> str:
    return wire.capture_id("", call_id, hashlib.sha256(content).digest())


def path_of(content: bytes, call_id: str = "call_0") -> str:
    return f"/v1/captures/{id_of(content, call_id)}"


async def problem(response: ClientResponse) -> wire.Problem:
    assert response.content_type == wire.PROBLEM_TYPE
    found = msgspec.json.decode(await response.read(), type=wire.Problem)
    assert found.status == response.status
    return found


@pytest.fixture
async def start_api(outlasting: ExitStack) -> AsyncIterator[Callable[..., Any]]:
    """Starts services with given settings, `clock` and `steady`; all are stopped at the end."""
    async with AsyncExitStack() as stack:

        async def start(**settings: Any) -> Api:
            defaults: dict[str, Any] = {
                "store": "memory:",
                "catalog": "memory:",
                "sweep_interval": 0.0,
                "anonymous": True,
            }
            clock = settings.pop("clock", time.time)
            steady = settings.pop("steady", clock)  # a clock that a test moves tells that time passes
            chosen = Settings(**(defaults | settings))
            app = make_app(chosen, clock=clock, steady=steady)
            runner = runner_of(app)
            stack.push_async_callback(runner.cleanup)
            await runner.setup()
            listener = socket.create_server(("127.0.0.1", 0))
            await web.SockSite(runner, listener).start()
            session = ClientSession(auto_decompress=False, headers={"Accept-Encoding": "identity"})
            await stack.enter_async_context(session)
            return Api(runner, session, listener.getsockname()[1])

        yield start
    web_app._cached_build_middleware.cache_clear()  # it holds all services that ever answered


@pytest.fixture
async def api(start_api: Callable[..., Any]) -> Api:
    started: Api = await start_api()
    return started


@pytest.fixture
async def producer(api: Api) -> Producer:
    """The producer of a live capture that has begun."""
    made = Producer(api)
    await made.begin()
    return made
