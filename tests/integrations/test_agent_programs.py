"""Agent programs themselves, guarded by `overspill init`, before a model that says what a script says.

`OVERSPILL_PROGRAMS=all`, or names with commas between, runs them. They are downloaded once, some hundred
megabytes each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from overspill import SyncClient

from tests.client.shell import Shell
from tests.integrations.agent_programs.real_programs import REAL_PROGRAMS, RealProgram, asked_for
from tests.integrations.agent_programs.scripted_model import ScriptedModel

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

LAST = 20_000
WHOLE = "".join(f"{number}\n" for number in range(1, LAST + 1))


@pytest.mark.parametrize("program", REAL_PROGRAMS, ids=lambda program: program.name)
def test_the_model_gets_short_outputs_as_they_are_and_reads_long_ones_by_the_notices_command(
    program: RealProgram, service: ServiceProcess, tmp_path: Path
) -> None:
    if program.name not in asked_for():
        pytest.skip(f"OVERSPILL_PROGRAMS={program.name} runs it")
    overspill = Shell(service.url, HOME=str(tmp_path), OVERSPILL_SPOOL="off")
    assert overspill("init", program.name, "--yes").code == 0
    script = [
        lambda _: program.call("echo short"),
        lambda _: program.call(f"seq 1 {LAST}"),
        lambda notice: program.call(_reading_on(notice).replace("head -n 200", "tail -n 5")),
    ]
    with ScriptedModel(program.api, script) as model:
        program.write_settings(tmp_path, model.url)
        printed = program.start(tmp_path, model.url, overspill.environment)

    assert len(model.results) == len(script), printed
    short, notice, read = model.results
    assert "short" in short
    assert "[overspill]" not in short
    assert len(notice) < 4_000
    assert _stored(service, notice).endswith(WHOLE) or WHOLE in _stored(service, notice)
    assert f"{LAST - 1}\n{LAST}" in read


def _reading_on(notice: str) -> str:
    """Return the command that a notice names."""
    found = re.search(r"^Read more: (.+?)\. Do not rerun", notice, re.MULTILINE)
    assert found is not None, notice
    return found[1]


def _stored(service: ServiceProcess, notice: str) -> str:
    [handle] = set(re.findall(r"cap_[a-z2-7]{20}", notice))
    with SyncClient(service.url) as client:
        return client.content(handle).decode()
