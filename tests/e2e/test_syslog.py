"""The audit log, received by rsyslog: by TCP, and by the socket of the machine's own daemon."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from overspill_service.audit.events import Action, Event, Outcome
from overspill_service.audit.outputs import open_output

from tests.e2e.programs import program
from tests.faults.traffic import until
from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIGURATION = """
global(workDirectory="{folder}")
module(load="imtcp")
module(load="imuxsock" SysSock.Use="off")
input(type="imtcp" port="{port}" address="127.0.0.1")
input(type="imuxsock" Socket="{folder}/s")
template(name="t" type="string" string="%syslogfacility-text%.%syslogseverity-text% %app-name% %msg%\\n")
action(type="omfile" file="{folder}/out" template="t")
"""
SESSION = 'ü "quoted"\n' + "x" * 4000


class Daemon:
    def __init__(self, folder: Path, port: int) -> None:
        self._received = folder / "out"
        self.outputs = {"tcp": f"syslog://127.0.0.1:{port}", "socket": f"syslog:{folder}/s"}

    def received(self) -> list[str]:
        return self._received.read_text(encoding="utf-8").splitlines() if self._received.exists() else []


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    command, folder, port = program("rsyslogd"), tmp_path_factory.mktemp("syslog"), free_port()
    configuration = folder / "rsyslog.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, port=port))
    process = subprocess.Popen(
        [command, "-n", "-f", str(configuration), "-i", str(folder / "pid")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Daemon(folder, port)
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("way", ["tcp", "socket"])
async def test_rsyslog_reads_what_the_service_writes(daemon: Daemon, way: str) -> None:
    before = len(daemon.received())
    event = Event(
        action=Action.SESSION_DELETE, outcome=Outcome.SUCCESS, tenant="acme", about={"session": SESSION}
    )
    lines = [event.line(second) for second in range(3)]

    async def is_sent() -> bool:
        output = open_output(daemon.outputs[way])
        try:
            output.write(lines)
        except OSError:  # it has just been started
            return False
        finally:
            output.close()
        return True

    async def is_there() -> bool:
        return len(daemon.received()) == before + len(lines)

    await until(is_sent)
    await until(is_there)
    heads, texts = zip(*(each.split(" {", 1) for each in daemon.received()[before:]), strict=True)

    assert {head.strip() for head in heads} == {"audit.notice overspill-service"}
    assert [json.loads("{" + text) for text in texts] == [json.loads(line) for line in lines]
