"""A record of the catalog that cannot be decoded is mended from the objects, and stops nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from overspill import wire
from overspill.wire import Code
from overspill_service.archive.recovery.rebuild import rebuild
from overspill_service.archive.sweep import sweep_all, sweep_orphans
from overspill_service.catalog import encoding
from overspill_service.catalog.quotas import Quota
from overspill_service.catalog.records import Entry
from overspill_service.catalog.redis import key_names
from overspill_service.errors import RecordDamaged
from overspill_service.maintenance import Maintenance

from tests.contracts.entries import entry
from tests.contracts.test_catalog_damaged import corrupt
from tests.faults.traffic import advance, code_of, content_of, keys_in, until, usage_of
from tests.web.conftest import Api, id_of, path_of

if TYPE_CHECKING:
    from tests.servers.redis import RedisServer

LOG = b"one line\n"
OTHER = b"another line\n"


@pytest.fixture(params=["sqlite", "redis"])
async def api(
    request: pytest.FixtureRequest,
    start_api: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Api:
    """A service that looks after its catalog when the test says so."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    catalog = f"sqlite://{tmp_path}/catalog"
    if request.param == "redis":
        redis: RedisServer = request.getfixturevalue("own_redis")
        catalog = redis.url
    started: Api = await start_api(store=f"file://{tmp_path}/objects", catalog=catalog)
    await until(started.service.archive.catalog.is_complete)
    return started


async def damage(api: Api, content: bytes) -> None:
    archive = api.service.archive
    found = await archive.catalog.get("default", id_of(content))
    assert isinstance(found, Entry)
    await corrupt(archive.catalog._inner, found, b"E\x81")  # type: ignore[attr-defined]


async def listed(api: Api) -> set[str]:
    return {each["id"] for each in (await (await api.get(wire.Path.CAPTURES)).json())["captures"]}


async def test_reading_by_id_mends_it(api: Api) -> None:
    await api.put(LOG)
    before = await usage_of(api)
    await damage(api, LOG)

    assert await content_of(api, path_of(LOG)) == LOG
    assert await listed(api) == {id_of(LOG)}
    assert await usage_of(api) == before


async def test_a_listing_passes_over_it_and_maintenance_mends_it(api: Api) -> None:
    await api.put(LOG)
    await api.put(OTHER)
    changed = await api.send("PATCH", path_of(LOG), json={"ttl": 600})
    await damage(api, LOG)
    assert await listed(api) == {id_of(OTHER)}
    await Maintenance(api.service).repair_once()

    assert await listed(api) == {id_of(LOG), id_of(OTHER)}
    assert await (await api.get(path_of(LOG))).json() == await changed.json()
    metrics = await (await api.get("/metrics")).text()
    assert 'overspill_catalog_damaged_records_total{result="mended"} 1.0' in metrics


async def test_one_whose_objects_are_gone_stops_no_sweep_and_no_rebuild(api: Api) -> None:
    archive = api.service.archive
    await api.put(LOG, Overspill_Ttl="60")
    await api.put(OTHER, Overspill_Ttl="60")
    later = entry(tenant="later", expires=archive.clock())
    await archive.catalog.commit(later, Quota())
    await damage(api, LOG)
    await archive.store.delete([key for key in await keys_in(api) if id_of(LOG) in key])
    advance([api], 61)

    swept = await sweep_all(archive, await archive.catalog.tenants())

    assert (swept.removed.captures, swept.failed) == (2, [])
    assert (await sweep_orphans(archive, age=-1)).deleted == 0
    await rebuild(archive)
    await Maintenance(api.service).repair_once()
    refused = await api.get(path_of(LOG))
    assert (refused.status, await code_of(refused)) == (503, Code.CATALOG_UNAVAILABLE)
    metrics = await (await api.get("/metrics")).text()
    assert 'overspill_catalog_damaged_records_total{result="left"}' in metrics


async def test_one_whose_objects_are_gone_is_replaced_when_it_is_stored_again(api: Api) -> None:
    await api.put(LOG)
    await damage(api, LOG)
    await api.service.archive.store.delete(await keys_in(api))

    assert (await api.send("PUT", path_of(LOG), data=LOG)).status == 201
    assert await content_of(api, path_of(LOG)) == LOG
    assert (await usage_of(api)).captures == 1


async def test_a_sweep_deletes_no_objects_of_a_record_that_nobody_can_read(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.put(LOG)
    await damage(api, LOG)
    archive = api.service.archive
    read = archive.store.read
    monkeypatch.setattr(archive.store, "read", missing)
    assert (await sweep_orphans(archive, age=-1)).deleted == 0

    monkeypatch.setattr(archive.store, "read", read)
    assert await content_of(api, path_of(LOG)) == LOG


async def missing(key: str, *_: object) -> bytes:
    raise KeyError(key)


@pytest.mark.parametrize("api", ["redis"], indirect=True)
async def test_the_totals_of_a_tenant_that_cannot_be_counted_keep_no_others_from_being_measured(
    api: Api, own_redis: RedisServer
) -> None:
    await api.put(LOG)
    damaged = entry(tenant="another")
    await api.service.archive.catalog.commit(damaged, Quota())
    own_redis.command("HSET", key_names.totals("another"), "captures", "many")
    own_redis.command("SET", key_names.capture("another", damaged.id), b"E")

    with pytest.raises(RecordDamaged, match="empty the catalog"):
        await Maintenance(api.service).measure_totals()
    metrics = await (await api.get("/metrics")).text()
    assert 'overspill_stored_captures{tenant="default"} 1.0' in metrics


@pytest.mark.parametrize("api", ["redis"], indirect=True)
@pytest.mark.parametrize(
    ("field", "damaged"),
    [
        *((each, "many") for each in ("captures", "size", "stored", "metadata")),
        *(("size", each) for each in (" 9", "+9", "09", "9" * 19, "9" * 30)),
    ],
)
async def test_totals_that_are_damaged_are_counted_again_and_captures_are_stored_again(
    api: Api, own_redis: RedisServer, field: str, damaged: str
) -> None:
    await api.put(LOG)
    before = await api.service.archive.catalog.totals("default")
    own_redis.command("HSET", key_names.totals("default"), field, damaged)
    refused = await api.send("PUT", path_of(OTHER), data=OTHER)
    await Maintenance(api.service).measure_totals()

    assert refused.status == 503
    assert await api.service.archive.catalog.totals("default") == before
    await api.put(OTHER)


async def test_a_repetition_finds_what_was_mended(api: Api) -> None:
    await api.put(LOG)
    await damage(api, LOG)

    assert (await api.send("PUT", path_of(LOG), data=LOG)).status == 200
    assert len(await keys_in(api)) == 1


async def test_a_key_works_and_the_other_keys_are_listed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    service = api.service
    damaged, other = [
        await service.issuer.issue("default", [wire.Scope.READ], now=service.archive.clock(), name=name)
        for name in ("damaged", "other")
    ]
    with monkeypatch.context() as patch:
        patch.setattr(encoding, "encode_key", lambda _key: b"\x81")
        await service.archive.catalog.add_key(damaged.record)
    answer = await api.get(wire.Path.USAGE, headers={"Authorization": f"Bearer {damaged.key}"})

    assert answer.status == 200
    assert await service.archive.catalog.keys() == [other.record]
    await rebuild(service.archive)
    assert await service.archive.catalog.keys() == [damaged.record, other.record]
