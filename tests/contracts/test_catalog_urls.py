"""The catalog that a URL names, and the errors for wrong URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from overspill_service.catalog.redis import connections
from overspill_service.catalog.redis.links import LinkOptions
from overspill_service.catalog.urls import open_catalog

from tests.contracts.entries import rebuilt

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "no catalog of the kind ''"),
        ("postgres://db", "no catalog of the kind 'postgres'"),
        ("/var/lib/catalog", "sqlite:///file"),
        ("redis://[::1", "this is not a URL"),
        ("sqlite:file", "three slashes"),
        ("sqlite://host/file", "three slashes"),
        ("sqlite:///file?mode=ro", "three slashes"),
        ("memory:x", "nothing after the colon"),
        ("redis://", "host is missing"),
        ("redis://host:port", "'host:port' is not a host:port"),
        ("redis://host:99999", "'host:99999' is not a host:port"),
        ("redis://a,b", "takes one address"),
        ("redis://host/x", "'x' is not a database number"),
        ("redis://host/1/2", "'1/2' is not a database number"),
        ("redis://host?timeout=3", "option 'timeout' is not known here"),
        ("redis://host?deadline=soon", "deadline=soon is not a number"),
        ("redis://host?deadline=-1", "deadline=-1 is not a number"),
        ("redis://host?deadline=nan", "deadline=nan is not a number"),
        ("redis://host?ssl_check_hostname=no", "ssl_check_hostname needs rediss:// or tls=yes"),
        ("rediss://host?ssl_ca_certs=/none.pem", "ssl_ca_certs=/none.pem: there is no such file"),
        ("redis://host?sentinel_password=x", "option 'sentinel_password' is not known here"),
        ("redis+sentinel://host/service?tls=maybe", "tls=maybe is neither yes nor no"),
        ("redis+sentinel://host:1", "service that the sentinels watch is missing"),
        ("redis+sentinel://host:1/service/x", "'x' is not a database number"),
        ("redis+cluster://host:1/0", "a Redis cluster has no databases"),
        ("redis+cluster://host:1,,host:2", "host is missing"),
    ],
)
def test_a_wrong_url_is_refused_with_what_is_wrong(url: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:
        open_catalog(url, data_dir=tmp_path)

    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["redis://user:s3cret@host/x", "user:s3cret@host:6379", "redis://user:s3cret@[host", "//:s3cret@host/1"],
)
def test_a_password_is_never_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:
        open_catalog(url, data_dir=tmp_path)

    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "redis+sentinel"])
def test_login_addresses_and_names_are_read_from_the_url(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    name = scheme.partition("+")[2] or "server"
    monkeypatch.setattr(connections, name, lambda *args: made.extend(args))
    path = {"redis": "/2", "redis+cluster": "", "redis+sentinel": "/watched/2"}[scheme]
    hosts = "[::1]:7000" if scheme == "redis" else "[::1]:7000,b"
    open_catalog(f"{scheme}://us%40er:p%3Aw@{hosts}{path}", data_dir=None)  # type: ignore[arg-type]

    default = 26379 if scheme == "redis+sentinel" else 6379
    addresses: Any = ("::1", 7000) if scheme == "redis" else [("::1", 7000), ("b", default)]
    login = LinkOptions(username="us@er", password="p:w", db=0 if scheme == "redis+cluster" else 2)
    assert (
        made
        == {
            "redis": [addresses, login],
            "redis+cluster": [addresses, login],
            "redis+sentinel": [addresses, "watched", login, None],
        }[scheme]
    )


async def test_an_embedded_catalog_lives_in_the_data_directory_or_where_it_is_told(tmp_path: Path) -> None:
    await open_catalog("sqlite:", data_dir=tmp_path / "data").close()
    await open_catalog(f"sqlite://{tmp_path}/else%20where/file.db", data_dir=tmp_path / "data").close()

    assert (tmp_path / "data" / "catalog.sqlite").is_file()
    assert (tmp_path / "else where" / "file.db").is_file()


async def test_catalogs_in_memory_share_nothing(tmp_path: Path) -> None:
    one, two = (open_catalog("memory:", data_dir=tmp_path) for _ in range(2))
    await rebuilt(one)

    assert not await two.is_complete()
    await one.close()
    await two.close()
