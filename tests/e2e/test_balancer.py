"""The promises of the load balancer's configuration, on the real HAProxy with stand-ins for the replicas."""

from __future__ import annotations

import asyncio
import re
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest
import trustme
import yaml
from aiohttp import web
from yarl import URL

from tests.servers.balancer import CONFIGURATION, executable, run_balancer
from tests.servers.overspill import ForkedService, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.servers.balancer import Balancer, StartBalancer

KIB = 1024
DEADLINE = 20.0


_TURNS = 5
"""Turns of the event loop in which an accepted socket gets its transport."""


class Replica:
    """A stand-in for a service replica: ready or not, and it answers as it is told."""

    def __init__(self) -> None:
        self.port = 0
        self.is_ready = True
        self.requests: list[web.Request] = []
        self.answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = self._ok

    async def _ok(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        return web.Response(text=request.headers.get("X-Request-Id", ""))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/readyz":
            return web.Response(status=200 if self.is_ready else 503)
        self.requests.append(request)
        return await self.answer(request)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Replica]:
        application = web.Application(client_max_size=0)
        application.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(
            application, max_field_size=64 * KIB, max_line_size=64 * KIB, shutdown_timeout=0
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await site.stop()
            for _ in range(
                _TURNS
            ):  # what was accepted last becomes a connection, which is closed with the others
                await asyncio.sleep(0)
            await runner.cleanup()


class Stack:
    """A balancer, its replicas, and a client of it."""

    def __init__(self, balancer: Balancer, replicas: list[Replica], client: aiohttp.ClientSession) -> None:
        self.balancer, self.replicas, self.client = balancer, replicas, client

    def requests(self) -> int:
        return sum(len(replica.requests) for replica in self.replicas)


@pytest.fixture
async def start_stack(start_balancer: StartBalancer) -> AsyncIterator[Callable[[int], Awaitable[Stack]]]:
    async with AsyncExitStack() as stack:

        async def start(count: int) -> Stack:
            replicas = [await stack.enter_async_context(Replica().run()) for _ in range(count)]
            balancer = await asyncio.to_thread(start_balancer, *(replica.port for replica in replicas))
            client = await stack.enter_async_context(aiohttp.ClientSession(balancer.url))
            return Stack(balancer, replicas, client)

        yield start


@pytest.fixture
async def pair(start_stack: Callable[[int], Awaitable[Stack]]) -> Stack:
    return await start_stack(2)


@pytest.fixture
async def single(start_stack: Callable[[int], Awaitable[Stack]]) -> Stack:
    return await start_stack(1)


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await asyncio.to_thread(true):  # noqa: ASYNC110  (HAProxy has no event to wait for)
            await asyncio.sleep(0.02)


async def test_the_beginning_of_an_upload_reaches_the_replica_before_its_end_is_sent(single: Stack) -> None:
    begun = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        assert await request.content.readexactly(5) == b"first"
        begun.set()
        return web.Response(body=await request.read())

    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.wait_for(begun.wait(), DEADLINE)
        yield b"second"

    single.replicas[0].answer = answer
    async with single.client.put("/v1/captures/x", data=body()) as response:
        rest = await response.read()

    assert rest == b"second"


async def test_the_beginning_of_an_answer_reaches_the_client_before_its_end_exists(single: Stack) -> None:
    seen = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await asyncio.wait_for(seen.wait(), DEADLINE)
        await response.write(b"second")
        return response

    single.replicas[0].answer = answer
    async with single.client.get("/v1/captures/x/follow") as response:
        assert await response.content.readexactly(5) == b"first"
        seen.set()
        rest = await response.read()

    assert rest == b"second"


async def test_an_upload_larger_than_every_buffer_arrives_whole(single: Stack) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        size = 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
        return web.json_response(size)

    async def body() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield bytes(1024 * KIB)

    single.replicas[0].answer = answer
    async with single.client.put("/v1/captures/x", data=body()) as response:
        assert await response.json() == 64 * 1024 * KIB


async def test_metadata_headers_of_64_kib_pass(single: Stack) -> None:
    headers = {f"Overspill-Label-{number}": "x" * 4 * KIB for number in range(15)}

    async with single.client.put("/v1/captures/x", headers=headers) as response:
        assert response.status == 200

    received = single.replicas[0].requests[0].headers
    assert {name: received.get(name) for name in headers} == headers


async def test_a_request_id_of_the_client_is_passed_on(single: Stack) -> None:
    async with single.client.get("/", headers={"X-Request-Id": "mine"}) as response:
        assert await response.text() == "mine"


async def test_an_answer_that_the_balancer_gives_itself_names_the_request_too(single: Stack) -> None:
    single.replicas[0].is_ready = False
    await until(lambda: single.balancer.replicas_up() == 0)

    async with single.client.get("/", headers={"X-Request-Id": "mine"}) as response:
        assert (response.status, response.headers["X-Request-Id"]) == (503, "mine")


async def test_a_request_without_an_id_gets_one_of_its_own(single: Stack) -> None:
    ids = set()
    for _ in range(2):
        async with single.client.get("/") as response:
            ids.add(await response.text())

    assert len(ids) == 2
    assert all(ids)


@pytest.mark.parametrize("path", ["/metrics", "/%6detrics", "/metrics?x=1"])
async def test_the_replicas_metrics_stay_inside(single: Stack, path: str) -> None:
    url = URL(single.balancer.url + path, encoded=True)

    async with aiohttp.request("GET", url) as response:
        assert response.status == 404

    assert single.requests() == 0


async def drop(request: web.Request) -> web.StreamResponse:
    """Take the request and hang up, as a killed process does."""
    await request.read()
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def test_a_get_that_a_replica_dropped_is_answered_by_the_other_one(pair: Stack) -> None:
    pair.replicas[0].answer = drop

    for _ in range(4):
        async with pair.client.get("/v1/captures") as response:
            assert response.status == 200

    assert pair.replicas[0].requests


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE"])
async def test_a_write_that_a_replica_dropped_is_never_sent_twice(pair: Stack, method: str) -> None:
    for replica in pair.replicas:
        replica.answer = drop

    async with pair.client.request(method, "/v1/captures/x", data=b"body") as response:
        assert response.status == 502

    assert pair.requests() == 1


async def test_a_replica_that_is_not_ready_is_asked_for_nothing(pair: Stack) -> None:
    pair.replicas[0].is_ready = False
    await until(lambda: pair.balancer.replicas_up() == 1)

    for _ in range(6):
        async with pair.client.put("/v1/captures/x", data=b"body") as response:
            assert response.status == 200

    assert pair.replicas[0].requests == []


async def test_a_request_in_flight_outlives_its_replica_s_readiness(single: Stack) -> None:
    gone = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.wait_for(gone.wait(), DEADLINE)
        return web.Response(text="whole")

    single.replicas[0].answer = answer
    pending = asyncio.ensure_future(single.client.get("/v1/captures/x"))
    await until(lambda: single.requests() == 1)
    single.replicas[0].is_ready = False
    await until(lambda: single.balancer.replicas_up() == 0)
    gone.set()

    assert await (await pending).text() == "whole"


async def test_an_upload_goes_to_the_other_replica_when_one_has_just_gone(
    start_balancer: StartBalancer,
) -> None:
    async with AsyncExitStack() as stack, Replica().run() as there:
        gone = await stack.enter_async_context(Replica().run())
        balancer = await asyncio.to_thread(start_balancer, gone.port, there.port)
        await until(lambda: balancer.replicas_up() == 2)
        await stack.aclose()

        for _ in range(4):
            async with aiohttp.request("PUT", f"{balancer.url}/v1/captures/x", data=b"body") as response:
                assert response.status == 200


async def test_the_balancer_is_healthy_only_while_a_replica_serves(pair: Stack) -> None:
    await until(lambda: pair.balancer.health() == 200)

    for replica in pair.replicas:
        replica.is_ready = False

    await until(lambda: pair.balancer.health() == 503)


async def test_the_log_names_the_request_but_not_its_query(single: Stack) -> None:
    headers = {"X-Request-Id": "request-17", "Authorization": "Bearer ovs_secret"}
    async with single.client.get("/v1/captures?session=private", headers=headers) as response:
        assert response.status == 200

    await until(lambda: "request-17" in single.balancer.log.read_text())
    log = single.balancer.log.read_text()
    assert "/v1/captures" in log
    assert "private" not in log
    assert "ovs_secret" not in log


# --- the real service behind it -------------------------------------------------------------------


def overlay_options(certificate: Path) -> str:
    overlay = yaml.safe_load(
        (CONFIGURATION.parents[2] / "docker-compose.tls.yml").read_text(encoding="utf-8")
    )
    options: str = overlay["services"]["balancer"]["environment"]["BALANCER_BIND"]
    return options.replace("/certificates/balancer.pem", str(certificate))


async def test_with_the_overlay_it_speaks_https_and_tells_the_service_where_clients_are(
    tmp_path: Path,
) -> None:
    executable()
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "balancer.pem"))
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    service = ForkedService(tmp_path / "service", trusted_proxies="127.0.0.1")
    bind = overlay_options(tmp_path / "balancer.pem")
    with (
        running(service),
        run_balancer(tmp_path, [int(service.url.rpartition(":")[2])], bind=bind) as balancer,
    ):
        connector = aiohttp.TCPConnector(
            ssl=tls, local_addr=("127.0.0.9", 0)
        )  # another client than the proxy
        async with aiohttp.ClientSession(connector=connector) as session:
            forged = {
                "X-Forwarded-For": "203.0.113.9",
                "X-Request-Id": "asked",
                "Forwarded": "for=203.0.113.9",
            }
            async with session.get(f"{balancer.url}/v1/captures", headers=forged) as answer:
                assert answer.status == 200, await answer.text()

    (line,) = re.findall(r".*\[asked\].*", service.logged())  # whole, as the service has ended
    assert "address=127.0.0.9 " in line
