"""An asynchronous client that nobody closes, or that is closed in another event loop than its own."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from overspill.transfer.client import Client

from tests.client.scripted import answer, scripted, scripted_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

FINE = answer(b"ok")
SECONDS = 60


async def asked(url: str) -> Client:
    client = Client(url, retries=0)
    assert await client.healthy()
    return client


def sockets() -> int:
    """How many sockets this process has open."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not list the files that a process has open")
    links = [entry for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    return sum(_target(link).startswith("socket:") for link in links)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # that of the listing itself
        return ""


@pytest.fixture
def another_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One that does not run."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(asyncio.sleep(0))  # what was scheduled on it is done
    loop.close()


def test_closed_in_another_loop_while_its_own_stands_still_it_frees_its_sockets(
    another_loop: asyncio.AbstractEventLoop,
) -> None:
    with scripted_in_thread(FINE) as service:
        before = sockets()
        clients = [another_loop.run_until_complete(asked(service.url)) for _ in range(5)]
        held = sockets() - before
        for client in clients:
            asyncio.run(client.aclose())

        assert (held >= 1, sockets() - before <= held - 1) == (True, True)


def test_closed_in_another_loop_while_its_own_runs_it_is_closed_there() -> None:
    with scripted_in_thread(FINE) as service:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        client = asyncio.run_coroutine_threadsafe(asked(service.url), loop).result(SECONDS)
        assert client._opened is not None
        session = client._opened._session
        asyncio.run(client.aclose())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    assert session is not None
    assert session.closed


async def test_dropped_in_its_own_loop_it_frees_its_sockets() -> None:
    async with scripted(FINE) as service:
        before = sockets()
        for _ in range(5):
            await asked(service.url)
        gc.collect()
        await asyncio.sleep(0)  # in this turn of the loop the connections are closed
        await asyncio.sleep(0)
        ends = service.connections

        assert ends == 5
        assert sockets() - before <= 5  # those of the server, which may not have seen it yet


LEFT_OPEN = """
import asyncio, os, sys
from overspill import Client

async def asked():
    asyncio.get_running_loop().slow_callback_duration = 60  # on a busy machine a step takes its time
    client = Client(sys.argv[1], retries=0)
    print(await client.healthy())
    return client

how, clients = sys.argv[2], []
if how == "dropped":
    asyncio.run(asked())
elif how == "kept":
    clients.append(asyncio.run(asked()))
elif how == "forked":
    async def forked():
        clients.append(await asked())
        if os.fork() == 0:
            clients.clear()
            sys.exit(0)
        os.wait()
        print(await clients[0].healthy())
    asyncio.run(forked())
elif how == "several loops":
    for _ in range(3):
        clients.append(asyncio.run(asked()))
"""


@pytest.mark.parametrize(
    ("how", "answers"),
    [
        ("dropped", 1),
        ("kept", 1),
        pytest.param(
            "forked",
            2,
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 14), reason="no forked child can leave its parent's event loop"
            ),
        ),
        ("several loops", 3),
    ],
)
def test_a_program_that_never_closes_it_ends_without_a_word(how: str, answers: int) -> None:
    with scripted_in_thread(FINE) as service:
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-X", "dev", "-c", LEFT_OPEN, service.url, how],
            capture_output=True,
            timeout=SECONDS,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    assert (ended.stdout, ended.stderr, ended.returncode) == ("True\n" * answers, "", 0)
