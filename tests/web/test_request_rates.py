"""Limits on how many requests come in: of a tenant, and of an address that tries keys."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest
from msgspec.structs import replace
from overspill.errors import TooManyRequests
from overspill.transfer.client import Client
from overspill.wire import Code, Scope
from overspill_service.errors import RateExceeded
from overspill_service.resources.token_buckets import TokenBucket, TokenBuckets
from overspill_service.resources.turns import Turns
from overspill_service.tenants.directory import Limits, Principal, Tenant
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.web import request_rates
from overspill_service.web.request_rates import (
    MIN_SHARE,
    SCRAPES_BURST,
    SEVERAL_SECONDS,
    UNKNOWN_KEYS_BURST,
    RequestRates,
    share_of,
)

from tests.web.conftest import Api, problem
from tests.web.replicas import Clock, ToldFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def test_a_bucket_gives_what_it_has_and_then_what_flows_in() -> None:
    clock = Clock()
    bucket = TokenBucket("a", 2, 3, clock)

    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 1]
    clock.now += 0.5
    assert [bucket.take(), bucket.take()] == [0, 1]
    clock.now += 3600
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 1]
    assert TokenBucket("a", 0.01, 0, clock).wait() == 100


def test_a_bucket_of_which_a_part_may_be_used_says_what_is_left_of_that_part() -> None:
    clock = Clock()
    bucket = TokenBucket("a", 10, 20, clock)
    bucket.set_share(0.5)
    said = []
    for _ in range(10):
        bucket.take()
        said.append(bucket.state)
    clock.now += 60
    bucket.wait()

    assert [said[0], said[-1], bucket.state] == ['"a";r=9;t=1', '"a";r=0;t=2', '"a";r=10;t=0']


def test_of_many_names_the_longest_unused_is_forgotten() -> None:
    buckets = TokenBuckets("a", 1, 1, Clock(), max_keys=2)
    first = buckets.of("a")
    first.take()
    buckets.of("b")
    assert buckets.of("a") is first
    buckets.of("c")

    assert buckets.of("a") is first
    assert buckets.of("b").take() == 0


def test_a_turn_comes_at_once_until_the_burst_is_used_and_then_one_after_the_other() -> None:
    clock = Clock()
    turns = Turns(2, 3, 1.0, clock, max_keys=10)

    assert [turns.take("a") for _ in range(6)] == [0, 0, 0, 0.5, 1.0, None]
    assert turns.take("b") == 0
    clock.now += 0.5
    assert [turns.take("a"), turns.take("a")] == [1.0, None]
    clock.now += 3600
    assert [turns.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


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
    api.service.rates = RequestRates(Clock())
    statuses = [await status(api, busy) for _ in range(30)]
    refused = await api.get("/v1/usage", headers={"Authorization": f"Bearer {busy}"})
    found = await problem(refused)

    assert statuses == [200] * 10 + [429] * 20
    assert (found.code, found.limit, refused.headers["Retry-After"]) == (Code.TOO_MANY_REQUESTS, 5, "1")
    assert refused.headers["RateLimit-Policy"] == '"tenant";q=10;w=2'
    assert [await status(api, quiet) for _ in range(30)] == [200] * 30


async def test_the_client_waits_as_long_as_it_is_told(limited: tuple[Api, str, str]) -> None:
    api, busy, _ = limited
    api.service.rates = RequestRates(clock := Clock())
    url = f"http://127.0.0.1:{api.port}"
    while await status(api, busy) == 200:
        pass
    async with Client(url, busy, retries=0) as client:
        with pytest.raises(TooManyRequests) as refused:
            await client.usage()
    clock.go()
    async with Client(url, busy, retries=5) as client:
        assert (await client.usage()).tenant == "busy"

    assert refused.value.retry_after == 1


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


def test_the_addresses_of_one_ipv6_network_try_keys_together() -> None:
    rates = RequestRates(Clock())
    for host in range(UNKNOWN_KEYS_BURST):
        rates.require_guesses_left(f"2001:db8::{host:x}").take()

    with pytest.raises(RateExceeded):
        rates.require_guesses_left("2001:db8::ffff:1")
    assert rates.require_guesses_left("2001:db8:0:1::1").wait() == 0
    assert rates.require_guesses_left("192.0.2.1").wait() == 0


async def test_every_answer_says_how_much_of_the_rate_is_left(limited: tuple[Api, str, str]) -> None:
    api, busy, quiet = limited
    answers = [
        await api.get(path, headers={"Authorization": f"Bearer {busy}"}) for path in ("/v1/usage",) * 3
    ]
    unknown = await api.get("/v1/captures/none", headers={"Authorization": f"Bearer {quiet}"})
    health = await api.get("/healthz")

    assert {each.headers["RateLimit-Policy"] for each in answers} == {'"tenant";q=10;w=2'}
    assert answers[0].headers["RateLimit"] == '"tenant";r=9;t=1'
    assert (unknown.status, unknown.headers["RateLimit"]) == (422, '"tenant";r=1999;t=1')
    assert "RateLimit" not in health.headers


async def test_a_key_leaves_half_of_the_rate_to_the_other_keys_of_its_tenant(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api(max_request_rate=10, anonymous=False)
    api.service.rates = RequestRates(Clock())
    now = api.service.archive.clock()
    one, two = [(await api.service.issuer.issue("busy", [Scope.READ], now=now)).key for _ in range(2)]
    for key in (one, two):
        assert await status(api, key) == 200
    answers = [await api.get("/v1/usage", headers={"Authorization": f"Bearer {one}"}) for _ in range(11)]
    refused, found = answers[-1], await problem(answers[-1])

    assert [each.status for each in answers] == [200] * 10 + [429]
    assert (found.limit, refused.headers["Retry-After"]) == (5, "1")
    assert refused.headers["RateLimit-Policy"] == '"key";q=10;w=2'
    assert refused.headers["RateLimit"] == '"key";r=0;t=1'
    assert [await status(api, two) for _ in range(8)] == [200] * 8


async def test_scrapes_of_an_address_have_a_rate_and_health_has_none(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api(metrics_from="127.0.0.1")
    api.service.rates = RequestRates(Clock())
    answers = [await api.get("/metrics") for _ in range(SCRAPES_BURST + 1)]

    assert [each.status for each in answers] == [200] * SCRAPES_BURST + [429]
    assert answers[-1].headers["RateLimit-Policy"] == f'"scrapes";q={SCRAPES_BURST};w=30'
    assert (await api.get("/healthz")).status == 200


def test_a_key_that_is_used_alone_may_send_all_that_its_tenant_may() -> None:
    rates = RequestRates(clock := Clock())

    assert granted(rates, 5 * LIMIT, key="one") == 2 * LIMIT
    clock.now += 1
    assert granted(rates, 5 * LIMIT, key="one") == LIMIT


def test_a_small_part_of_a_small_rate_lets_a_key_wait_and_not_for_ever() -> None:
    rates, limits = RequestRates(clock := Clock()), principal().tenant.limits
    tenant = Tenant(name="slow", limits=replace(limits, max_request_rate=1, max_key_share=20))
    one, two = (Principal(tenant=tenant, scopes=frozenset(), key_hash=key) for key in ("one", "two"))
    rates.count(one)
    rates.count(two)
    with pytest.raises(RateExceeded) as refused:
        rates.count(two)
    clock.now += 5
    rates.count(two)

    assert (refused.value.limit, refused.value.retry_after) == (1, 5)
    assert refused.value.policy == '"key";q=1;w=5'


def test_while_several_keys_are_used_each_has_its_part() -> None:
    rates = RequestRates(clock := Clock())
    granted(rates, 1, key="quiet")
    granted(rates, 10 * LIMIT, key="greedy")
    for _ in range(5):
        clock.now += 1
        assert granted(rates, 5 * LIMIT, key="greedy") == LIMIT / 2
        assert granted(rates, LIMIT // 2, key="quiet") == LIMIT / 2
    clock.now += SEVERAL_SECONDS

    assert granted(rates, 5 * LIMIT, key="greedy") == 2 * LIMIT
    assert granted(rates, 5 * LIMIT, "another", key="greedy") == 2 * LIMIT


# --- across replicas ----------------------------------------------------------------------------------


LIMIT = 100


def principal(name: str = "busy", key: str = "") -> Principal:
    limits = Limits(max_capture_size=1, max_stored_size=1, max_captures=1, default_ttl=1, max_ttl=1)
    limits = replace(limits, max_request_rate=LIMIT, max_key_share=50)
    return Principal(tenant=Tenant(name=name, limits=limits), scopes=frozenset(), key_hash=key)


def granted(rates: RequestRates, count: int, name: str = "busy", key: str = "") -> int:
    """How many of so many requests pass."""
    found = 0
    for _ in range(count):
        with suppress(RateExceeded):
            rates.count(principal(name, key))
            found += 1
    return found


class Replicas:
    """Replicas that get so many requests a second each."""

    def __init__(self, count: int) -> None:
        self.clock, self.catalog = Clock(), cast("Any", ToldFigures())
        self.all = [RequestRates(self.clock) for _ in range(count)]

    async def second(self, *asked: int, keys: Sequence[str] = ()) -> list[int]:
        """How many requests of each replica pass within a second, if so many come to it with its key."""
        passed = [0] * len(self.all)
        for _ in range(20):
            self.clock.now += 1 / 20
            for number, rates in enumerate(self.all):
                key = keys[number] if keys else ""
                passed[number] += granted(rates, asked[number] // 20, key=key)
        for rates in self.all:
            await rates.tell_once(self.catalog)
        return passed


async def test_a_tenant_that_asks_all_replicas_gets_its_limit_from_all_of_them_together() -> None:
    replicas = Replicas(4)
    for _ in range(5):  # until what may come at once is used up
        await replicas.second(400, 400, 400, 400)
    total = sum([sum(await replicas.second(400, 400, 400, 400)) for _ in range(10)])

    assert total == pytest.approx(10 * LIMIT, rel=0.1)


async def test_a_tenant_that_goes_from_replica_to_replica_gets_no_more_than_its_limit() -> None:
    replicas = Replicas(4)
    turns = [[400 if number == turn else 0 for number in range(4)] for turn in range(4)]
    for asked in 2 * turns:
        await replicas.second(*asked)
    total = sum([sum(await replicas.second(*asked)) for asked in 3 * turns])

    assert total <= 1.2 * LIMIT * len(3 * turns)


async def test_below_the_limit_nothing_is_refused_to_a_tenant_that_goes_from_replica_to_replica() -> None:
    replicas = Replicas(3)
    turns = [[80, 0, 0], [0, 80, 0], [0, 0, 80]]

    assert [await replicas.second(*asked) for asked in 5 * turns] == 5 * turns


async def test_each_replica_grants_in_proportion_to_what_is_asked_of_it() -> None:
    replicas = Replicas(2)
    for _ in range(5):
        await replicas.second(900, 100)
    seconds = [await replicas.second(900, 100) for _ in range(10)]
    first, second = (sum(each) for each in zip(*seconds, strict=True))

    assert first == pytest.approx(900, rel=0.15)
    assert second == pytest.approx(100, rel=0.3)


async def test_a_greedy_key_leaves_the_rest_to_those_that_ask_other_replicas() -> None:
    replicas = Replicas(2)
    for _ in range(5):
        await replicas.second(900, 40, keys=["greedy", "quiet"])
    seconds = [await replicas.second(900, 40, keys=["greedy", "quiet"]) for _ in range(10)]
    greedy, quiet = (sum(each) for each in zip(*seconds, strict=True))

    assert quiet == 400
    assert greedy == pytest.approx(10 * LIMIT / 2, rel=0.1)


async def test_a_key_that_is_used_alone_on_all_replicas_has_the_whole_rate() -> None:
    replicas = Replicas(2)
    for _ in range(5):
        await replicas.second(900, 100, keys=["one", "one"])
    seconds = [await replicas.second(900, 100, keys=["one", "one"]) for _ in range(10)]

    assert sum(map(sum, seconds)) == pytest.approx(10 * LIMIT, rel=0.1)


async def test_below_the_limit_nothing_is_refused_wherever_it_is_asked() -> None:
    replicas = Replicas(2)

    assert [await replicas.second(60, 20) for _ in range(20)] == [[60, 20]] * 20


async def test_a_replica_grants_all_again_once_the_others_are_asked_no_more() -> None:
    replicas = Replicas(2)
    for _ in range(6):
        await replicas.second(400, 400)
    for told in replicas.catalog.told.values():
        told.clear()  # as the catalog forgets them
    await replicas.second(400, 0)
    passed = await replicas.second(400, 0)

    assert passed[0] == pytest.approx(LIMIT, rel=0.1)


async def test_who_is_far_from_a_limit_is_not_told_of() -> None:
    replicas = Replicas(2)
    await replicas.second(0, 0)
    granted(replicas.all[0], 5, "quiet")
    replicas.clock.now += 1
    await replicas.all[0].tell_once(replicas.catalog)

    assert replicas.catalog.told == {}


def test_a_share_is_never_nothing_and_never_more_than_all() -> None:
    assert share_of(100, 0, 1e9) == MIN_SHARE
    assert share_of(100, 1e9, 0) == 1.0
    assert share_of(100, 300, 100) == pytest.approx(0.75)
    assert share_of(100, 10, 60) == pytest.approx(0.4)


async def test_two_replicas_on_redis_hear_of_each_other_by_themselves(
    start_api: Callable[..., Any], redis_url: str, tmp_path: Path
) -> None:
    settings = {"catalog": redis_url, "store": f"file://{tmp_path}/objects", "max_request_rate": 20}
    pair: list[Api] = [await start_api(**settings) for _ in range(2)]

    def shares() -> list[float]:
        return [bucket.share for api in pair for bucket in api.service.rates._divided.values()]

    async with asyncio.timeout(60):
        while len(shares()) < 2 or sum(shares()) > 1.1:
            await asyncio.gather(*(api.get("/v1/usage") for api in pair for _ in range(20)))

    answers = await asyncio.gather(*(pair[0].get("/v1/usage") for _ in range(60)))
    refused = [each for each in answers if each.status == 429]
    assert refused
    assert refused[0].headers["RateLimit-Policy"] == '"tenant";q=40;w=2'


@pytest.mark.parametrize("path", ["/", "/nowhere", "/v1/usage"])
async def test_who_has_no_key_waits_for_a_turn_and_health_and_tenants_do_not(
    limited: tuple[Api, str, str], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, _, quiet = limited
    monkeypatch.setattr(request_rates, "STRANGERS_SECONDS", 0.01)
    api.service.rates._strangers = Turns(0.001, 2, 0.01, Clock(), max_keys=10)

    statuses = [(await api.get(path)).status for _ in range(3)]
    refused = await api.get(path)

    assert 429 not in statuses[:2]
    assert statuses[2] == refused.status == 429
    assert refused.headers["Retry-After"]
    assert (await api.get("/healthz")).status == (await api.get("/readyz")).status == 200
    assert (await api.get("/v1/usage", headers={"Authorization": f"Bearer {quiet}"})).status == 200
