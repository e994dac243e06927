"""Every answer to a producer says how many of its bytes are accepted, and how many are durable."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse
from overspill.wire import MAX_APPEND, MAX_UNSTORED, Header
from overspill.wire.checksums import encode_crc32c
from overspill_service.errors import StoreUnavailable
from overspill_service.live import producing
from overspill_service.tenants.keys import hash_key, new_key

from tests.web.conftest import Api, problem

PATH = "/v1/captures/cap_" + "a" * 20
ME = {Header.PRODUCER: "me"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(params=["memory:", "redis_url"])
async def api(request: pytest.FixtureRequest, start_api: Callable[..., Any]) -> Api:
    """A service on either catalog, in which a capture has ten bytes, and six of them are durable."""
    name: str = request.param
    catalog = name
    if name == "redis_url":
        catalog = f"{request.getfixturevalue(name)}?deadline=60"  # however busy the machine is
    started: Api = await start_api(catalog=catalog, live_flush_seconds=3600.0)
    await started.send("PUT", f"{PATH}/live", headers=ME)
    await append(started, b"first\n", 0)
    await started.service.flusher.start("default", PATH.rpartition("/")[-1])
    assert offsets(await append(started, b"next", 6)) == (10, 6)
    return started


async def append(api: Api, data: bytes, offset: int, **changed: str) -> ClientResponse:
    given = {name.replace("_", "-"): value for name, value in changed.items()}
    headers = {**ME, Header.UPLOAD_OFFSET: str(offset), **given}
    return await api.send("POST", f"{PATH}/append", data=data, headers=headers)


async def complete(api: Api, word: str = "me", **body: Any) -> ClientResponse:
    headers = {Header.PRODUCER: word, **JSON}
    return await api.send("POST", f"{PATH}/complete", data=json.dumps(body).encode(), headers=headers)


def offsets(response: ClientResponse) -> tuple[int, int]:
    return int(response.headers[Header.UPLOAD_OFFSET]), int(response.headers[Header.DURABLE_OFFSET])


async def refusal(response: ClientResponse) -> tuple[str, tuple[int, int]]:
    """Return the code and the offsets of a refusal, which are the same in its headers and its body."""
    found = await problem(response)
    assert offsets(response) == (found.offset, found.durable)
    return found.code, offsets(response)


async def test_every_refusal_of_an_append_says_what_is_accepted_and_what_is_durable(api: Api) -> None:
    refused = [
        await append(api, b"x", 4),
        await append(api, b"x", 11),
        await append(api, b"x", 10, Content_Digest=encode_crc32c(b"y")),
        await append(api, bytes(MAX_APPEND + 1), 10),
        await append(api, b"x", 10, Overspill_Producer="you"),
        await append(api, b"x", 10, Upload_Offset="ten"),
        await append(api, b"x", 10, Overspill_Producer=""),
        await complete(api, "", offset=10),
        await api.send("PUT", f"{PATH}/live", headers=ME | {Header.TTL: "never"}),
    ]

    assert [await refusal(each) for each in refused] == [
        ("wrong_offset", (10, 6)),
        ("wrong_offset", (10, 6)),
        ("digest_mismatch", (10, 6)),
        ("body_too_large", (10, 6)),
        ("other_producer", (10, 6)),
        ("invalid_header", (10, 6)),
        ("invalid_header", (10, 6)),
        ("invalid_header", (10, 6)),
        ("invalid_header", (10, 6)),
    ]


async def test_who_is_asked_to_wait_is_told_what_is_durable(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> bool:
        raise StoreUnavailable("down")

    monkeypatch.setattr(api.service.archive.store, "put", refuse)
    monkeypatch.setattr(producing, "ROOM_SECONDS", 0.1)
    at = 10
    while (answer := await append(api, bytes(MAX_APPEND // 2), at)).status == 200:
        at, _ = offsets(answer)

    assert await refusal(answer) == ("buffer_full", (at, 6))
    assert at + MAX_APPEND // 2 > 6 + MAX_UNSTORED


async def test_the_end_and_its_refusals_say_both_offsets(api: Api) -> None:
    early, foreign = await complete(api, offset=6), await complete(api, "you", offset=10)
    other = await complete(api, offset=10, sha256="0" * 64)
    ended = await complete(api, offset=10)
    late = await append(api, b"late", 10)
    again = await api.send("PUT", f"{PATH}/live", headers=ME)

    assert await refusal(early) == ("wrong_offset", (10, 6))
    assert await refusal(foreign) == ("other_producer", (10, 6))
    assert await refusal(other) == ("digest_mismatch", (10, 6))
    assert (ended.status, offsets(ended)) == (200, (10, 10))
    assert await refusal(late) == ("not_live", (10, 10))
    assert await refusal(again) == ("not_live", (10, 10))


async def test_a_key_that_may_not_read_is_told_the_offsets_of_its_own_captures_alone(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    writer = new_key()
    file = tmp_path / "tenants.toml"
    file.write_text(
        f'[[tenants]]\nname = "acme"\nkeys = [{{hash = "{hash_key(writer)}", scopes = ["write"]}}]\n'
    )
    api = await start_api(tenants=file, anonymous=None)
    key = {"Authorization": f"Bearer {writer}"}
    await api.send("PUT", f"{PATH}/live", headers=ME | key)
    await append(api, b"secret size", 0, **key)

    own = await append(api, b"x", 4, **key)
    foreign = await append(api, b"x", 4, Overspill_Producer="you", **key)

    assert await refusal(own) == ("wrong_offset", (11, 0))
    told = await problem(foreign)
    assert (told.code, told.offset, told.durable) == ("other_producer", None, None)
    assert Header.UPLOAD_OFFSET not in foreign.headers


async def test_a_key_that_may_not_read_and_names_no_producer_learns_no_size(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    writer = new_key()
    file = tmp_path / "tenants.toml"
    file.write_text(
        f'[[tenants]]\nname = "acme"\nkeys = [{{hash = "{hash_key(writer)}", scopes = ["write"]}}]\n'
    )
    api = await start_api(tenants=file, anonymous=None)
    key = {"Authorization": f"Bearer {writer}"}
    stored = await api.send("POST", "/v1/captures", data=b"secret size", headers=key)
    path = f"/v1/captures/{(await stored.json())['id']}"

    answers = [
        await api.send("POST", f"{path}/append", headers=named | key)
        for named in ({}, {Header.PRODUCER: ""}, {Header.PRODUCER: "x"})
    ]
    assert [(await problem(each)).offset for each in answers] == [None] * 3
