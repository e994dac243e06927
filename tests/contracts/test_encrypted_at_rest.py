"""SSE-S3 and SSE-KMS: asked for with every write, and nothing is taken for encrypted that is not."""

from __future__ import annotations

import io
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from aiohttp import web
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from overspill_service.errors import StoreUnavailable
from overspill_service.objects.s3 import Location, S3Store

from tests.servers.faulty_proxy import running
from tests.servers.swift import obstacle, swift

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.servers.faulty_proxy import Exchange, FaultyProxy
    from tests.servers.swift import S3Server

SSE = "x-amz-server-side-encryption"
KMS_KEY = f"{SSE}-aws-kms-key-id"
ETAG = '"0123456789abcdef0123456789abcdef"'
"""What every store names of an object."""
KEY_ARN = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
NAME = "v1/tenant/cap_aaaaaaaaaaaaaaaaaaaa/upload-00000"


@pytest.fixture(scope="module")
def encrypting_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    folder = tmp_path_factory.mktemp("encrypting-swift")
    if reason := obstacle(folder):
        pytest.skip(f"no S3 server: {reason}")
    with swift(folder, encrypts=True) as server:
        yield server


@pytest.fixture(autouse=True)
def credentials(encrypting_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the server's credentials for one test: those of the whole session stay as they are."""
    for name, value in encrypting_server.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
async def watched(encrypting_server: S3Server) -> AsyncIterator[FaultyProxy]:
    async with running(encrypting_server.endpoint) as proxy:
        yield proxy


@asynccontextmanager
async def opened(server: S3Server, proxy: FaultyProxy, parameters: str) -> AsyncIterator[S3Store]:
    url = server.url(server.create_bucket(), "captures", endpoint=proxy.url)
    store = S3Store(Location.from_url(f"{url}&{parameters}" if parameters else url), page_size=5)
    try:
        yield store
    finally:
        await store.close()


async def test_every_write_asks_for_encryption_and_the_store_encrypts(
    encrypting_server: S3Server, watched: FaultyProxy
) -> None:
    async with opened(encrypting_server, watched, "sse=AES256") as store:
        keys = [f"{NAME}{number}" for number in range(7)]
        for key in keys:
            await store.put(key, [b"con", b"tent"])

        assert await store.read(keys[0], 0, 7) == b"content"
        assert [check.detail for check in await store.check() if not check.ok] == []
        await store.delete(keys)
        written = [seen for seen in watched.seen if seen.method == "PUT"]
        assert len(written) > len(keys)
        assert {seen.headers.get(SSE) for seen in written} == {"AES256"}
        assert {seen.headers.get(SSE) for seen in watched.seen if seen.method != "PUT"} == {None}


async def test_without_the_parameter_the_bucket_decides(
    encrypting_server: S3Server, watched: FaultyProxy
) -> None:
    async with opened(encrypting_server, watched, "") as store:
        await store.put(NAME, [b"content"])

        assert [SSE in seen.headers for seen in watched.seen] == [False]


@pytest.mark.parametrize("sse", ["aws:kms", "aws:kms:dsse"])
async def test_the_key_of_the_kms_is_named_in_the_signed_request(
    encrypting_server: S3Server, watched: FaultyProxy, sse: str
) -> None:
    async def kms(exchange: Exchange) -> web.Response:
        await exchange.request.content.read()
        return web.Response(headers={"ETag": ETAG, SSE: sse, KMS_KEY: KEY_ARN})

    watched.always("PUT", kms)
    async with opened(encrypting_server, watched, f"sse={sse}&sse_kms_key_id={KEY_ARN}") as store:
        watched.forget()
        await store.put(NAME, [b"content"])

        (seen,) = watched.seen
        assert (seen.headers[SSE], seen.headers[KMS_KEY]) == (sse, KEY_ARN)
        assert f"{SSE};{KMS_KEY}" in seen.headers["Authorization"]


def headers_of_aws(sse: str, key: str) -> dict[str, str]:
    """Return what AWS's own client sends to have an object encrypted so, by its model of the S3 API."""
    client: Any = botocore.session.get_session().create_client(
        "s3", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    sent: list[dict[str, str]] = []

    def answer(request: Any, **_: Any) -> Any:
        sent.append({name.lower(): _text(value) for name, value in request.headers.items()})
        answered: Any = AWSResponse(request.url, 200, HTTPHeaders(), io.BytesIO())
        answered._content = b""
        return answered

    client.meta.events.register("before-send.s3.PutObject", answer)
    client.put_object(
        Bucket="b", Key="k", Body=b"content", IfNoneMatch="*", ServerSideEncryption=sse, SSEKMSKeyId=key
    )
    names = (SSE, "if-none-match")
    return {name: value for name, value in sent[0].items() if name.startswith(names)}


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("sse", ["aws:kms", "aws:kms:dsse"])
async def test_a_write_asks_for_encryption_with_the_headers_of_aws_own_client(
    encrypting_server: S3Server, watched: FaultyProxy, sse: str
) -> None:
    async def kms(exchange: Exchange) -> web.Response:
        await exchange.request.content.read()
        return web.Response(headers={"ETag": ETAG, SSE: sse, KMS_KEY: KEY_ARN})

    watched.always("PUT", kms)
    async with opened(encrypting_server, watched, f"sse={sse}&sse_kms_key_id={KEY_ARN}") as store:
        watched.forget()
        await store.put(NAME, [b"content"])

        (seen,) = watched.seen
        names = (SSE, "if-none-match")
        sent = {name.lower(): value for name, value in seen.headers.items() if name.lower().startswith(names)}
        assert sent == headers_of_aws(sse, KEY_ARN)


@pytest.mark.parametrize("sse", ["aws:kms", "aws:kms:dsse"])
async def test_a_store_that_refuses_to_encrypt_is_named(
    encrypting_server: S3Server, watched: FaultyProxy, sse: str
) -> None:
    async with opened(encrypting_server, watched, f"sse={sse}") as store:
        with pytest.raises(StoreUnavailable):  # Swift has no KMS
            await store.put(NAME, [b"content"])


async def test_a_store_that_encrypts_nothing_is_refused_by_name(
    s3_server: S3Server, faulty_s3: FaultyProxy
) -> None:
    async with opened(s3_server, faulty_s3, "sse=AES256") as store:
        with pytest.raises(StoreUnavailable, match="does not encrypt by sse=AES256"):
            await store.put(NAME, [b"content"])
        failed = [check.detail for check in await store.check() if not check.ok]
        assert "does not encrypt by sse=AES256" in failed[0]


async def test_a_store_that_says_nothing_of_encryption_has_not_encrypted(
    encrypting_server: S3Server, watched: FaultyProxy
) -> None:
    async def silent(exchange: Exchange) -> web.Response:
        await exchange.request.content.read()
        return web.Response(headers={"ETag": ETAG})

    watched.always("PUT", silent)
    async with opened(encrypting_server, watched, "sse=AES256") as store:
        with pytest.raises(StoreUnavailable, match="does not encrypt by sse=AES256"):
            await store.put(NAME, [b"content"])


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ("sse=aes256", "sse='aes256' is none of AES256, aws:kms"),
        ("sse=AES256&sse_kms_key_id=x", "is for sse=aws:kms"),
        ("sse_kms_key_id=x", "is for sse=aws:kms"),
        ("sse=aws:kms&sse_kms_key_id=a%20b", "is not an id, alias or ARN of a key"),
    ],
)
def test_a_wrong_parameter_is_explained(parameters: str, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:
        Location.from_url(f"s3://bucket?{parameters}")

    assert complaint in str(caught.value)
