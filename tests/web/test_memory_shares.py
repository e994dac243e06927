"""The part of a process's memory that one tenant takes: slow bodies, and answers that nobody reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from overspill_service.tenants.keys import hash_key, new_key

from tests.core.contents import log
from tests.faults.traffic import until
from tests.web.conftest import Api, path_of

HOSTILE, QUIET = new_key(), new_key()
CHUNKED = "Transfer-Encoding: chunked"
APPEND = "Content-Length: 3300000\r\nOverspill-Producer: me\r\nUpload-Offset: 0"
JSON = "Content-Length: 1048576\r\nContent-Type: application/json"
REQUESTS = {
    "uploads": [(f"PUT {path_of(b'%d' % number)}", CHUNKED) for number in range(8)],
    "appends": [(f"POST {path_of(b'%d' % number)}/append", APPEND) for number in range(8)],
    "JSON": [(f"PATCH {path_of(b'%d' % number)}", JSON) for number in range(64)],
}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def tenants_file(tmp_path: Path) -> Path:
    file = tmp_path / "tenants.toml"
    file.write_text(
        "".join(
            f'[[tenants]]\nname = "{name}"\n[[tenants.keys]]\nhash = "{hash_key(key)}"\n'
            'scopes = ["read", "write"]\n'
            for name, key in (("hostile", HOSTILE), ("quiet", QUIET))
        )
    )
    return file


@asynccontextmanager
async def begun(api: Api, requests: list[tuple[str, str]]) -> AsyncIterator[None]:
    """Requests of the hostile tenant whose bodies have not come yet."""
    writers = [(await asyncio.open_connection("127.0.0.1", api.port))[1] for _ in requests]
    for writer, (target, fields) in zip(writers, requests, strict=True):
        lines = f"{target} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {HOSTILE}", fields, "", ""
        writer.write("\r\n".join(lines).encode())
    try:
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


@pytest.mark.parametrize("requests", REQUESTS.values(), ids=REQUESTS)
async def test_bodies_of_one_tenant_leave_memory_for_those_of_others(
    start_api: Callable[..., Any], tenants_file: Path, requests: list[tuple[str, str]]
) -> None:
    api: Api = await start_api(tenants=tenants_file, anonymous=None, memory=64 * 2**20, idle_timeout=3600.0)
    content, memory = log(4_000_000), api.service.archive.memory
    async with begun(api, requests):
        await until(lambda: _is(memory.large.waiting))
        response = await api.send("PUT", path_of(content), data=content, headers=bearer(QUIET))

        assert response.status == 201
        assert memory.large.waiting
    await until(lambda: _is(memory.free == memory.size))


@pytest.mark.parametrize("body", [b"", b"{"])
async def test_a_body_of_json_that_stops_or_trickles_is_given_up(
    start_api: Callable[..., Any], body: bytes
) -> None:
    api: Api = await start_api(idle_timeout=0.1, min_upload_rate=10_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(f"PATCH {path_of(b'x')} HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n\r\n".encode())
    answer = asyncio.create_task(reader.readline())
    while not answer.done():
        writer.write(body)
        await asyncio.wait([answer], timeout=0.01)
    writer.transport.abort()

    assert b" 400 " in await answer
    assert api.service.archive.memory.free == api.service.archive.memory.size


async def _is(found: object) -> bool:
    return bool(found)
