"""Services that what they stand on lets down: as processes, or in this process where a test looks inside."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.faults.live_replicas import TIMEOUT
from tests.faults.traffic import until
from tests.servers.overspill import ForkedService, ServiceProcess, running
from tests.web.conftest import Api, producer, start_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.servers.redis import RedisServer

__all__ = ["producer", "start_api"]


class StartServices(Protocol):
    def __call__(
        self, count: int = 1, *, program: Sequence[str] | None = None, **settings: Any
    ) -> list[ServiceProcess]: ...


@pytest.fixture
def start_services(tmp_path: Path, outlasting: ExitStack) -> Iterator[StartServices]:
    """Starts services as processes, several at once; what still runs is stopped with the test.

    With a `program`, they start as they would for anybody: say so where their memory is measured.
    """
    with ExitStack() as stack:

        def start(
            count: int = 1, *, program: Sequence[str] | None = None, **settings: Any
        ) -> list[ServiceProcess]:
            kind = ForkedService if program is None else ServiceProcess
            made = [kind(tmp_path / f"service-{number}", **settings) for number in range(count)]
            for each in made:
                each.program = program or kind.program
                stack.callback(each.stop)
            with ThreadPoolExecutor(count) as pool:
                list(pool.map(ServiceProcess.start, made))
            return made

        yield start


@pytest.fixture
async def pair(
    start_api: Callable[..., Any], own_redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Api]:
    """Two replicas that rebuild, and store accepted bytes, when the test says so."""
    monkeypatch.setattr("overspill_service.maintenance.POLL_SECONDS", 3600.0)
    settings = {
        "store": f"file://{tmp_path}/objects",
        "catalog": own_redis.url,
        "live_flush_seconds": 3600.0,
        "live_timeout": TIMEOUT,
    }
    replicas = [await start_api(**settings) for _ in range(2)]
    for each in replicas:
        await until(each.service.archive.catalog.is_complete)
    return replicas


@pytest.fixture
def on_a_tiny_disk(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service whose data directory has room for 4 MiB and 200 files."""
    service = ForkedService(tmp_path / "service")
    service.data.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=200,mode=700", "tmpfs", str(service.data)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system that is small enough to fill")
    try:
        with running(service):
            yield service
    finally:
        subprocess.run(["umount", "--lazy", str(service.data)], check=True)
