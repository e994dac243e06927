"""The store that a URL names, and the errors for URLs that name none."""

from __future__ import annotations

from pathlib import Path

import pytest
from overspill_service.objects.file import FileStore
from overspill_service.objects.memory import MemoryStore
from overspill_service.objects.s3 import Location, S3Store
from overspill_service.objects.urls import open_store

DATA = Path("/var/lib/overspill")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("", FileStore),
        ("file:///srv/objects", FileStore),
        ("file://localhost/srv/objects", FileStore),
        ("memory:", MemoryStore),
        ("memory://", MemoryStore),
        ("s3://bucket", S3Store),
        ("s3://bucket/a/prefix?endpoint=http://127.0.0.1:9000&region=eu-west-1&addressing=path", S3Store),
    ],
)
async def test_the_scheme_chooses_the_store(url: str, kind: type) -> None:
    store = open_store(url, data_dir=DATA)

    assert isinstance(store, kind)
    await store.close()


async def test_a_folder_may_have_escaped_characters_and_appears_on_first_use(tmp_path: Path) -> None:
    store = open_store(f"{tmp_path.as_uri()}/my%20objects", data_dir=DATA)
    assert not (tmp_path / "my objects").exists()

    await store.ping()
    assert (tmp_path / "my objects").is_dir()
    await store.close()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("gs://bucket", "cannot be at 'gs'; write s3://"),
        ("/srv/objects", "a plain path"),
        ("file:", "three slashes"),
        ("file://srv/objects", "three slashes"),
        ("file:///srv?fsync=no", "no parameters"),
        ("memory:everything", "nothing after the colon"),
        ("s3://", "'' is not a bucket name"),
        ("s3://Bucket_with spaces", "is not a bucket name"),
        ("s3://bucket?endpont=http://x", "no parameter 'endpont'; it has endpoint, region, addressing"),
        ("s3://bucket?region=eu-west-1&region=us-east-1", "'region' is given twice"),
        ("s3://bucket?region=eu west 1", "not a region name"),
        ("s3://bucket?addressing=dns", "neither path nor virtual"),
        ("s3://bucket?endpoint=127.0.0.1:9000", "endpoint= takes http://host:port"),
        ("s3://bucket?endpoint=ftp://host", "endpoint= takes http://host:port"),
        ("s3://bucket?endpoint=http://key:secret@host", "without credentials"),
        ("s3://bucket?endpoint=http://host:port", "endpoint= takes http://host:port"),
        ("s3://bucket/../other", "prefix"),
        ("s3://bucket/a//b", "prefix"),
    ],
)
def test_a_wrong_url_is_refused_by_what_is_wrong(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        open_store(url, data_dir=DATA)


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="credentials do not belong") as caught:
        open_store("s3://AKIAKEY:topsecret@bucket", data_dir=DATA)

    assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("s3://bucket", "https://bucket.s3.eu-west-1.amazonaws.com"),
        ("s3://bucket?addressing=path", "https://s3.eu-west-1.amazonaws.com/bucket"),
        ("s3://bucket.with.dots", "https://s3.eu-west-1.amazonaws.com/bucket.with.dots"),
        ("s3://bucket?endpoint=http://[::1]:9000", "http://[::1]:9000/bucket"),
        ("s3://bucket?endpoint=http://store:9000/&addressing=virtual", "http://bucket.store:9000"),
        ("s3://bucket?endpoint=https://store/storage/v1/s3", "https://store/storage/v1/s3/bucket"),
    ],
)
def test_the_bucket_is_addressed_by_host_or_by_path(url: str, base: str) -> None:
    location = Location.from_url(url)

    assert location.base(location.endpoint or "https://s3.eu-west-1.amazonaws.com") == base
