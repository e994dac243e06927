"""A tenant that stores no secrets: contents with secrets are refused, however they come."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from overspill import Client, Guard, Policy
from overspill.wire import Code, Outcome, Path

from tests.web.conftest import problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path as FilePath

    from tests.web.conftest import Api

SECRET = b"ghp_" + b"aB3x" * 9
LINES = b"".join(b"step %d is done\n" % number for number in range(20_000))
CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.fixture
async def refusing(start_api: Callable[..., Any], tmp_path: FilePath) -> Api:
    tenants = tmp_path / "tenants.toml"
    tenants.write_text('[[tenants]]\nname = "default"\nredaction = "refuse"\n')
    api: Api = await start_api(tenants=tenants)
    return api


def headers(coding: str) -> dict[str, str]:
    return {"Content-Encoding": coding} if coding else {}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("content", [SECRET, LINES + SECRET + b"\n", SECRET + b"\n" + LINES])
async def test_a_content_with_a_secret_is_refused_and_not_stored(
    refusing: Api, coding: str, content: bytes
) -> None:
    answer = await refusing.send(
        "POST", Path.CAPTURES, data=CODINGS[coding](content), headers=headers(coding)
    )
    found = await problem(answer)

    assert (answer.status, found.code) == (422, Code.SECRETS_FOUND)
    assert "(1 github-token)" in str(found.detail)
    assert SECRET.decode() not in str(found.detail)
    assert (await (await refusing.get(Path.CAPTURES)).json())["captures"] == []


async def test_a_secret_across_two_chunks_is_refused(refusing: Api) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield LINES + SECRET[:10]
        yield SECRET[10:] + LINES

    answer = await refusing.send("POST", Path.CAPTURES, data=body())

    assert (await problem(answer)).code == Code.SECRETS_FOUND


@pytest.mark.parametrize("coding", CODINGS)
async def test_a_content_without_secrets_is_stored(refusing: Api, coding: str) -> None:
    answer = await refusing.send("POST", Path.CAPTURES, data=CODINGS[coding](LINES), headers=headers(coding))

    assert answer.status == 201


async def test_other_tenants_store_what_they_like(api: Api) -> None:
    assert (await api.send("POST", Path.CAPTURES, data=SECRET)).status == 201


async def test_what_a_guard_has_masked_is_stored_and_what_it_left_is_refused(refusing: Api) -> None:
    output = (SECRET + b"\n" + LINES).decode()
    async with Client(f"http://127.0.0.1:{refusing.port}") as client:
        masked = await Guard(client, spool=False).process(output, tool="t")
        exact = await Guard(client, Policy(redaction="off"), spool=False).process(output, tool="t")

    assert masked.outcome is Outcome.CAPTURED
    assert exact.outcome is Outcome.TRUNCATED
    assert "has secrets (1 github-token)" in str(exact.reason)
