"""Authorities that are trusted for the object store, and change while the service runs."""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import trustme
from overspill_service.errors import StoreUnavailable
from overspill_service.objects.s3 import Location, S3Store

from tests.servers.faulty_proxy import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.servers.swift import S3Server

KEY = "v1/tenant/cap_aaaaaaaaaaaaaaaaaaaa/upload-00000"


@pytest.fixture
def authority() -> trustme.CA:
    """The one that vouches for the store."""
    return trustme.CA()


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the authorities, with another one."""
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    monkeypatch.setenv("AWS_CA_BUNDLE", str(file))
    return file


@pytest.fixture
async def store(authority: trustme.CA, bundle: Path, s3_server: S3Server) -> AsyncIterator[S3Store]:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(running(s3_server.endpoint, tls))
        made = S3Store(Location.from_url(s3_server.url(s3_server.create_bucket(), endpoint=proxy.url)))
        stack.push_async_callback(made.close)
        yield made


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_without_authorities_is_named_at_the_start(bundle: Path, content: str | None) -> None:
    bundle.unlink()
    if content is not None:
        bundle.write_text(content)

    with pytest.raises(ValueError, match=r"AWS_CA_BUNDLE: .*/ca\.pem cannot be read, or has no certificates"):
        S3Store(Location.from_url("s3://bucket?endpoint=https://127.0.0.1:9"))


async def test_an_authority_that_was_added_since_the_start_is_trusted(
    store: S3Store, authority: trustme.CA, bundle: Path
) -> None:
    authority.cert_pem.write_to_path(str(bundle), append=True)

    assert await store.put(KEY, [b"content"])
    assert [stored.key async for stored in store.list("")] == [KEY]


async def test_a_file_of_authorities_that_is_gone_leaves_the_former_ones(
    store: S3Store, bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bundle.unlink()

    with pytest.raises(StoreUnavailable, match="name the file of its authority in AWS_CA_BUNDLE"):
        await store.put(KEY, [b"content"])
    with pytest.raises(StoreUnavailable):
        await store.list("").__anext__()
    assert "the former ones stay trusted" in caplog.text
