"""A run of tests that is killed leaves no server behind."""

from __future__ import annotations

import os
import select
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

from tests.client.shell import running_code

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells processes by their start")

SECONDS: Final = 60
STARTS_TWO: Final = """
import os, signal, sys
from pathlib import Path
from tests.servers.launcher import Launcher
from tests.servers.redis import RedisServer
redis = RedisServer(Path(sys.argv[1])).start()
with Launcher("json").piped([], os.environ, seconds=60, code="import signal; signal.pause()") as forked:
    print(redis.process.pid, forked.process.pid, flush=True)
    signal.pause()
"""


def test_servers_and_forked_processes_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        with running_code(STARTS_TWO, tmp_path) as killed:
            running = []
            for pid in map(int, killed.stdout.readline().split()):
                running.append(os.pidfd_open(pid))
                stack.callback(os.close, running[-1])

        ended = [select.select([each], [], [], SECONDS)[0] for each in running]

    assert ended == [[each] for each in running]
    assert len(ended) == 2
