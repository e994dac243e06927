"""A process with few descriptors or threads: it answers everyone, and says what lacks."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import aiohttp
import pytest
from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.errors import ServiceError

from tests.faults.traffic import until
from tests.servers.overspill import ServiceProcess, running
from tests.web.conftest import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENTS = 100
LIMITED = """
import os, resource, sys
from overspill_service import command_line, dispatch, release
release()  # all of it, before the user may not read it any more

name, limit, user = sys.argv[1:4]
del sys.argv[1:4]
if int(user):
    os.setuid(int(user))
resource.setrlimit(getattr(resource, name), (int(limit), int(limit)))
sys.exit(command_line.main())
"""
"""The service under a limit, as another user if that is not 0: name, limit, user, then its own arguments."""
NOBODY = 54321
ENOUGH_DESCRIPTORS = 1024


@pytest.fixture
def few_descriptors(tmp_path: Path) -> Iterator[ServiceProcess]:
    service = ServiceProcess(tmp_path / "service")
    service.program = ["-c", LIMITED, "RLIMIT_NOFILE", "64", "0"]
    with running(service):
        yield service


async def test_with_few_descriptors_everyone_is_answered_and_health_always(
    few_descriptors: ServiceProcess,
) -> None:
    url = few_descriptors.url
    timeout, answers = aiohttp.ClientTimeout(total=60), []

    async def one(number: int) -> int:
        """Put until it is stored, as a client does that heeds `Retry-After`."""
        content = b"%d" % number
        async with aiohttp.ClientSession(timeout=timeout) as session:
            for _ in range(200):
                async with session.put(url + path_of(content), data=content) as response:
                    answers.append(response.status)
                    if response.status != 503:
                        return response.status
                    assert response.headers["Retry-After"] == "1"
                await asyncio.sleep(0.05)
        return 503

    async def healthy() -> bool:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{url}/healthz") as live,
            session.get(f"{url}/readyz") as ready,
        ):
            return (live.status, ready.status) == (200, 200)

    stored = asyncio.gather(*(one(number) for number in range(CLIENTS)))
    while not stored.done():
        assert await healthy()
    assert set(await stored) == {201}
    assert set(answers) <= {201, 503}
    log = few_descriptors.logged()
    assert "at most" in log
    assert log.count("trouble=connections") <= 2


async def test_idle_connections_make_room_for_others(few_descriptors: ServiceProcess) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as idle:
        waiting = [asyncio.create_task(status_of(idle, few_descriptors.url)) for _ in range(60)]
        assert {await each for each in waiting} == {200}

        async def serves() -> bool:
            async with (
                aiohttp.ClientSession() as other,
                other.put(few_descriptors.url + path_of(b"x"), data=b"x") as response,
            ):
                return response.status in {200, 201}

        await until(serves)


async def status_of(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(f"{url}/healthz") as response:
        return response.status


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts threads against this limit")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become a user that has no other threads")
@pytest.mark.parametrize(
    ("workers", "reason"), [("1", "ulimit -u"), ("2", "ulimit -u|Permission denied")], ids=["one", "two"]
)
async def test_a_process_that_cannot_have_its_threads_says_so_at_its_start(workers: str, reason: str) -> None:
    """Of two workers neither may even be started, where the other user has no right to run this Python."""
    data = tempfile.mkdtemp(dir="/var/tmp")  # which the other user can reach
    flags = ["serve", "--listen", "127.0.0.1:0", "--data", data, "--workers", workers]
    os.chown(data, NOBODY, NOBODY)
    try:
        ended = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", LIMITED, "RLIMIT_NPROC", "5", str(NOBODY), *flags],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        shutil.rmtree(data)

    assert ended.returncode == 1
    assert re.search(reason, ended.stderr)
    assert "Traceback" not in ended.stderr


async def test_a_catalog_that_may_open_too_few_files_says_so(tmp_path: Path) -> None:
    with descriptors_taken() as taken:
        refusals = []
        while True:
            os.close(taken.pop())
            try:
                catalog = SqliteCatalog(tmp_path / "catalog.sqlite")
            except ServiceError as error:
                refusals.append(str(error))
            else:
                break
    await catalog.close()

    assert refusals
    assert all("ulimit -n" in each for each in refusals)


@contextmanager
def descriptors_taken() -> Iterator[list[int]]:
    """All that this process may have, and which are given back at the end."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (ENOUGH_DESCRIPTORS, limits[1]))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield taken
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
