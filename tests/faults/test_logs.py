"""The log of a real service: a line for each request, causes of failures, a start and a stop."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from overspill_service.tenants.keys import hash_key, new_key

from tests.faults.traffic import client_of, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import StartServices
    from tests.servers.overspill import ServiceProcess
    from tests.servers.redis import RedisServer

SHORT = 2.0
"""Seconds for Redis, which is not there. A busy machine tries it at least once in so long."""


def records(service: ServiceProcess, **wanted: object) -> list[dict[str, Any]]:
    """The records of a log in JSON that have these fields."""
    lines = [json.loads(line) for line in service.logged().splitlines()]
    return [line for line in lines if wanted.items() <= line.items()]


async def test_a_request_has_one_line_with_its_facts(start_services: StartServices) -> None:
    (service,) = await asyncio.to_thread(start_services, log_format="json")
    content = b"line\n" * 1000
    async with client_of(service) as client:
        entry = await client.put(content, call_id="7")
        await client.content(entry.id)
        async with aiohttp.ClientSession() as session:
            by_call = f"{service.url}/v1/captures/call:7/head"
            async with session.get(by_call, headers={"X-Request-Id": "mine"}) as head:
                size = len(await head.read())
            async with session.get(f"{service.url}/v1/captures/{entry.id}/head?lines=0") as refused:
                assert refused.status == 422
            async with session.head(f"{service.url}/v1/captures/{entry.id}/content") as asked:
                assert asked.status == 200
    service.stop()

    (put,) = records(service, message="PUT /v1/captures/{ref}")
    assert put["status"] == 201
    assert {"tenant": "default", "capture": entry.id, "size": len(content)}.items() <= put.items()
    assert (put["stored_size"], put["level"]) == (entry.stored_size, "info")
    assert 0 < put["received"] <= len(content)
    assert 0 < put["seconds"] < 60
    (read,) = records(service, request_id="mine")
    assert {"capture": entry.id, "bytes": size, "status": 200, "received": 0}.items() <= read.items()
    (wrong,) = records(service, status=422)
    assert {"code": "invalid_parameter", "capture": entry.id, "tenant": "default"}.items() <= wrong.items()
    (head_only,) = records(service, message="HEAD /v1/captures/{ref}/content")
    assert head_only["bytes"] == 0


async def test_a_503_has_its_cause_beside_it(start_services: StartServices, own_redis: RedisServer) -> None:
    url = f"{own_redis.url}?deadline={SHORT}"
    (service,) = await asyncio.to_thread(start_services, catalog=url, log_format="json")
    own_redis.stop()
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{service.url}/v1/captures", headers={"X-Request-Id": "mine"}) as response,
    ):
        shown = await response.json()
        assert response.status == 503
    service.stop()

    (line,) = records(service, request_id="mine", status=503)
    assert (line["level"], line["code"], line["detail"]) == (
        "info",
        "catalog_unavailable",
        shown["detail"],
    )
    assert re.search(r"ConnectionError: .*Connect", line["cause"])
    assert "cause" not in shown


async def test_what_an_operator_must_mend_is_a_warning_that_is_not_repeated_within_its_minute(
    start_services: StartServices, own_redis: RedisServer, tmp_path: Path
) -> None:
    key, file = new_key(), tmp_path / "tenants.toml"
    # It is known without Redis. Whoever else asks may be refused before it is known who asks.
    file.write_text(
        f'[[tenants]]\nname = "a"\n[[tenants.keys]]\nhash = "{hash_key(key)}"\nscopes = ["read"]\n'
    )
    catalog = f"{own_redis.url}?deadline={SHORT}"
    (service,) = await asyncio.to_thread(
        start_services, catalog=catalog, tenants=file, anonymous=False, log_format="json"
    )
    own_redis.stop()
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        statuses = await asyncio.gather(*(status(session, f"{service.url}/v1/captures") for _ in range(5)))
    service.stop()

    (line,) = records(service, trouble="catalog_unavailable")
    assert statuses == [503] * 5
    assert (line["level"], line["message"], line["count"]) == ("warning", "Redis is not reachable", 1)
    assert line["tenant"] == "a"
    assert "ConnectionError" in line["cause"]


async def status(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as response:
        return response.status


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_start_and_a_stop_are_told_once_a_process(
    start_services: StartServices, own_redis: RedisServer, workers: int
) -> None:
    own_redis.command("CONFIG", "SET", "requirepass", "hunter2")
    url = own_redis.url.replace("redis://", "redis://:hunter2@")
    (service,) = await asyncio.to_thread(
        start_services, catalog=url, log_format="json", log_level="info", workers=workers
    )

    async def has_begun() -> bool:
        return len(records(service, message="serving")) == workers

    await until(has_begun)
    service.stop()

    setup = {"url": service.url, "workers": workers, "catalog": own_redis.url, "keys": "none needed"}
    for line in records(service, message="serving"):
        assert setup.items() <= line.items()
        assert line["version"].startswith("0.")
        assert line["store"].startswith("file:///")
    assert len({line["process"] for line in records(service, message="serving")}) == workers
    assert [line["in_flight"] for line in records(service, message="stopping")] == [0] * workers
    assert all(0 <= line["seconds"] < 60 for line in records(service, message="stopped"))
    assert "hunter2" not in service.logged()
    assert len(records(service, message="stopped")) == workers


async def test_text_shows_the_facts_behind_the_message(start_services: StartServices) -> None:
    (service,) = await asyncio.to_thread(start_services)
    async with client_of(service) as client:
        entry = await client.put(b"x", call_id="7")
    async with aiohttp.ClientSession() as session:
        forged = {"X-Request-Id": "mine", "Overspill-Call-Id": "a%0Atenant=root"}
        async with session.put(f"{service.url}/v1/captures/{entry.id}", data=b"x", headers=forged) as again:
            assert again.status == 200
    service.stop()

    (line,) = re.findall(r".*\[mine\].*", service.logged())
    assert re.search(
        rf"INFO overspill_service\.access \[mine\] PUT /v1/captures/{{ref}} address=127\.0\.0\.1 "
        rf"tenant=default capture={entry.id} "
        rf"size=1 stored_size=\d+ status=200 bytes=\d+ received=1 seconds=0\.\d+$",
        line,
    )
