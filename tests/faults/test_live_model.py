"""A live capture against plain bytes, whatever happens to replicas and catalog in between."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from overspill.wire import Header
from overspill_service.archive.recovery.rebuild import rebuild_if_due
from overspill_service.live import filling, producing

from tests.faults.live_replicas import TIMEOUT, RedisCopies, Replica, Replicas, SqliteCopies

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from aiohttp import ClientResponse

    from tests.servers.redis import RedisServer

WORDS = ("one", "two", "three\n", "\n", "four\nfive\n", "six " * 50, "seven\n" * 400)
pieces = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(lambda words: "".join(words).encode())
replicas = st.integers(0, 1)
STEPS = ("after plan_cut", "before put", "after put", "before replace", "after replace")
ENDED = ("state", "size", "lines", "sha256", "status", "labels", "gap")


class LiveCapture(RuleBasedStateMachine):
    """One producer of one capture. It keeps what is not durable, and sends it again."""

    stack: ClassVar[Replicas]
    runner: ClassVar[asyncio.Runner]

    def __init__(self) -> None:
        super().__init__()
        self.capture = "cap_" + "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(20))
        self.path = f"/v1/captures/{self.capture}"
        self.stream = b""
        self.accepted = self.durable = 0
        self.is_exact = True
        """Whether the service has exactly the accepted bytes, as nothing has disturbed the catalog since."""
        self.is_emptied = False
        self.is_doubted = False
        """Whether a rebuild may take the record for one of an older catalog, whatever was appended since."""
        self.has_copy = False
        self.ended: dict[str, Any] | None = None

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def replica(self, number: int) -> Replica:
        return self.stack.both[number]

    async def send(self, number: int, method: str, path: str, **kwargs: Any) -> ClientResponse:
        headers = {Header.PRODUCER: "me", **kwargs.pop("headers", {})}
        return await self.replica(number).api.send(method, self.path + path, headers=headers, **kwargs)

    @initialize(number=replicas)
    def begin(self, number: int) -> None:
        self.do(self._begin(number))

    async def _begin(self, number: int) -> None:
        response = await self.send(number, "PUT", "/live")
        assert response.status == 201, await response.text()
        self.accepted = 0

    is_live = precondition(lambda self: self.ended is None)

    @is_live
    @rule(number=replicas, data=pieces)
    def append(self, number: int, data: bytes) -> None:
        self.stream += data
        self.do(self._send_all(number))

    async def _send_all(self, number: int) -> None:
        for _ in range(5):
            await self._send(number, self.accepted, self.stream[self.accepted :])
            if self.accepted == len(self.stream):
                return
        raise AssertionError(f"stuck at {self.accepted} of {len(self.stream)}")

    async def _send(self, number: int, offset: int, data: bytes) -> None:
        response = await self.send(
            number, "POST", "/append", data=data, headers={Header.UPLOAD_OFFSET: str(offset)}
        )
        await self.replica(number).settle()
        answer = await response.json()
        if response.status == 200:
            assert answer["accepted"] == offset + len(data)
            assert offset == self.accepted or not self.is_exact
            self.accepted, self.is_exact = answer["accepted"], True
            self.durable = max(self.durable, answer["durable"])
            self.is_emptied = False
            if await self.replica(number).service.archive.catalog.is_complete():
                self.is_doubted = False
        elif answer["code"] == "wrong_offset":
            assert self.durable <= answer["offset"] <= len(self.stream), answer
            assert answer["offset"] == self.accepted or not self.is_exact
            self.accepted = answer["offset"]
        else:  # nothing of it was durable, and the catalog has lost all of it
            assert (response.status, self.durable, self.is_exact) == (404, 0, False), answer
            await self._begin(number)
            self.is_emptied = False  # the capture is another one now, of which nothing is lost

    @is_live
    @rule(number=replicas, start=st.floats(0, 1), length=st.integers(0, 900))
    def send_again(self, number: int, start: float, length: int) -> None:
        """Anything that the producer still has: a duplicate, an overlap, a sign of life."""
        offset = self.durable + int(start * (len(self.stream) - self.durable))
        self.do(self._send(number, offset, self.stream[offset : offset + length]))

    @is_live
    @rule(number=replicas, data=pieces, step=st.sampled_from(STEPS[1:]))
    def fail_while_appending(self, number: int, data: bytes, step: str) -> None:
        """An append whose segment is stored, or not, and whose answer is lost."""
        self.stream += data
        self.do(self._fail(number, step))

    async def _fail(self, number: int, step: str) -> None:
        headers = {Header.UPLOAD_OFFSET: str(self.accepted)}
        with self.replica(number).dying(step):
            await self.send(number, "POST", "/append", data=self.stream[self.accepted :], headers=headers)
            await self.replica(number).settle()
        self.is_exact = False
        await self._send_all(number)
        self.is_emptied = False  # all of it is accepted, perhaps by the append without an answer

    @rule(number=replicas)
    def flush(self, number: int) -> None:
        self.do(self.replica(number).flush(self.capture))

    @is_live
    @rule(number=replicas, step=st.sampled_from(STEPS))
    def die_while_flushing(self, number: int, step: str) -> None:
        self.do(self.replica(number).flush_until(self.capture, step))

    @is_live
    @rule()
    def both_flush(self) -> None:
        async def both() -> None:
            await asyncio.gather(*(each.flush(self.capture) for each in self.stack.both))

        self.do(both())

    @rule(number=replicas)
    def restart(self, number: int) -> None:
        async def restarted() -> None:
            await self.replica(number).stop()
            await self.replica(number).start()

        self.do(restarted())

    @rule()
    def lose_catalog(self) -> None:
        self.do(self.stack.disturb(self.stack.catalog.lose))
        self.is_exact, self.is_emptied, self.is_doubted = False, True, True

    @rule()
    def copy_catalog(self) -> None:
        self.do(self.stack.disturb(self.stack.catalog.copy))
        self.has_copy = True

    @precondition(lambda self: self.has_copy)
    @rule()
    def put_back_catalog(self) -> None:
        self.do(self.stack.disturb(self.stack.catalog.go_back))
        self.is_exact, self.is_emptied, self.is_doubted = False, True, True

    @rule(number=replicas)
    def rebuild(self, number: int) -> None:
        self.do(rebuild_if_due(self.replica(number).service.archive, "test"))

    @is_live
    @rule(number=replicas, crash=st.none() | st.sampled_from(STEPS[1:]))
    def complete(self, number: int, crash: str | None) -> None:
        self.do(self._complete(number, crash))

    async def _complete(self, number: int, crash: str | None) -> None:
        await self._send_all(number)
        if crash is not None:
            with self.replica(number).dying(crash):
                await self._end(number)
        if self.ended is None:
            assert await self._end(number) == 200
        assert self.ended is not None
        assert self.ended["size"] == len(self.stream)

    async def _end(self, number: int) -> int:
        body = json.dumps({"offset": len(self.stream), "status": "ok", "exit_code": 3}).encode()
        headers = {"Content-Type": "application/json"}
        response = await self.send(number, "POST", "/complete", data=body, headers=headers)
        answer = await response.json()
        if response.status == 200:
            self._note_end(answer, "complete")
        return response.status

    def _note_end(self, entry: dict[str, Any], state: str) -> None:
        assert entry["state"] == state
        self.ended = {name: entry.get(name) for name in ENDED}
        self.durable = entry["size"]
        self.stream = self.stream[: entry["size"]]
        self.accepted, self.is_exact = self.durable, True

    @is_live
    @rule(number=replicas)
    def vanish(self, number: int) -> None:
        """The producer is gone for longer than it may be."""
        self.do(self._vanish(number))

    async def _vanish(self, number: int) -> None:
        await self.replica(number).rebuilt()
        for _ in range(3):
            await self.replica(number).flush(self.capture)
            self.stack.advance(TIMEOUT + 1)
        for _ in range(3):
            for each in self.stack.both:  # their own work holds the lease meanwhile
                await each.settle()
            await self.replica(1 - number).flush(self.capture)
        response = await self.send(number, "GET", "")
        if response.status == 404:
            assert (self.durable, self.is_exact) == (0, False)
            return
        entry = await response.json()
        assert self.durable <= entry["size"] <= len(self.stream)
        gap = entry["gap"]
        assert gap is None or gap["offset"] == entry["size"]
        assert gap is None or entry["size"] + (gap["size"] or 0) <= len(self.stream)
        if self.is_exact:  # a gap then is what the producer has not sent again
            assert entry["size"] == self.accepted
            assert gap is None or gap["size"] or self.is_doubted
        assert not self.is_emptied or gap is not None
        self._note_end(entry, "partial")

    @rule(number=replicas)
    def look_at_the_end(self, number: int) -> None:
        """A capture that has ended stays as it ended, once the catalog knows all of it."""
        if self.ended is not None:
            entry = self.do(self._settled_entry(number))
            assert {name: entry.get(name) for name in ENDED} == self.ended

    async def _settled_entry(self, number: int) -> Any:
        await self.replica(number).rebuilt()
        return await (await self.send(number, "GET", "")).json()

    @rule(number=replicas, pattern=st.sampled_from(("two", "five", "never")))
    def read(self, number: int, pattern: str) -> None:
        self.do(self._read(number, pattern))

    async def _read(self, number: int, pattern: str) -> None:
        response = await self.send(number, "GET", "/content")
        if response.status == 404:
            assert (self.durable, self.is_exact) == (0, False)
            return
        content = await response.read()
        assert content == self.stream[: len(content)]
        if not self.is_exact:
            return
        assert len(content) == self.accepted
        lines = content.decode().split("\n")
        lines = lines if lines[-1] else lines[:-1]
        tail = await (await self.send(number, "GET", "/tail?lines=2")).json()
        found = await (await self.send(number, "GET", f"/grep?pattern={pattern}&max_matches=1")).json()
        middle = len(lines) // 2 + 1
        shown = await (await self.send(number, "GET", f"/lines?start={middle}&end={middle}")).json()
        assert tail["total_lines"] == len(lines)
        assert tail["content"].removesuffix("\n") == "\n".join(lines[-2:])
        assert shown["content"].removesuffix("\n") == ("".join(lines[middle - 1 : middle]))
        first = next((index for index, line in enumerate(lines, 1) if pattern in line), None)
        assert first == (found["matches"][0]["line_number"] if found["matches"] else None)

    @precondition(lambda self: self.is_exact)
    @rule(number=replicas, start=st.floats(0, 1))
    def follow(self, number: int, start: float) -> None:
        offset = int(start * self.accepted)
        assert self.do(self._follow(number, offset)) == self.stream[offset : self.accepted]

    async def _follow(self, number: int, offset: int) -> bytes:
        """What a follower gets, up to the accepted bytes."""
        api, content = self.replica(number).api, b""
        url = api.url(f"{self.path}/follow?offset={offset}")
        async with asyncio.timeout(30), api._session.get(url) as response:
            assert response.status == 200, await response.text()
            while offset + len(content) < self.accepted:
                line = await response.content.readline()
                assert line
                if line.startswith(b'data: {"offset"'):
                    content += json.loads(line[6:])["content"].encode()
        return content

    @precondition(lambda self: self.is_exact)
    @rule(number=replicas, cursor=st.floats(0, 1), pattern=st.sampled_from(("two", "five", "never")))
    def wait(self, number: int, cursor: float, pattern: str) -> None:
        at = int(cursor * self.accepted)
        query = f"/wait?pattern={pattern}&timeout=0&cursor={at}"
        answer = self.do(self._json(number, query))
        new = self.stream[self.stream.rfind(b"\n", 0, at) + 1 : self.accepted] if at < self.accepted else b""
        assert answer["total_bytes"] == self.accepted
        is_found = pattern.encode() in new
        assert (answer["reason"] == "pattern") == is_found, answer

    async def _json(self, number: int, path: str) -> Any:
        response = await self.send(number, "GET", path)
        assert response.status == 200, await response.text()
        return await response.json()

    def teardown(self) -> None:
        """Whatever happened, the producer can end, and all that it sent is there."""
        if self.ended is None:
            self.do(self._complete(0, None))
        self.look_at_the_end(1)
        self.is_exact = True
        self.do(self._read(1, "two"))


@pytest.fixture(params=["redis", "sqlite", "redis, large appends", "sqlite, large appends"])
def stack(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replicas:
    kind, _, how = request.param.partition(", ")
    if how:  # those of this test count as large: they fill segments
        monkeypatch.setattr(producing, "SEGMENT_BYTES", 1000)
        monkeypatch.setattr(filling, "MIN_BYTES", 100)
        monkeypatch.setattr(filling, "MIN_SEGMENT", 500)
    if kind == "sqlite":
        return Replicas(tmp_path, SqliteCopies(tmp_path))
    server: RedisServer = request.getfixturevalue("own_redis")
    return Replicas(tmp_path, RedisCopies(server))


@pytest.mark.timeout(300)
def test_a_live_capture_is_what_its_producer_sent_whatever_happens(stack: Replicas) -> None:
    with asyncio.Runner() as runner:
        machine = type("Machine", (LiveCapture,), {"stack": stack, "runner": runner})
        runner.run(stack.start())
        try:
            run_machine(
                machine,
                settings=settings(
                    max_examples=4 if stack.catalog.is_file else 8,  # a file takes two restarts to lose
                    stateful_step_count=25,
                    deadline=None,
                    phases=(Phase.generate,),
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(stack.stop())
