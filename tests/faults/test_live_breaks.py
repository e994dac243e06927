"""A live capture whose requests break off: at each step of the service, and where its producer hangs up."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from overspill import wire
from overspill.wire import Header
from overspill_service.catalog.records import Entry
from overspill_service.errors import NotLive, StoreUnavailable
from overspill_service.live import flusher
from overspill_service.live.progress import progress

from tests.faults.live_replicas import RedisCopies, Replicas, SqliteCopies
from tests.faults.traffic import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.faults.live_replicas import Replica

WHOLE = b"one\ntwo\n"
FAR = 2.0**40
"""An instant that does not come."""
LEASE_SECONDS = 0.1
"""Others wait so long for a replica that died. It spares work alone: no byte depends on it."""


@pytest.fixture(params=["sqlite", "redis"])
async def replicas(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Replicas]:
    monkeypatch.setattr(flusher, "LEASE_SECONDS", LEASE_SECONDS)
    if request.param == "redis":
        made = Replicas(tmp_path, RedisCopies(request.getfixturevalue("own_redis")))
    else:
        made = Replicas(tmp_path, SqliteCopies(tmp_path))
    await made.start()
    yield made
    await made.stop()


class Capture:
    """Begin, append and end one capture, on whichever replica. Each gives a status and an answer."""

    _numbers = count()

    def __init__(self) -> None:
        self.id = wire.capture_id("", f"call_{next(self._numbers)}", b"")
        self.path = f"/v1/captures/{self.id}"

    async def begin(self, replica: Replica) -> tuple[int, Any]:
        return await self._send(replica, "PUT", "/live")

    async def append(self, replica: Replica, data: bytes, offset: int) -> tuple[int, Any]:
        headers = {Header.UPLOAD_OFFSET: str(offset)}
        return await self._send(replica, "POST", "/append", data=data, headers=headers)

    async def flush(self, replica: Replica) -> None:
        await replica.flush(self.id)

    async def complete(self, replica: Replica) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        return await self._send(replica, "POST", "/complete", data=_completion(), headers=headers)

    async def content(self, replica: Replica) -> bytes:
        return await (await replica.api.get(f"{self.path}/content")).read()

    async def _send(self, replica: Replica, method: str, path: str, **kwargs: Any) -> tuple[int, Any]:
        headers = {Header.PRODUCER: "me", **kwargs.pop("headers", {})}
        response = await replica.api.send(method, self.path + path, headers=headers, **kwargs)
        return response.status, await response.json()


def _completion() -> bytes:
    return json.dumps({"offset": len(WHOLE), "exit_code": 3}).encode()


STEPS = {
    "begin": ("schedule", "commit", "open_live"),
    "append": ("append_live", "schedule"),
    "flush": ("lease", "plan_cut", "put", "replace", "schedule", "release"),
    "complete": ("end_live", "schedule", "lease", "plan_cut", "put", "replace", "release"),
}


def deaths() -> list[tuple[str, str]]:
    """Return requests and where a replica dies in each: after each step, which is before the next one."""
    return [
        (request, death)
        for request, steps in STEPS.items()
        for death in (f"before {steps[0]}", *(f"after {step}" for step in steps))
    ]


async def outlived(replicas: Replicas, request: str, death: str) -> None:
    """Let one replica die there, and the other one do all that is left."""
    capture, (dying, other) = Capture(), replicas.both

    async def attempt(name: str, *args: Any) -> Any:
        if name == request:
            with dying.dying(death) as reached:
                await getattr(capture, name)(dying, *args)
                await dying.settle()
            assert reached
        return await getattr(capture, name)(other, *args)

    begun, _ = await attempt("begin")
    first = await attempt("append", b"one\n", 0)
    if first[0] == 409:  # it had arrived
        first = 200, {"accepted": first[1]["offset"]}
    await attempt("flush")
    second = await capture.append(other, b"two\n", 4)
    ended = await attempt("complete")

    assert begun in (200, 201)
    assert (first[0], first[1]["accepted"]) == (200, 4)
    assert (second[0], second[1]["accepted"]) == (200, 8)
    assert (ended[0], ended[1]["state"], ended[1]["size"]) == (200, "complete", 8)
    assert ended[1]["labels"] == {"overspill.exit_code": "3"}
    assert [await capture.content(each) for each in replicas.both] == [WHOLE, WHOLE]


async def test_a_replica_that_dies_at_any_step_leaves_what_the_next_attempt_goes_on_with(
    replicas: Replicas, subtests: pytest.Subtests
) -> None:
    for request, death in deaths():
        with subtests.test(request=request, death=death):
            await outlived(replicas, request, death)


# --- producers that hang up -----------------------------------------------------------------------


async def hang_up(replica: Replica, target: str, body: bytes, sent: int, *fields: str) -> None:
    """Send a request up to `sent` bytes of its body, all of it if that is -1, and hang up: three times."""
    lines = [f"{target} HTTP/1.1", "Host: 127.0.0.1", f"{Header.PRODUCER}: me", *fields]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
    for _ in range(3):
        _, writer = await asyncio.open_connection("127.0.0.1", replica.api.port)
        writer.write(head.encode() + (body if sent < 0 else body[:sent]))
        with suppress(ConnectionError):
            await writer.drain()
        writer.transport.abort()
    await until(lambda: _is_at_rest(replica))


async def _is_at_rest(replica: Replica) -> bool:
    await replica.settle()
    return replica.service.in_flight.count == 0


@pytest.mark.parametrize("sent", [2, -1])
async def test_a_producer_that_hangs_up_in_the_middle_finds_everything_once(
    replicas: Replicas, sent: int
) -> None:
    capture, (replica, other) = Capture(), replicas.both
    await hang_up(replica, f"PUT {capture.path}/live", b"", -1)
    begun, _ = await capture.begin(replica)
    reached = []
    for offset, piece in ((0, b"one\n"), (4, b"two\n")):
        await hang_up(
            replica, f"POST {capture.path}/append", piece, sent, f"{Header.UPLOAD_OFFSET}: {offset}"
        )
        status, answer = await capture.append(replica, piece, offset)
        reached.append(answer["accepted"] if status == 200 else answer["offset"])
    json_type = "Content-Type: application/json"
    await hang_up(replica, f"POST {capture.path}/complete", _completion(), sent, json_type)
    ended = await capture.complete(other)

    assert begun in (200, 201)
    assert reached == [4, 8]
    assert (ended[0], ended[1]["size"]) == (200, 8)
    assert await capture.content(replica) == WHOLE


async def test_segments_whose_storing_broke_off_are_taken_in_and_none_is_left_over(
    replicas: Replicas,
) -> None:
    capture, (replica, other) = Capture(), replicas.both
    await capture.begin(replica)
    await capture.append(replica, b"one\n", 0)
    for step in ("after put", "before replace"):
        await replica.flush_until(capture.id, step)
    await capture.append(replica, b"two\n", 4)
    with replica.dying("after put"):
        await capture.complete(replica)
        await replica.settle()
    ended = await capture.complete(other)
    entry = await other.service.archive.catalog.get("default", capture.id)
    stored = [each.key async for each in other.service.archive.store.list("v1/")]

    assert (ended[0], ended[1]["size"]) == (200, 8)
    assert isinstance(entry, Entry)
    assert sorted(stored) == sorted(entry.segment_keys)


@pytest.mark.parametrize("end", ["complete", "remove"])
async def test_who_asks_while_a_capture_ends_opens_it_for_no_more_bytes(replicas: Replicas, end: str) -> None:
    capture, (replica, other) = Capture(), replicas.both
    await capture.begin(replica)
    await capture.append(replica, WHOLE, 0)
    await capture.flush(replica)
    archive = other.service.archive
    seen = await archive.catalog.get("default", capture.id)
    assert isinstance(seen, Entry)
    await (capture.complete(replica) if end == "complete" else replica.api.send("DELETE", capture.path))
    with suppress(NotLive):
        await progress(archive, seen)
    late, _ = await capture.append(replica, b"late\n", len(WHOLE))

    assert late == (409 if end == "complete" else 410)
    assert await archive.catalog.live("default", capture.id) is None


async def test_a_replica_that_dies_while_it_asks_about_a_capture_that_ends_leaves_no_buffer(
    replicas: Replicas,
) -> None:
    capture, other = Capture(), replicas.both[1]
    seen = await ended_since(capture, replicas)

    with other.dying("after open_live"), suppress(StoreUnavailable):
        await progress(other.service.archive, seen)
    late, _ = await capture.append(other, b"late\n", len(WHOLE))

    assert late == 409


async def test_who_asks_about_a_capture_that_ends_leaves_it_to_be_moved_into_fewer_objects(
    replicas: Replicas,
) -> None:
    capture, other = Capture(), replicas.both[1]
    seen, catalog = await ended_since(capture, replicas), other.service.archive.catalog
    await catalog.schedule("default", capture.id, FAR)  # as one of many segments is

    await progress(other.service.archive, seen)

    assert await catalog.due(FAR, 10) == [("default", capture.id)]


async def ended_since(capture: Capture, replicas: Replicas) -> Entry:
    """Begin, append and end a capture. Return its entry as it was while it was live."""
    replica, other = replicas.both
    await capture.begin(replica)
    await capture.append(replica, WHOLE, 0)
    await capture.flush(replica)
    seen = await other.service.archive.catalog.get("default", capture.id)
    assert isinstance(seen, Entry)
    await capture.complete(replica)
    return seen
