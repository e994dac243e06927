"""Redis, sentinels and clusters that are reached over TLS, and the files for it that change meanwhile."""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from overspill_service.catalog.redis.links import LinkOptions
from overspill_service.catalog.urls import open_catalog
from overspill_service.errors import CatalogUnavailable

from tests.servers.ports import HOST, free_port
from tests.servers.redis import SENTINEL_SERVICE, RedisServer, cluster, running_with_tls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


class Files:
    """What servers show, what clients show, and what clients trust."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authorities = [trustme.CA(), trustme.CA()]
        (folder / "both.pem").write_bytes(b"".join(each.cert_pem.bytes() for each in self.authorities))
        self.issue(self.authorities[0])

    def issue(self, authority: trustme.CA) -> None:
        for name in ("server", "client"):
            authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(
                str(self.folder / f"{name}.pem")
            )
        authority.cert_pem.write_to_path(str(self.folder / "trusted.pem"))

    def server(self) -> dict[str, Any]:
        own = str(self.folder / "server.pem")
        return {
            "tls_port": str(free_port()),
            "tls_cert_file": own,
            "tls_key_file": own,
            "tls_ca_cert_file": str(self.folder / "both.pem"),
            "tls_cluster": "yes",
            "tls_replication": "yes",
        }

    @property
    def query(self) -> str:
        own = self.folder / "client.pem"
        return f"tls=yes&ssl_ca_certs={self.folder / 'trusted.pem'}&ssl_certfile={own}&ssl_keyfile={own}"


@contextmanager
def server(folder: Path, files: Files) -> Iterator[tuple[str, list[RedisServer]]]:
    with running_with_tls(RedisServer(folder / "redis", **files.server())) as redis:
        yield f"redis://{HOST}:{redis.options['tls_port']}/0", [redis]


@contextmanager
def sentinel(folder: Path, files: Files) -> Iterator[tuple[str, list[RedisServer]]]:
    with ExitStack() as stack:
        master = stack.enter_context(running_with_tls(RedisServer(folder / "master", **files.server())))
        watched = f"monitor {SENTINEL_SERVICE} {HOST} {master.options['tls_port']} 1"
        options = {**files.server(), "sentinel": watched}
        asked = RedisServer(folder / "sentinel", is_sentinel=True, **options)
        stack.enter_context(running_with_tls(asked))
        url = f"redis+sentinel://{HOST}:{asked.options['tls_port']}/{SENTINEL_SERVICE}"
        yield url, [master, asked]


@contextmanager
def nodes(folder: Path, files: Files) -> Iterator[tuple[str, list[RedisServer]]]:
    with cluster(folder, options=files.server) as made:
        yield f"redis+cluster://{HOST}:{made[0].options['tls_port']}", made


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.parametrize("run", [server, sentinel, nodes])
async def test_files_for_tls_that_are_replaced_are_used_for_new_connections(
    run: Callable[[Path, Files], AbstractContextManager[tuple[str, list[RedisServer]]]],
    files: Files,
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        url, servers = stack.enter_context(run(tmp_path, files))
        catalog = open_catalog(f"{url}?{files.query}&deadline=20", data_dir=tmp_path)
        stack.push_async_callback(catalog.close)
        await catalog.totals("tenant")
        files.issue(files.authorities[1])
        for each in servers:
            each.use_files_again()

        await catalog.totals("tenant")


def test_files_for_tls_are_read_once_until_they_change(files: Files, tmp_path: Path) -> None:
    options = LinkOptions(tls=True, ssl_ca_certs=str(tmp_path / "trusted.pem"))
    first = options.context()
    again = options.context()
    files.issue(files.authorities[1])

    assert again is first
    assert options.context() is not first


async def test_a_file_for_tls_that_is_being_replaced_fails_no_request(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted = tmp_path / "trusted.pem"
    content = trusted.read_bytes()
    read = LinkOptions.context

    def read_while_replaced(options: LinkOptions) -> ssl.SSLContext | None:
        try:
            return read(options)
        finally:
            trusted.write_bytes(content)

    monkeypatch.setattr(LinkOptions, "context", read_while_replaced)
    with server(tmp_path, files) as (url, _):
        catalog = open_catalog(f"{url}?{files.query}&deadline=20", data_dir=tmp_path)
        trusted.write_bytes(b"")

        await catalog.ping()
        await catalog.close()


@pytest.mark.parametrize("scheme", ["redis+sentinel", "redis+cluster"])
@pytest.mark.parametrize("fault", ["other", "broken"])
async def test_why_sentinels_and_nodes_are_not_reached_over_tls_is_told(
    scheme: str, fault: str, files: Files, tmp_path: Path
) -> None:
    said = {"other": "the certificate of Redis is not trusted", "broken": "the files for TLS"}
    trusted = {"other": files.authorities[1].cert_pem.bytes(), "broken": b""}
    with server(tmp_path, files) as (_, [redis]):
        (tmp_path / "trusted.pem").write_bytes(trusted[fault])
        path = f"/{SENTINEL_SERVICE}" if scheme == "redis+sentinel" else ""
        url = f"{scheme}://{HOST}:{redis.options['tls_port']}{path}?{files.query}&deadline=1"
        catalog = open_catalog(url, data_dir=tmp_path)

        with pytest.raises(CatalogUnavailable, match=said[fault]):
            await catalog.ping()
        await catalog.close()
