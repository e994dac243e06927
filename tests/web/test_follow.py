"""Follow a live capture, and wait for something in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from overspill.wire import EXIT_CODE_LABEL, Header, Path, Scope, encode_header
from overspill_service.catalog.key_records import AccessMode
from overspill_service.errors import CaptureDamaged
from overspill_service.live.stream import Stream
from overspill_service.tenants.keys import hash_key

from tests.faults.traffic import until
from tests.waiting import PATIENCE
from tests.web.conftest import Api, path_of
from tests.web.live_producer import CAPTURE, Producer
from tests.web.test_page_sessions import Browser, key_of

Event = tuple[str, str, Any]
"""The kind of an event, its id, and its data. A comment has an empty id."""


@asynccontextmanager
async def following(api: Api, path: str, **headers: str) -> AsyncIterator[AsyncIterator[Event]]:
    async with api._session.get(api.url(path), headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield parsed(response.content)


async def parsed(stream: Any) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in stream:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if line != b"\n":
            fields[name] = value
            continue
        if "event" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
        fields = {}


async def text_until(events: AsyncIterator[Event], size: int) -> str:
    """Return the content of events until they have so many bytes."""
    text = ""
    async with asyncio.timeout(60):
        while len(text.encode()) < size:
            kind, _, data = await anext(events)
            assert kind == "output"
            text += data["content"]
    return text


async def rest_of(events: AsyncIterator[Event]) -> tuple[str, Any]:
    """Return the content of all further events, and the last one's data."""
    text = ""
    async with asyncio.timeout(60):
        async for kind, _, data in events:
            if kind == "end":
                return text, data
            text += data["content"]
    raise AssertionError("the stream broke off")


async def test_a_follower_gets_what_was_there_then_what_comes_and_then_the_end(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"one\n")
    async with following(api, f"{producer.path}/follow") as events:
        before = await text_until(events, 4)
        await producer.append(b"two\n")
        await producer.append(b"three\n")
        meanwhile = await text_until(events, 10)
        await producer.append(b"four\n")
        await producer.complete(status="failed", exit_code=2)
        rest, end = await rest_of(events)

    assert (before, meanwhile, rest) == ("one\n", "two\nthree\n", "four\n")
    assert end == {"state": "complete", "size": 19, "status": "failed", "exit_code": 2, "gap": None}


async def test_following_goes_on_behind_the_last_event(api: Api, producer: Producer) -> None:
    await producer.append("ab\nçd\n".encode())

    async def first(path: str, **headers: str) -> str:
        async with following(api, f"{producer.path}/follow{path}", **headers) as events:
            _, _, data = await anext(events)
            return str(data["content"])

    assert await first("", **{"Last-Event-ID": "3"}) == "çd\n"
    assert await first("?offset=5") == "d\n"
    assert await first("?lines=1") == "çd\n"
    assert await first("?lines=9") == "ab\nçd\n"
    beyond = await api.get(f"{producer.path}/follow?offset=99")
    assert (beyond.status, (await beyond.json())["code"]) == (422, "invalid_parameter")


async def test_who_has_seen_bytes_that_were_lost_is_told_the_end(api: Api, producer: Producer) -> None:
    await producer.append(b"one\n")
    await producer.complete(state="partial")

    async with following(api, f"{producer.path}/follow", **{"Last-Event-ID": "9"}) as events:
        text, end = await rest_of(events)
    refused = await api.get(f"{producer.path}/follow?offset=9")

    assert (text, end["state"], end["size"]) == ("", "partial", 4)
    assert refused.status == 422


async def test_a_whole_capture_is_followed_to_its_end_at_once(api: Api) -> None:
    content = "çé\n".encode() * 50_000
    await api.put(content)

    async with following(api, f"{path_of(content)}/follow") as events:
        text, end = await rest_of(events)

    assert text.encode() == content
    assert end["state"] == "complete"


async def test_a_character_that_comes_in_two_appends_stays_whole(api: Api, producer: Producer) -> None:
    async with following(api, f"{producer.path}/follow") as events:
        for byte in "a😀b".encode():
            await producer.append(bytes([byte]))
        text = await text_until(events, 6)

    assert text == "a😀b"


@pytest.mark.parametrize("cut", range(1, 4))
async def test_who_comes_in_the_middle_of_a_character_gets_it_whole(
    api: Api, producer: Producer, cut: int
) -> None:
    character = "😀".encode()
    await producer.append(b"here: " + character[:cut])

    async with following(api, f"{producer.path}/follow") as events:
        before = await text_until(events, len("here: "))
        async with following(api, f"{producer.path}/follow?lines=1") as others:
            await producer.append(character[cut:] + b"!")
            await producer.complete()
            text, end = await rest_of(events)
            theirs, _ = await rest_of(others)

    assert (before, text, theirs) == ("here: ", "😀!", "here: 😀!")
    assert end["size"] == 11


async def test_large_appends_and_many_followers_all_get_every_byte(api: Api, producer: Producer) -> None:
    pieces = [b"%07d\n" % number * 20_000 for number in range(12)]

    async def follow() -> str:
        async with following(api, f"{producer.path}/follow") as events:
            return (await rest_of(events))[0]

    followers = [asyncio.create_task(follow()) for _ in range(5)]
    for piece in pieces:
        await producer.append(piece)
    await producer.complete()

    assert {text.encode() for text in await asyncio.gather(*followers)} == {b"".join(pieces)}


async def test_a_stopping_service_ends_its_followers(api: Api, producer: Producer) -> None:
    await producer.append(b"one\n")
    async with following(api, f"{producer.path}/follow") as events:
        await text_until(events, 4)
        api.service.begin_stop()
        rest = [event async for event in events]

    assert rest == []


async def wait_for(api: Api, query: str, path: str = f"/v1/captures/{CAPTURE}") -> Any:
    response = await api.get(f"{path}/wait?{query}")
    assert response.status == 200, await response.text()
    return await response.json()


async def test_a_wait_returns_when_a_line_matches(api: Api, producer: Producer) -> None:
    await producer.append(b"starting\nready? no\n")
    waiting = asyncio.create_task(wait_for(api, "pattern=^ready%24&timeout=60"))
    await producer.append(b"some\nre")
    await producer.append(b"ady\nmore\n")

    answer = await waiting

    assert answer["reason"] == "pattern"
    assert [match["line_number"] for match in answer["matches"]] == [4]
    assert answer["content"].startswith("ready? no\nsome\nready\n")
    assert (answer["skipped_lines"], answer["state"]) == (1, "live")


async def test_what_had_come_before_the_wait_counts_unless_the_reader_has_seen_it(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"ready\n")

    first = await wait_for(api, "pattern=ready&timeout=60")
    again = await wait_for(api, f"pattern=ready&timeout=0&cursor={first['cursor']}")

    assert (first["reason"], first["content"], first["cursor"]) == ("pattern", "ready\n", 6)
    assert (again["reason"], again["content"], again["cursor"]) == ("timeout", "", 6)
    assert "longer timeout" in again["advice"]


async def test_an_open_last_line_matches_too(api: Api, producer: Producer) -> None:
    await producer.append(b"login: ")

    answer = await wait_for(api, "pattern=login:&timeout=60")

    assert (answer["reason"], answer["content"]) == ("pattern", "login: ")
    rest = asyncio.create_task(wait_for(api, f"lines=1&timeout=60&cursor={answer['cursor']}"))
    await producer.append(b"me\n")
    assert (await rest)["content"] == "me\n"


async def test_a_wait_returns_after_so_many_new_lines(api: Api, producer: Producer) -> None:
    await producer.append(b"one\n")
    waiting = asyncio.create_task(wait_for(api, "lines=3&timeout=60&cursor=4"))
    for line in (b"two\n", b"three\n", b"fo", b"ur\n"):
        await producer.append(line)

    answer = await waiting

    assert (answer["reason"], answer["content"]) == ("lines", "two\nthree\nfour\n")


async def test_a_wait_returns_at_the_end_with_how_it_ended(api: Api, producer: Producer) -> None:
    waiting = asyncio.create_task(wait_for(api, "pattern=never&timeout=60"))
    await producer.append(b"one\ntwo\n")
    await producer.complete(status="killed", exit_code=-9)

    answer = await waiting

    assert (answer["reason"], answer["state"], answer["content"]) == ("ended", "complete", "one\ntwo\n")
    assert (answer["status"], answer["exit_code"]) == ("killed", -9)


async def test_too_many_new_lines_are_answered_with_the_last_ones(api: Api, producer: Producer) -> None:
    await producer.append(b"".join(b"%07d\n" % number for number in range(20_000)))

    answer = await wait_for(api, "timeout=0&max_bytes=800")

    assert answer["content"].endswith("0019999\n")
    assert answer["skipped_lines"] == answer["start_line"] - 1 == 19_900
    assert answer["cursor"] == 160_000


@pytest.mark.parametrize("ending", [b"", b"the open line"])
async def test_nothing_new_means_that_nothing_was_left_out(
    api: Api, producer: Producer, ending: bytes
) -> None:
    await producer.append(b"one\ntwo\n" + ending)

    answer = await wait_for(api, f"timeout=0&cursor={producer.offset}")

    assert (answer["content"], answer["skipped_lines"]) == ("", 0)
    assert answer["advice"]


async def test_a_new_line_of_which_only_the_end_fits_counts_as_left_out(api: Api, producer: Producer) -> None:
    await producer.append(b"seen\n" + b"x" * 5_000)

    answer = await wait_for(api, "timeout=0&cursor=5&max_bytes=800")
    behind = await wait_for(api, "timeout=0&cursor=4900&max_bytes=800")

    assert (answer["content"], answer["start_line"], answer["skipped_lines"]) == ("x" * 800, 2, 1)
    assert (behind["content"], behind["skipped_lines"]) == ("x" * 105, 0)


@pytest.mark.parametrize("before", ["long " * 60, "\n".join(["long " * 60] * 2)])
async def test_the_line_that_matches_is_shown_whatever_comes_before_it(
    api: Api, producer: Producer, before: str
) -> None:
    await producer.append(f"{before}\nready\n".encode())

    answer = await wait_for(api, "pattern=ready&timeout=0&max_bytes=256")

    assert "ready" in answer["content"]
    assert answer["cursor"] == producer.offset
    assert answer["skipped_lines"] == answer["start_line"] - 1


@pytest.mark.parametrize("ansi", ["false", "true"])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("café 😀 done\n", "café 😀 done\n"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;a title\x07end\n", "red end\n"),
    ],
)
async def test_readers_that_wait_see_characters_and_sequences_whole_wherever_appends_cut_them(
    api: Api, producer: Producer, text: str, shown: str, ansi: str
) -> None:
    seen, cursor = "", 0

    for byte in text.encode():
        await producer.append(bytes([byte]))
        answer = await wait_for(api, f"timeout=0&cursor={cursor}&ansi={ansi}")
        seen, cursor = seen + answer["content"], answer["cursor"]

    assert seen == (text if ansi == "true" else shown)
    assert cursor == producer.offset


async def test_what_is_cut_is_shown_once_nothing_follows_and_awakes_nobody_before(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"ready \xc3")

    found = await wait_for(api, "pattern=ready&timeout=60")
    again = await wait_for(api, f"pattern=ready&timeout=0&cursor={found['cursor']}")
    await producer.complete()
    ended = await wait_for(api, f"timeout=60&cursor={again['cursor']}")

    assert (found["content"], found["cursor"]) == ("ready ", 6)
    assert (again["reason"], again["content"], again["cursor"]) == ("timeout", "", 6)
    assert (ended["reason"], ended["content"], ended["cursor"]) == ("ended", "\ufffd", 7)


async def test_waiting_behind_the_end_is_refused(api: Api, producer: Producer) -> None:
    refused = await api.get(f"{producer.path}/wait?cursor=1")

    assert (refused.status, (await refused.json())["code"]) == (422, "invalid_parameter")


async def test_a_pattern_that_is_not_linear_is_refused_at_once(api: Api, producer: Producer) -> None:
    refused = await api.get(f"{producer.path}/wait?pattern=(a)%5C1")

    assert (refused.status, (await refused.json())["code"]) == (422, "invalid_pattern")


async def test_a_removed_capture_ends_its_followers_and_waits(api: Api, producer: Producer) -> None:
    await producer.append(b"one\n")
    waiting = asyncio.create_task(api.get(f"{producer.path}/wait?lines=9&timeout=60"))
    async with following(api, f"{producer.path}/follow") as events:
        await text_until(events, 4)
        await api.send("DELETE", producer.path)
        rest = [event async for event in events]

    assert rest == []
    assert (await waiting).status == (await api.get(f"{producer.path}/follow")).status == 410


async def test_a_head_request_says_what_kind_of_answer_there_is(api: Api, producer: Producer) -> None:
    response = await api.send("HEAD", f"{producer.path}/follow", headers={Header.PRODUCER: "x"})

    assert (response.status, response.content_type) == (200, "text/event-stream")


@pytest.mark.parametrize("code", ["--5", "five", "", "9" * 2000, "٣"])
async def test_a_label_that_is_no_exit_code_breaks_no_end(api: Api, code: str) -> None:
    headers = {f"Overspill-Label-{EXIT_CODE_LABEL}": encode_header(code)}
    entry = await api.put(b"whole\n", **{name.replace("-", "_"): value for name, value in headers.items()})

    async with following(api, f"/v1/captures/{entry.id}/follow") as events:
        _, end = await rest_of(events)

    assert end["exit_code"] is None
    assert (await wait_for(api, "timeout=0", f"/v1/captures/{entry.id}"))["exit_code"] is None


async def test_without_any_time_to_wait_all_that_there_is_is_searched(api: Api, producer: Producer) -> None:
    for _ in range(3):
        await producer.append(b"a line that is of no interest\n" * 100_000)
    await producer.append(b"ready\n")

    answer = await wait_for(api, "pattern=%5Eready&timeout=0")

    assert (answer["reason"], answer["matches"][0]["line_number"]) == ("pattern", 300_001)


async def test_a_wait_whose_stream_fails_ends_at_once(
    api: Api, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: Stream) -> None:
        raise RuntimeError("a fault of the service")

    monkeypatch.setattr(Stream, "_look", fails)
    async with asyncio.timeout(PATIENCE):
        answer = await (await api.get(f"{producer.path}/wait?timeout=600&lines=1")).json()

    assert answer["reason"] == "timeout"


@pytest.mark.parametrize("failure", [RuntimeError("a fault"), CaptureDamaged("a fault")])
async def test_followers_of_a_stream_that_fails_are_sent_away_and_the_fault_is_logged(
    api: Api,
    producer: Producer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    async def fails(self: Stream) -> None:
        raise failure

    monkeypatch.setattr(Stream, "_look", fails)
    async with following(api, f"{producer.path}/follow") as events, asyncio.timeout(PATIENCE):
        assert [event async for event in events] == []
    monkeypatch.undo()

    assert "a fault" in caplog.text
    await producer.complete()
    async with following(api, f"{producer.path}/follow") as events:
        assert (await rest_of(events))[1]["state"] == "complete"


# --- keys that end meanwhile ----------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once whether a key is good."""
    monkeypatch.setattr("overspill_service.web.following.CHECK_SECONDS", 0.0)
    monkeypatch.setattr("overspill_service.web.authentication.KEY_CACHE_SECONDS", 0.0)
    monkeypatch.setattr("overspill_service.web.open_mode.MODE_SECONDS", 0.0)
    monkeypatch.setattr("overspill_service.web.page_sessions.TRUST_SECONDS", 0.0)


async def with_key(api: Api) -> tuple[dict[str, str], Coroutine[Any, Any, object]]:
    """Return the headers of a key, and what ends it."""
    key = await key_of(api, Scope.READ)
    return {"Authorization": f"Bearer {key}"}, api.service.issuer.revoke(hash_key(key))


async def with_session(api: Api) -> tuple[dict[str, str], Coroutine[Any, Any, object]]:
    browser = Browser(api)
    await browser.sign_in(key=await key_of(api, Scope.READ))
    return {"Cookie": browser.cookie}, browser.send("DELETE", Path.PAGE_SESSION)


async def with_open_access(api: Api) -> tuple[dict[str, str], Coroutine[Any, Any, object]]:
    await api.service.archive.keyring.choose(AccessMode.OPEN)
    return {}, api.service.archive.keyring.choose(AccessMode.CLOSED)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("way", [with_key, with_session, with_open_access])
async def test_who_follows_is_told_nothing_more_once_the_key_has_ended(
    api: Api, producer: Producer, way: Callable[..., Any]
) -> None:
    await producer.append(b"one\n")
    writer = await key_of(api, Scope.WRITE)
    headers, ending = await way(api)
    async with following(api, f"{producer.path}/follow", **headers) as events:
        assert await text_until(events, 4) == "one\n"
        path = f"{producer.path}/wait?timeout=60&lines=1&cursor=4"
        waiting = asyncio.create_task(api.get(path, headers=headers))
        await until(lambda: asyncio.sleep(0, _users(api) == 2))
        await ending
        await producer.append(b"secret\n", Authorization=f"Bearer {writer}")
        async with asyncio.timeout(60):
            assert [event async for event in events] == []

    assert (await waiting).status == 401


@pytest.mark.usefixtures("at_once")
async def test_who_follows_with_a_revoked_key_is_told_no_more_while_the_catalog_is_rebuilt(
    api: Api, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = await key_of(api, Scope.WRITE)
    headers, ending = await with_key(api)
    async with following(api, f"{producer.path}/follow", **headers) as events:
        await producer.append(b"one\n", Authorization=f"Bearer {writer}")
        assert await text_until(events, 4) == "one\n"
        await ending

        async def is_complete() -> bool:
            return False

        monkeypatch.setattr(api.service.archive.catalog, "is_complete", is_complete)
        await producer.append(b"secret\n", Authorization=f"Bearer {writer}")
        async with asyncio.timeout(60):
            assert [event async for event in events] == []


def _users(api: Api) -> int:
    return sum(stream.users for stream, _ in api.service.streams._streams.values())
