"""Quotas hold while bodies are still coming, and what they refuse leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
import re
from typing import TYPE_CHECKING, Any

import pytest
from overspill.wire import Code, Header
from overspill_service.access import directory_of
from overspill_service.catalog.records import FIXED_BYTES, LIVE_BYTES
from overspill_service.settings.settings import Settings
from overspill_service.tenants.directory import FileTenant

from tests.web.conftest import Api, path_of, problem
from tests.web.live_producer import Producer
from tests.web.raw import parsed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUOTA = 2_000_000
PIECE = 900_000
UPLOADS = 12
RESERVED = re.compile(r'operation="reserve",result="done"\} [1-9]')


def incompressible(number: int, size: int = PIECE) -> bytes:
    return random.Random(number).randbytes(size)


class Stored:
    """The bytes in a store at their most, if nothing that is there were ever deleted."""

    def __init__(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        self.size = 0
        self._inner = api.service.archive.store.put
        monkeypatch.setattr(api.service.archive.store, "put", self._put)

    async def _put(self, key: str, pieces: list[bytes]) -> None:
        self.size += sum(map(len, pieces))
        await self._inner(key, pieces)


@pytest.fixture(params=["memory:", "redis"])
async def api(request: pytest.FixtureRequest, start_api: Callable[..., Any]) -> Api:
    catalog = request.getfixturevalue("redis_url") if request.param == "redis" else request.param
    api: Api = await start_api(catalog=catalog, max_stored_size=QUOTA, max_content_size=2 * QUOTA)
    while not await api.service.archive.catalog.is_complete():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return api


async def test_uploads_at_once_store_no_more_than_the_quota_has_room_for(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = Stored(api, monkeypatch)
    contents = [incompressible(number) for number in range(UPLOADS)]
    answers = await asyncio.gather(*(api.send("PUT", path_of(each), data=each) for each in contents))
    statuses = [each.status for each in answers]
    kept = [path_of(each) for each, status in zip(contents, statuses, strict=True) if status == 201]
    refused = next(each for each in answers if each.status != 201)

    assert sorted(statuses) == [201] * 2 + [507] * (UPLOADS - 2)
    assert (await problem(refused)).code == Code.QUOTA_EXCEEDED
    assert stored.size <= QUOTA
    assert [(await api.get(path)).status for path in kept] == [200, 200]
    await api.send("DELETE", kept[0])
    assert (await api.send("PUT", path_of(b"x"), data=incompressible(99))).status != 507


async def test_uploads_of_two_replicas_share_one_quota(
    start_api: Callable[..., Any], redis_url: str, tmp_path: Path
) -> None:
    settings = {"catalog": redis_url, "store": f"file://{tmp_path}/objects", "max_stored_size": QUOTA}
    pair: list[Api] = [await start_api(**settings) for _ in range(2)]
    while not await pair[0].service.archive.catalog.is_complete():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    contents = [incompressible(number) for number in range(UPLOADS)]
    answers = await asyncio.gather(
        *(pair[number % 2].send("PUT", path_of(each), data=each) for number, each in enumerate(contents))
    )

    assert sorted(each.status for each in answers) == [201] * 2 + [507] * (UPLOADS - 2)


async def test_a_body_that_has_no_room_is_refused_before_it_comes(api: Api) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    head = f"PUT {path_of(b'x')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {2 * QUOTA + 1}\r\n\r\n"
    writer.write(head.encode())
    answer = parsed(await asyncio.wait_for(reader.readuntil(b"}"), 30))
    writer.transport.abort()

    assert (answer.status, answer.problem.code) == (507, Code.QUOTA_EXCEEDED)
    assert "4000000 content bytes" in answer.problem.detail


async def test_an_upload_that_breaks_off_gives_its_room_back(api: Api) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", api.port)
    content = b"x" * 2 * QUOTA
    head = f"PUT {path_of(content)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\nx"
    writer.write(head.encode())
    while not RESERVED.search(await (await api.get("/metrics")).text()):
        pass
    refused = await api.send("PUT", path_of(b"y" * PIECE), data=b"y" * PIECE)
    writer.transport.abort()
    while api.service.in_flight.count:  # noqa: ASYNC110
        await asyncio.sleep(0.005)

    assert refused.status == 507
    assert (await api.send("PUT", path_of(content), data=content)).status == 201


async def test_content_counts_before_its_compression_and_is_released_with_its_capture(api: Api) -> None:
    first, second = b"a" * 3_000_000, b"b" * 3_000_000
    assert (await api.send("PUT", path_of(first), data=first)).status == 201
    refused = await api.send("PUT", path_of(second), data=second)
    usage = await (await api.get("/v1/usage")).json()
    await api.send("DELETE", path_of(first))

    assert (refused.status, (await problem(refused)).code) == (507, Code.QUOTA_EXCEEDED)
    assert (usage["size"], usage["max_content_size"]) == (3_000_000, 2 * QUOTA)
    assert (await api.send("PUT", path_of(second), data=second)).status == 201


async def test_metadata_is_limited_too(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api(max_metadata_size=20_000)
    statuses = []
    for number in range(10):
        content = b"%d\n" % number
        headers = {"Overspill-Label-Note": "x" * 2000, "Overspill-Label-Other": "y" * 2000}
        statuses.append((await api.send("PUT", path_of(content), data=content, headers=headers)).status)

    assert statuses == [201] * 3 + [507] * 7


def test_nobody_is_without_limits_unless_an_operator_says_so() -> None:
    ours = directory_of(Settings()).tenant("any").limits
    lifted = directory_of(Settings(max_stored_size=0, max_content_size=0)).tenant("any").limits
    set_here = directory_of(Settings(max_content_size=5)).tenant("any").limits
    set_in_the_file = FileTenant(name="a", max_captures=5).limits(ours)

    assert all((ours.max_stored_size, ours.max_content_size, ours.max_metadata_size))
    assert (lifted.max_stored_size, lifted.max_content_size) == (0, 0)
    assert [each.are_exact for each in (ours, lifted, set_here, set_in_the_file)] == [
        False,
        False,
        True,
        True,
    ]


async def test_a_page_of_a_listing_has_about_a_mebibyte_however_its_captures_are_labelled(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api()
    labels = {f"Overspill-Label-{name}": "%01" * 2000 for name in "abc"}
    for number in range(60):
        await api.put(b"%d\n" % number, **{name.replace("-", "_"): text for name, text in labels.items()})
    sizes, found, cursor = [], 0, ""
    while cursor is not None:
        answer = await api.get(
            f"/v1/captures?limit=1000&cursor={cursor}" if cursor else "/v1/captures?limit=1000"
        )
        page = await answer.json()
        sizes.append(len(await answer.read()))
        found, cursor = found + len(page["captures"]), page["cursor"]

    assert found == 60
    assert len(sizes) > 1
    assert max(sizes) < 1.1 * 2**20


async def test_a_live_capture_takes_no_more_of_a_quota_than_it_has(api: Api) -> None:
    producer = Producer(api)
    await producer.begin()
    await producer.append(b"x" * 1_500_000)
    await producer.complete()

    rest = b"y" * 2_400_000
    assert (await api.send("PUT", path_of(rest), data=rest)).status == 201
    usage = await (await api.get("/v1/usage")).json()
    assert usage["size"] == 1_500_000 + len(rest)


async def test_a_live_capture_grows_to_the_quota_and_stays_readable(api: Api) -> None:
    producer = Producer(api)
    await producer.begin()
    status = 200
    while status == 200:
        status, answer = await producer.try_append(b"x" * 500_000)

    assert (status, answer["code"]) == (507, Code.QUOTA_EXCEEDED)
    assert 3_000_000 <= producer.offset <= 2 * QUOTA
    await producer.complete()
    content = await api.get(f"{producer.path}/content")
    assert len(await content.read()) == producer.offset
    other = Producer(api, "cap_" + "b" * 20)
    await other.begin()
    assert (await other.try_append(b"x" * 600_000))[0] == 507


async def test_live_captures_are_begun_as_long_as_there_is_room_for_what_they_take(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api(max_metadata_size=4 * (FIXED_BYTES + LIVE_BYTES) + LIVE_BYTES)
    producers = [Producer(api, f"cap_{letter * 20}") for letter in "abcdefg"]
    for each in producers[:4]:  # with its texts each takes a little more
        await each.begin()
    refused = [await each.begin(507) for each in producers[4:]]
    await producers[0].complete()

    assert {each["code"] for each in refused} == {Code.QUOTA_EXCEEDED}
    await producers[4].begin(507)  # what has ended takes less, and not nothing
    await api.send("DELETE", producers[0].path)
    await producers[4].begin()


async def test_a_live_capture_that_is_deleted_gives_its_room_back(api: Api) -> None:
    producer = Producer(api)
    await producer.begin()
    await producer.append(b"x" * 1_500_000)
    assert (await api.send("DELETE", producer.path)).status == 200

    content = b"y" * (2 * QUOTA - 10_000)
    assert (await api.send("PUT", path_of(content), data=content)).status == 201


@pytest.mark.parametrize("catalog", ["memory:", "redis"])
@pytest.mark.parametrize("size", [0, 30_000_000])
async def test_as_many_live_captures_grow_as_the_tenant_may_have(
    request: pytest.FixtureRequest, start_api: Callable[..., Any], catalog: str, size: int
) -> None:
    url = request.getfixturevalue("redis_url") if catalog == "redis" else catalog
    api: Api = await start_api(catalog=url, max_captures=3, max_content_size=size)
    while not await api.service.archive.catalog.is_complete():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    producers = [Producer(api, "cap_" + letter * 20) for letter in "abc"]
    for each in producers:
        await each.begin()
        await each.append(b"x" * 1_500_000)
    for each in producers:
        await each.append(b"y" * 1_500_000)

    refused = await Producer(api, "cap_" + "d" * 20).begin(expected=507)
    assert (refused["code"], refused["limit"]) == (Code.QUOTA_EXCEEDED, 3)
    for each in producers:
        assert (await each.complete())["size"] == 3_000_000


@pytest.mark.parametrize("size", [0, QUOTA])
async def test_the_end_of_a_live_capture_costs_no_request_of_its_own_for_what_it_had_reserved(
    start_api: Callable[..., Any], size: int
) -> None:
    api: Api = await start_api(max_content_size=size)
    producer = Producer(api)
    await producer.begin()
    await producer.append(b"x" * 1000)
    await producer.complete()

    metrics = await (await api.get("/metrics")).text()
    assert 'operation="free",result="done"} 0.0' in metrics
    assert (await (await api.get("/v1/usage")).json())["size"] == 1000
    rest = b"y" * (QUOTA - 2000)
    assert (await api.send("PUT", path_of(rest), data=rest)).status == 201


async def test_who_begins_a_capture_at_the_same_moment_as_another_holds_no_room_afterwards(
    start_api: Callable[..., Any],
) -> None:
    api: Api = await start_api(max_captures=4)
    ids = [f"cap_{letter * 20}" for letter in "abcde"]

    async def begin(capture: str, word: str) -> int:
        path = f"/v1/captures/{capture}/live"
        return (await api.send("PUT", path, headers={Header.PRODUCER: word})).status

    raced = await asyncio.gather(*(begin(ids[0], word) for word in "1234"))
    others = [await begin(capture, "1") for capture in ids[1:]]

    assert raced.count(201) == 1
    assert 503 in raced
    assert others == [201, 201, 201, 507]
