"""The shares of one tenant: threads and places for scans, places for uploads, time."""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from overspill import wire
from overspill.reading.grep import Search
from overspill.wire import Code
from overspill_service.errors import IncompleteBody
from overspill_service.resources.admission import NEW_SECONDS, Admission, Admitted
from overspill_service.resources.body_pace import BURST_SECONDS, RATE, BodyPace
from overspill_service.resources.fair_places import FairPlaces, answer_places
from overspill_service.resources.tenant_mix import TenantMix
from overspill_service.settings.settings import Settings
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.web.body_patience import BodyPatience

from tests.clock import Clock
from tests.core.contents import log
from tests.waiting import PATIENCE
from tests.web.conftest import Api, path_of, problem

HOSTILE, QUIET = new_key(), new_key()
SMALL = b"one line\nerror: another\n"
HOSTILE_SCANS = 6


@cache
def large() -> bytes:
    return log(10_000_000)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
async def api(start_api: Callable[..., Any], tmp_path: Path) -> Api:
    """A service of two tenants; the hostile one has a large capture and the quiet one a small one."""
    file = tmp_path / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\n[[tenants.keys]]\nhash = "{hash_key(key)}"\n'
            'scopes = ["read", "write"]\n'
            for name, key in (("hostile", HOSTILE), ("quiet", QUIET))
        )
    )
    api: Api = await start_api(tenants=file, max_uploads=4, metrics_from="127.0.0.1")
    for key, content in ((QUIET, SMALL), (HOSTILE, large())):
        response = await api.send("PUT", path_of(content), data=content, headers=bearer(key))
        assert response.status == 201
    api.service.mix._changed_at = -math.inf  # the quiet tenant's upload was long ago
    return api


class HeldScans:
    """Scans of the large capture stand still in their threads until the test lets go."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.calls = 0
        self._prepare = Search.prepare

    def prepare_for(self) -> Callable[[Search, Any], Any]:
        """What takes the place of the method."""

        def prepare(search: Search, chunk: Any) -> Any:
            if search._extent.size == len(large()):
                self.calls += 1
                self.go_on.wait(30)
            return self._prepare(search, chunk)

        return prepare


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldScans]:
    scans = HeldScans()
    monkeypatch.setattr(Search, "prepare", scans.prepare_for())
    yield scans
    scans.go_on.set()


@asynccontextmanager
async def hostile_scans(api: Api, held: HeldScans) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """As many scans as the hostile tenant likes, which hold all the threads that it gets."""
    path = f"{path_of(large())}/grep?pattern=[q]{{3}}"
    tasks = [asyncio.create_task(api.get(path, headers=bearer(HOSTILE))) for _ in range(HOSTILE_SCANS)]
    while held.calls < api.service.scans.share:  # noqa: ASYNC110  (threads set no event of this loop)
        await asyncio.sleep(0.005)
    try:
        yield tasks
    finally:
        held.go_on.set()
        await asyncio.wait(tasks)


@pytest.mark.parametrize("read", ["grep?pattern=error", "summary", "head", "tail", "content"])
async def test_a_read_waits_for_no_scan_of_another_tenant(api: Api, held: HeldScans, read: str) -> None:
    async with hostile_scans(api, held):
        response = await api.get(f"{path_of(SMALL)}/{read}", headers=bearer(QUIET))

        assert response.status == 200
        assert b"error" in await response.read()
        assert held.calls == api.service.scans.share


@pytest.mark.parametrize("read", ["head", "tail", "content", "lines?start=100&end=200"])
async def test_a_read_waits_for_no_reads_of_another_tenant(api: Api, read: str) -> None:
    """As many contents are decoded for the hostile tenant as its threads allow, and many more wait."""
    own, go_on = log(300_000), threading.Event()
    await api.send("PUT", path_of(own), data=own, headers=bearer(QUIET))
    hostile = api.service.archive.cpu.of("hostile")
    held = [hostile.start(go_on.wait, 2 * PATIENCE) for _ in range(50)]
    try:
        async with asyncio.timeout(PATIENCE):
            response = await api.get(f"{path_of(own)}/{read}", headers=bearer(QUIET))

        assert response.status == 200
        assert await response.read()
        assert not any(each.done() for each in held)
    finally:
        go_on.set()
        await asyncio.gather(*held)


async def test_a_small_request_of_another_tenant_leaves_less_of_all_threads_to_the_first(api: Api) -> None:
    service = api.service
    pools: list[Any] = [service.archive.cpu.of("one"), service.archive.upload_workers("one")]
    mixes = {id(pool._threads._mix) for pool in pools} | {id(service.scans._mix)}
    for key, content in ((HOSTILE, large()), (QUIET, SMALL)):
        await api.send("GET", path_of(content), headers=bearer(key))

    assert service.mix.is_mixed
    assert mixes == {id(service.mix)}


async def test_small_reads_and_uploads_of_the_same_tenant_pass_its_scans(api: Api, held: HeldScans) -> None:
    async with hostile_scans(api, held):
        head = await api.get(f"{path_of(large())}/head", headers=bearer(HOSTILE))
        content = log(3_000_000)
        put = await api.send("PUT", path_of(content), data=content, headers=bearer(HOSTILE))

        assert (head.status, put.status) == (200, 201)


async def test_a_scan_whose_client_is_gone_takes_no_further_part(api: Api, held: HeldScans) -> None:
    async with hostile_scans(api, held) as tasks:
        for each in tasks:
            each.cancel()
        while api.service.in_flight.count:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        held.go_on.set()
        response = await api.get(f"{path_of(SMALL)}/grep?pattern=error", headers=bearer(QUIET))

        assert response.status == 200
        assert api.service.scans.places.free == api.service.scans.places.total
        while not api.service.scans._tenants["hostile"].is_idle:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert held.calls <= 4 * api.service.scans.share  # a batch has four frames at most


async def test_the_cpu_time_of_a_tenants_scans_is_limited(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api(max_scan_cpu=20)
    await api.put(SMALL)
    assert (await api.get(f"{path_of(SMALL)}/grep?pattern=error")).status == 200
    api.service.scans._tenants["default"].charge(21.0)
    for read in ("grep?pattern=error", "summary"):
        response = await api.get(f"{path_of(SMALL)}/{read}")

        assert (response.status, (await problem(response)).code) == (429, Code.TOO_MANY_REQUESTS)
        assert response.headers["Retry-After"] in ("3", "4")
    assert (await api.get(f"{path_of(SMALL)}/head")).status == 200


async def test_the_metrics_say_what_scans_took_and_waited(api: Api) -> None:
    await api.get(f"{path_of(SMALL)}/grep?pattern=error", headers=bearer(QUIET))
    metrics = await (await api.get("/metrics")).text()

    assert 'overspill_scan_cpu_seconds_total{tenant="quiet"}' in metrics
    assert 'overspill_scan_wait_seconds_count{tenant="quiet"}' in metrics


# --- long answers -----------------------------------------------------------------------------------


async def test_one_tenants_slow_readers_leave_half_of_the_places_to_others(api: Api) -> None:
    api.service.places.answers = FairPlaces(4, "long answers", wait_seconds=0.1)
    streams = [await asyncio.open_connection("127.0.0.1", api.port, limit=2**10) for _ in range(10)]
    for _, writer in streams:
        writer.write(
            f"GET {path_of(large())}/content HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {HOSTILE}\r\n\r\n".encode()
        )
    statuses = [await asyncio.wait_for(reader.readline(), PATIENCE) for reader, _ in streams]
    own = log(1_000_000)
    await api.send("PUT", path_of(own), data=own, headers=bearer(QUIET))
    whole = await api.get(f"{path_of(own)}/content", headers=bearer(QUIET))
    part = await api.get(f"{path_of(large())}/content", headers=bearer(HOSTILE) | {"Range": "bytes=5-99"})

    assert sorted(b" 429 " in each for each in statuses) == [False] * 2 + [True] * 8
    assert (whole.status, part.status) == (200, 206)
    for _, writer in streams:
        writer.transport.abort()


@pytest.mark.parametrize(("memory", "places"), [(0, 2), (512 * 2**20, 128)])
def test_long_answers_take_half_of_the_memory(memory: int, places: int) -> None:
    assert answer_places(memory) == places


# --- uploads ----------------------------------------------------------------------------------------


@asynccontextmanager
async def trickling(api: Api, key: str, count: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Uploads that never send their last byte."""
    streams = [await asyncio.open_connection("127.0.0.1", api.port) for _ in range(count)]
    for number, (_, writer) in enumerate(streams):
        writer.write(
            f"PUT {path_of(b'x%d' % number)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
            f"Authorization: Bearer {key}\r\n\r\nx".encode()
        )
    try:
        yield [reader for reader, _ in streams]
    finally:
        for _, writer in streams:
            writer.transport.abort()


async def test_one_tenants_uploads_leave_half_of_the_places_to_others(api: Api) -> None:
    api.service.places.uploads.wait_seconds = 0.1
    async with trickling(api, HOSTILE, 64) as readers:
        while api.service.places.uploads.free > 2:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        response = await api.send("PUT", path_of(b"y"), data=b"y", headers=bearer(QUIET))
        refused = [await asyncio.wait_for(reader.readline(), PATIENCE) for reader in readers[2:]]

        assert response.status == 201
        assert all(b" 429 " in each for each in refused)
        assert api.service.places.uploads.free == 2


async def test_an_upload_that_trickles_is_given_up(start_api: Callable[..., Any]) -> None:
    api: Api = await start_api(idle_timeout=0.2, min_upload_rate=10_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(f"PUT {path_of(b'x')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n".encode())
    answer = asyncio.create_task(reader.readline())
    while not answer.done():
        writer.write(b"x")
        await asyncio.wait([answer], timeout=0.02)
    writer.transport.abort()

    assert b" 400 " in await answer


# --- connections ------------------------------------------------------------------------------------


async def test_an_idle_connection_and_a_head_that_trickles_are_closed(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill_service.server.process.KEEP_ALIVE_SECONDS", 0.2)
    api: Api = await start_api()
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    streams = [await asyncio.open_connection("127.0.0.1", api.port) for _ in range(3)]
    for (_, writer), sent in zip(streams, (b"", head, head + b"\r\nGET"), strict=True):
        writer.write(sent)
    answers = [await asyncio.wait_for(reader.read(), 30) for reader, _ in streams]

    for _, writer in streams:
        writer.close()

    assert answers[:2] == [b"", b""]
    assert answers[2].startswith(b"HTTP/1.1 200 ")


async def test_all_headers_together_have_a_limit(api: Api) -> None:
    fields = {f"X-{number}": "x" * 10_000 for number in range(7)}
    response = await api.get("/v1/captures", headers=bearer(QUIET) | fields)

    assert (response.status, (await problem(response)).code) == (431, Code.HEADERS_TOO_LARGE)
    fields.popitem()
    assert (await api.get("/v1/captures", headers=bearer(QUIET) | fields)).status == 200


async def test_few_requests_of_a_connection_wait_for_the_answer_before_them(api: Api) -> None:
    runner = api._runner.server
    assert runner is not None

    assert runner()._max_msg_queue_size == 2


@pytest.mark.parametrize(
    ("rate", "limit", "pace", "seconds", "refusal"),
    [
        (1000, 0, 999, 61, "slower than 1000 bytes a second for 61 s"),
        (1000, 0, 1001, 1000, None),
        (1000, 0, 1, 60, None),
        (0, 0, 1, 10_000, None),
        (0, 100, 1000, 101, "longer than 100 s"),
        (0, 100, 1000, 100, None),
    ],
)
def test_how_slow_a_body_may_come(
    rate: int, limit: float, pace: int, seconds: int, refusal: str | None
) -> None:
    clock = Clock()
    patience = BodyPatience(Settings(min_upload_rate=rate, upload_timeout=limit), clock)

    def receive() -> None:
        for _ in range(seconds):
            with patience.waiting():
                clock.now += 1
            patience.received(pace)

    if refusal is None:
        receive()
    else:
        with pytest.raises(IncompleteBody, match=refusal):
            receive()


def test_time_in_which_the_service_itself_is_slow_does_not_count_against_a_rate() -> None:
    clock = Clock()
    patience = BodyPatience(Settings(upload_timeout=0), clock)
    clock.now += 1000
    patience.received(1)


async def test_every_request_is_admitted_for_its_tenant(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    begin = Admission.try_admit

    def noted(self: Admission, tenant: str, source: object) -> Admitted | None:
        taken.append(tenant)
        return begin(self, tenant, source)

    monkeypatch.setattr(Admission, "try_admit", noted)
    answers = await asyncio.gather(
        *(api.send("GET", path_of(large()), headers=bearer(HOSTILE)) for _ in range(20)),
        api.send("GET", path_of(SMALL), headers=bearer(QUIET)),
    )

    assert {response.status for response in answers} == {200}
    assert sorted(taken) == ["hostile"] * 20 + ["quiet"]
    async with asyncio.timeout(30):
        while api.service.admission._new:  # noqa: ASYNC110  (it is admitted a moment after its request)
            await asyncio.sleep(NEW_SECONDS)


async def test_the_bytes_of_an_upload_count_against_its_tenants_pace(api: Api) -> None:
    clock, content = Clock(), random.Random(1).randbytes(3 * 2**20)
    mix = TenantMix(clock)
    for tenant in ("hostile", "quiet"):
        mix.note(tenant)
    api.service.body_pace = pace = BodyPace(mix, clock)
    for method, path in (("PUT", path_of(content)), ("POST", wire.Path.CAPTURES)):
        response = await api.send(method, path, data=content, headers=bearer(HOSTILE))
        assert response.status == 201

    # The clock stands still, so each chunk waits for all those before it.
    assert pace.pause("hostile", 0) == pytest.approx(2 * len(content) / RATE - BURST_SECONDS)
    assert pace.pause("quiet", 0) == 0
