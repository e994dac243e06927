"""The rules of RFC 9110 that service/docs/http.md lists, one test or a few for each."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard
from overspill import wire
from overspill.wire import Code
from overspill_service.web.registry import Route
from overspill_service.web.routes import ROUTES

from tests.waiting import PATIENCE
from tests.web.conftest import Api, id_of, path_of, problem
from tests.web.live_producer import Producer
from tests.web.raw import exchange

LOG = b"".join(b"line %d\n" % number for number in range(1000))
TAG = f'"{hashlib.sha256(LOG).hexdigest()}"'
HOST = "Host: localhost"
PAGE = Path(__file__).parents[2] / "service" / "docs" / "http.md"


def content_of(api_entry: wire.Entry) -> str:
    return f"/v1/captures/{api_entry.id}/content"


def test_every_test_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))

    assert len(named) > 30
    assert {name for name in named if f"def {name}(" not in sources} == set()


# --- preconditions (section 13) -------------------------------------------------------------------


@pytest.mark.parametrize("field", [TAG, "*", f'"other", {TAG}', f'"a,b" ,, {TAG}'])
async def test_if_match_with_the_tag_is_met(api: Api, field: str) -> None:
    entry = await api.put(LOG)
    response = await api.get(content_of(entry), headers={"If-Match": field})

    assert (response.status, await response.read()) == (200, LOG)


@pytest.mark.parametrize("field", ['"other"', f"W/{TAG}", "", "x", TAG.strip('"'), f'"other", {TAG} x'])
async def test_if_match_without_the_strong_tag_is_412(api: Api, field: str) -> None:
    entry = await api.put(LOG)
    response = await api.get(content_of(entry), headers={"If-Match": field})

    assert (response.status, (await problem(response)).code) == (412, Code.PRECONDITION_FAILED)


@pytest.mark.parametrize("target", ["/healthz", "/v1/usage", "/v1/captures"])
async def test_a_precondition_that_is_not_utf_8_is_told_in_a_problem(api: Api, target: str) -> None:
    answer = await exchange(api, "GET", target, HOST, b"If-Match: \xff".decode("utf-8", "surrogateescape"))

    assert (answer.status, answer.problem.code) == (412, Code.PRECONDITION_FAILED)
    assert r"\udcff" in answer.problem.detail


@pytest.mark.parametrize("field", [TAG, "*", f"W/{TAG}", f'"other",W/{TAG}', f'"a,b", {TAG}'])
async def test_if_none_match_with_the_tag_is_304(api: Api, field: str) -> None:
    entry = await api.put(LOG)
    whole = await api.get(content_of(entry))
    response = await api.get(content_of(entry), headers={"If-None-Match": field})

    assert (response.status, await response.read()) == (304, b"")
    for name in ("ETag", "Cache-Control", "Vary"):
        assert response.headers[name] == whole.headers[name]


@pytest.mark.parametrize("field", ['"other"', '"a,b"', "", "x", "**"])
async def test_if_none_match_with_other_tags_is_answered(api: Api, field: str) -> None:
    entry = await api.put(LOG)
    response = await api.get(content_of(entry), headers={"If-None-Match": field})

    assert (response.status, await response.read()) == (200, LOG)


async def test_if_match_comes_before_if_none_match(api: Api) -> None:
    entry = await api.put(LOG)
    headers = {"If-Match": '"other"', "If-None-Match": TAG}

    assert (await api.get(content_of(entry), headers=headers)).status == 412
    assert (await api.get(content_of(entry), headers=headers | {"If-Match": TAG})).status == 304


@pytest.mark.parametrize("asked", ["bytes=0-4", "bytes=99999999-", "bytes=-0"])
async def test_a_precondition_comes_before_the_range(api: Api, asked: str) -> None:
    entry = await api.put(LOG)
    known = await api.get(content_of(entry), headers={"Range": asked, "If-None-Match": TAG})
    other = await api.get(content_of(entry), headers={"Range": asked, "If-Match": '"other"'})

    assert (known.status, other.status) == (304, 412)


async def test_a_precondition_of_what_is_not_there_is_404(api: Api) -> None:
    for name in ("If-Match", "If-None-Match"):
        response = await api.get(f"{path_of(LOG)}/content", headers={name: "*"})

        assert (response.status, (await problem(response)).code) == (404, Code.NOT_FOUND)


@pytest.mark.parametrize("name", ["If-Modified-Since", "If-Unmodified-Since"])
async def test_conditions_on_dates_are_ignored(api: Api, name: str) -> None:
    entry = await api.put(LOG)
    response = await api.get(content_of(entry), headers={name: "Thu, 01 Jan 1970 00:00:00 GMT"})

    assert (response.status, await response.read()) == (200, LOG)


async def test_several_lines_of_tags_are_one_list(api: Api) -> None:
    entry = await api.put(LOG)
    target = content_of(entry)
    known = await exchange(api, "GET", target, HOST, 'If-None-Match: "other"', f"If-None-Match: {TAG}")
    wanted = await exchange(api, "GET", target, HOST, 'If-Match: "other"', f"If-Match: {TAG}")

    assert (known.status, known.body) == (304, b"")
    assert (wanted.status, wanted.body) == (200, LOG)


@pytest.mark.parametrize(
    ("field", "status"),
    [(TAG, 206), (f"W/{TAG}", 200), ('"other"', 200), ("Thu, 01 Jan 1970 00:00:00 GMT", 200)],
)
async def test_if_range_holds_for_the_strong_tag_alone(api: Api, field: str, status: int) -> None:
    entry = await api.put(LOG)
    response = await api.get(content_of(entry), headers={"Range": "bytes=2-5", "If-Range": field})

    assert response.status == status
    assert await response.read() == (LOG[2:6] if status == 206 else LOG)


async def test_if_range_that_does_not_hold_never_answers_416(api: Api) -> None:
    entry = await api.put(LOG)
    headers = {"Range": "bytes=99999999-", "If-Range": '"other"'}

    assert (await api.get(content_of(entry), headers=headers)).status == 200


async def test_a_put_that_must_be_new_is_412_the_second_time(api: Api) -> None:
    first = await api.send("PUT", path_of(LOG), data=LOG, headers={"If-None-Match": "*"})
    second = await api.send("PUT", path_of(LOG), data=LOG, headers={"If-None-Match": "*"})

    assert (first.status, second.status) == (201, 412)
    assert (await problem(second)).code == Code.PRECONDITION_FAILED


async def test_a_put_that_must_replace_is_412_the_first_time(api: Api) -> None:
    for expected in (412, 200):
        response = await api.send("PUT", path_of(LOG), data=LOG, headers={"If-Match": "*"})
        assert response.status == expected
        await api.put(LOG)


async def test_a_change_is_refused_by_a_failed_precondition(api: Api) -> None:
    entry = await api.put(LOG)
    path = f"/v1/captures/{entry.id}"
    for method, sent in (("DELETE", {}), ("PATCH", {"json": {"ttl": 60}})):
        for headers in ({"If-Match": '"other"'}, {"If-None-Match": "*"}):
            response = await api.send(method, path, headers=headers, **sent)
            assert (response.status, (await problem(response)).code) == (412, Code.PRECONDITION_FAILED)
    assert (await (await api.get(path)).json())["expires"] == msg_time(entry)
    assert (await api.send("DELETE", path, headers={"If-Match": "*"})).status == 200
    assert (await api.send("DELETE", path_of(b"never"), headers={"If-Match": "*"})).status == 404


def msg_time(entry: wire.Entry) -> Any:
    return entry.expires.isoformat().replace("+00:00", "Z")


async def test_a_get_without_a_tag_knows_any_and_no_other(api: Api) -> None:
    entry = await api.put(LOG)
    for path in (f"/v1/captures/{entry.id}", f"/v1/captures/{entry.id}/head", "/v1/captures", "/v1/usage"):
        assert (await api.get(path, headers={"If-None-Match": "*"})).status == 304
        assert (await api.get(path, headers={"If-None-Match": TAG})).status == 200
        assert (await api.get(path, headers={"If-Match": TAG})).status == 412


# --- ranges (section 14) --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        (f"bytes=5-{'9' * 40}", slice(5, None)),
        (f"bytes=-{'9' * 40}", slice(0, None)),
        (f"bytes={'0' * 40}2-{'0' * 4300}5", slice(2, 6)),
    ],
)
async def test_positions_of_any_length_are_numbers(api: Api, asked: str, part: slice) -> None:
    entry = await api.put(LOG)
    response = await api.get(content_of(entry), headers={"Range": asked})

    assert (response.status, await response.read()) == (206, LOG[part])


async def test_a_range_of_a_head_request_is_ignored(api: Api) -> None:
    entry = await api.put(LOG)
    for asked in ("bytes=0-4", "bytes=99999999-"):
        response = await api.send("HEAD", content_of(entry), headers={"Range": asked})

        assert (response.status, response.headers["Content-Length"]) == (200, str(len(LOG)))


async def test_a_put_with_a_content_range_is_400_and_stores_nothing(api: Api) -> None:
    field = {"Content-Range": f"bytes 0-4/{len(LOG)}"}
    response = await api.send("PUT", path_of(LOG), data=LOG[:5], headers=field)

    assert (response.status, (await problem(response)).code) == (400, Code.INVALID_REQUEST)
    assert (await api.get(path_of(LOG))).status == 404


# --- negotiation (section 12) ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "coding"),
    [
        ("identity;q=0, zstd", "zstd"),
        ("identity;q=0, *", "zstd"),
        ("*;q=0, zstd", "zstd"),
        ("gzip;q=1.0, zstd;q=0.001", "zstd"),
        ("*;q=0, identity", None),
        ("zstd;q=0.3, *;q=0.5", None),
        ("zstd;q=0, *", None),
        ("zstd;q=0.5, identity;q=0.6", None),
        ("zstd;q=1.5", None),
        ("zstd;q=nan", None),
        ("zstd;level=3;q=0", None),
        ("", None),
    ],
)
async def test_the_coding_follows_the_weights(api: Api, field: str, coding: str | None) -> None:
    entry = await api.put(LOG)
    response = await api.get(content_of(entry), headers={"Accept-Encoding": field})

    assert (response.status, response.headers.get("Content-Encoding")) == (200, coding)


@pytest.mark.parametrize(
    "field", ["identity;q=0", "*;q=0", "identity;q=0, gzip", "*;q=0.0, br", "identity;q=0,zstd;q=0"]
)
async def test_codings_that_rule_out_everything_are_406(api: Api, field: str) -> None:
    entry = await api.put(LOG)
    for path in (content_of(entry), f"/v1/captures/{entry.id}", "/v1/captures"):
        if path != content_of(entry) or "zstd" in field or "gzip" in field or "," not in field:
            response = await api.get(path, headers={"Accept-Encoding": field})

            assert (response.status, (await problem(response)).code) == (406, Code.NOT_ACCEPTABLE)


async def test_a_write_is_done_whatever_its_answer_may_look_like(api: Api) -> None:
    response = await api.send("PUT", path_of(LOG), data=LOG, headers={"Accept-Encoding": "*;q=0"})

    assert response.status == 201


async def test_a_range_comes_as_it_is_unless_that_is_ruled_out(api: Api) -> None:
    entry = await api.put(LOG)
    both = await api.get(content_of(entry), headers={"Range": "bytes=0-4", "Accept-Encoding": "zstd"})
    only = await api.get(
        content_of(entry), headers={"Range": "bytes=0-4", "Accept-Encoding": "zstd, identity;q=0"}
    )

    assert (both.status, await both.read()) == (206, LOG[:5])
    assert (only.status, only.headers["Content-Encoding"]) == (200, "zstd")


@pytest.mark.parametrize(
    ("accept", "is_text"),
    [
        ("text/plain", True),
        ("text/*", True),
        ("text/plain, */*;q=0.1", True),
        ("text/plain;q=0.5, application/*;q=0.4", True),
        ("text/plain;q=0.5, */*", False),
        ("text/plain;q=0", False),
        ("*/*", False),
        ("image/png", False),
        ("", False),
    ],
)
async def test_text_alone_comes_to_who_prefers_it(api: Api, accept: str, is_text: bool) -> None:
    entry = await api.put(LOG)
    response = await api.get(f"/v1/captures/{entry.id}/head", headers={"Accept": accept})

    assert response.status == 200
    assert (response.content_type == "text/plain") is is_text


async def test_several_lines_of_accepted_codings_are_one_list(api: Api) -> None:
    entry = await api.put(LOG)
    answer = await exchange(
        api, "GET", content_of(entry), HOST, "Accept-Encoding: gzip", "Accept-Encoding: zstd"
    )

    assert answer.headers["Content-Encoding"] == "zstd"


# --- bodies (sections 8, 9.3.4; RFC 9530) ---------------------------------------------------------


TWICE = gzip.compress(zstandard.ZstdCompressor().compress(LOG))


@pytest.mark.parametrize(
    "fields",
    [
        ["Content-Encoding: zstd", "Content-Encoding: gzip"],
        ["Content-Encoding: zstd, gzip"],
        ["Content-Encoding: gzip", "Content-Encoding: gzip"],
    ],
)
async def test_a_body_that_is_encoded_twice_is_415_and_stores_nothing(api: Api, fields: list[str]) -> None:
    answer = await exchange(api, "PUT", path_of(LOG), HOST, *fields, body=TWICE)

    assert (answer.status, answer.problem.code) == (415, Code.UNSUPPORTED_ENCODING)
    assert answer.headers["Accept-Encoding"] == "zstd, gzip"
    assert (await api.get(path_of(LOG))).status == 404


@pytest.mark.parametrize(
    "fields",
    [
        ["Content-Encoding: GZIP"],
        ["Content-Encoding: identity", "Content-Encoding: gzip"],
        ["Content-Encoding: x-gzip,"],
    ],
)
async def test_a_coding_is_known_in_any_case_and_beside_identity(api: Api, fields: list[str]) -> None:
    answer = await exchange(api, "PUT", path_of(LOG), HOST, *fields, body=gzip.compress(LOG))

    assert answer.status == 201
    assert await (await api.get(f"{path_of(LOG)}/content")).read() == LOG


def digest(content: bytes) -> str:
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


@pytest.mark.parametrize(
    "fields",
    [
        [f"sha-512=:AAAA:, sha-256=:{digest(LOG)}:"],
        [f'sha-256=:{digest(LOG)}:;note="a, b";x, unixsum=:AAAA:'],
        ["md5=:AAAA:", f"sha-256=:{digest(LOG)}:"],
        [f"sha-256=:{digest(b'else')}:, sha-256=:{digest(LOG)}:"],
        [f'other=(1 "x)");y, sha-256=:{digest(LOG)}:'],
    ],
)
async def test_a_digest_is_found_among_others_and_parameters(api: Api, fields: list[str]) -> None:
    lines = [f"Repr-Digest: {field}" for field in fields]
    right = await exchange(api, "PUT", path_of(LOG), HOST, *lines, body=LOG)
    wrong = await exchange(api, "PUT", path_of(b"x"), HOST, *lines, body=b"x")

    assert (right.status, wrong.status, wrong.problem.code) == (201, 400, Code.DIGEST_MISMATCH)


@pytest.mark.parametrize(
    "name", ["Overspill-Session", "Overspill-Ttl", "Overspill-Call-Id", "Overspill-Label-a"]
)
async def test_a_field_that_is_no_list_comes_once(api: Api, name: str) -> None:
    value = "60" if name == "Overspill-Ttl" else "a"
    answer = await exchange(
        api, "PUT", path_of(LOG), HOST, f"{name}: {value}", f"{name.lower()}: {value}", body=LOG
    )

    assert (answer.status, answer.problem.code) == (422, Code.INVALID_HEADER)
    assert name.lower() in answer.problem.detail.lower()


async def test_a_second_authorization_is_no_key(api: Api) -> None:
    answer = await exchange(
        api, "GET", "/v1/captures", HOST, "Authorization: Bearer a", "Authorization: Bearer b"
    )

    assert (answer.status, answer.problem.code) == (401, Code.UNAUTHORIZED)


# --- the request itself (sections 7.2, 10.1.1; RFC 3986) ------------------------------------------


@pytest.mark.parametrize("hosts", [[], [HOST, HOST]])
async def test_a_request_needs_one_host(api: Api, hosts: list[str]) -> None:
    answer = await exchange(api, "GET", "/healthz", *hosts)

    assert answer.status == 400


@pytest.mark.parametrize("authority", ["attacker.example", "localhost@attacker.example", "localhost:1", ""])
async def test_a_target_with_another_host_than_the_field_is_400(api: Api, authority: str) -> None:
    answer = await exchange(api, "GET", f"http://{authority}/v1/usage", HOST)

    assert answer.problem.code == Code.INVALID_REQUEST


async def test_a_target_with_the_host_of_the_field_is_that_path(api: Api) -> None:
    answer = await exchange(api, "GET", "http://LOCALHOST/v1/usage", HOST)

    assert answer.status == 200


@pytest.mark.parametrize("version", ["2.0", "0.9"])
async def test_another_version_of_http_is_400(api: Api, version: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(f"GET /healthz HTTP/{version}\r\nHost: localhost\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()

    assert answer.split()[1] == b"400"


async def test_what_cannot_be_read_is_a_problem_that_quotes_nothing(api: Api) -> None:
    answer = await exchange(api, "GET", "/healthz", HOST, "X-Secret: s3cr3t\x01")

    assert answer.problem.code == Code.INVALID_REQUEST
    assert answer.problem.detail == "Invalid header value char"
    assert b"s3cr3t" not in answer.body


@pytest.mark.parametrize(
    "target",
    [
        "/v1/captures/{id}/grep?pattern=%FF",
        "/v1/captures/{id}/grep?pattern=a%C3",
        "/v1/captures/{id}/grep?pattern=%ED%A0%80",
        "/v1/captures/{id}/grep?fixed=true&pattern=\udcff",
        "/v1/captures?session=%FE%FF",
        "/v1/captures/call:%FF",
        "/nowhere/%FF",
    ],
)
async def test_a_target_that_is_not_utf_8_is_400(api: Api, target: str) -> None:
    entry = await api.put(LOG)
    answer = await exchange(api, "GET", target.replace("{id}", entry.id), HOST)

    assert answer.status == 400
    if "\udcff" not in target:  # a bare byte that is not ASCII is not HTTP: the parser itself refuses it
        assert answer.problem.code == Code.INVALID_REQUEST


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/healthz", "foo"),
        ("/v1/captures", "foo"),
        ("/nowhere", "foo"),
        ("/healthz", b"\xff".decode("utf-8", "surrogateescape")),
        ("/v1/captures", b"100-continue, \xff".decode("utf-8", "surrogateescape")),
    ],
    ids=["public", "private", "nowhere", "bytes", "bytes-behind"],
)
async def test_an_unknown_expectation_is_417(api: Api, target: str, expected: str) -> None:
    answer = await exchange(api, "GET", target, HOST, f"Expect: {expected}")

    assert (answer.status, answer.problem.code) == (417, Code.EXPECTATION_FAILED)
    assert answer.headers["X-Request-Id"] == answer.problem.instance


async def test_who_closes_his_side_before_the_answer_counts_as_gone(api: Api, producer: Producer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(f"GET {producer.path}/wait?timeout=600 HTTP/1.1\r\n{HOST}\r\n\r\n".encode())
    writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()

    assert answer == b""


async def test_a_client_that_waits_to_continue_is_told_to(api: Api) -> None:
    answer = await exchange(api, "PUT", path_of(LOG), HOST, "Expect: 100-continue", body=LOG)

    assert answer.status == 100
    assert b"HTTP/1.1 201" in answer.body


@pytest.mark.parametrize(
    ("request_line", "fields", "status"),
    [
        (f"PUT {path_of(LOG)}", ["Content-Length: 5", "Content-Encoding: br"], 415),
        (f"PUT {path_of(LOG)}", [f"Content-Length: {2**60}"], 413),
        (f"PUT {path_of(LOG)}", ["Content-Length: 5", "Origin: https://foreign.example"], 403),
        ("PUT /v1/captures/none", ["Content-Length: 5"], 422),
        ("POST /v1/observations", ["Content-Type: application/json", f"Content-Length: {2**24}"], 413),
        (
            f"POST {path_of(LOG)}/append",
            ["Overspill-Producer: me", "Upload-Offset: 0", f"Content-Length: {2**24}"],
            413,
        ),
        (f"PUT {path_of(LOG)}/live", ["Overspill-Producer: me", "Content-Length: 5"], 400),
    ],
)
async def test_a_client_that_waits_to_continue_is_refused_before_it_sends_its_body(
    api: Api, request_line: str, fields: list[str], status: int
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    head = [f"{request_line} HTTP/1.1", HOST, "Expect: 100-continue", *fields, "", ""]
    writer.write("\r\n".join(head).encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    writer.close()

    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nConnection: close\r\n" in answer


@pytest.mark.parametrize(
    "query",
    [
        "since=0001-01-01T00:00:00Z",
        "since=0001-01-01T00:00:00",
        "until=9999-12-31T23:59:59.999999Z",
        "until=9999-12-31T23:59:59",
        "since=0001-01-01T00:00:00%2B23:59",
        "until=9999-12-31T23:59:59-23:59",
        "since=-62135596800",
    ],
)
async def test_the_ends_of_time_list_everything(api: Api, query: str) -> None:
    entry = await api.put(LOG)
    response = await api.get(f"/v1/captures?{query}")

    assert response.status == 200
    assert [each["id"] for each in (await response.json())["captures"]] == [entry.id]


@pytest.mark.parametrize(
    "query", ["since=9999-12-31T23:59:59Z", "until=0001-01-01T00:00:00Z", "until=1969-12-31T23:59:59"]
)
async def test_the_wrong_ends_of_time_list_nothing(api: Api, query: str) -> None:
    await api.put(LOG)
    response = await api.get(f"/v1/captures?{query}")

    assert (response.status, (await response.json())["captures"]) == (200, [])


@pytest.mark.parametrize(
    "query", ["since=0001-01-01", "since=now", "until=1e400", "since=", "since=10000-01-01T00:00:00Z"]
)
async def test_what_is_no_time_is_named(api: Api, query: str) -> None:
    response = await api.get(f"/v1/captures?{query}")

    assert (response.status, (await problem(response)).code) == (422, Code.INVALID_PARAMETER)


async def test_a_time_without_a_zone_is_utc(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = await api.put(LOG)
    shown = entry.created.replace(tzinfo=None).isoformat()
    for query, expected in ((f"since={shown}", 1), (f"until={shown}", 0)):
        assert len((await (await api.get(f"/v1/captures?{query}")).json())["captures"]) == expected


# --- methods and answers (sections 9, 15) ---------------------------------------------------------


def gets() -> list[Route]:
    return [route for route in ROUTES if route.method == "GET"]


@pytest.mark.parametrize("route", gets(), ids=lambda route: route.name)
@pytest.mark.parametrize("accepted", ["identity", "zstd"])
async def test_head_has_the_fields_of_get(api: Api, route: Route, accepted: str) -> None:
    await api.put(LOG)
    path = route.path.replace("{ref}", id_of(LOG)) + ("?pattern=7" if "grep" in route.path else "")
    # Figures change with every request; asked for twice they have another length.
    # The fields of the connection are of no answer's resource (RFC 9110, section 9.3.2).
    varying = {"Date", "X-Request-ID", "Transfer-Encoding", "RateLimit"} | (
        {"Content-Length"} if route.path == wire.Path.METRICS else set()
    )
    seen = []
    for method in ("GET", "HEAD"):
        response = await api.send(method, path, headers={"Accept-Encoding": accepted})
        seen.append((response.status, {k: v for k, v in response.headers.items() if k not in varying}))
        body = await response.read()

    assert seen[0] == seen[1]
    assert body == b""


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "POST", "PROPFIND"])
async def test_a_method_that_a_path_does_not_take_is_405_with_those_it_takes(api: Api, method: str) -> None:
    answer = await exchange(api, method, path_of(LOG), HOST)

    assert (answer.status, answer.problem.code) == (405, Code.METHOD_NOT_ALLOWED)
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "PUT", "PATCH", "DELETE"}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not on the PATH")
async def test_curl_goes_on_with_a_download_where_it_was(api: Api, tmp_path: Path) -> None:
    entry = await api.put(LOG)
    part = tmp_path / "part"
    part.write_bytes(LOG[:100])
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "--fail", "-C", "-", "-o", str(part), str(api.url(content_of(entry)))
    )

    assert await process.wait() == 0
    assert part.read_bytes() == LOG
