"""`overspill-service check`: each command and operation that the service uses is tried, a line each."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from overspill_service import catalog as catalog_package
from overspill_service.catalog.checks import check_operations
from overspill_service.catalog.urls import open_catalog
from overspill_service.objects.s3 import Location, S3Store

from tests.servers.faulty_proxy import FaultyProxy, refuse
from tests.servers.overspill import service_command

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from overspill_service.catalog import Catalog
    from overspill_service.errors.checks import CheckResult

    from tests.servers.redis import RedisServer
    from tests.servers.swift import S3Server

PAGE = Path(__file__).parents[2] / "service" / "deploy" / "README.md"


def granted() -> list[str]:
    """The rules that the deploy page gives the Redis user of the service."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    return text.partition("ACL SETUSER overspill on '>PASSWORD' ")[2].partition(" ## ")[0].split()


def check(*flags: str) -> subprocess.CompletedProcess[str]:
    return service_command("check", *flags, seconds=120)


def bad(results: Sequence[CheckResult]) -> dict[str, str]:
    return {result.name: result.detail for result in results if not result.ok}


# --- the catalog ----------------------------------------------------------------------------------


@pytest.fixture(params=["memory:", "sqlite:", "redis_url", "redis_cluster_url"])
async def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Catalog]:
    url: str = request.param
    made = open_catalog(url if url.endswith(":") else request.getfixturevalue(url), data_dir=tmp_path)
    yield made
    await made.close()


async def test_a_catalog_that_works_passes_every_probe_and_forgets_them(catalog: Catalog) -> None:
    for _ in range(2):
        assert bad(await check_operations(catalog)) == {}

    assert await catalog.tenants() == []
    assert await catalog.keys() == []


async def test_probes_of_redis_leave_no_key_that_stays(own_redis: RedisServer, tmp_path: Path) -> None:
    catalog = open_catalog(own_redis.url, data_dir=tmp_path)
    before = own_redis.command("KEYS", "*")
    assert bad(await check_operations(catalog)) == {}
    await catalog.close()

    staying = [key for key in own_redis.command("KEYS", "*") if own_redis.command("PTTL", key) < 0]
    assert [key for key in staying if b"probe" in key] == before == []


def user(server: RedisServer, *rules: str) -> str:
    """The URL of the server for a user who may do what the rules say."""
    server.command("ACL", "SETUSER", "agent", "reset", "on", ">right", *rules)
    return server.url.replace("//", "//agent:right@")


async def test_a_user_who_may_do_what_the_page_grants_passes(own_redis: RedisServer, tmp_path: Path) -> None:
    assert granted()[0] == "~ov1:*"
    url = user(own_redis, *granted())
    ended = await asyncio.to_thread(check, "--data", str(tmp_path), "--catalog", url)

    assert (ended.returncode, "BAD" in ended.stdout) == (0, False), ended.stdout


def test_the_page_grants_every_command_that_the_catalog_sends() -> None:
    used = {
        command.lower()
        for path in Path(catalog_package.__file__).parent.rglob("*.py")
        for command in re.findall(
            r"""(?:redis\.call\('|\bcall\(\s*"|\brun\(\s*")([A-Z]+)""", path.read_text(encoding="utf-8")
        )
    }

    assert {"evalsha", "zadd", "mget"} <= used
    assert used <= {rule.removeprefix("+").partition("|")[0] for rule in granted()}


@pytest.mark.parametrize(
    ("rule", "probe", "detail"),
    [
        ("-evalsha", "record a capture", "the Redis user may not run EVALSHA"),
        ("-zadd", "record a capture", ""),
        ("-zrevrangebylex", "list it", ""),
        ("-mget", "list it", "the Redis user may not run MGET"),
        ("-smembers", "count it", "the Redis user may not run SMEMBERS"),
        ("-hdel", "keys", "the Redis user may not run HDEL"),
        ("-info", "ping", "the Redis user may not run INFO"),
        ("-get", "look it up", "the Redis user may not run GET"),
        ("-hincrby", "statistics", ""),
        ("-hgetall", "statistics", ""),
        ("-publish", "live captures", ""),
        ("-subscribe", "news of live captures", ""),
        ("-hlen", "backlogs of spools", "the Redis user may not run HLEN"),
        ("-srem", "forget the probes", "the Redis user may not run SREM"),
    ],
)
async def test_each_command_that_a_user_lacks_is_named(
    own_redis: RedisServer, tmp_path: Path, rule: str, probe: str, detail: str
) -> None:
    catalog = open_catalog(user(own_redis, "~ov1:*", "+@all", rule), data_dir=tmp_path)
    found = bad(await check_operations(catalog))
    await catalog.close()

    assert detail in found[f"catalog: {probe}"]
    assert "right" not in str(found)


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
async def test_a_redis_that_does_not_answer_is_asked_once(
    own_redis: RedisServer, tmp_path: Path, scheme: str
) -> None:
    """Over TLS one without TLS says nothing at all."""
    port = own_redis.port if scheme == "rediss" else 1
    catalog = open_catalog(f"{scheme}://127.0.0.1:{port}?deadline=1.5", data_dir=tmp_path)
    [found] = await check_operations(catalog)
    await catalog.close()

    assert (found.name, found.ok) == ("catalog: ping", False)
    assert ("is TLS on at this port?" in found.detail) == (scheme == "rediss")


async def test_a_user_who_may_not_use_the_keys_is_told_so(own_redis: RedisServer, tmp_path: Path) -> None:
    ended = await asyncio.to_thread(
        check, "--data", str(tmp_path), "--catalog", user(own_redis, "~other:*", "+@all")
    )

    assert ended.returncode == 1
    assert "BAD  catalog: record a capture: the Redis user may not use every key ov1:*" in ended.stdout
    assert "Traceback" not in ended.stderr


# --- the store ------------------------------------------------------------------------------------


@pytest.fixture
async def s3_store(s3_server: S3Server, faulty_s3: FaultyProxy) -> AsyncIterator[S3Store]:
    url = s3_server.url(s3_server.create_bucket(), endpoint=faulty_s3.url)
    store = S3Store(Location.from_url(url), deadline=60)
    yield store
    await store.close()


async def test_a_store_that_answers_suffix_ranges_wrongly_is_bad(
    s3_store: S3Store, faulty_s3: FaultyProxy
) -> None:
    async def from_the_start(exchange: Any) -> Any:
        reply = await exchange.forward()
        asked = exchange.request.headers.get("Range", "")
        if asked.startswith("bytes=-") and reply.status == 206:
            reply.body = reply.body[:1]
            reply.headers["Content-Range"] = f"bytes 0-0/{reply.headers['Content-Range'].rpartition('/')[2]}"
        return reply

    faulty_s3.always("GET", from_the_start)
    found = bad(await s3_store.check())

    assert "read the end" in found
    assert "read more than the end" in found
    assert "read a range" not in found


async def test_a_store_that_refuses_a_suffix_longer_than_the_object_is_bad(
    s3_store: S3Store, faulty_s3: FaultyProxy
) -> None:
    async def refuse_longer(exchange: Any) -> Any:
        asked = exchange.request.headers.get("Range", "")
        if asked.startswith("bytes=-") and int(asked.removeprefix("bytes=-")) > 150_000:
            return await refuse(416, "InvalidRange")(exchange)
        return await exchange.forward()

    faulty_s3.always("GET", refuse_longer)

    assert set(bad(await s3_store.check())) == {"read more than the end"}


@pytest.mark.parametrize(
    ("method", "code", "probes"),
    [
        ("PUT", "AccessDenied", {"put", "delete several", "record a removal"}),
        ("DELETE", "AccessDenied", {"delete", "record a removal"}),
        ("POST", "AccessDenied", {"delete several"}),
    ],
)
async def test_a_bucket_that_lacks_a_permission_is_bad(
    s3_store: S3Store, faulty_s3: FaultyProxy, method: str, code: str, probes: set[str]
) -> None:
    faulty_s3.always(method, refuse(403, code))
    found = bad(await s3_store.check())

    assert probes <= set(found)
    assert all("s3:" in found[probe] for probe in probes)


async def test_a_bucket_that_is_read_only_where_captures_lie_is_bad(
    s3_store: S3Store, faulty_s3: FaultyProxy
) -> None:
    async def by_prefix(exchange: Any) -> Any:
        if "/v1/" in exchange.request.path:
            return await refuse(403, "AccessDenied")(exchange)
        return await exchange.forward()

    faulty_s3.always("PUT", by_prefix)

    assert "put" in bad(await s3_store.check())


async def test_a_store_that_hides_what_is_missing_is_bad(s3_store: S3Store, faulty_s3: FaultyProxy) -> None:
    """As S3 does without s3:ListBucket: then nobody can tell a lost object from a forbidden one."""

    async def forbid_missing(exchange: Any) -> Any:
        reply = await exchange.forward()
        return reply if reply.status != 404 else await refuse(403, "AccessDenied")(exchange)

    faulty_s3.always("GET", forbid_missing)

    assert "read what is missing" in bad(await s3_store.check())


async def test_probes_leave_no_object(s3_store: S3Store) -> None:
    assert bad(await s3_store.check()) == {}

    assert [each async for each in s3_store.list("")] == []


# --- a folder -------------------------------------------------------------------------------------


def test_check_prints_a_line_for_each_probe(tmp_path: Path) -> None:
    ended = check("--data", str(tmp_path))

    assert ended.returncode == 0
    assert {line[:5] for line in ended.stdout.splitlines()} == {"ok   "}
    for probe in ("catalog: record a capture", "catalog: leases", "store: read the end", "store: ping"):
        assert f"ok   {probe}" in ended.stdout
    assert not [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_folder_that_cannot_be_used_ends_the_start_with_one_line(tmp_path: Path, workers: str) -> None:
    ended = service_command(
        *("serve", "--listen", "127.0.0.1:0", "--data", tmp_path),
        *("--store", "file:///proc/nope", "--workers", workers),
    )

    assert ended.returncode == 2
    assert ended.stderr == (
        f"overspill-service: store: the folder /proc/nope cannot be used: {os.strerror(2)}\n"
    )
    assert ended.stdout == ""
