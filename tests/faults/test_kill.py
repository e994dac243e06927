"""Acknowledged captures survive kill -9. Others are whole, or not there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import aiohttp
import pytest
from overspill import wire
from overspill.errors import NotFound

from tests.faults.traffic import MIB, Uploads, client_of, noise

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill.transfer.client import Client

    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess
    from tests.servers.redis import RedisServer

PRODUCERS = 6


async def test_embedded_back_ends_keep_what_was_acknowledged_before_a_kill(
    own_service: ServiceProcess,
) -> None:
    uploads = await killed_amid_uploads([own_service], own_service)
    own_service.start()

    await holds_exactly(own_service, uploads)


async def test_a_replica_that_is_killed_takes_nothing_along(
    start_services: StartServices, own_redis: RedisServer, s3_url: str
) -> None:
    victim, survivor = await asyncio.to_thread(start_services, 2, store=s3_url, catalog=own_redis.url)
    uploads = await killed_amid_uploads([victim, survivor], victim)

    await holds_exactly(survivor, uploads)


async def killed_amid_uploads(services: list[ServiceProcess], victim: ServiceProcess) -> Uploads:
    """Uploads that went on when a service was killed, one of them with a segment in the store already."""
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client_of(each)) for each in services]
        uploads = Uploads(clients)
        long_one = asyncio.create_task(endless_upload(victim))
        producers = [asyncio.create_task(uploads.go_on(seed)) for seed in range(PRODUCERS)]
        await uploads.until_acknowledged(25)
        victim.kill()
        with pytest.raises(aiohttp.ClientError):
            await long_one
        for task in producers:
            task.cancel()
        await asyncio.gather(*producers, return_exceptions=True)
        return uploads


async def endless_upload(service: ServiceProcess) -> None:
    """An upload whose end never comes, long enough for a segment of it to be stored."""

    async def body() -> AsyncIterator[bytes]:
        for number in range(20):
            yield noise(MIB, number)
        await asyncio.Event().wait()

    path = wire.Path.CAPTURE.format(ref="cap_" + "a" * 20)
    async with aiohttp.ClientSession() as session, session.put(service.url + path, data=body()):
        pass


async def holds_exactly(service: ServiceProcess, uploads: Uploads) -> None:
    """Every acknowledged capture byte for byte; the rest whole or absent, and stored when sent again."""
    async with client_of(service, retries=3) as client:
        for call_id, capture in uploads.acknowledged.items():
            assert await client.content(capture) == uploads.sent[call_id]
        for call_id, content in uploads.unanswered.items():
            assert await content_or_none(client, call_id) in (None, content)
            entry = await client.put(content, call_id=call_id)
            assert await client.content(entry.id) == content
        usage = await client.usage()
        assert (usage.captures, usage.size) == (len(uploads.sent), sum(map(len, uploads.sent.values())))


async def content_or_none(client: Client, call_id: str) -> bytes | None:
    try:
        return await client.content(f"call:{call_id}")
    except NotFound:
        return None
