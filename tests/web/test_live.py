"""Live captures over HTTP: begin, append, read meanwhile, end."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from overspill import wire
from overspill.wire import Header, State
from overspill.wire.checksums import encode_crc32c
from overspill_service.errors import StoreUnavailable
from overspill_service.live import producing
from overspill_service.live.flusher import SEGMENT_BYTES
from overspill_service.tenants.keys import hash_key, new_key

from tests import zstd
from tests.web.conftest import Api, problem
from tests.web.live_producer import CAPTURE, Producer


@pytest.fixture
async def producer(api: Api) -> Producer:
    made = Producer(api)
    await made.begin(Overspill_Call_Id="call_0", Overspill_Tool="build")
    return made


async def test_an_output_is_read_while_it_grows_and_stays_as_it_was(api: Api, producer: Producer) -> None:
    await producer.append(b"one\ntwo\n")
    await producer.append(b"three")

    live = await producer.entry()
    tail = await (await api.get(f"{producer.path}/tail?lines=2")).json()
    found = await (await api.get(f"{producer.path}/grep?pattern=t.o")).json()
    part = await api.get(f"{producer.path}/content", headers={"Range": "bytes=4-"})
    whole = b"one\ntwo\nthree"
    ended = await producer.complete(status="ok", exit_code=0, sha256=hashlib.sha256(whole).hexdigest())

    assert (live.state, live.size, live.lines, live.tool, live.durable) == (State.LIVE, 13, 3, "build", 0)
    assert live.last_append is not None
    assert (tail["content"], tail["total_lines"], tail["state"]) == ("two\nthree", 3, "live")
    assert [match["line_number"] for match in found["matches"]] == [2]
    assert (part.status, await part.read()) == (206, b"two\nthree")
    assert (ended["state"], ended["size"], ended["lines"], ended["status"]) == ("complete", 13, 3, "ok")
    assert ended["labels"][wire.EXIT_CODE_LABEL] == "0"
    assert ended["sha256"] == hashlib.sha256(whole).hexdigest()
    content = await api.get(f"{producer.path}/content")
    assert await content.read() == whole
    assert content.headers[Header.REPR_DIGEST] == wire.encode_digest(hashlib.sha256(whole).digest())


async def test_a_large_output_is_stored_in_segments_and_then_in_few_objects(
    api: Api, producer: Producer
) -> None:
    line = b"%063d\n"
    whole = b""
    while len(whole) < 5 * SEGMENT_BYTES:
        piece = b"".join(line % (len(whole) // 64 + number) for number in range(wire.MAX_APPEND // 64))
        await producer.append(piece)
        whole += piece

    first = await (await api.get(f"{producer.path}/lines?start=600000&end=600000")).json()
    read = await (await api.get(f"{producer.path}/content")).read()
    ended = await producer.complete()

    assert first["content"] == (line % 599_999).decode()
    assert read == whole
    assert ended["sha256"] == hashlib.sha256(whole).hexdigest()
    service = api.service
    moved = await service.flusher.start("default", CAPTURE)
    while moved is not None and len(moved.segments) > 1:  # a read was noted meanwhile: another round
        moved = await service.flusher.start("default", CAPTURE)
    assert moved is not None
    assert await (await api.get(f"{producer.path}/content")).read() == whole


async def test_an_append_that_fills_a_segment_is_durable_with_its_answer(
    api: Api, producer: Producer
) -> None:
    first, lines = b"first\n" * 9, b"%063d\n" % 7 * (wire.MAX_APPEND // 64)
    await producer.append(first)
    whole = await producer.append(lines)
    open_line = await producer.append(lines[:-10])
    last_line = await producer.append(b"\n")
    read = await (await api.get(f"{producer.path}/content")).read()
    shown = await (await api.get(f"{producer.path}/tail?lines=1")).json()
    content = first + lines + lines[:-10] + b"\n"
    ended = await producer.complete(sha256=hashlib.sha256(content).hexdigest())

    assert (whole["accepted"], whole["durable"]) == (len(first + lines),) * 2
    assert (open_line["accepted"], open_line["durable"]) == (len(content) - 1, len(content) - 55)
    assert last_line["durable"] == open_line["durable"]
    assert read == content
    assert shown["total_lines"] == ended["lines"] == content.count(b"\n")
    assert ended["sha256"] == hashlib.sha256(content).hexdigest()


async def test_of_two_large_appends_at_once_the_second_is_durable_up_to_its_last_line(
    api: Api, producer: Producer
) -> None:
    lines = b"%063d\n" % 7 * (wire.MAX_APPEND // 64)
    behind = Producer(api)
    behind.offset = len(lines)
    first, second = await asyncio.gather(producer.append(lines), behind.append(lines[:-10]))
    content = lines + lines[:-10]
    ended = await behind.complete(sha256=hashlib.sha256(content).hexdigest())

    assert (first["accepted"], first["durable"]) == (len(lines),) * 2
    assert (second["accepted"], second["durable"]) == (len(content), len(content) - 54)
    assert await (await api.get(f"{producer.path}/content")).read() == content
    assert ended["lines"] == 2 * wire.MAX_APPEND // 64


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_an_append_of_any_size_is_taken_with_and_without_its_length(
    producer: Producer, is_chunked: bool
) -> None:
    content = b"".join(b"%063d\n" % number for number in range(40_001))
    headers = {Header.PRODUCER: producer.word, Header.UPLOAD_OFFSET: "0"}

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 100_000):
            yield content[start : start + 100_000]

    sized = {} if is_chunked else {"Content-Length": str(len(content))}
    await producer.api.send("POST", f"{producer.path}/append", data=chunks(), headers=headers | sized)
    read = await (await producer.api.get(f"{producer.path}/content")).read()

    assert read == content


async def test_a_large_append_that_the_store_does_not_take_is_accepted_all_the_same(
    api: Api, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> bool:
        raise StoreUnavailable("down")

    lines = b"%063d\n" % 7 * (wire.MAX_APPEND // 64)
    with monkeypatch.context() as down:
        down.setattr(api.service.archive.store, "put", refuse)
        answer = await producer.append(lines)
    ended = await producer.complete()

    assert (answer["accepted"], answer["durable"]) == (len(lines), 0)
    assert ended["size"] == len(lines)


async def test_an_append_elsewhere_is_refused_with_the_right_offset(producer: Producer) -> None:
    await producer.append(b"12345")

    for offset in (0, 4, 6, 10**9, 10**14):
        refused = await producer.append(b"x", expected=409, Upload_Offset=str(offset))
        assert (refused["code"], refused["offset"]) == ("wrong_offset", 5)


async def test_a_damaged_append_adds_nothing(producer: Producer) -> None:
    refused = await producer.append(b"12345", expected=400, Content_Digest=encode_crc32c(b"12346"))

    assert refused["code"] == "digest_mismatch"
    assert (await producer.entry()).size == 0


async def test_a_checksum_is_found_among_others_and_parameters(producer: Producer) -> None:
    right, wrong = encode_crc32c(b"12345"), encode_crc32c(b"12346")
    in_capitals = right.replace("crc32c", "CRC32C")

    for field in (f"sha-256=:AAAA:, {right}", f"{wrong},{right};a=1", f"{in_capitals}\t"):
        await producer.append(b"12345", Content_Digest=field)
    refused = await producer.append(b"12345", expected=400, Content_Digest=f"{right}, {wrong}")

    assert refused["code"] == "digest_mismatch"


async def test_an_end_elsewhere_is_refused_as_an_end(producer: Producer) -> None:
    await producer.append(b"12345")

    refused = await producer.complete(expected=409, offset=4)

    assert (refused["code"], refused["offset"]) == ("wrong_offset", 5)
    assert "append" not in refused["detail"]


async def test_a_compressed_append_is_decoded_within_the_limit(producer: Producer) -> None:
    content = b"a" * 100_000

    await producer.append(
        zstd.compress(content), Content_Encoding="zstd", Content_Digest=encode_crc32c(content)
    )
    bomb = zstd.compress(b"a" * (wire.MAX_APPEND + 1))
    refused = await producer.append(bomb, expected=413, Content_Encoding="zstd")

    assert refused["limit"] == wire.MAX_APPEND
    assert (await producer.entry()).size == 100_000


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Upload_Offset", ""),
        ("Upload_Offset", "-1"),
        ("Upload_Offset", "1e3"),
        ("Upload_Offset", "9" * 30),
        ("Upload_Offset", "٣"),
        ("Overspill_Producer", ""),
        ("Overspill_Producer", "w" * 101),
        ("Content_Digest", "crc32c=:AAAA:"),
        ("Content_Digest", "md5=:AAAAAA==:"),
        ("Content_Digest", "crc32c=:AAAAAA==:, ;"),
        ("Upload_Complete", "?2"),
        ("Upload_Complete", "1"),
        ("Upload_Complete", "true"),
    ],
)
async def test_a_wrong_field_is_refused_by_name(producer: Producer, header: str, value: str) -> None:
    refused = await producer.append(b"x", expected=422, **{header: wire.encode_header(value)})

    assert refused["code"] == "invalid_header"
    assert header.replace("_", "-") in refused["detail"]


async def test_content_at_the_beginning_is_refused_not_lost(api: Api) -> None:
    path, headers = f"/v1/captures/{CAPTURE}/live", {Header.PRODUCER: "me"}

    refused = await problem(await api.send("PUT", path, data=b"first bytes", headers=headers))
    begun = await api.send("PUT", path, data=b"", headers=headers)

    assert (refused.status, "append" in refused.detail) == (400, True)
    assert begun.status == 201


async def test_a_capture_that_is_begun_only_if_it_is_new_is_begun_once(api: Api) -> None:
    path, headers = f"/v1/captures/{CAPTURE}/live", {Header.PRODUCER: "me", "If-None-Match": "*"}

    answers = [(await api.send("PUT", path, headers=headers)).status for _ in range(2)]
    again = await api.send("PUT", path, headers={Header.PRODUCER: "me", "If-Match": "*"})

    assert (answers, again.status) == ([201, 412], 200)


async def test_a_change_of_a_live_capture_is_answered_with_what_is_accepted(producer: Producer) -> None:
    await producer.append(b"one\ntwo\n")

    changed = [
        await producer.api.send("PATCH", producer.path, data=b'{"ttl": 100}'),
        await producer.api.send("PUT", f"{producer.path}/hold"),
        await producer.api.send("DELETE", f"{producer.path}/hold"),
    ]

    assert [(await each.json())["size"] for each in changed] == [8, 8, 8]


async def test_who_stores_content_under_a_live_or_a_partial_id_is_told_what_it_is(producer: Producer) -> None:
    await producer.append(b"one\n")

    live = await producer.api.send("PUT", producer.path, data=b"one\ntwo\n")
    await producer.complete(state="partial")
    partial = await producer.api.send("PUT", producer.path, data=b"another\n")

    assert ["is live" in (await problem(live)).detail, "is partial" in (await problem(partial)).detail] == [
        True,
        True,
    ]
    assert (live.status, partial.status) == (409, 409)


async def test_too_much_at_once_says_how_much_may_be(producer: Producer) -> None:
    refused = await producer.append(bytes(wire.MAX_APPEND + 1), expected=413)

    assert (refused["code"], refused["limit"]) == ("body_too_large", wire.MAX_APPEND)


async def test_two_producers_never_mix(api: Api, producer: Producer) -> None:
    await producer.append(b"mine")
    other = Producer(api, word="you")
    other.offset = producer.offset

    begun = await other.begin(expected=409)
    appended = await other.append(b"yours", expected=409)
    ended = await other.complete(expected=409)

    assert {each["code"] for each in (begun, appended, ended)} == {"other_producer"}
    assert (await producer.entry()).size == 4


async def test_beginning_and_ending_again_change_nothing(producer: Producer) -> None:
    await producer.append(b"12345")
    begun = await producer.begin(expected=200, Overspill_Call_Id="call_0", Overspill_Tool="build")

    ended = [await producer.complete(status="ok") for _ in range(2)]

    assert (begun["accepted"], begun["state"]) == (5, "live")
    assert ended[0]["sha256"] == ended[1]["sha256"]
    assert (await producer.append(b"late", expected=409))["code"] == "not_live"
    assert (await producer.begin(expected=409))["code"] == "not_live"
    assert (await producer.complete(expected=409, state="partial"))["code"] == "not_live"


async def test_an_end_at_another_offset_or_of_another_content_is_refused(producer: Producer) -> None:
    await producer.append(b"12345")

    early = await producer.complete(expected=409, offset=4)
    other = await producer.complete(expected=400, sha256="0" * 64)

    assert (early["code"], early["offset"]) == ("wrong_offset", 5)
    assert other["code"] == "digest_mismatch"
    assert (await producer.entry()).state is State.LIVE


async def test_an_empty_output_and_one_given_up_end_too(api: Api, producer: Producer) -> None:
    empty = await producer.complete()
    other = Producer(api, "cap_" + "b" * 20)
    await other.begin()
    await other.append(b"half a li")
    given_up = await other.complete(state="partial", status="cancelled")

    assert (empty["state"], empty["size"], empty["lines"]) == ("complete", 0, 0)
    assert (given_up["state"], given_up["size"], given_up["status"]) == ("partial", 9, "cancelled")


async def test_labels_that_are_known_at_the_end_join_the_others(producer: Producer) -> None:
    await producer.append(b"text")

    many = {f"label{number}": "x" for number in range(40)}
    refused = await producer.complete(422, labels=many)
    await producer.complete(422, labels={"No Name": "x"})
    ended = await producer.complete(labels={wire.REDACTED_LABEL: "email=2"}, exit_code=1)

    assert refused["code"] == "invalid_parameter"
    assert ended["labels"] == {wire.REDACTED_LABEL: "email=2", wire.EXIT_CODE_LABEL: "1"}


async def test_what_is_told_at_the_end_has_a_bound(api: Api) -> None:
    producer = Producer(api)
    room = wire.MAX_METADATA - len("lx") * 4 - len("application/octet-stream")
    labels = {f"Overspill-Label-l{number}": "x" * (room // 4) for number in range(4)}
    await producer.begin(201, **labels)
    long, many = "s" * wire.MAX_VALUE, {f"label{number}": "x" * 100 for number in range(20)}
    refused = [
        await producer.complete(422, **told)
        for told in ({"status": long}, {"status": long * 100}, {"labels": many}, {"exit_code": 2**32})
    ]
    ended = await producer.complete(status="s" * wire.SHORT_VALUE, exit_code=-(2**31))

    assert {each["code"] for each in refused} <= {"invalid_parameter", "invalid_body"}
    assert ended["labels"][wire.EXIT_CODE_LABEL] == "-2147483648"


async def test_a_partial_capture_is_completed_by_the_whole_that_begins_with_it(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"one\ntw")
    live = await api.send("PUT", producer.path, data=b"one\ntwo\n")
    await producer.complete(state="partial")
    before = await producer.entry()

    other = await api.send("PUT", producer.path, data=b"one\nother\n")
    shorter = await api.send("PUT", producer.path, data=b"one")
    whole = await api.send("PUT", producer.path, data=b"one\ntwo\n", headers={Header.CALL_ID: "call_0"})
    again = await api.send("PUT", producer.path, data=b"one\ntwo\n", headers={Header.CALL_ID: "call_0"})

    assert [each.status for each in (live, other, shorter, whole, again)] == [409, 409, 409, 200, 200]
    after = await producer.entry()
    assert (after.state, after.size, after.lines, after.created) == (State.COMPLETE, 8, 2, before.created)
    assert after.sha256 == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert await (await api.get(f"{producer.path}/content")).read() == b"one\ntwo\n"
    archive = api.service.archive
    assert len([each async for each in archive.store.list(f"v1/default/{CAPTURE}/")]) == 1
    assert [
        each["id"] for each in (await (await api.get("/v1/captures?state=partial")).json())["captures"]
    ] == []


async def test_the_whole_of_a_capture_on_hold_is_refused(api: Api, producer: Producer) -> None:
    await producer.append(b"one")
    await producer.complete(state="partial")
    await api.send("PUT", f"{producer.path}/hold")

    refused = await api.send("PUT", producer.path, data=b"one and two")

    assert (refused.status, (await refused.json())["code"]) == (409, "held")


async def test_a_removed_capture_takes_nothing_more(api: Api, producer: Producer) -> None:
    await producer.append(b"12345")

    removed = await api.send("DELETE", producer.path)

    assert removed.status == 200
    assert (await producer.append(b"x", expected=410))["code"] == "deleted"
    assert (await api.get(f"{producer.path}/content")).status == 410


async def test_an_unknown_capture_takes_nothing(api: Api) -> None:
    other = Producer(api, "cap_" + "c" * 20)

    assert (await other.append(b"x", expected=404))["code"] == "not_found"
    assert (await other.complete(expected=404))["code"] == "not_found"


async def test_lines_since_an_instant_are_those_that_came_after_it(api: Api) -> None:
    now = [1_800_000_000.0]
    api.service.archive.clock = lambda: now[0]
    producer = Producer(api)
    await producer.begin()
    for text in (b"one\ntwo\n", b"three\nfour\n"):
        await producer.append(text)
        now[0] += 100
    since = {"since": "2027-01-15T08:01:39Z"}  # a second before the second append

    async def read(mode: str, **params: str) -> tuple[str, int]:
        answer = await (await api.get(f"{producer.path}/{mode}", params={**since, **params})).json()
        return answer["content"], answer["total_lines"]

    for _ in ("live", "complete"):
        assert await read("head", lines="1") == ("three\n", 4)
        assert await read("tail") == ("three\nfour\n", 4)
        assert await read("lines") == ("three\nfour\n", 4)
        assert await read("lines", end="2") == ("", 4)
        assert await read("grep", pattern="o") == ("4:four\n", 4)
        since["since"] = "2027-01-15T08:10:00Z"
        assert {await read(mode) for mode in ("head", "tail", "lines")} == {("", 4)}
        assert await read("grep", pattern="o") == ("", 4)
        since["since"] = "2027-01-15T08:01:39Z"
        if _ == "live":
            await producer.complete()
    refused = await api.get(f"{producer.path}/grep", params={**since, "pattern": "o", "from_end": "true"})
    assert refused.status == 422


async def test_the_timeline_tells_when_bytes_came(api: Api, producer: Producer) -> None:
    clock, ahead = api.service.archive.clock, 0.0
    api.service.archive.clock = lambda: clock() + ahead
    for piece in (b"one\n", b"two\n", b"three\n"):
        await producer.append(piece)
        ahead += 10.0
    live = await (await api.get(f"{producer.path}/timeline")).json()
    await producer.complete()
    ended = await (await api.get(f"{producer.path}/timeline")).json()
    times = [datetime.fromisoformat(each["time"]) for each in ended["marks"]]

    assert (live["state"], live["size"], ended["state"]) == ("live", 14, "complete")
    assert live["marks"] == ended["marks"]
    assert [each["offset"] for each in ended["marks"]] == [0, 4, 8]
    assert [round((time - times[0]).total_seconds(), -1) for time in times] == [0, 10, 20]


async def test_a_capture_that_was_stored_at_once_has_no_timeline(api: Api) -> None:
    entry = await api.put(b"one\n")

    assert (await (await api.get(f"/v1/captures/{entry.id}/timeline")).json())["marks"] == []


async def test_stored_frames_that_may_move_come_in_chunks(api: Api, producer: Producer) -> None:
    await producer.append(b"one\n")
    asked = {"Accept-Encoding": "zstd"}
    live = await api.get(f"{producer.path}/content", headers=asked)
    head = await api.send("HEAD", f"{producer.path}/content", headers=asked)
    await producer.complete()
    ended = await api.get(f"{producer.path}/content", headers=asked)

    assert live.headers["Transfer-Encoding"] == "chunked"
    assert not {"Content-Length"} & {*live.headers, *head.headers}
    assert zstd.decompress(await live.read()) == zstd.decompress(await ended.read()) == b"one\n"
    assert ended.headers["Content-Length"] == str(len(await ended.read()))


async def test_a_listing_shows_what_is_accepted_of_live_captures(api: Api, producer: Producer) -> None:
    await api.put(b"whole\n")
    await producer.append(b"12345")

    listed = (await (await api.get("/v1/captures", params={"state": "live"})).json())["captures"]

    assert [(each["id"], each["size"], each["durable"]) for each in listed] == [(CAPTURE, 5, 0)]
    assert listed[0]["last_append"] is not None
    assert len((await (await api.get("/v1/captures")).json())["captures"]) == 2


async def test_what_has_ended_tells_when_its_producer_was_last_heard_of(api: Api, producer: Producer) -> None:
    archive, before = api.service.archive, api.service.archive.clock
    archive.clock = lambda: before() + 60
    await producer.append(b"one\n")
    heard = (await producer.entry()).last_append
    archive.clock = before

    await producer.complete()

    ended = await producer.entry()
    assert (ended.state, ended.last_append) == (State.COMPLETE, heard)


async def test_what_was_stored_at_once_has_no_producer_to_hear_of(api: Api) -> None:
    assert (await api.put(b"one\n")).last_append is None


async def test_the_capture_of_a_producer_that_is_gone_becomes_partial_and_says_so(
    api: Api, producer: Producer
) -> None:
    await producer.append(b"one\ntwo")
    archive, flusher = api.service.archive, api.service.flusher
    before = archive.clock
    archive.clock = lambda: before() + flusher.timeout + 1

    await flusher.start("default", CAPTURE)

    entry = await producer.entry()
    assert (entry.state, entry.size, entry.gap) == (State.PARTIAL, 7, None)
    tail = await (await api.get(f"{producer.path}/tail")).json()
    summary = await (await api.get(f"{producer.path}/summary")).json()
    assert (tail["content"], tail["state"]) == ("one\ntwo", "partial")
    assert (summary["state"], summary["note"]) == ("partial", tail["note"])
    assert "its producer did not say" in tail["note"]
    plain = await api.get(f"{producer.path}/tail", headers={"Accept": "text/plain"})
    assert (await plain.text()).splitlines()[-1] == f"[{tail['note']}]"
    assert (await producer.append(b"late", expected=409))["code"] == "not_live"


async def test_a_sign_of_life_keeps_a_capture_live(api: Api, producer: Producer) -> None:
    archive, flusher = api.service.archive, api.service.flusher
    before = archive.clock
    archive.clock = lambda: before() + flusher.timeout - 1
    await producer.append(b"")
    archive.clock = lambda: before() + 2 * flusher.timeout - 10

    await flusher.start("default", CAPTURE)

    assert (await producer.entry()).state is State.LIVE


async def test_signs_of_life_alone_keep_a_capture_from_expiring(api: Api) -> None:
    producer = Producer(api)
    await producer.begin(Overspill_Ttl="600")
    archive, flusher = api.service.archive, api.service.flusher
    before = archive.clock
    for later in (200, 400, 600, 800):
        archive.clock = lambda late=later: before() + late  # type: ignore[misc]
        await producer.append(b"")
        await flusher.start("default", CAPTURE)

    entry = await producer.entry()

    assert entry.state is State.LIVE
    assert (entry.expires - entry.created).total_seconds() > 800


@pytest.mark.parametrize("ttl", [1, 60, 400])
@pytest.mark.parametrize(("data", "pause"), [(b"", 60), (b"line\n", 7), (b"line\n", 59)])
async def test_no_capture_expires_while_its_producer_is_there(
    api: Api, ttl: int, data: bytes, pause: int
) -> None:
    producer = Producer(api)
    await producer.begin(Overspill_Ttl=str(ttl))
    archive, flusher = api.service.archive, api.service.flusher
    before, answers = archive.clock, set()
    for later in sorted({*range(0, 500, pause), *range(0, 500, 12)}):
        archive.clock = lambda late=later: before() + late  # type: ignore[misc]
        if later % pause == 0:
            await producer.append(data)
        await flusher._start_due()
        await asyncio.gather(*flusher._running.values())
        answers.add((await api.get(producer.path)).status)
    ended = await producer.complete()

    assert answers == {200}
    assert datetime.fromisoformat(ended["expires"]).timestamp() <= archive.clock() + max(ttl, 20) + 3


@pytest.mark.parametrize("step", ["_entry", "_digest"])
async def test_an_end_that_is_reached_while_another_attempt_at_it_begins_is_its_end_too(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    await producer.append(b"line\n")
    original, late = getattr(producing.Producer, step), [True]

    async def overtaken(self: Any, *args: Any) -> Any:
        answer = await original(self, *args) if step == "_digest" else None
        if late.pop() if late else False:
            await producer.complete()
        return answer or await original(self, *args)

    monkeypatch.setattr(producing.Producer, step, overtaken)
    ended = await producer.complete()

    assert (ended["state"], ended["size"]) == ("complete", 5)


async def test_a_key_that_may_not_read_learns_nothing_of_what_was_stored_before(
    start_api: Callable[..., Any], tmp_path: Path
) -> None:
    writer = new_key()
    file = tmp_path / "tenants.toml"
    file.write_text(
        f'[[tenants]]\nname = "acme"\nkeys = [{{hash = "{hash_key(writer)}", scopes = ["write"]}}]\n'
    )
    api = await start_api(tenants=file, anonymous=None)
    key = {"Authorization": f"Bearer {writer}", Header.PRODUCER: "me"}
    content = b"secret size"
    stored = await api.put(content, Overspill_Tool="secret", **key)
    path = f"/v1/captures/{stored.id}"

    status = await api.get(f"{path}/live", headers=key)
    wrong = await api.send("POST", f"{path}/complete", json={"offset": 1}, headers=key)
    right = await api.send("POST", f"{path}/complete", json={"offset": len(content)}, headers=key)

    assert status.status == 403
    assert (wrong.status, str(len(content)) in (await problem(wrong)).detail) == (409, False)
    answer = await right.json()
    assert (answer["id"], answer["size"], answer["tool"], answer["sha256"]) == (stored.id, 0, "", "")


async def test_bodies_that_come_one_after_the_other_do_not_mix(api: Api, producer: Producer) -> None:
    """Their memory is used again: also after one that was refused, was shorter, or was not announced."""
    other = Producer(api, "cap_" + "b" * 20, "other")
    await other.begin()
    texts: dict[str, list[bytes]] = {producer.path: [], other.path: []}
    for number in range(6):
        for each in (producer, other):
            data = (b"%s %d\n" % (each.word.encode(), number)) * (250_000 - number * 17_001)
            await each.append(b"x" * 3_000_000, expected=409, Upload_Offset="99999999")
            await each.append(data)
            texts[each.path].append(data)

    for each in (producer, other):
        await each.complete()
        content = await (await api.get(f"{each.path}/content")).read()
        assert content == b"".join(texts[each.path])
