"""A producer that is faster than the service is held back, in constant memory."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Client, SyncClient
from overspill.errors import Unreachable
from overspill.live.live_capture import WRITE_BYTES
from overspill.live.pending_writes import PendingWrites
from overspill.live.producer import MAX_BYTES

from tests.client.shell import printed_by
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.overspill import ServiceProcess

LINE = b"a line of the output that is long enough to be long\n"
PIECE = LINE * (WRITE_BYTES // len(LINE))
PIECES = 2 * MAX_BYTES // len(PIECE)
FLAT_KIB = 64 * 1024
HUGE = 128 * 2**20
MEASURED = """
import asyncio, resource, sys
from overspill import Client, SyncClient, capture_process

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

async def captured(size):
    async with Client(sys.argv[1]) as client, client.live() as out:
        script = f"yes 'a line of the huge output' | head -c {size}"
        code = await capture_process(out, ["sh", "-c", script])
        await out.flush()
        print(code, out.accepted, peak())

def written(size):
    with SyncClient(sys.argv[1]) as client, client.live() as out:
        piece = b"a line of the huge output\\n" * 10_000
        for _ in range(size // len(piece)):
            out.write(piece)
        out.flush()
        print(0, out.accepted, peak())

for size in (16 * 2**20, int(sys.argv[3])):
    asyncio.run(captured(size)) if sys.argv[2] == "process" else written(size)
"""


@pytest.fixture
def stopped(own_service: ServiceProcess) -> Iterator[ServiceProcess]:
    """A service that is stopped by a signal, and goes on once it gets `SIGCONT`."""
    yield own_service
    os.kill(own_service.pid, signal.SIGCONT)


async def test_a_write_waits_while_as_much_is_kept_as_may_be(stopped: ServiceProcess) -> None:
    async with Client(stopped.url) as client:
        async with client.live() as out:
            os.kill(stopped.pid, signal.SIGSTOP)
            taken = 0
            while taken < 2 * MAX_BYTES and out.offer(PIECE):
                taken += len(PIECE)
                out.producer.wake()
            writing = asyncio.create_task(out.write(PIECE))
            await asyncio.sleep(0)

            assert MAX_BYTES <= taken < MAX_BYTES + len(PIECE)
            assert not writing.done()

            os.kill(stopped.pid, signal.SIGCONT)
            assert await writing == len(PIECE)
        assert await client.content(out.id) == PIECE * (taken // len(PIECE) + 1)


def test_a_synchronous_write_waits_too_and_goes_on_with_the_service(stopped: ServiceProcess) -> None:
    written: list[int] = []
    with SyncClient(stopped.url) as client:
        with client.live() as out:
            os.kill(stopped.pid, signal.SIGSTOP)
            writing = threading.Thread(target=lambda: written.extend(out.write(PIECE) for _ in range(PIECES)))
            writing.start()
            wait_until(lambda: sum(written) >= MAX_BYTES - len(PIECE), "the producer fills its memory")
            writing.join(0.5)

            assert writing.is_alive()
            assert sum(written) < MAX_BYTES + 2 * len(PIECE)  # one write may be on its way to the sender

            os.kill(stopped.pid, signal.SIGCONT)
            writing.join(60)
        assert client.content(out.id) == PIECE * PIECES


@pytest.mark.parametrize("last", ["", "two\n"], ids=["complete", "append"])
def test_a_service_that_falls_silent_is_given_up_as_one_that_is_away(
    stopped: ServiceProcess, last: str
) -> None:
    with SyncClient(stopped.url) as client, client.live(patience=0.1) as out:
        out.write("one\n")
        out.flush()
        calls: Any = out._capture._service
        usual, calls._silent_seconds = calls._silent_seconds, 0.2
        os.kill(stopped.pid, signal.SIGSTOP)
        out.write(last)
        with pytest.raises(Unreachable, match=r"no answer within 0\.2 s"):
            out.complete()

    assert usual == 5


def test_all_bytes_of_a_batch_count_while_it_is_prepared_also_those_that_came_last() -> None:
    pending = PendingWrites(None)
    for _ in range(3):
        pending.add(PIECE)
    batch = pending.take()

    assert (pending.size, pending.preparing) == (0, len(batch))
    assert len(batch) == 3 * len(PIECE)


@pytest.mark.parametrize("what", ["process", "writes"])
def test_memory_stays_flat_however_much_is_written(service: ServiceProcess, what: str) -> None:
    printed = printed_by(MEASURED, service.url, what, HUGE)
    (_, _, little), (code, accepted, much) = (map(int, line.split()) for line in printed.splitlines())

    assert (code, accepted > HUGE - 10**6) == (0, True)
    assert much - little < FLAT_KIB
