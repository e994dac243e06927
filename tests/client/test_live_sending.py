"""A producer sends full appends one after the other, and everything whatever the service does."""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import TYPE_CHECKING

import pytest
from overspill import Unreachable, wire
from overspill.errors import ProblemError, error_for
from overspill.execution.backoff import Backoff
from overspill.live import sender
from overspill.live.pending_writes import PendingWrites
from overspill.live.producer import Producer
from overspill.wire import Code, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LINE = b"%062d\n\n"
FULL = wire.MAX_APPEND


def lines(size: int) -> bytes:
    return b"".join(LINE % number for number in range(size // 64))


class Service:
    """A service that has what it was sent. `before` and `after` are called around each append."""

    producer = "me"

    def __init__(self) -> None:
        self.data, self.durable = b"", 0
        self.asked: list[int] = []
        self.most_at_once = self.at_once = 0
        self.is_begun = False
        self.is_quick = True
        """Whether what is accepted is durable at once."""
        self.before: Callable[[int], object] = int
        self.after: Callable[[int], object] = int
        self._turn = asyncio.Lock()

    def is_ready(self, offset: int, size: int) -> bool:
        """Return whether an append of this size is taken now."""
        return True

    def status(self) -> wire.LiveStatus:
        return wire.LiveStatus(
            id="cap_x", state=wire.State.LIVE, accepted=len(self.data), durable=self.durable
        )

    async def begin(self) -> wire.LiveStatus:
        self.is_begun = True
        return self.status()

    async def append(
        self,
        offset: int,
        pieces: Sequence[bytes],
        *,
        is_last: bool = False,
        on_sent: Callable[[], object] | None = None,
    ) -> wire.LiveStatus:
        self.asked.append(offset)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if on_sent is not None:
            on_sent()
        try:
            while not self.is_ready(offset, sum(map(len, pieces))):  # noqa: ASYNC110  (one of many tasks is due)
                await asyncio.sleep(0)
            async with self._turn:
                self.before(offset)
                self._take(offset, b"".join(pieces))
                self.after(offset)
                return self.status()
        finally:
            self.at_once -= 1

    def _take(self, offset: int, data: bytes) -> None:
        if not self.is_begun:
            raise problem(Code.NOT_FOUND)
        if offset != len(self.data):
            raise problem(Code.WRONG_OFFSET, len(self.data))
        self.data += data
        if self.is_quick:
            self.durable = len(self.data)

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        raise AssertionError


async def sent(service: Service, data: bytes, pending: PendingWrites) -> Producer:
    """Send all of `data` as it has room, and end."""
    producer = Producer(service, pending, patience=3600)
    running = asyncio.create_task(producer.run())
    for start in range(0, len(data), 2**18):
        await producer.until_room()
        pending.add(data[start : start + 2**18])
        producer.wake()
    producer.end()
    await running
    return producer


class SlowService(Service):
    """It takes no full append before the next one comes, if there is a next one."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def is_ready(self, offset: int, size: int) -> bool:
        return size < FULL or offset + size == self._size or offset < self.asked[-1]


async def test_a_full_append_goes_out_while_the_one_before_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "GATHER_SECONDS", 3600)  # a busy machine fills no append in the usual time
    data = lines(5 * FULL)
    service = SlowService(len(data))
    producer = await sent(service, data, PendingWrites(None))

    assert service.data == data
    assert service.most_at_once == 2
    assert service.asked == sorted(service.asked)
    assert producer.sender.durable == len(data)


class OtherReplica(SlowService):
    """It has nothing of the append before while that is stored."""

    refused = 0

    def is_ready(self, offset: int, size: int) -> bool:
        return self.refused > 0 or super().is_ready(offset, size)

    async def append(
        self,
        offset: int,
        pieces: Sequence[bytes],
        *,
        is_last: bool = False,
        on_sent: Callable[[], object] | None = None,
    ) -> wire.LiveStatus:
        if self.at_once:
            self.refused += 1
            self.asked.append(offset)
            raise problem(Code.WRONG_OFFSET, len(self.data))
        return await super().append(offset, pieces, is_last=is_last, on_sent=on_sent)


async def test_where_appends_are_not_taken_in_order_each_waits_for_the_answer_to_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "GATHER_SECONDS", 3600)
    data = lines(5 * FULL)
    service = OtherReplica(len(data))
    await sent(service, data, PendingWrites(None))

    assert service.data == data
    assert service.refused == 1


async def test_a_fast_producer_gathers_full_appends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "GATHER_SECONDS", 3600)
    service, pending, data = Service(), PendingWrites(None), lines(3 * FULL)
    producer = Producer(service, pending, patience=3600)
    running = asyncio.create_task(producer.run())
    for start in range(0, len(data), FULL // 8):
        pending.add(data[start : start + FULL // 8])
        producer.wake()
        while pending.size or not service.asked:  # noqa: ASYNC110  (as above)
            await asyncio.sleep(0)
    producer.end()
    await running

    assert service.data == data
    assert len(service.asked) <= 5


async def test_who_waits_for_what_is_written_does_not_wait_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "GATHER_SECONDS", 3600)
    service, pending, data = Service(), PendingWrites(None), lines(FULL // 4)
    producer = Producer(service, pending, patience=3600)
    running = asyncio.create_task(producer.run())
    for size in (len(data) // 2, len(data)):
        pending.add(data[size - len(data) // 2 : size])
        await producer.until_sent()

        assert len(service.data) == size
    producer.end()
    await running


async def test_a_write_that_comes_behind_the_end_is_refused_and_holds_up_nothing() -> None:
    service, pending = Service(), PendingWrites(None)
    producer, refused = Producer(service, pending, patience=3600), []

    def write(_: int) -> None:
        with pytest.raises(ValueError, match="has ended") as told:
            pending.add(b"too late")
        refused.append(told.value)

    service.before = write
    pending.add(b"all of it")
    producer.end()
    async with asyncio.timeout(60):
        await producer.run()

    assert service.data == b"all of it"
    assert len(refused) == 1


@pytest.mark.parametrize("seed", range(8))
async def test_all_of_a_stream_arrives_once_whatever_appends_meet(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "_BACKOFF", Backoff(first=0.001, longest=0.002))
    monkeypatch.setattr(sender, "_ASK_SECONDS", 0.001)
    random_, service = random.Random(seed), Service()
    service.is_quick = False
    data = lines(4 * FULL + random_.randrange(FULL))

    def meet(offset: int) -> None:
        if random_.random() < 0.5:
            random_.choice([_away, _busy, _lose, _store, _store])(service, offset)

    def lose_answer(_: int) -> None:
        if random_.random() < 0.2:
            raise Unreachable("the answer is lost")

    service.before, service.after = meet, lose_answer
    pending = PendingWrites(None)
    producer = await sent(service, data, pending)

    assert producer.sender.failure is None
    assert service.data == data
    assert (pending.taken_bytes, pending.sha256.digest()) == (len(data), hashlib.sha256(data).digest())


def _away(_: Service, __: int) -> None:
    raise Unreachable("it is away")


def _busy(_: Service, __: int) -> None:
    raise problem(Code.BUFFER_FULL)


def _lose(service: Service, _: int) -> None:
    """Lose what is accepted and not durable; all, if that is all."""
    service.data = service.data[: service.durable]
    service.is_begun = service.durable > 0


def _store(service: Service, _: int) -> None:
    service.durable = len(service.data)


def problem(code: Code, offset: int | None = None) -> ProblemError:
    return error_for(
        Problem(type="about:blank", title="", status=code.status, code=str(code), detail="", offset=offset)
    )
