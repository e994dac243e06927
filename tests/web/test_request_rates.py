"""Limits on how many requests come in: of a tenant, and of an address that tries keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from overspill.errors import TooManyRequests
from overspill.transfer.client import Client
from overspill.wire import Code, Scope
from overspill_service.resources.token_buckets import TokenBucket, TokenBuckets
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.web.request_rates import UNKNOWN_KEYS_BURST

from tests.web.conftest import Api, problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_what_it_has_and_then_what_flows_in() -> None:
    clock = Clock()
    bucket = TokenBucket(2, 3, clock)

    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 1]
    clock.now += 0.5
    assert [bucket.take(), bucket.take()] == [0, 1]
    clock.now += 3600
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 1]
    assert TokenBucket(0.01, 0, clock).wait() == 100


def test_of_many_names_the_longest_unused_is_forgotten() -> None:
    buckets = TokenBuckets(1, 1, Clock(), most=2)
    first = buckets.of("a")
    first.take()
    buckets.of("b")
    assert buckets.of("a") is first
    buckets.of("c")

    assert buckets.of("a") is first
    assert buckets.of("b").take() == 0


@pytest.fixture
async def limited(start_api: Callable[..., Any], tmp_path: Path) -> tuple[Api, str, str]:
    """A service with a busy tenant of 5 requests a second, a quiet one, and a key for each."""
    busy, quiet = new_key(), new_key()
    file = tmp_path / "tenants.toml"
    file.write_text(
        f'[[tenants]]\nname = "busy"\nmax_request_rate = 5\n[[tenants.keys]]\nhash = "{hash_key(busy)}"\n'
        f'scopes = ["read"]\n[[tenants]]\nname = "quiet"\n[[tenants.keys]]\nhash = "{hash_key(quiet)}"\n'
        'scopes = ["read"]\n'
    )
    return await start_api(tenants=file), busy, quiet


async def status(api: Api, key: str) -> int:
    return (await api.get("/v1/usage", headers={"Authorization": f"Bearer {key}"})).status


async def test_a_tenant_that_sends_too_much_waits_and_others_do_not(limited: tuple[Api, str, str]) -> None:
    api, busy, quiet = limited
    statuses = [await status(api, busy) for _ in range(30)]
    refused = await api.get("/v1/usage", headers={"Authorization": f"Bearer {busy}"})
    found = await problem(refused)

    assert statuses[:10] == [200] * 10
    assert statuses.count(429) >= 15
    assert (found.code, found.limit, refused.headers["Retry-After"]) == (Code.TOO_MANY_REQUESTS, 5, "1")
    assert refused.headers["RateLimit-Policy"] == '"max";q=5'
    assert [await status(api, quiet) for _ in range(30)] == [200] * 30


async def test_the_client_waits_as_long_as_it_is_told(limited: tuple[Api, str, str]) -> None:
    api, busy, _ = limited
    url = f"http://127.0.0.1:{api.port}"
    while await status(api, busy) == 200:
        pass
    async with Client(url, busy, retries=0) as client:
        with pytest.raises(TooManyRequests):
            await client.usage()
    async with Client(url, busy, retries=5) as client:
        assert (await client.usage()).tenant == "busy"


async def test_an_address_that_tries_keys_is_slowed_and_known_keys_are_not(
    limited: tuple[Api, str, str],
) -> None:
    api, _, quiet = limited
    issued = await api.service.issuer.issue("quiet", [Scope.READ], now=api.service.archive.clock())
    assert await status(api, issued.key) == 200
    statuses = [await status(api, new_key()) for _ in range(UNKNOWN_KEYS_BURST + 20)]

    assert set(statuses[:UNKNOWN_KEYS_BURST]) == {401}
    assert 429 in statuses[UNKNOWN_KEYS_BURST:]
    assert [await status(api, key) for key in (quiet, issued.key)] == [200, 200]
