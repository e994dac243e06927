"""Hostile and broken requests: a clear problem with a stable code, and nothing stored."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest
import zstandard
from overspill.wire import Code, Header, Path
from overspill_service.web.registry import Route
from overspill_service.web.routes import ROUTES

from tests.waiting import PATIENCE
from tests.web.conftest import Api, id_of, path_of, problem

ID = id_of(b"x")


async def no_object(api: Api) -> bool:
    return [each async for each in api.service.archive.store.list("v1/")] == []


@pytest.mark.parametrize(
    "reference",
    [
        "cap_x",
        "cap_" + "A" * 20,
        "cap_" + "1" * 20,
        "..",
        "%2e%2e%2fetc%2fpasswd",
        "%00",
        "x" * 5000,
        "cap_%0d%0aSet-Cookie:a",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_hostile_id_is_refused(api: Api, reference: Any, method: Any) -> None:
    response = await api.send(method, f"/v1/captures/{reference}")

    assert response.status in (404, 405, 422)
    assert (await problem(response)).code in (Code.INVALID_ID, Code.NO_ROUTE, Code.METHOD_NOT_ALLOWED)
    assert await no_object(api)


@pytest.mark.parametrize("route", [r for r in ROUTES if "{ref}" in r.path], ids=lambda route: route.name)
async def test_an_empty_call_id_is_refused_wherever_a_capture_is_named(api: Api, route: Route) -> None:
    unrelated = await api.put(b"of no call\n", call_id="")
    bodies = {"PATCH": {"ttl": 60}, "POST": {"offset": 0}}
    body = {"json": bodies[route.method]} if route.method in bodies else {}
    params = {"params": {"pattern": "x"}} if route.path == Path.GREP else {}
    headers = {Header.PRODUCER: "me", Header.UPLOAD_OFFSET: "0"}
    path = route.path.replace("{ref}", "call:")
    response = await api.send(route.method, path, headers=headers, **body, **params)

    assert (response.status, (await problem(response)).code) == (422, Code.INVALID_ID)
    assert (await api.get(f"/v1/captures/{unrelated.id}")).status == 200


async def test_a_listing_by_an_empty_call_id_is_refused(api: Api) -> None:
    await api.put(b"of no call\n", call_id="")
    response = await api.get("/v1/captures?call_id=")

    assert (response.status, (await problem(response)).code) == (422, Code.INVALID_PARAMETER)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Overspill-Session", "%ff%fe"),
        ("Overspill-Call-Id", "%c3"),
        ("Overspill-Tool", "x" * 5000),
        ("Overspill-Ttl", "soon"),
        ("Overspill-Ttl", "-1"),
        ("Overspill-Ttl", "9" * 30),
        ("Overspill-Label-~", "x"),
        ("Overspill-Labels", "a=x, b"),
        ("Overspill-Labels", "a=x, A=y"),
        ("Overspill-Labels", "a=%ff"),
        ("Content-Type", "not a type"),
        ("Repr-Digest", "sha-256=:AAAA:"),
        ("Repr-Digest", "md5=:AAAA:"),
        ("Repr-Digest", "sha-256"),
    ],
)
async def test_a_wrong_header_is_named(api: Api, header: Any, value: Any) -> None:
    response = await api.send("PUT", path_of(b"x"), data=b"x", headers={header: value})

    assert response.status in (400, 422)
    found = await problem(response)
    assert found.code in (Code.INVALID_HEADER, Code.INVALID_REQUEST)
    assert await no_object(api)


async def test_empty_members_of_a_list_of_labels_count_for_nothing(api: Api) -> None:
    entry = await api.put(b"x", Overspill_Labels=", a=1,, b=2 ,")

    assert entry.labels == {"a": "1", "b": "2"}


async def test_any_unicode_and_control_character_survives_in_a_header(api: Api) -> None:
    value = "a\r\nb\t\0\x7fü漢\U0001f600\u202e"
    entry = await api.put(b"x", value)

    assert entry.call_id == value


async def test_a_ttl_beyond_the_bounds_is_refused(api: Api) -> None:
    response = await api.send("PUT", path_of(b"x"), data=b"x", headers={"Overspill-Ttl": "99999999"})

    assert (response.status, (await problem(response)).code) == (422, Code.INVALID_PARAMETER)


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd, gzip", "x"])
async def test_an_unknown_encoding_is_named(api: Api, encoding: Any) -> None:
    response = await api.send("PUT", path_of(b"x"), data=b"x", headers={"Content-Encoding": encoding})

    assert (response.status, (await problem(response)).code) == (415, Code.UNSUPPORTED_ENCODING)
    assert await no_object(api)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("damage", ["garbage", "truncated", "flipped"])
async def test_a_damaged_encoding_is_refused(api: Api, encoding: Any, damage: Any) -> None:
    content = bytes(range(256)) * 5000
    body = bytearray(
        gzip.compress(content)
        if encoding == "gzip"
        else zstandard.ZstdCompressor(write_checksum=True).compress(content)
    )
    match damage:
        case "garbage":
            body = bytearray(b"this is not compressed")
        case "truncated":
            del body[len(body) // 2 :]
        case "flipped":
            body[len(body) // 2] ^= 0x55
    response = await api.send(
        "PUT", path_of(content), data=bytes(body), headers={"Content-Encoding": encoding}
    )

    assert (response.status, (await problem(response)).code) == (422, Code.DAMAGED_ENCODING)
    assert await no_object(api)


async def test_a_decompression_bomb_ends_at_the_limit(start_api: Any) -> None:
    api = await start_api(max_capture_size=50_000_000)
    bomb = zstandard.ZstdCompressor(1).compress(bytes(400_000_000))
    assert len(bomb) < 40_000
    response = await api.send("PUT", path_of(b"bomb"), data=bomb, headers={"Content-Encoding": "zstd"})

    assert (response.status, (await problem(response)).limit) == (413, 50_000_000)
    assert await no_object(api)


async def test_a_body_larger_than_the_limit_is_refused_before_it_is_read(start_api: Any) -> None:
    api = await start_api(max_capture_size=1000)
    response = await api.send("PUT", path_of(b"x"), data=bytes(1001))

    assert (response.status, (await problem(response)).code) == (413, Code.CAPTURE_TOO_LARGE)


async def raw(api: Api, request: bytes, *, hang_up: bool = False) -> bytes:
    """Send bytes as they are; the status line of the answer, or nothing when we hang up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(request)
    await writer.drain()
    if hang_up:
        writer.close()
        await writer.wait_closed()
        return b""
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_a_client_that_goes_half_way_leaves_nothing(api: Api) -> None:
    head = f"PUT {path_of(b'x')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n".encode()
    await raw(api, head + b"y" * 500_000, hang_up=True)
    async with asyncio.timeout(PATIENCE):
        while api.service.places.uploads.free < api.service.settings.max_uploads:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    assert await no_object(api)
    assert (await api.get(path_of(b"x"))).status == 404


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: -1",
        "Content-Length: x",
        "Content-Length: 5\r\nContent-Length: 6",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: nonsense",
    ],
)
async def test_a_lying_length_is_refused(api: Api, head: Any) -> None:
    answer = await raw(
        api, f"PUT {path_of(b'x')} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\nhello".encode()
    )

    assert b" 400 " in answer
    assert await no_object(api)


async def test_a_broken_chunked_body_is_refused(api: Api) -> None:
    head = f"PUT {path_of(b'x')} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await raw(api, f"{head}5\r\nhello\r\nzz\r\n".encode())

    assert b" 400 " in answer
    assert await no_object(api)


async def test_an_upload_that_stalls_is_given_up(start_api: Any) -> None:
    api = await start_api(idle_timeout=0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(
        f"PUT {path_of(b'x')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc".encode()
    )
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE)
    writer.close()
    await writer.wait_closed()

    assert b" 400 " in answer
    assert await no_object(api)


async def test_more_uploads_than_there_are_places_wait_or_are_sent_away(start_api: Any) -> None:
    api = await start_api(max_uploads=1)
    places = api.service.places.uploads
    places.wait_seconds = 0.05
    async with places.hold("other"):
        response = await api.send("PUT", path_of(b"x"), data=b"x")

    assert (response.status, (await problem(response)).code) == (429, Code.TOO_MANY_REQUESTS)
    assert response.headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    "query",
    [
        "lines=0",
        "lines=-1",
        "lines=x",
        "lines=99999999999999999999",
        "line=5",
        "lines=1&lines=2",
        "lines=",
        "lines=1.5",
    ],
)
async def test_a_wrong_query_is_named(api: Api, query: Any) -> None:
    entry = await api.put(b"x\n")
    response = await api.get(f"/v1/captures/{entry.id}/head?{query}")

    assert (response.status, (await problem(response)).code) == (422, Code.INVALID_PARAMETER)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("captures?state=odd", "Invalid enum value 'odd' - at `state`: use one of live, complete, partial"),
        ("captures?sort=odd", "Invalid enum value 'odd' - at `sort`: use one of newest, size"),
        ("captures?limit=x", "Expected a whole number - at `limit`"),
        ("captures/call:x/grep?pattern=x&ignore_case=maybe", "Expected true or false - at `ignore_case`"),
        ("captures/call:x/wait?timeout=x", "Expected a number - at `timeout`"),
        ("captures/call:x/grep", "Missing the parameter `pattern`"),
    ],
)
async def test_a_wrong_query_says_what_is_allowed(api: Api, path: str, words: str) -> None:
    response = await api.get(f"/v1/{path}")

    assert (await problem(response)).detail == words


async def test_a_wrong_choice_in_a_body_says_which_there_are(api: Api) -> None:
    response = await api.send("POST", "/v1/keys", json={"scopes": ["read", "fly"]})

    assert "'fly' - at `$.scopes[1]`: use one of write, read, " in (await problem(response)).detail


@pytest.mark.parametrize(
    ("ttl", "words"),
    [
        ("99999999999", "is not allowed; this tenant's captures live 1 to "),
        ("1" * 13, "is not a whole number of seconds of at most 12 digits"),
    ],
)
async def test_a_ttl_that_is_too_long_is_called_that(api: Api, ttl: str, words: str) -> None:
    response = await api.send("PUT", path_of(b"x"), data=b"x", headers={"Overspill-Ttl": ttl})

    assert words in (await problem(response)).detail


@pytest.mark.parametrize("query", ["start=0", "start=5&end=2", "end=0", "start=-3", "offset=-1"])
async def test_wrong_lines_are_named(api: Api, query: Any) -> None:
    entry = await api.put(b"x\n" * 10)
    response = await api.get(f"/v1/captures/{entry.id}/lines?{query}")

    assert (response.status, (await problem(response)).code) == (422, Code.INVALID_PARAMETER)


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "%ff", "x" * 5000])
async def test_a_wrong_cursor_is_named(api: Api, cursor: Any) -> None:
    response = await api.get("/v1/captures", params={"cursor": cursor})

    assert (response.status, (await problem(response)).code) == (422, Code.INVALID_PARAMETER)


async def test_an_unknown_path_and_method_are_problems(api: Api) -> None:
    nowhere = await api.get("/v2/captures")
    wrong = await api.send("POST", path_of(b"x"))

    assert (await problem(nowhere)).code == Code.NO_ROUTE
    assert (await problem(wrong)).code == Code.METHOD_NOT_ALLOWED
    assert "PUT" in wrong.headers["Allow"]


async def test_a_header_larger_than_allowed_is_refused(api: Api) -> None:
    response = await api.get("/healthz", headers={"X-Large": "x" * 70_000})

    assert response.status == 400


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "missing )"),
        ("(?=x)", "look-ahead"),
        ("(?<!x)y", "look-behind"),
        (r"(a)\1", "back-reference"),
        ("a" * 100_000, "100000"),
        ("((a{1000}){1000}){1000}", ""),
        ("[", ""),
    ],
)
async def test_a_pattern_that_cannot_be_used_says_why(api: Api, pattern: str, words: str) -> None:
    entry = await api.put(b"x\n" * 10)
    response = await api.get(f"/v1/captures/{entry.id}/grep", params={"pattern": pattern})

    found = await problem(response)
    assert (found.status, found.code) == (422, Code.INVALID_PATTERN)
    assert words in found.detail


async def test_all_metadata_of_a_capture_has_a_bound(api: Api) -> None:
    labels = {f"Overspill-Label-l{number}": "x" * 2000 for number in range(5)}
    response = await api.send("PUT", path_of(b"x"), data=b"x", headers=labels)
    found = await problem(response)

    assert (found.status, found.code) == (422, Code.INVALID_HEADER)
    assert "may have 8192" in found.detail
    fitting = dict.fromkeys(labels, "x" * 1600)
    assert (await api.send("PUT", path_of(b"x"), data=b"x", headers=fitting)).status == 201
