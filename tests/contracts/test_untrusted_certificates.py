"""Redis and the object store with a certificate that is not trusted: both say why, and quote no host."""

from __future__ import annotations

import os
import resource
import ssl
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import trustme
from overspill_service.back_ends import catalog_of, store_of
from overspill_service.catalog.redis.failures import is_temporary, reason
from overspill_service.catalog.redis.links import LinkOptions, opened
from overspill_service.errors import ServiceError
from overspill_service.settings.settings import Settings
from redis import exceptions as redis_errors

from tests.servers.faulty_proxy import running as proxied
from tests.servers.ports import HOST, free_port
from tests.servers.redis import RedisServer, running_with_tls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = timedelta(days=1)
NOW = datetime.now(UTC)
REASONS = {
    "expired": "is not trusted: it has expired",
    "early": "is not trusted: it is not valid yet",
    "other host": "it is for another host than that of the URL",
    "other authority": "name",
}


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return made


def certificate(authority: trustme.CA, kind: str) -> trustme.LeafCert:
    if kind == "expired":
        return authority.issue_cert(HOST, not_after=NOW - DAY)
    if kind == "early":
        return authority.issue_cert(HOST, not_before=NOW + DAY, not_after=NOW + 2 * DAY)
    if kind == "other host":
        return authority.issue_cert("other.example")
    return trustme.CA().issue_cert(HOST)


@pytest.mark.parametrize("kind", REASONS)
async def test_redis_with_a_certificate_that_is_not_trusted(
    kind: str, authority: trustme.CA, tmp_path: Path
) -> None:
    issued, files = certificate(authority, kind), tmp_path / "redis"
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    server = RedisServer(
        files,
        tls_port=str(free_port()),
        tls_cert_file="../own.pem",
        tls_key_file="../own.pem",
        tls_ca_cert_file="../ca.pem",
        tls_auth_clients="no",
    )
    with running_with_tls(server):
        url = f"rediss://{HOST}:{server.options['tls_port']}/0?ssl_ca_certs={tmp_path / 'ca.pem'}"
        catalog = catalog_of(Settings(data=tmp_path), "catalog", url)
        with pytest.raises(ServiceError, match="the certificate of Redis is not trusted") as raised:
            await catalog.ping()
        await catalog.close()

    assert REASONS[kind] in str(raised.value)
    assert HOST not in str(raised.value)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
async def test_a_file_of_authorities_for_redis_that_is_gone_or_broken_is_told(
    content: str | None, tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").touch()
    url = f"rediss://{HOST}:1/0?deadline=1&ssl_ca_certs={tmp_path / 'ca.pem'}"
    catalog = catalog_of(Settings(data=tmp_path), "catalog", url)
    (tmp_path / "ca.pem").unlink()
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)

    with pytest.raises(ServiceError, match="the files for TLS in the catalog's URL"):
        await catalog.ping()
    await catalog.close()


@pytest.mark.usefixtures("authority")
async def test_without_a_free_descriptor_the_files_for_redis_are_not_called_wrong(tmp_path: Path) -> None:
    options = LinkOptions(tls=True, ssl_ca_certs=str(tmp_path / "ca.pem"))
    with without_free_descriptor(), pytest.raises(redis_errors.ConnectionError) as raised:
        await opened((HOST, 1), options)

    assert "the files for TLS" not in reason(raised.value)
    assert is_temporary(raised.value)


@contextmanager
def without_free_descriptor() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("kind", REASONS)
async def test_an_object_store_with_a_certificate_that_is_not_trusted(
    kind: str, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "given")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate(authority, kind).configure_cert(tls)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(proxied("http://127.0.0.1:9", tls))
        url = f"s3://captures?endpoint={proxy.url}&region=here&addressing=path"
        store = store_of(Settings(data=tmp_path), "store", url)
        stack.push_async_callback(store.close)
        said = []
        for attempt in (store.ping(), store.read("v1/a/b/c", 0, 1), store.delete(["v1/a/b/c"])):
            with pytest.raises(ServiceError, match="the certificate of the object store is not") as raised:
                await attempt
            said.append(str(raised.value))

    assert all(REASONS[kind] in each and HOST not in each for each in said)
