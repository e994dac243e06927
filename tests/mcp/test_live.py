"""Live captures over MCP: waits report how far they are, and resources tell that they have grown."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from mcp import StdioServerParameters, types
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from overspill.errors import Deleted
from overspill.guard.guard import Guard
from overspill.mcp.growth import Watches
from overspill.mcp.server import server as made_server
from overspill.mcp.server.resources import NOT_FOUND
from overspill.mcp.server.subscriptions import MAX_SUBSCRIPTIONS
from overspill.transfer.sync import SyncClient

from tests.client.shell import OVERSPILL
from tests.mcp.test_server import SDK, over_http
from tests.mcp.test_slow_reads import HANDLE, asked_for_the_capture, receive, send
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from overspill.live.sync_capture import SyncLiveCapture

    from tests.servers.launcher import Piped
    from tests.servers.overspill import ServiceProcess

pytestmark = pytest.mark.filterwarnings(  # the revisions before 2026-07-28 have nothing else
    "ignore:resources/.*subscribe is removed as of 2026-07-28"
)
SESSION: Final = "mcp-live"
SECONDS: Final = 60


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[SyncClient]:
    with SyncClient(service.url, session=SESSION) as client:
        yield client


@contextmanager
def growing(out: SyncLiveCapture) -> Iterator[None]:
    """Write a line every tenth of a second within the block."""
    is_over = threading.Event()

    def write() -> None:
        while not is_over.wait(0.1):
            out.write("a line\n")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        is_over.set()
        writer.join()


def command(service: ServiceProcess, *words: str) -> StdioServerParameters:
    environment = {**clean_environment(), "OVERSPILL_URL": service.url, "OVERSPILL_SESSION": SESSION}
    program, *arguments = OVERSPILL.command(*words)
    return StdioServerParameters(command=program, args=arguments, env=environment)


@asynccontextmanager
async def connected(service: ServiceProcess, way: str, **more: Any) -> AsyncIterator[Client]:
    """The official client of a server: over standard streams, HTTP, or through the proxy."""
    if way == "http":
        with over_http(service) as url:
            async with Client(url, **more) as client:
                yield client
    elif way == "proxied http":
        with over_http(service) as url:
            async with Client(stdio_client(command(service, "mcp-proxy", "--url", url)), **more) as client:
                yield client
    else:
        words = ["mcp"] if way == "stdio" else ["mcp-proxy", "--", *SDK.command()]
        async with Client(stdio_client(command(service, *words)), **more) as client:
            yield client


def begin(process: Piped, revision: str) -> Any:
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}
    send(process, id=1, method="initialize", params=params)
    answer = receive(process)
    send(process, method="notifications/initialized")
    return answer


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():  # noqa: ASYNC110  (another process changes it)
            await asyncio.sleep(0.02)


class Updates:
    """The addresses of which a client was told, in their order."""

    def __init__(self) -> None:
        self.uris: list[str] = []

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.uris.append(str(message.params.uri))


@pytest.mark.parametrize(
    ("way", "mode"),
    [("stdio", "auto"), ("stdio", "legacy"), ("http", "auto"), ("http", "legacy"), ("proxy", "legacy")],
)
async def test_a_wait_reports_how_far_the_capture_is(
    service: ServiceProcess, client: SyncClient, way: str, mode: str
) -> None:
    reports: list[tuple[float, str]] = []
    seen = asyncio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, message or ""))
        if " so far" in (message or "") and len(reports) > 1:
            seen.set()

    with client.live() as out:
        asked = {"capture": out.id, "mode": "wait", "pattern": "^ready$", "timeout_seconds": SECONDS}
        async with connected(service, way, mode=mode) as agent:
            with growing(out):
                call = asyncio.create_task(agent.call_tool("inspect_output", asked, progress_callback=note))
                async with asyncio.timeout(SECONDS):
                    await seen.wait()
            out.write("ready\n")
            answer = await call

    numbers = [progress for progress, _ in reports]
    assert answer.structured_content is not None
    assert answer.structured_content["reason"] == "pattern"
    assert numbers == sorted(set(numbers))
    assert min(later - sooner for sooner, later in pairwise(numbers)) > 0.9
    assert any("line" in said and "byte" in said for _, said in reports)


@pytest.mark.parametrize("way", ["stdio", "http", "proxied http"])
async def test_a_subscriber_is_told_while_a_capture_grows_and_at_its_end(
    service: ServiceProcess, client: SyncClient, way: str
) -> None:
    updates = Updates()
    async with connected(service, way, mode="legacy", message_handler=updates) as agent:
        with client.live() as out:
            uris = [f"overspill://{out.id}", f"overspill://{out.id}/tail/5"]
            for uri in (*uris, uris[0]):
                await agent.session.subscribe_resource(uri)
            out.write("password: ")
            await until(lambda: set(updates.uris) == set(uris))
            prompt: Any = await agent.read_resource(uris[1])
            await agent.session.unsubscribe_resource(uris[1])
            before = updates.uris.count(uris[1])
            out.write("\nmore\n")
            await until(lambda: updates.uris.count(uris[0]) == 2)
        await until(lambda: updates.uris.count(uris[0]) == 3)
        last: Any = await agent.read_resource(uris[1])
        capabilities = agent.server_capabilities

    assert prompt.contents[0].text == "password: "
    assert last.contents[0].meta["overspill"]["total_lines"] == 2
    assert updates.uris.count(uris[1]) == before
    assert capabilities.resources is not None
    assert capabilities.resources.subscribe is True


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_listener_of_the_newest_revision_is_told_too(
    service: ServiceProcess, client: SyncClient, way: str
) -> None:
    async with connected(service, way) as agent:
        with client.live() as out:
            uri = f"overspill://{out.id}"
            wanted = [uri, "file:///etc/passwd"]
            async with agent.listen(resource_subscriptions=wanted, tools_list_changed=True) as events:
                out.write("one\n")
                first = await anext(aiter(events))
                out.complete()
                last = await anext(aiter(events))
                honored = events.honored

    assert first == last == ResourceUpdated(uri)
    assert honored.resource_subscriptions == [uri]
    assert honored.tools_list_changed is None


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_a_subscription_over_standard_streams_as_each_revision_writes_it(
    service: ServiceProcess, client: SyncClient, revision: str
) -> None:
    environment = {**clean_environment(), "OVERSPILL_URL": service.url}
    with client.live() as out, OVERSPILL.piped(["mcp"], environment, seconds=SECONDS) as process:
        uri = f"overspill://{out.id}"
        initialized = begin(process, revision)
        send(process, id=2, method="resources/subscribe", params={"uri": uri})
        subscribed = receive(process)
        out.write("one\n")
        told = receive(process)

    assert initialized["result"]["protocolVersion"] == revision
    assert initialized["result"]["capabilities"]["resources"]["subscribe"] is True
    assert subscribed == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert told == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_wait_that_its_client_gives_up_ends_its_request(
    silent: socket.socket, way: str, mode: str
) -> None:
    service: Any = SimpleNamespace(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
    asked = {"capture": HANDLE, "mode": "wait", "timeout_seconds": 600}
    async with connected(service, way, mode=mode) as agent:
        call = asyncio.create_task(agent.call_tool("inspect_output", asked))
        with await asyncio.to_thread(asked_for_the_capture, silent) as connection:
            call.cancel()

            assert await asyncio.to_thread(connection.recv, 65_536) == b""


async def test_a_subscriber_is_told_that_a_capture_was_removed(client: SyncClient) -> None:
    updates = Updates()

    async def remove(out: SyncLiveCapture) -> None:
        with out:
            await agent.session.subscribe_resource(f"overspill://{out.id}")
            client.delete(out.id)
            await until(lambda: bool(updates.uris))

    with Guard(client, spool=False) as guard:
        async with Client(made_server.server(guard), mode="legacy", message_handler=updates) as agent:
            with pytest.raises(Deleted):
                await remove(client.live())
            with pytest.raises(MCPError) as caught:
                await agent.read_resource(updates.uris[0])

    assert caught.value.code == NOT_FOUND
    assert len(updates.uris) == 1


async def test_a_subscription_to_what_is_not_there_is_refused(
    service: ServiceProcess, client: SyncClient
) -> None:
    with Guard(client, spool=False) as guard:
        async with Client(made_server.server(guard), mode="legacy") as agent:
            for uri, code in (
                ("overspill://cap_" + "a" * 20, NOT_FOUND),
                ("file:///etc/passwd", types.INVALID_PARAMS),
            ):
                with pytest.raises(MCPError) as caught:
                    await agent.session.subscribe_resource(uri)
                assert caught.value.code == code


class Watched(Watches):
    """The watches of a server, for the test to look at."""

    made: Watches

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        Watched.made = self

    @property
    def captures(self) -> list[str]:
        return list(self._watches)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    monkeypatch.setattr(made_server, "Watches", Watched)
    return Watched


async def test_a_capture_is_watched_once_and_no_longer_than_anybody_wants_news(
    client: SyncClient, watched: Any
) -> None:
    with client.live() as out, Guard(client, spool=False) as guard:
        serving = made_server.server(guard)
        async with Client(serving, mode="legacy") as one:
            async with Client(serving, mode="legacy") as other:
                await one.session.subscribe_resource(f"overspill://{out.id}")
                for lines in range(MAX_SUBSCRIPTIONS):
                    await other.session.subscribe_resource(f"overspill://{out.id}/tail/{lines + 1}")
                shared = watched.made.captures
                with pytest.raises(MCPError, match="at most 100"):
                    await other.session.subscribe_resource(f"overspill://{out.id}")
            await one.session.unsubscribe_resource(f"overspill://{out.id}")
            unsubscribed = watched.made.captures
            await one.session.subscribe_resource(f"overspill://{out.id}")

        assert shared == [out.id]
        assert unsubscribed == []
        await until(lambda: not watched.made.captures)


async def test_a_wait_that_is_cancelled_is_watched_no_more(client: SyncClient, watched: Any) -> None:
    async def note(progress: float, total: float | None, message: str | None) -> None: ...

    with client.live() as out, Guard(client, spool=False) as guard:
        async with Client(made_server.server(guard), mode="legacy") as agent:
            asked = {"capture": out.id, "mode": "wait", "timeout_seconds": 600}
            call = asyncio.create_task(agent.call_tool("inspect_output", asked, progress_callback=note))
            await until(lambda: hasattr(watched, "made") and watched.made.captures == [out.id])
            call.cancel()

            await until(lambda: not watched.made.captures)
