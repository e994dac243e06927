"""Follow and wait through the deployment's load balancer, and through an nginx as it is by default."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession
from overspill import wire
from overspill.transfer.client import Client
from overspill.wire import Header

from tests.servers import balancer, nginx
from tests.web.conftest import start_api
from tests.web.live_producer import Producer
from tests.web.test_follow import parsed, rest_of, text_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.web.conftest import Api

__all__ = ["start_api"]

PROXIES = ["haproxy", "nginx"]
HASTY_SECONDS = 3
"""How long a proxy waits for a side that is silent: on a busy machine, any side is silent for a second."""
IDLE_SECONDS = HASTY_SECONDS + 0.4
"""How long nothing comes."""


class Proxied:
    """A service behind a proxy that gives up a side that is silent for `patience` seconds."""

    def __init__(self, kind: str, api: Api, folder: Path, *, patience: int = 60) -> None:
        self._kind, self._folder, self.api, self._patience = kind, folder, api, patience
        self._stack, self._started = ExitStack(), 0
        self.url = ""

    async def start(self) -> None:
        """Start a proxy in the place of the one before."""
        self._started += 1
        folder = self._folder / str(self._started)
        folder.mkdir()
        self.url = await asyncio.to_thread(self._start, folder)

    def _start(self, folder: Path) -> str:
        if self._kind == "nginx":
            port = self._stack.enter_context(nginx.passing_on(folder, self.api.port, patience=self._patience))
            return f"http://127.0.0.1:{port}"
        balancer.executable()
        made = balancer.run_balancer(folder, [self.api.port], patience=f"{self._patience}s")
        return self._stack.enter_context(made).url

    async def stop(self) -> None:
        await asyncio.to_thread(self._stack.close)


@asynccontextmanager
async def running(made: Proxied) -> AsyncIterator[Proxied]:
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest.fixture(params=PROXIES)
async def proxied(
    request: pytest.FixtureRequest, start_api: Callable[..., Any], tmp_path: Path
) -> AsyncIterator[Proxied]:
    async with running(Proxied(request.param, await start_api(hosts="localhost"), tmp_path)) as made:
        yield made


@pytest.fixture
async def producer(proxied: Proxied) -> Producer:
    made = Producer(proxied.api)
    await made.begin()
    return made


@pytest.fixture
async def client() -> AsyncIterator[ClientSession]:
    async with ClientSession(headers={"Accept-Encoding": "identity"}) as session:
        yield session


async def test_each_event_comes_before_the_next_one_is_there(
    proxied: Proxied, producer: Producer, client: ClientSession
) -> None:
    async with client.get(f"{proxied.url}{producer.path}/follow") as response:
        events = parsed(response.content)
        for line in (b"one\n", b"two\n", b"three\n"):
            await producer.append(line)
            assert await text_until(events, len(line)) == line.decode()
        await producer.complete()

        assert (await rest_of(events))[1]["state"] == "complete"


@pytest.mark.parametrize("kind", PROXIES)
async def test_signs_of_life_keep_an_idle_follower_connected(
    kind: str,
    start_api: Callable[..., Any],
    tmp_path: Path,
    client: ClientSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "KEEP_ALIVE_SECONDS", 0.2)
    api = await start_api(hosts="localhost")
    producer = Producer(api)
    await producer.begin()
    async with (
        running(Proxied(kind, api, tmp_path, patience=HASTY_SECONDS)) as proxied,
        client.get(f"{proxied.url}{producer.path}/follow") as response,
    ):
        events = parsed(response.content)
        await producer.append(b"one\n")
        assert await text_until(events, 4) == "one\n"
        await asyncio.sleep(IDLE_SECONDS)
        await producer.append(b"two\n")

        assert await text_until(events, 4) == "two\n"


async def test_a_follower_whose_proxy_went_away_goes_on_behind_its_last_event(
    proxied: Proxied, producer: Producer, client: ClientSession
) -> None:
    async with client.get(f"{proxied.url}{producer.path}/follow") as response:
        events = parsed(response.content)
        await producer.append(b"one\n")
        kind, last, _ = await anext(events)
        await proxied.stop()
    await producer.append(b"two\n")
    await proxied.start()
    again = {"Last-Event-ID": last}
    async with client.get(f"{proxied.url}{producer.path}/follow", headers=again) as response:
        events = parsed(response.content)

        assert (kind, last) == ("output", "4")
        assert await text_until(events, 4) == "two\n"


async def test_the_sdk_follows_and_appends_through_a_proxy(proxied: Proxied) -> None:
    seen = b""
    async with Client(proxied.url) as overspill:
        async with overspill.live(session="s") as out:
            await out.write("one\n")
            following = overspill.follow(out.id)
            async for event in following:
                seen += event.content.encode()
                if seen == b"one\n":
                    await out.write("two\n")
                if seen.endswith(b"two\n"):
                    break
        assert await overspill.content(out.id) == b"one\ntwo\n" == seen


async def test_a_wait_outlasts_what_the_balancer_waits_for_other_answers(
    start_api: Callable[..., Any], tmp_path: Path, client: ClientSession
) -> None:
    api = await start_api(hosts="localhost")
    producer = Producer(api)
    await producer.begin()
    async with running(Proxied("haproxy", api, tmp_path, patience=HASTY_SECONDS)) as proxied:
        asked = f"{proxied.url}{producer.path}/wait?lines=1&timeout=60"
        waiting = asyncio.create_task(client.get(asked))
        await asyncio.sleep(IDLE_SECONDS)
        await producer.append(b"one\n")
        async with await waiting as response:
            answer = await response.text()

    assert response.status == 200, answer
    assert '"reason":"lines"' in answer
    assert Header.REQUEST_ID in response.headers
