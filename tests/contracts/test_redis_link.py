"""One connection to Redis that many tasks share: whose answer is whose, and what a lost one does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from overspill_service.catalog.redis import links
from overspill_service.catalog.redis.link import Link
from overspill_service.catalog.redis.links import LinkOptions, Links, opened
from redis import exceptions as redis_errors

from tests.servers.ports import HOST
from tests.servers.redis import RedisServer
from tests.waiting import until

Server = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Server) -> AsyncIterator[tuple[str, int]]:
    """A server that speaks as it likes."""
    async with await asyncio.start_server(serve, HOST, 0) as server:
        yield server.sockets[0].getsockname()[:2]


@asynccontextmanager
async def link_to(address: tuple[str, int], **options: Any) -> AsyncIterator[Link]:
    link = await opened(address, LinkOptions(**options))
    try:
        yield link
    finally:
        link.close()
        await link.closed


@pytest.fixture
async def shared(own_redis: RedisServer) -> AsyncIterator[Links]:
    made = Links(lambda: opened((HOST, own_redis.port), LinkOptions()), 5)
    yield made
    await made.close()


async def test_answers_come_to_their_commands_whatever_their_size_and_whoever_gave_up(shared: Links) -> None:
    large = b"x" * 3_000_000
    await asyncio.gather(*(shared.run("SET", f"key-{each}", f"{each}") for each in range(200)))
    await shared.run("SET", "large", large)
    asked = [asyncio.create_task(shared.run("GET", f"key-{each}")) for each in range(200)]
    asked.append(asyncio.create_task(shared.run("GET", "large")))
    await asyncio.sleep(0)
    for each in asked[:100:3]:
        each.cancel()
    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert answers.pop() == large
    assert all(isinstance(answers[each], asyncio.CancelledError) for each in range(0, 100, 3))
    assert all(answer == b"%d" % each for each, answer in enumerate(answers) if isinstance(answer, bytes))
    assert await shared.run("PING") == b"PONG"


async def test_an_error_is_that_of_its_command_alone(shared: Links) -> None:
    await shared.run("SET", "text", "x")
    commands = [("INCR", "text"), ("GET", "text"), ("EVALSHA", "0" * 40, 0), ("GET", "text")]
    wrong, first, unknown, second = await asyncio.gather(
        *(shared.run(*each) for each in commands), return_exceptions=True
    )

    assert isinstance(wrong, redis_errors.ResponseError)
    assert isinstance(unknown, redis_errors.NoScriptError)
    assert (first, second) == (b"x", b"x")


async def test_commands_of_one_moment_are_sent_together() -> None:
    pieces: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**16):
            pieces.append(data)
            writer.write(b"+OK\r\n" * data.count(b"PING"))
        writer.close()

    async with serving(serve) as address, link_to(address) as link:
        answers = await asyncio.gather(*(link.send(("PING",)) for _ in range(50)))

    assert answers == [b"OK"] * 50
    assert len(pieces) <= 2


async def test_what_is_published_comes_after_an_answer_that_nobody_waits_for(own_redis: RedisServer) -> None:
    """Redis writes first to whom it had something for last: so to the subscribers, and then to this link."""
    address = HOST, own_redis.port
    heard: asyncio.Queue[list[Any]] = asyncio.Queue()
    script = "redis.call('PUBLISH', 'news', ARGV[1]); return ARGV[1]"
    async with link_to(address) as subscriber, link_to(address) as link:
        subscriber.listen(heard.put_nowait)
        subscriber.send(("SUBSCRIBE", "news"))
        await heard.get()
        one = await link.send(("EVAL", script, 0, "one"), publishes=True)
        several = [link.send(("EVAL", script, 0, each), publishes=True) for each in ("two", "three")]
        answers = [one, *await asyncio.gather(*several, link.send(("ECHO", "last")))]
        messages = [(await heard.get())[2] for _ in range(3)]
        pings = await link.send(("INFO", "commandstats"))

    assert answers == [b"one", b"two", b"three", b"last"]
    assert messages == answers[:3]
    assert b"cmdstat_ping:calls=2," in pings  # before `one` and `two`: `three` is not the first in its piece


async def test_what_has_no_answer_in_time_fails_and_a_server_that_says_nothing_is_left() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with serving(serve) as address, link_to(address, answer_seconds=0.05) as link:
        with pytest.raises(redis_errors.TimeoutError):
            await link.send(("PING",))
        await asyncio.wait_for(link.closed, 30)
        with pytest.raises(redis_errors.ConnectionError):
            await link.send(("PING",))


async def test_who_listens_to_a_server_that_is_gone_without_a_word_is_told(own_redis: RedisServer) -> None:
    heard: list[object] = []

    def pings() -> int:
        return int(own_redis.command("INFO", "commandstats").get("cmdstat_ping", {}).get("calls", 0))

    async with link_to((HOST, own_redis.port), answer_seconds=0.3) as link:
        link.listen(heard.append)
        link.send(("SUBSCRIBE", "news"))
        await asyncio.to_thread(until, lambda: pings() > 1)  # what is only quiet is not gone
        own_redis.pause()

        assert isinstance(await asyncio.wait_for(link.closed, 30), redis_errors.TimeoutError)
    assert heard == [[b"subscribe", b"news", 1]]


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"+OK\r\n+OK\r\n+OK\r\n"])
async def test_a_server_that_is_no_redis_is_left(said: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        await reader.read()
        writer.close()

    async with serving(serve) as address, link_to(address) as link:
        link.send(("PING",)).cancel()
        await asyncio.wait_for(link.closed, 30)

    assert not link.is_usable


async def test_a_lost_connection_fails_what_waits_and_the_next_command_has_another(
    own_redis: RedisServer, shared: Links
) -> None:
    await shared.run("SET", "key", "x")
    waiting = asyncio.create_task(shared.run("BLPOP", "nothing", 60))
    while not await shared.run("CLIENT", "LIST", "TYPE", "NORMAL"):
        pass
    own_redis.restart()

    with pytest.raises(redis_errors.ConnectionError):
        await waiting
    assert await shared.run("GET", "key") is None


async def test_new_links_take_over_while_what_is_under_way_has_its_answer(
    own_redis: RedisServer, shared: Links
) -> None:
    popped = asyncio.create_task(shared.run("BLPOP", "list", 60))
    is_under_way = await asyncio.to_thread(
        until, lambda: own_redis.command("INFO", "clients")["blocked_clients"]
    )
    assert is_under_way
    shared.reconnect()
    await shared.run("RPUSH", "list", "x")

    assert await popped == [b"list", b"x"]


async def test_large_commands_that_the_server_does_not_take_hold_up_no_small_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first connection takes nothing; the others answer."""
    connections: list[asyncio.StreamWriter] = []
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        if len(connections) == 1:
            await go_on.wait()
        while await reader.read(2**16) and len(connections) > 1:
            writer.write(b"+OK\r\n")
        writer.close()

    async with serving(serve) as address:
        made = Links(lambda: opened(address, LinkOptions()), 5)
        stuck = [asyncio.create_task(made.run("SET", "key", b"x" * 8_000_000)) for _ in range(2)]
        async with asyncio.timeout(30):
            while len(connections) < 2:
                asking = asyncio.create_task(made.run("PING"))
                await asyncio.sleep(0.005)
                asking.cancel()
            assert await made.run("PING") == b"OK"
        assert not any(each.done() for each in stuck)
        go_on.set()
        for each in stuck:
            each.cancel()
        await made.close()
    assert len(connections) <= links.MAX_LINKS


async def test_a_wrong_password_is_told_apart(own_redis: RedisServer) -> None:
    own_redis.command("CONFIG", "SET", "requirepass", "right")
    async with link_to((HOST, own_redis.port), password="right", db=3) as link:
        assert await link.send(("PING",)) == b"PONG"

        with pytest.raises(redis_errors.AuthenticationError):
            await opened((HOST, own_redis.port), LinkOptions(password="wrong"))
        await link.send(("CONFIG", "SET", "requirepass", ""))
