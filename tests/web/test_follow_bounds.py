"""Followers and waits beside each other: their places, their lines in the audit log, and their end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from overspill import wire
from overspill.wire import Header
from overspill_service.resources.fair_places import FairPlaces
from overspill_service.tenants.keys import hash_key, new_key

from tests.faults.traffic import until
from tests.waiting import PATIENCE
from tests.web.conftest import Api
from tests.web.live_producer import CAPTURE, Producer
from tests.web.test_follow import following, rest_of, text_until

PLACES = 8


class TwoTenants:
    """A service of two tenants, and their keys."""

    def __init__(self) -> None:
        self.keys = {name: new_key() for name in ("large", "small")}
        self.api: Api

    def file(self, folder: Path) -> Path:
        made = folder / "tenants.toml"
        made.write_text(
            "".join(
                f'[[tenants]]\nname = "{name}"\naudit_reads = {str(name == "small").lower()}\n'
                f'keys = [{{hash = "{hash_key(key)}", scopes = ["read", "write"]}}]\n'
                for name, key in self.keys.items()
            )
        )
        return made

    def headers(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[name]}"}

    async def begin(self, name: str, capture: str = CAPTURE) -> None:
        headers = {Header.PRODUCER: "me", **self.headers(name)}
        response = await self.api.send("PUT", f"/v1/captures/{capture}/live", headers=headers)
        assert response.status == 201
        await self.append(name, b"one\n", 0, capture)

    async def append(self, name: str, data: bytes, offset: int, capture: str = CAPTURE) -> None:
        headers = {Header.PRODUCER: "me", Header.UPLOAD_OFFSET: str(offset), **self.headers(name)}
        path = f"/v1/captures/{capture}/append"
        assert (await self.api.send("POST", path, data=data, headers=headers)).status == 200


@pytest.fixture
async def tenants(start_api: Callable[..., Any], tmp_path: Path) -> TwoTenants:
    made = TwoTenants()
    made.api = await start_api(
        tenants=made.file(tmp_path), anonymous=None, audit_log=str(tmp_path / "audit.json")
    )
    made.api.service.places.followers = FairPlaces(PLACES, "followers and waits")
    for name in made.keys:
        await made.begin(name)
    return made


async def held(api: Api) -> int:
    places = api.service.places.followers
    return places.total - places.free


async def test_a_tenant_that_holds_all_its_places_leaves_another_s_first_follow_and_wait_untouched(
    tenants: TwoTenants,
) -> None:
    api, path = tenants.api, f"/v1/captures/{CAPTURE}"
    large, small = tenants.headers("large"), tenants.headers("small")
    greedy = [
        asyncio.create_task(api.get(f"{path}/wait?timeout=60&pattern=never", headers=large))
        for _ in range(3 * PLACES)
    ]
    await until(lambda: _is(held(api), PLACES // 2))
    async with following(api, f"{path}/follow", **small) as events:
        assert await text_until(events, 4) == "one\n"
        waiting = asyncio.create_task(api.get(f"{path}/wait?timeout=60&lines=1&cursor=4", headers=small))
        await until(lambda: _is(held(api), PLACES // 2 + 2))
        await tenants.append("small", b"two\n", 4)

        assert await text_until(events, 4) == "two\n"
        assert (await (await waiting).json())["reason"] == "lines"
        assert not any(each.done() for each in greedy)
    for each in greedy:
        each.cancel()
    await asyncio.gather(*greedy, return_exceptions=True)
    await until(lambda: _is(held(api), 0))


async def test_who_finds_no_place_is_told_so_after_a_while(tenants: TwoTenants) -> None:
    tenants.api.service.places.followers.wait_seconds = 0.05
    api, path, large = tenants.api, f"/v1/captures/{CAPTURE}", tenants.headers("large")
    waits = [
        asyncio.create_task(api.get(f"{path}/wait?timeout=5&pattern=never", headers=large)) for _ in range(4)
    ]
    await until(lambda: _is(held(api), PLACES // 2))
    refused = [await api.get(f"{path}/{each}", headers=large) for each in ("follow", "wait?timeout=9")]

    assert [each.status for each in refused] == [429, 429]
    assert {(await each.json())["limit"] for each in refused} == {PLACES // 2}
    await tenants.append("large", b"never\n", 4)
    assert {(await (await each).json())["reason"] for each in waits} == {"pattern"}


async def test_waits_for_large_patterns_have_fewer_places(tenants: TwoTenants) -> None:
    api, path = tenants.api, f"/v1/captures/{CAPTURE}/wait?timeout=600&pattern="
    api.service.places.patterns = FairPlaces(2, "waits for a large pattern", wait_seconds=0.05)
    large = "[ab]{200}x{200}"
    waiting = asyncio.create_task(api.get(path + large, headers=tenants.headers("large")))
    await until(lambda: _is(held(api), 1))
    refused = await api.get(path + large, headers=tenants.headers("large"))
    others = [
        asyncio.create_task(api.get(path + pattern, headers=tenants.headers(name)))
        for name, pattern in (("large", "never"), ("small", large))
    ]
    await until(lambda: _is(held(api), 3))

    assert (refused.status, (await refused.json())["limit"]) == (429, 1)
    for each in (waiting, *others):
        each.cancel()
    await until(lambda: _is(held(api), 0))
    assert api.service.places.patterns.free == 2


@pytest.mark.parametrize("question", ["pattern=never", "lines=9"])
async def test_a_wait_whose_client_hangs_up_ends_and_frees_its_place(
    tenants: TwoTenants, question: str
) -> None:
    api, path, large = tenants.api, f"/v1/captures/{CAPTURE}", tenants.headers("large")
    waiting = asyncio.create_task(api.get(f"{path}/wait?timeout=600&{question}", headers=large))
    await until(lambda: _is(held(api), 1))
    waiting.cancel()

    await until(lambda: _is(held(api), 0))
    await until(lambda: _is(_streams(api), 0))
    assert api.service.scans.places.free == api.service.scans.places.total


async def test_a_search_of_a_wait_ends_with_its_client(
    tenants: TwoTenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, path, large = tenants.api, f"/v1/captures/{CAPTURE}", tenants.headers("large")
    reader, searching = api.service.archive.reader, asyncio.Event()

    async def slow(*args: Any) -> Any:
        searching.set()
        await asyncio.sleep(60)
        return await reader(*args)

    waiting = asyncio.create_task(api.get(f"{path}/wait?timeout=600&pattern=never", headers=large))
    await until(lambda: _is(held(api), 1))
    await until(lambda: _is(_streams(api), 1))
    monkeypatch.setattr(api.service.archive, "reader", slow)
    await tenants.append("large", b"two\n", 4)
    await searching.wait()
    waiting.cancel()

    await until(lambda: _is(held(api), 0))
    assert api.service.scans.places.free == api.service.scans.places.total


async def test_following_and_waiting_are_written_where_a_tenant_wants_its_reads(
    tenants: TwoTenants, tmp_path: Path
) -> None:
    api, path = tenants.api, f"/v1/captures/{CAPTURE}"
    for name in tenants.keys:
        headers = {Header.PRODUCER: "me", "Content-Type": "application/json", **tenants.headers(name)}
        await api.get(f"{path}/wait?timeout=0", headers=headers)
        await api.get(f"{path}/timeline", headers=headers)
        async with following(api, f"{path}/follow", **headers) as events:
            assert await text_until(events, 4) == "one\n"
            await api.send("POST", f"{path}/complete", data=b'{"offset": 4}', headers=headers)
            await rest_of(events)
    await api.get(f"{path}/wait?cursor=99", headers=tenants.headers("small"))

    log = (tmp_path / "audit.json").read_text(encoding="utf-8").splitlines()
    lines = [json.loads(each) for each in log]
    read = [each for each in lines if each["event"]["action"] == "capture.read"]
    assert {each["organization"]["id"] for each in read} == {"small"}
    assert [each["event"]["outcome"] for each in read] == ["success"] * 3 + ["failure"]
    assert {each["overspill"]["capture"] for each in read} == {CAPTURE}


async def test_who_hangs_up_while_following_or_waiting_is_written_too(
    tenants: TwoTenants, tmp_path: Path
) -> None:
    api, path, small = tenants.api, f"/v1/captures/{CAPTURE}", tenants.headers("small")
    waiting = asyncio.create_task(api.get(f"{path}/wait?timeout=600&lines=9", headers=small))
    async with following(api, f"{path}/follow", **small) as events:
        assert await text_until(events, 4) == "one\n"
        await until(lambda: _is(held(api), 2))
    waiting.cancel()
    log = tmp_path / "audit.json"
    await until(lambda: _is(_reads_in(log), 2))

    lines = log.read_text(encoding="utf-8").splitlines()
    read = [each for line in lines if (each := json.loads(line))["event"]["action"] == "capture.read"]
    assert {each["url"]["path"].rpartition("/")[2] for each in read} == {"follow", "wait"}
    assert {(each["overspill"]["capture"], each["event"]["outcome"]) for each in read} == {
        (CAPTURE, "unknown")
    }
    assert all(each["user"]["id"] for each in read)


async def test_a_sign_of_life_comes_to_an_idle_follower(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "KEEP_ALIVE_SECONDS", 0.05)
    producer = Producer(api)
    await producer.begin()
    async with (
        api._session.get(api.url(f"{producer.path}/follow")) as response,
        asyncio.timeout(PATIENCE),
    ):
        assert [await response.content.readline() for _ in range(4)] == [
            b": the capture is live\n",
            b"\n",
        ] * 2


async def _is(found: Any, wanted: int) -> bool:
    return bool(await found == wanted)


async def _reads_in(log: Path) -> int:
    return log.read_text(encoding="utf-8").count('"capture.read"')


async def _streams(api: Api) -> int:
    return len(api.service.streams._streams)
