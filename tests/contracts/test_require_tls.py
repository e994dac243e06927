"""`require_tls`: nothing goes to Redis or S3 unencrypted, except on this machine; and Redis over TLS."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import redis
import trustme
from overspill_service.back_ends import catalog_of, store_of
from overspill_service.catalog.urls import open_catalog
from overspill_service.errors import CatalogUnavailable
from overspill_service.settings.errors import SettingError
from overspill_service.settings.settings import Settings

from tests.servers.overspill import service_command
from tests.servers.ports import HOST, free_port
from tests.servers.redis import RedisServer, running_with_tls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WITHOUT_TLS = "without TLS, and require_tls is set"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "given")


@pytest.mark.parametrize(
    "url",
    [
        "redis://redis.example:6379/0",
        "redis+sentinel://127.0.0.1:1,redis.example:2/service",
        "redis+cluster://10.0.0.1:6379",
    ],
)
def test_a_redis_without_tls_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingError, match=WITHOUT_TLS):
        catalog_of(Settings(data=tmp_path, require_tls=True), "catalog", url)


@pytest.mark.parametrize(
    "url",
    [
        "rediss://redis.example",
        "redis+sentinel://redis.example/service?tls=yes",
        "redis+cluster://10.0.0.1?tls=yes",
        "redis://127.0.0.1",
        "redis+cluster://localhost,[::1]:7000",
        "sqlite:",
    ],
)
async def test_tls_and_this_machine_are_allowed(tmp_path: Path, url: str) -> None:
    catalog = catalog_of(Settings(data=tmp_path, require_tls=True), "catalog", url)

    await catalog.close()


async def test_a_store_without_tls_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data=tmp_path, require_tls=True)
    for url in (
        "s3://bucket",
        "s3://bucket?endpoint=https://store",
        "s3://bucket?endpoint=http://[::1]:9",
        "",
    ):
        await store_of(settings, "store", url).close()

    with pytest.raises(SettingError, match=WITHOUT_TLS):
        store_of(settings, "store", "s3://bucket?endpoint=http://store:9000")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://store:9000")
    with pytest.raises(SettingError, match=WITHOUT_TLS):
        store_of(settings, "store", "s3://bucket")


def test_the_service_does_not_start_without_it(tmp_path: Path) -> None:
    words = ["--catalog", "redis://:s3cret@redis.example", "--require-tls", "true", "--data", tmp_path]

    done = service_command("serve", "--listen", "127.0.0.1:0", *words)

    assert done.returncode == 2
    assert WITHOUT_TLS in done.stderr
    assert "s3cret" not in done.stderr


# --- Redis over TLS -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def tls_redis(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[RedisServer]:
    folder = tmp_path_factory.mktemp("tls-redis")
    issued = authority.issue_cert(HOST)
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(folder / "certificate.pem"))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    server = RedisServer(
        folder,
        tls_port=str(free_port()),
        tls_cert_file="certificate.pem",
        tls_key_file="key.pem",
        tls_ca_cert_file="ca.pem",
        tls_auth_clients="no",
    )
    with running_with_tls(server):
        yield server


def tls_url(server: RedisServer, authority: Path) -> str:
    return f"rediss://{HOST}:{server.options['tls_port']}/0?deadline=20&ssl_ca_certs={authority}"


async def test_redis_is_reached_by_tls_with_the_authority_s_file(
    tls_redis: RedisServer, tmp_path: Path
) -> None:
    settings = Settings(data=tmp_path, require_tls=True)
    async with AsyncExitStack() as stack:
        catalog = catalog_of(settings, "catalog", tls_url(tls_redis, tls_redis.directory / "ca.pem"))
        stack.push_async_callback(catalog.close)
        await catalog.ping()


async def test_a_redis_of_another_authority_is_refused(tls_redis: RedisServer, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    catalog = open_catalog(tls_url(tls_redis, other), data_dir=tmp_path)

    with pytest.raises(CatalogUnavailable, match=r"(?i)certificate|TLS"):
        await catalog.ping()
    await catalog.close()


async def test_a_redis_that_wants_another_tls_is_not_called_one_without(
    tls_redis: RedisServer, tmp_path: Path
) -> None:
    authority = tls_redis.directory / "ca.pem"
    port = int(tls_redis.options["tls_port"])
    catalog = open_catalog(
        tls_url(tls_redis, authority).replace("deadline=20", "deadline=1"), data_dir=tmp_path
    )
    with redis.Redis(HOST, port, ssl=True, ssl_ca_certs=str(authority), single_connection_client=True) as one:
        # Before TLS 1.3 a server wants the client's certificate before the connection stands.
        one.config_set("tls-auth-clients", "yes", "tls-protocols", "TLSv1.2")
        try:
            with pytest.raises(CatalogUnavailable) as raised:
                await catalog.ping()
        finally:
            one.config_set("tls-auth-clients", "no", "tls-protocols", "")
    await catalog.close()

    assert "is TLS on at this port" not in str(raised.value)
