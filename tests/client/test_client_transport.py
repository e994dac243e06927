"""The client's behaviour towards a service, and towards servers that are none: faults on real sockets."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import socket
import ssl
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
import pytest
import trustme
from overspill import errors, wire
from overspill.transfer.attempts import Attempts
from overspill.transfer.client import Client, call
from overspill.wire import Code

from tests.client.scripted import Step, answer, json, problem, reset, scripted, silence, then_close
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "osk_abcdefghijklmnop"
CAPTURE = "cap_" + "a" * 20
ENTRY = wire.Entry(
    id=CAPTURE,
    state=wire.State.COMPLETE,
    size=5,
    stored_size=5,
    lines=1,
    sha256="",
    content_type="",
    kind="text",
    tool="",
    session="",
    call_id="",
    status="",
    labels={},
    created=datetime(2026, 1, 1, tzinfo=UTC),
    expires=datetime(2026, 1, 2, tzinfo=UTC),
)
REMOVED = wire.Removed(captures=1, stored_size=5)


def client(url: str, **settings: object) -> Client:
    return Client(url, KEY, **{"timeout": 10.0, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize("code", Code)
async def test_every_code_raises_its_own_class(code: Code) -> None:
    async with scripted(problem(code)) as service, client(service.url, retries=0) as overspill:
        with pytest.raises(errors.ProblemError) as raised:
            await overspill.get(CAPTURE)

    assert type(raised.value).code_of_class is code
    assert (raised.value.status, raised.value.title) == (code.status, code.heading)


async def test_a_code_of_a_later_version_raises_the_base_class() -> None:
    body = wire.Problem(type="x", title="New", status=409, code="new_code", detail="something new")
    async with scripted(json(body, 409)) as service, client(service.url) as overspill:
        with pytest.raises(errors.ProblemError, match="something new") as raised:
            await overspill.get(CAPTURE)

    assert type(raised.value) is errors.ProblemError
    assert raised.value.code == "new_code"


async def test_an_error_carries_the_request_id_of_the_answer() -> None:
    step = problem(Code.NOT_FOUND, {"X-Request-Id": "r-17"})
    async with scripted(step) as service, client(service.url) as overspill:
        with pytest.raises(errors.NotFound, match="request r-17") as raised:
            await overspill.get(CAPTURE)

    assert raised.value.instance == "r-17"


def test_a_class_that_somebody_derives_is_not_what_the_client_raises() -> None:
    class Ours(errors.NotFound, code=Code.NOT_FOUND): ...

    assert type(errors.error_of(Code.NOT_FOUND, "")) is errors.NotFound
    assert Ours.code_of_class == Code.NOT_FOUND


def test_an_error_survives_pickling() -> None:
    error = errors.error_for(wire.Problem(type="x", title="t", status=404, code="not_found", detail="gone"))

    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # as a process pool does
    assert type(copy.copy(error)) is errors.NotFound


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_passing_failure_is_tried_again(status: int) -> None:
    failure = answer(b"busy", status, {"Retry-After": "0"})
    async with scripted(failure, failure, json(ENTRY)) as service, client(service.url) as overspill:
        entry = await overspill.get(CAPTURE)

    assert entry == ENTRY
    assert len(service.received) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 409, 500, 507])
async def test_a_lasting_failure_is_not_tried_again(status: int) -> None:
    async with scripted(answer(b"", status)) as service, client(service.url) as overspill:
        with pytest.raises(
            errors.ProblemError, match=rf"not the service, answered with HTTP {status} \("
        ) as raised:
            await overspill.get(CAPTURE)

    assert raised.value.status == status
    assert len(service.received) == 1


async def test_the_limit_of_a_proxy_is_named() -> None:
    async with scripted(answer(b"<h1>413</h1>", 413)) as service, client(service.url) as overspill:
        with pytest.raises(errors.ProblemError) as raised:
            await overspill.get(CAPTURE)

    assert str(raised.value) == (
        "a proxy or another program, not the service, answered with HTTP 413 "
        f"({HTTPStatus(413).phrase}): "  # other words from Python 3.13 on
        "it must take larger requests (nginx: client_max_body_size) (no code, HTTP 413)"
    )


async def test_a_wait_that_does_not_fit_the_deadline_is_not_waited() -> None:
    step = problem(Code.STORE_UNAVAILABLE, {"Retry-After": "60"})
    async with scripted(step) as service, client(service.url) as overspill:
        with pytest.raises(errors.StoreUnavailable) as raised:
            await overspill.get(CAPTURE)

    assert raised.value.retry_after == 60
    assert len(service.received) == 1


async def test_a_client_waits_for_as_long_as_it_is_told() -> None:
    busy = problem(Code.TOO_MANY_REQUESTS, {"Retry-After": "1"})
    async with scripted(busy, json(ENTRY)) as service, client(service.url) as overspill:
        start = time.monotonic()
        await overspill.get(CAPTURE)

    assert time.monotonic() - start >= 1
    assert len(service.received) == 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "60", "RateLimit": '"max";r=0;t=5'}, 60),
        ({"RateLimit-Policy": '"max";q=100', "RateLimit": '"max";r=0; t=60'}, 60),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"Retry-After": "soon", "RateLimit": '"max";r=0'}, None),
        ({"Retry-After": "-1"}, None),
    ],
)
async def test_the_headers_of_a_limit_say_when_to_come_again(
    headers: dict[str, str], seconds: int | None
) -> None:
    async with scripted(answer(b"", 429, headers)) as service, client(service.url, retries=0) as overspill:
        with pytest.raises(errors.ProblemError) as raised:
            await overspill.get(CAPTURE)

    assert raised.value.retry_after == seconds


async def test_a_date_to_come_again_is_counted_from_now() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    async with (
        scripted(answer(b"", 503, {"Retry-After": later})) as service,
        client(service.url) as overspill,
    ):
        with pytest.raises(errors.ProblemError) as raised:
            await overspill.get(CAPTURE)

    assert 30 <= (raised.value.retry_after or 0) <= 60


async def test_retries_end() -> None:
    async with scripted(answer(b"", 502)) as service, client(service.url, retries=2) as overspill:
        with pytest.raises(errors.ProblemError):
            await overspill.put("content")

    assert len(service.received) == 3


async def test_a_connection_that_always_breaks_is_given_up() -> None:
    async with scripted(reset) as service, client(service.url, retries=2) as overspill:
        with pytest.raises(errors.Unreachable):
            await overspill.put("content")

    assert len(service.received) <= 6  # aiohttp itself tries a broken connection once more


@pytest.mark.parametrize("fault", [reset, then_close(answer(b'{"id": "cap', length=500))])
async def test_a_connection_that_breaks_is_tried_again(fault: Step) -> None:
    async with scripted(fault, json(ENTRY)) as service, client(service.url) as overspill:
        assert await overspill.get(CAPTURE) == ENTRY


async def test_a_connection_that_was_closed_while_idle_costs_nothing() -> None:
    async with scripted(then_close(json(ENTRY))) as service, client(service.url) as overspill:
        for _ in range(3):
            assert await overspill.put("content") == ENTRY


async def test_a_repeated_put_sends_the_same_body() -> None:
    content = b"line\n" * 300_000
    async with scripted(reset, problem(Code.SHUTTING_DOWN), json(ENTRY)) as service, client(service.url) as c:
        await c.put(content)

    assert [request.body for request in service.received] == [content] * 3


async def test_a_sweep_is_never_repeated() -> None:
    async with scripted(problem(Code.SHUTTING_DOWN)) as service, client(service.url) as overspill:
        with pytest.raises(errors.ShuttingDown):
            await overspill.sweep()

    assert len(service.received) == 1


async def test_deleting_by_call_id_names_the_capture_it_found() -> None:
    """A repeated `DELETE call:…` would take the next older capture too."""
    async with scripted(json(ENTRY), reset, json(REMOVED)) as service, client(service.url) as overspill:
        assert await overspill.delete(call("call_0")) == REMOVED

    assert [request.target for request in service.received[1:]] == [f"/v1/captures/{CAPTURE}"] * 2


async def test_silence_ends_at_the_deadline() -> None:
    async with scripted(silence) as service, client(service.url, timeout=0.05) as overspill:
        with pytest.raises(errors.Unreachable, match=r"no answer within 0\.05 s"):
            await overspill.get(CAPTURE)


async def test_a_deadline_is_moved_by_progress_and_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer for each piece of an upload takes as long as sending the piece."""
    moved: list[float] = []
    timeout, loop = asyncio.timeout(100), asyncio.get_running_loop()
    attempts, now = Attempts(1, 100, timeout), loop.time()
    monkeypatch.setattr(timeout, "reschedule", moved.append)
    for _ in range(1000):
        attempts.extend()
    with monkeypatch.context() as later:
        later.setattr(loop, "time", lambda: now + 2)
        attempts.extend()

    assert moved == [now + 102]


async def test_a_service_that_is_not_there_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with client(f"http://127.0.0.1:{port}") as overspill:
        with pytest.raises(errors.Unreachable, match=f"127.0.0.1:{port} cannot be reached"):
            await overspill.get(CAPTURE)
        assert not await overspill.healthy()
        assert not await overspill.ready()


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", b'{"id": 3}', b"\xff\xfe"])
async def test_an_answer_that_is_not_overspills_is_a_protocol_error(body: bytes) -> None:
    async with scripted(answer(body)) as service, client(service.url) as overspill:
        with pytest.raises(errors.ProtocolError, match="not what Overspill answers"):
            await overspill.get(CAPTURE)


async def test_an_answer_that_is_not_http_is_unreachable() -> None:
    async def greet(writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.org ESMTP\r\n")

    async with scripted(greet) as service, client(service.url, retries=0) as overspill:
        with pytest.raises(errors.Unreachable):
            await overspill.get(CAPTURE)


async def test_an_endless_error_body_is_not_read_to_its_end() -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 500 Internal Server Error\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    async with scripted(endless) as service, client(service.url) as overspill:
        with pytest.raises(errors.ProblemError):
            await overspill.get(CAPTURE)
        await asyncio.wait_for(service.ended.wait(), PATIENCE)

    assert sent < 32 * 1024 * 1024


async def test_a_redirect_is_not_followed() -> None:
    async with scripted(json(ENTRY)) as other:
        moved = answer(b"", 307, {"Location": other.url + "/v1"})
        async with scripted(moved) as service, client(service.url) as overspill:
            with pytest.raises(errors.ProtocolError, match=f"redirects to {other.url}"):
                await overspill.get(CAPTURE)

    assert other.received == []


async def test_the_key_is_sent_and_never_shown() -> None:
    async with scripted(problem(Code.UNAUTHORIZED)) as service, client(service.url) as overspill:
        with pytest.raises(errors.Unauthorized) as raised:
            await overspill.get(CAPTURE)

    assert service.received[0].headers["authorization"] == f"Bearer {KEY}"
    for shown in (repr(overspill), repr(overspill.address), repr(raised.value), str(raised.value)):
        assert KEY not in shown


async def test_a_refusal_in_the_middle_of_an_upload_is_heard() -> None:
    """The service answers before it has read the body, as for a capture over the limit."""
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while taken < 2_000:
            taken += 1
            yield b"x" * 65536

    refusal = problem(Code.CAPTURE_TOO_LARGE, limit=10)
    async with scripted(refusal, reads_bodies=False) as service, client(service.url) as overspill:
        with pytest.raises(errors.CaptureTooLarge) as raised:
            await overspill.put(endless())

    assert raised.value.limit == 10


async def test_a_cancelled_call_lets_go_of_its_connection() -> None:
    async with scripted(silence) as service, client(service.url) as overspill:
        call = asyncio.create_task(overspill.put(b"x" * 100_000))
        while not service.received:  # noqa: ASYNC110  (a server in another task sets no event)
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        session = overspill._opened._session  # type: ignore[union-attr]
        assert session is not None
        assert session.connector is not None
        assert not session.connector._acquired
    assert len(service.received) == 1


async def test_connections_are_reused() -> None:
    async with scripted(json(ENTRY)) as service, client(service.url) as overspill:
        for _ in range(5):
            await overspill.get(CAPTURE)

    assert service.connections == 1


async def test_a_client_in_use_by_another_loop_says_so() -> None:
    async with scripted(json(ENTRY)) as service, client(service.url) as overspill:
        await overspill.get(CAPTURE)

        with pytest.raises(RuntimeError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, overspill.get(CAPTURE))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_client_whose_loop_has_ended_starts_afresh() -> None:
    async with scripted(json(ENTRY)) as service:
        overspill = client(service.url)
        await asyncio.to_thread(asyncio.run, overspill.get(CAPTURE))

        assert await asyncio.to_thread(asyncio.run, overspill.get(CAPTURE)) == ENTRY
        await asyncio.to_thread(asyncio.run, overspill.aclose())
    gc.collect()  # the sockets that the ended loop left open warn here, and nowhere later


async def test_a_closed_client_can_be_used_again() -> None:
    async with scripted(json(ENTRY)) as service:
        async with client(service.url) as overspill:
            await overspill.get(CAPTURE)
        async with overspill:
            assert await overspill.get(CAPTURE) == ENTRY


async def test_the_environments_proxy_is_used_but_not_its_netrc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine captures.example login somebody password else\n")
    async with scripted(json(ENTRY)) as proxy:
        monkeypatch.setenv("NETRC", str(netrc))
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "internal.example")
        async with client("http://captures.example") as overspill:
            await overspill.get(CAPTURE)

    assert proxy.received[0].target == f"http://captures.example/v1/captures/{CAPTURE}"
    assert proxy.received[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_service_on_this_machine_needs_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    async with scripted(json(ENTRY)) as service, client(service.url) as overspill:
        assert await overspill.get(CAPTURE) == ENTRY


OVER_TLS = """
import sys
import time
from overspill import SyncClient, Unreachable
with SyncClient(sys.argv[1], retries=0) as overspill:
    try:
        print(overspill.get(sys.argv[2]).id)
    except Unreachable as error:
        print(error)
"""


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_certificate_is_verified_with_the_authorities_of_the_environment(
    tmp_path: Path, *, is_known: bool
) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    (authority if is_known else trustme.CA()).cert_pem.write_to_path(str(bundle))
    async with scripted(json(ENTRY), tls=context) as service:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", OVER_TLS, service.url, CAPTURE),
            env={**os.environ, "SSL_CERT_FILE": str(bundle)},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await program.communicate()

    assert (CAPTURE if is_known else "its certificate is not trusted: ").encode() in output


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("localhost:8750", "must look like"),
        ("ftp://host", "must look like"),
        ("http://", "must look like"),
        ("http://host:port", "malformed"),
        ("http://[::1", "malformed"),
        ("http://user:secret@host", "no user or password"),
        ("http://host?x=1", "no query"),
    ],
)
def test_a_wrong_url_is_explained(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as raised:
        Client(url)

    assert "secret" not in str(raised.value)


def test_a_wrong_key_is_explained_without_showing_it() -> None:
    with pytest.raises(ValueError, match="OVERSPILL_KEY") as raised:
        Client(key="sec ret\n")

    assert "sec" not in str(raised.value)


def test_the_environment_gives_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERSPILL_URL", "https://captures.example/prefix/")
    monkeypatch.setenv("OVERSPILL_KEY", " osk_x\n")
    monkeypatch.setenv("OVERSPILL_SESSION", "run-7")
    overspill = Client()

    assert overspill.address.url == "https://captures.example/prefix"
    assert overspill.address.key == "osk_x"
    assert overspill.session == "run-7"


async def test_the_environments_session_narrows_call_references_only() -> None:
    async with scripted(json(ENTRY)) as service, client(service.url, session="mine") as overspill:
        await overspill.get(call("a b/c"))
        await overspill.get(call("a b/c"), session="theirs")
        await overspill.get(call("a b/c"), session="")
        await overspill.get(CAPTURE)

    prefix = "/v1/captures/call:a%20b%2Fc"
    assert [request.target for request in service.received] == [
        f"{prefix}?session=mine",
        f"{prefix}?session=theirs",
        f"{prefix}?any_session=true",
        f"/v1/captures/{CAPTURE}",
    ]


async def test_only_parameters_that_differ_from_the_defaults_are_sent() -> None:
    text = wire.Text(
        content="",
        start_line=1,
        end_line=0,
        total_lines=0,
        total_bytes=0,
        mode="grep",
        truncated=False,
        approx_tokens=0,
    )
    async with scripted(json(text)) as service, client(service.url) as overspill:
        await overspill.grep(CAPTURE, "a+b &", ignore_case=True, context=3)

    assert service.received[0].target.endswith("/grep?pattern=a%2Bb+%26&ignore_case=true&context=3")


async def test_iterating_takes_page_after_page() -> None:
    pages = [
        wire.Listing(captures=[ENTRY, ENTRY], cursor="next one"),
        wire.Listing(captures=[], cursor="last"),
        wire.Listing(captures=[ENTRY]),
    ]
    async with scripted(*map(json, pages)) as service, client(service.url) as overspill:
        entries = [entry async for entry in overspill.iterate(tool="run", page=2)]

    assert entries == [ENTRY] * 3
    assert [request.target.partition("?")[2] for request in service.received] == [
        "tool=run&limit=2",
        "tool=run&cursor=next+one&limit=2",
        "tool=run&cursor=last&limit=2",
    ]


async def test_json_bodies_say_what_they_are() -> None:
    async with scripted(json(ENTRY)) as service, client(service.url) as overspill:
        await overspill.set_ttl(CAPTURE, 60)

    assert service.received[0].headers["content-type"] == "application/json"
    assert msgspec.json.decode(service.received[0].body) == {"ttl": 60}
