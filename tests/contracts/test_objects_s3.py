"""The S3 store against failures of a real server, injected by a proxy in front of it."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import trustme
from aiohttp import web
from overspill_service.errors import StoreFull, StoreUnavailable
from overspill_service.objects.s3 import Location, S3Store

from tests.leaks import open_files
from tests.servers.faulty_proxy import halve_reply, hold, lose_reply, refuse, reset, running, stall
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.servers.faulty_proxy import Exchange, Fault, FaultyProxy
    from tests.servers.swift import S3Server

KEY = "v1/tenant/cap_aaaaaaaaaaaaaaaaaaaa/upload-00000"


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    return s3_server.create_bucket()


@asynccontextmanager
async def opened(url: str, deadline: float = 60) -> AsyncIterator[S3Store]:
    store = S3Store(Location.from_url(url), deadline=deadline, page_size=5)
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def store(s3_server: S3Server, faulty_s3: FaultyProxy, bucket: str) -> AsyncIterator[S3Store]:
    """A store behind the faulty proxy."""
    async with opened(s3_server.url(bucket, "captures", endpoint=faulty_s3.url)) as made:
        yield made


@pytest.fixture
async def hasty(s3_server: S3Server, faulty_s3: FaultyProxy, bucket: str) -> AsyncIterator[S3Store]:
    """One that gives up soon."""
    async with opened(s3_server.url(bucket, "captures", endpoint=faulty_s3.url), deadline=0.5) as made:
        yield made


PASSING: list[Fault] = [
    refuse(500, "InternalError"),
    refuse(502),
    refuse(503, "SlowDown"),
    refuse(429, "TooManyRequests"),
    refuse(409, "ConditionalRequestConflict"),
    refuse(400, "RequestTimeout"),
    refuse(400, "IncompleteBody"),
    refuse(400, "Throttling"),
    reset,
]


async def test_a_put_survives_failures_that_pass(store: S3Store, faulty_s3: FaultyProxy) -> None:
    for fault in PASSING:
        faulty_s3.script("PUT", fault)
        await store.put(f"{KEY}{faulty_s3.count('PUT')}", [b"content"])

    assert faulty_s3.count("PUT") == 2 * len(PASSING)


async def test_a_read_survives_failures_that_pass(store: S3Store, faulty_s3: FaultyProxy) -> None:
    await store.put(KEY, [b"content"])
    for fault in [*PASSING, halve_reply]:
        faulty_s3.script("GET", fault)
        assert await store.read(KEY, 1, 5) == b"onten"

    assert faulty_s3.count("GET") == 2 * (len(PASSING) + 1)


async def test_a_deletion_survives_failures_that_pass(store: S3Store, faulty_s3: FaultyProxy) -> None:
    await store.put(KEY, [b"content"])
    faulty_s3.script("DELETE", reset, refuse(503, "SlowDown"), lose_reply)
    await store.delete([KEY])

    with pytest.raises(KeyError):
        await store.read(KEY, 0, 1)


async def test_a_404_that_is_not_the_stores_own_says_nothing_of_an_object(
    store: S3Store, faulty_s3: FaultyProxy
) -> None:
    await store.put(KEY, [b"content"])
    for method in ("GET", "DELETE"):
        faulty_s3.script(method, refuse(404))
    with pytest.raises(StoreUnavailable):
        await store.read(KEY, 0, 7)
    with pytest.raises(StoreUnavailable):
        await store.delete([KEY])

    assert await store.read(KEY, 0, 7) == b"content"


async def answer_without_doing(exchange: Exchange) -> web.Response:
    """What a store answers that does not know copies: it has put an object of nothing."""
    await exchange.request.content.read()
    return web.Response()


async def test_a_copy_survives_failures_that_pass(store: S3Store, faulty_s3: FaultyProxy) -> None:
    await store.put(KEY, [b"content"])
    faulty_s3.forget()
    faults = [*PASSING, lose_reply, refuse(200, "InternalError"), answer_without_doing]
    for number, fault in enumerate(faults):
        faulty_s3.script("PUT", fault)
        await store.copy(KEY, f"{KEY}{number}")

        assert await store.read(f"{KEY}{number}", -9, 0) == b"content"
    assert faulty_s3.count("PUT") == 2 * len(faults)


async def test_a_store_that_copies_nothing_is_unavailable(hasty: S3Store, faulty_s3: FaultyProxy) -> None:
    await hasty.put(KEY, [b"content"])
    faulty_s3.always("PUT", answer_without_doing)

    with pytest.raises(StoreUnavailable, match="answered 200, but did not do as it was asked"):
        await hasty.copy(KEY, f"{KEY}1")


@pytest.mark.parametrize("page", ["<html><br></html>", "<html>sign in</html>", ""])
async def test_a_success_that_somebody_before_the_store_gave_is_none(
    store: S3Store, hasty: S3Store, faulty_s3: FaultyProxy, page: str
) -> None:
    async def answer(exchange: Exchange) -> web.Response:
        await exchange.request.content.read()
        return web.Response(text=page, content_type="text/html")

    await store.put(KEY, [b"content"])
    for method in ("PUT", "GET", "DELETE", "POST"):
        faulty_s3.always(method, answer)
    for attempt in (
        hasty.put(f"{KEY}1", [b"x"]),
        hasty.read(KEY, 0, 7),
        hasty.read(KEY, -7, 0),
        hasty.delete([KEY]),
        hasty.delete([KEY, *(f"{KEY}{number}" for number in range(9))]),
    ):
        with pytest.raises(StoreUnavailable):
            await attempt
    assert await hasty.keeps_versions() is None
    faulty_s3.heal()

    assert await store.read(KEY, 0, 7) == b"content"


async def test_a_page_in_the_place_of_the_store_is_not_taken_for_it(
    store: S3Store, hasty: S3Store, faulty_s3: FaultyProxy
) -> None:
    async def answer(_: Exchange) -> web.Response:
        return web.Response(text="<html>sign in</html>", content_type="text/html")

    faulty_s3.always("HEAD", answer)

    with pytest.raises(StoreUnavailable, match="if a proxy answers in its place"):
        await hasty.ping()
    faulty_s3.heal()
    await store.ping()


@pytest.mark.parametrize("shown", [{"Content-Length": "0"}, {"x-goog-metageneration": "1"}])
async def test_a_store_that_calls_its_empty_answers_html_is_ready(
    shown: dict[str, str], hasty: S3Store, faulty_s3: FaultyProxy
) -> None:
    async def answer(_: Exchange) -> web.Response:
        return web.Response(content_type="text/html", headers=shown)

    faulty_s3.always("HEAD", answer)

    await hasty.ping()


async def cut_reply(exchange: Exchange) -> web.Response:
    """Half of the body as if it were all: its length is that of the half."""
    reply = await exchange.forward()
    assert isinstance(reply.body, bytes)
    reply.body = reply.body[: len(reply.body) // 2]
    return reply


async def test_a_body_that_was_cut_on_its_way_is_no_damage(store: S3Store, faulty_s3: FaultyProxy) -> None:
    await store.put(KEY, [b"content"])
    for start in (0, 1, -6):
        faulty_s3.script("GET", cut_reply)

        assert await store.read(KEY, start, 6) == (b"content"[start:][:6])
    assert faulty_s3.count("GET") == 6


async def test_a_copy_is_one_request_without_the_objects_bytes(
    store: S3Store, faulty_s3: FaultyProxy
) -> None:
    await store.put(KEY, [bytes(1_000_000)])
    faulty_s3.forget()
    await store.copy(KEY, f"{KEY}1")

    assert (len(faulty_s3.seen), faulty_s3.received, faulty_s3.sent < 1000) == (1, 0, True)


async def test_a_put_whose_answer_was_lost_is_found_to_have_landed(
    store: S3Store, faulty_s3: FaultyProxy
) -> None:
    faulty_s3.script("PUT", lose_reply)
    await store.put(KEY, [b"content"])

    assert [seen.status for seen in faulty_s3.seen] == [200, 412]
    assert await store.read(KEY, -9, 0) == b"content"


async def test_a_large_put_is_sent_again_whole(store: S3Store, faulty_s3: FaultyProxy) -> None:
    pieces = [bytes([number]) * 700_000 for number in range(3)]
    faulty_s3.script("PUT", lose_reply, reset)
    await store.put(KEY, pieces)
    await store.put(f"{KEY}1", pieces)

    assert await store.read(f"{KEY}1", -2_100_000, 0) == b"".join(pieces)


@pytest.mark.parametrize("fault", [refuse(503, "SlowDown"), reset, stall])
async def test_a_failure_that_stays_is_unavailable_within_the_deadline(
    hasty: S3Store, faulty_s3: FaultyProxy, fault: Fault
) -> None:
    for method in ("PUT", "GET", "DELETE", "HEAD"):
        faulty_s3.always(method, fault)

    async with asyncio.timeout(PATIENCE):
        for attempt in (hasty.put(KEY, [b"x"]), hasty.read(KEY, 0, 1), hasty.delete([KEY]), hasty.ping()):
            with pytest.raises(StoreUnavailable):
                await attempt


async def test_the_last_answer_is_in_the_error(hasty: S3Store, faulty_s3: FaultyProxy) -> None:
    faulty_s3.always("PUT", refuse(503, "SlowDown"))

    with pytest.raises(StoreUnavailable, match="503 SlowDown"):
        await hasty.put(KEY, [b"x"])


@pytest.mark.parametrize("kept", ["", "all but the token"])
async def test_a_page_of_a_listing_that_was_cut_is_not_taken_for_its_end(
    store: S3Store, faulty_s3: FaultyProxy, kept: str
) -> None:
    for number in range(6):
        await store.put(f"{KEY}{number}", [b""])

    async def cut(exchange: Exchange) -> web.Response:
        reply = await exchange.forward()
        assert isinstance(reply.body, bytes)
        body = re.sub(rb"<NextContinuationToken>.*</NextContinuationToken>", b"", reply.body)
        return web.Response(body=body if kept else b"", content_type="application/xml")

    faulty_s3.script("GET", cut)
    with pytest.raises(StoreUnavailable, match="whole page"):
        [each async for each in store.list("")]


async def test_a_listing_that_fails_is_unavailable_within_the_deadline(
    hasty: S3Store, faulty_s3: FaultyProxy
) -> None:
    faulty_s3.always("GET", stall)

    with pytest.raises(StoreUnavailable, match=r"no answer .* within 0\.5 s"):
        _ = [stored async for stored in hasty.list("v1/")]
    faulty_s3.heal()


@pytest.mark.parametrize(
    ("status", "code"),
    [(507, ""), (507, "XMinioStorageFull"), (403, "QuotaExceeded"), (503, "InsufficientCapacity")],
)
async def test_a_store_without_room_says_so_at_once(
    store: S3Store, faulty_s3: FaultyProxy, status: int, code: str
) -> None:
    faulty_s3.always("PUT", refuse(status, code))

    with pytest.raises(StoreFull, match="no room"):
        await store.put(KEY, [b"x"])
    assert faulty_s3.count("PUT") == 1


async def test_a_store_without_conditional_puts_gets_plain_ones(
    store: S3Store, faulty_s3: FaultyProxy
) -> None:
    faulty_s3.script("PUT", refuse(501, "NotImplemented"))
    await store.put(KEY, [b"x"])
    await store.put(f"{KEY}1", [b"y"])

    assert ["If-None-Match" in seen.headers for seen in faulty_s3.seen] == [True, False, False]


@pytest.mark.parametrize("code", ["NotImplemented", "MethodNotAllowed", "MissingContentMD5"])
async def test_a_store_without_multi_delete_gets_single_ones(
    store: S3Store, faulty_s3: FaultyProxy, code: str
) -> None:
    keys = [f"{KEY}{number}" for number in range(7)]
    for key in keys:
        await store.put(key, [b"x"])
    faulty_s3.always("POST", refuse({"NotImplemented": 501, "MethodNotAllowed": 405}.get(code, 400), code))
    await store.delete(keys)

    assert faulty_s3.count("DELETE") == 7
    assert [stored async for stored in store.list("")] == []


async def test_a_multi_delete_that_says_nothing_of_it_is_no_deletion(
    store: S3Store, faulty_s3: FaultyProxy
) -> None:
    async def answer(exchange: Exchange) -> web.Response:
        await exchange.request.content.read()
        return web.Response(text="<Done/>", content_type="application/xml")

    keys = [f"{KEY}{number}" for number in range(7)]
    for key in keys:
        await store.put(key, [b"x"])
    faulty_s3.always("POST", answer)
    await store.delete(keys)

    assert (faulty_s3.count("POST"), faulty_s3.count("DELETE")) == (1, 7)
    assert [stored async for stored in store.list("")] == []


async def test_many_keys_are_deleted_in_few_requests(store: S3Store, faulty_s3: FaultyProxy) -> None:
    await store.delete(f"{KEY}{number}" for number in range(11))

    assert (faulty_s3.count("POST"), faulty_s3.count("DELETE")) == (2, 1)


async def test_a_range_read_is_one_request_and_receives_just_the_range(
    store: S3Store, faulty_s3: FaultyProxy
) -> None:
    await store.put(KEY, [bytes(1_000_000)])
    faulty_s3.forget()
    await store.read(KEY, 500_000, 1234)

    assert (len(faulty_s3.seen), faulty_s3.sent) == (1, 1234)


async def test_a_store_that_ignores_ranges_is_refused(store: S3Store, faulty_s3: FaultyProxy) -> None:
    await store.put(KEY, [bytes(100_000)])

    async def whole(exchange):  # type: ignore[no-untyped-def]
        reply = await exchange.forward()
        reply.set_status(200)
        del reply.headers["Content-Range"]
        reply.body = bytes(100_000)
        return reply

    faulty_s3.always("GET", whole)
    for start in (0, 10, -10):
        with pytest.raises(StoreUnavailable, match="range reads"):
            await store.read(KEY, start, 10)


async def test_requests_at_once_are_capped(s3_server: S3Server, faulty_s3: FaultyProxy, bucket: str) -> None:
    gate = asyncio.Event()
    faulty_s3.always("PUT", hold(gate))
    store = S3Store(Location.from_url(s3_server.url(bucket, endpoint=faulty_s3.url)), concurrency=3)
    puts = [asyncio.create_task(store.put(f"{KEY}{number}", [b"x"])) for number in range(9)]
    async with asyncio.timeout(PATIENCE):
        await faulty_s3.until(3)
    for _ in range(100):
        await asyncio.sleep(0)

    assert faulty_s3.count("PUT") == 3
    gate.set()
    await asyncio.gather(*puts)
    await store.close()


async def test_a_cancelled_put_frees_its_place(store: S3Store, faulty_s3: FaultyProxy) -> None:
    faulty_s3.script("PUT", stall)
    put = asyncio.create_task(store.put(KEY, [bytes(1_000_000)]))
    async with asyncio.timeout(PATIENCE):
        await faulty_s3.until(1)
    put.cancel()
    with pytest.raises(asyncio.CancelledError):
        await put

    await store.put(KEY, [b"x"])
    assert await store.read(KEY, 0, 1) == b"x"


async def test_a_put_that_is_given_up_leaves_no_connection_to_a_store_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"s3://bucket?endpoint=http://127.0.0.1:{hanging.getsockname()[1]}&region=us-east-1"
        async with opened(url, deadline=0.1) as store:
            before = open_files()
            with pytest.raises(StoreUnavailable):
                await store.put(KEY, [bytes(16 * 2**20)])
            await asyncio.sleep(0)

            assert open_files() == before


async def refusals(store: S3Store) -> list[str]:
    """What every operation says when the store refuses it."""

    async def listing() -> None:
        _ = [stored async for stored in store.list("")]

    attempts: list[Callable[[], object]] = [
        lambda: store.put(KEY, [b"x"]),
        lambda: store.read(KEY, 0, 1),
        lambda: store.delete([KEY]),
        lambda: store.delete(f"{KEY}{number}" for number in range(9)),
        store.ping,
        listing,
    ]
    found = []
    for attempt in attempts:
        with pytest.raises(StoreUnavailable) as caught:
            await attempt()  # type: ignore[misc]
        found.append(str(caught.value))
    return found


async def test_wrong_secrets_are_named_but_never_shown(
    s3_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-session-token")
    with caplog.at_level(logging.DEBUG):
        async with opened(s3_url) as store:
            messages = await refusals(store)

    assert all("credentials" in message for message in messages)
    shown = caplog.text + "".join(messages)
    assert "not-the-secret" not in shown
    assert "a-session-token" not in shown


async def test_missing_credentials_are_named(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    async with opened(s3_url) as store:
        messages = await refusals(store)

    assert all("set AWS_ACCESS_KEY_ID" in message for message in messages)


async def test_a_missing_bucket_is_named(s3_server: S3Server) -> None:
    async with opened(s3_server.url("no-such-bucket")) as store:
        messages = await refusals(store)

    assert all("'no-such-bucket' does not exist" in message for message in messages)


async def test_a_server_that_is_not_there_is_unavailable(s3_server: S3Server) -> None:
    async with opened("s3://bucket?endpoint=http://127.0.0.1:1", deadline=1) as store:
        messages = await refusals(store)

    assert all("object store" in message for message in messages)


@pytest.fixture
async def encrypted(s3_server: S3Server) -> AsyncIterator[tuple[FaultyProxy, trustme.CA]]:
    """The server behind TLS, and the authority that vouches for it."""
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    async with running(s3_server.endpoint, tls) as proxy:
        yield proxy, authority


async def test_over_tls_the_authority_that_aws_ca_bundle_names_is_trusted(
    encrypted: tuple[FaultyProxy, trustme.CA],
    s3_server: S3Server,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy, authority = encrypted
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    async with opened(s3_server.url(bucket, endpoint=proxy.url)) as store:
        await store.put(KEY, [b"content"])

        assert await store.read(KEY, 0, 7) == b"content"
        assert [stored.key async for stored in store.list("")] == [KEY]


async def test_an_authority_that_is_not_trusted_is_named(
    encrypted: tuple[FaultyProxy, trustme.CA],
    s3_server: S3Server,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    async with opened(s3_server.url(bucket, endpoint=encrypted[0].url), deadline=10) as store:
        messages = await refusals(store)

    assert all("certificate of the object store is not trusted" in message for message in messages)


async def test_access_denied_lists_the_permissions(store: S3Store, faulty_s3: FaultyProxy) -> None:
    faulty_s3.always("PUT", refuse(403, "AccessDenied"))

    with pytest.raises(StoreUnavailable, match="s3:PutObject"):
        await store.put(KEY, [b"x"])


async def test_a_bucket_that_keeps_objects_by_default_is_named_as_what_may_be_wrong(
    store: S3Store, faulty_s3: FaultyProxy
) -> None:
    faulty_s3.always("PUT", refuse(400, "InvalidRequest"))

    with pytest.raises(StoreUnavailable, match="Object Lock"):
        await store.put(KEY, [b"x"])


async def test_a_clock_that_is_far_off_is_named(
    store: S3Store, faulty_s3: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: tomorrow)

    with pytest.raises(StoreUnavailable, match="clock"):
        await store.put(KEY, [b"x"])


async def test_a_probe_finds_out_what_the_store_can_do(store: S3Store) -> None:
    probe = await store.probe()

    assert probe.conditional_create
    assert abs(probe.clock_skew_seconds) < 60


async def test_a_probe_finds_that_conditions_are_ignored(store: S3Store, faulty_s3: FaultyProxy) -> None:
    async def accept(exchange):  # type: ignore[no-untyped-def]
        reply = await exchange.forward()
        reply.set_status(200)
        reply.headers["ETag"] = '"0"'
        return reply

    faulty_s3.always("PUT", accept)
    assert not (await store.probe()).conditional_create
    faulty_s3.forget()
    await store.put(KEY, [b"x"])
    assert "If-None-Match" not in faulty_s3.seen[0].headers


async def test_an_examination_of_an_unreachable_store_is_one_line_that_says_why(s3_server: S3Server) -> None:
    async with opened(s3_server.url("no-such-bucket")) as store:
        [result] = await store.check()

    assert (result.name, result.ok) == ("bucket", False)
    assert "create it" in result.detail


async def test_a_bucket_can_be_created_twice(s3_server: S3Server, bucket: str) -> None:
    async with opened(s3_server.url(f"{bucket}-2")) as store:
        await store.create_bucket()
        await store.create_bucket()

        await store.put(KEY, [b"x"])


async def test_stores_of_two_prefixes_in_one_bucket_do_not_see_each_other(
    s3_server: S3Server, bucket: str
) -> None:
    async with (
        opened(s3_server.url(bucket, "one")) as one,
        opened(s3_server.url(bucket, "one-more")) as other,
    ):
        await one.put(KEY, [b"x"])

        assert [stored.key async for stored in one.list("")] == [KEY]
        assert [stored async for stored in other.list("")] == []


async def test_objects_of_others_in_the_bucket_are_passed_over(
    store: S3Store, s3_server: S3Server, bucket: str
) -> None:
    await store.put(KEY, [b"x"])
    client = s3_server.client()
    client.put_object(Bucket=bucket, Key="captures/a b~c", Body=b"")
    client.put_object(Bucket=bucket, Key="elsewhere", Body=b"")
    client.close()

    assert [stored.key async for stored in store.list("")] == [KEY]


async def test_virtual_hosts_are_addressed_by_name() -> None:
    location = Location.from_url("s3://bucket/prefix?region=eu-west-1")

    assert location.base("https://s3.eu-west-1.amazonaws.com") == "https://bucket.s3.eu-west-1.amazonaws.com"


async def test_without_an_endpoint_the_region_of_aws_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    async with opened("s3://bucket/prefix?region=eu-west-1") as store:
        assert urlsplit(store.base).hostname == "bucket.s3.eu-west-1.amazonaws.com"


VERSIONED = """<?xml version="1.0" encoding="UTF-8"?>
<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Suspended</Status>
</VersioningConfiguration>"""
"""As Amazon's reference of GetBucketVersioning has it."""


async def versioned(exchange: Exchange) -> web.Response:
    assert "versioning" in exchange.request.query
    return web.Response(text=VERSIONED, content_type="application/xml")


async def test_a_bucket_that_was_ever_versioned_keeps_versions(
    store: S3Store, faulty_s3: FaultyProxy
) -> None:
    faulty_s3.always("GET", versioned)

    assert [await store.keeps_versions() for _ in range(3)] == [True] * 3
    assert faulty_s3.count("GET") == 1


async def test_a_store_that_refuses_to_tell_of_versions_leaves_it_open(
    hasty: S3Store, faulty_s3: FaultyProxy
) -> None:
    faulty_s3.always("GET", refuse(403, "AccessDenied"))

    assert await hasty.keeps_versions() is None
