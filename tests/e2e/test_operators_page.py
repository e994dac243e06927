"""The operator's page, executed: each procedure command by command, on real back ends with captures."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shlex
import signal
import subprocess
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from overspill.errors import Denied
from overspill.transfer.client import Client
from overspill_service.command_line import main
from overspill_service.tenants.keys import hash_key, new_key

from tests.e2e.programs import program
from tests.faults.traffic import until
from tests.servers.overspill import ForkedService, clean_environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tests.servers.redis import RedisServer

PAGE = Path(__file__).parents[2] / "service" / "deploy" / "README.md"
CONTENTS = {f"call-{number}": f"output {number}\n".encode() * 10 ** (number % 5) for number in range(12)}
S3 = "s3://captures?region=eu-central-1"
REDIS = "redis://redis.example:6379/0"
SECONDS = 60


def procedures() -> dict[str, list[str]]:
    """The commands of each procedure of the page, by its heading."""
    text = PAGE.read_text(encoding="utf-8").split("\n## Procedures\n")[1].split("\n## ")[0]
    sections = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
    commands = [re.findall(r"^    (\S.*)$", body, re.MULTILINE) for body in sections[1::2]]
    return dict(zip(sections[::2], commands, strict=True))


class Machine:
    """A machine as the page has it: its paths are in a folder of the test, systemd is this class."""

    def __init__(self, folder: Path, **places: str) -> None:
        self._places = {
            "/etc/overspill": f"{folder}/etc",
            "/var/lib/overspill": f"{folder}/lib",
            "/var/log/overspill.json": f"{folder}/run/service.log",
            "/var/log/overspill/audit.json": f"{folder}/audit.json",
            "/backup": f"{folder}/backup",
            **places,
        }
        self._environment = folder / "etc" / "environment"
        self._environment.parent.mkdir()
        self._service = ForkedService(folder / "run")

    def configure(self, **settings: str) -> None:
        """Write the file of settings; those that are not given stay as they are."""
        kept = self.settings | {f"OVERSPILL_{name}": value for name, value in settings.items()}
        self._environment.write_text("".join(f"{name}={value}\n" for name, value in kept.items()))

    @property
    def settings(self) -> dict[str, str]:
        if not self._environment.exists():
            return {}
        lines = self._environment.read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    @property
    def url(self) -> str:
        return self._service.url

    @property
    def key_file(self) -> str:
        """Where the service puts the key of the machine's user."""
        return self._service.variables["OVERSPILL_KEY_FILE"]

    def start(self) -> None:
        settings = {name.removeprefix("OVERSPILL_").lower(): value for name, value in self.settings.items()}
        self._service._settings = {"listen": "127.0.0.1:0", **settings}
        self._service.start()

    def stop(self) -> None:
        self._service.stop()

    def kill(self) -> None:
        self._service.kill()

    def follow(self, heading: str, replaced: Mapping[str, str] | None = None) -> list[str]:
        """Execute a procedure command by command; return what each printed."""
        commands = procedures()[heading]
        assert commands, f"{PAGE} has no commands under {heading}"
        return [self._execute(command, replaced or {}) for command in commands]

    def _execute(self, command: str, replaced: Mapping[str, str]) -> str:
        for written, meant in (self._places | dict(replaced)).items():
            command = command.replace(written, meant)
        if command in ("systemctl start overspill", "systemctl stop overspill"):
            self.start() if "start" in command else self.stop()
            return ""
        if command == "systemctl reload overspill":
            os.kill(self._service.pid, signal.SIGHUP)
            return ""
        if command.startswith("overspill-service "):
            return self._overspill(command)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            env=clean_environment(**self.settings),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _overspill(self, command: str) -> str:
        """Run a command of the service in this process, which saves its start."""
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
            for name, value in self.settings.items():
                patch.setenv(name, value)
            words = [os.path.expandvars(word) for word in shlex.split(command)[1:]]
            code = main(words)
        assert code == 0, f"{command}\n{out.getvalue()}"
        return out.getvalue()


@pytest.fixture(autouse=True)
def leave_logging_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the logging of the tests when a command runs in this process."""
    monkeypatch.setattr("overspill_service.telemetry.logs.configure", lambda *_: None)


@pytest.fixture
async def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Machine]:
    """A machine whose service is configured for embedded back ends, and not started yet."""
    made = Machine(tmp_path)
    monkeypatch.setenv("OVERSPILL_KEY_FILE", made.key_file)
    made.configure(
        STORE="", CATALOG="sqlite:", DATA=f"{tmp_path}/lib", KEY_SECRET="a-secret", LOG_FORMAT="json"
    )
    yield made
    await asyncio.to_thread(made.stop)


async def fill(machine: Machine, key: str | None = None) -> None:
    async with Client(machine.url, key=key) as client:
        for call_id, content in CONTENTS.items():
            await client.put(content, call_id=call_id)


async def require_all(machine: Machine, key: str | None = None) -> None:
    """Every capture is there, whole, and listed."""
    async with Client(machine.url, key=key) as client:
        for call_id, content in CONTENTS.items():
            assert await client.content(f"call:{call_id}") == content
        listing = await client.list(limit=100)
        assert (len(listing.captures), listing.incomplete) == (len(CONTENTS), False)


def make_key(machine: Machine, *scopes: str) -> str:
    command = f"overspill-service keys create --tenant acme --scopes {','.join(scopes)}"
    return machine._execute(command, {}).strip()


def test_every_procedure_with_commands_is_executed_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")

    written = {heading for heading, commands in procedures().items() if commands}
    assert written == set(re.findall(r'machine\.follow,\s+"([^"]+)"', source))


async def test_one_machine_is_backed_up_and_restored(machine: Machine) -> None:
    await asyncio.to_thread(machine.start)
    await fill(machine)
    await asyncio.to_thread(machine.follow, "Back up one machine")
    async with Client(machine.url) as client:
        await client.put(b"after the backup", call_id="late")
    *_, told, _ = await asyncio.to_thread(machine.follow, "Restore one machine")

    assert json.loads(told) == {
        "objects": len(CONTENTS),
        "captures": len(CONTENTS),
        "damaged": 0,
    }
    await require_all(machine)


async def test_one_machine_moves_to_s3_and_redis_which_are_backed_up_and_restored(
    machine: Machine, s3_url: str, own_redis: RedisServer
) -> None:
    key = await asyncio.to_thread(make_key, machine, "read", "write")
    await asyncio.to_thread(machine.start)
    await fill(machine, key)
    escaped = s3_url.replace("&", r"\&")  # for sed
    move = {f"OVERSPILL_STORE={S3}": f"OVERSPILL_STORE={escaped}", S3: s3_url, REDIS: own_redis.url}
    await asyncio.to_thread(machine.follow, "Move from one machine to S3 and Redis", move)
    assert machine.settings["OVERSPILL_STORE"] == s3_url
    await require_all(machine, key)

    await asyncio.to_thread(machine.follow, "Back up S3 and Redis")
    await asyncio.to_thread(machine.kill)
    own_redis.command("FLUSHALL")
    machine.configure(STORE=s3_url.replace("/captures?", "/restored?"))
    await asyncio.to_thread(machine.follow, "Restore S3 and Redis")
    await require_all(machine, key)


async def test_what_a_restore_brings_back_is_known_from_the_audit_log(
    machine: Machine, tmp_path: Path
) -> None:
    program("jq")
    machine.configure(AUDIT_LOG=str(tmp_path / "audit.json"))
    await asyncio.to_thread(machine.start)
    async with Client(machine.url, session="kept") as client:
        captures = [await client.put(f"output {number}", call_id=f"{number}") for number in range(3)]
        await client.delete(captures[0].id)
        await asyncio.to_thread(machine.follow, "Back up one machine")
        backed_up = datetime.now(UTC).isoformat()
        await client.delete(captures[1].id)
        await client.put("of another session", session="erased")
        await client.delete_session("erased")
    await asyncio.to_thread(machine.follow, "Restore one machine")

    (told,) = await asyncio.to_thread(
        machine.follow, "Remove again what a restore brought back", {"2026-11-27T03:00": backed_up}
    )
    lines = [line.split("\t")[1:] for line in told.splitlines()]
    assert lines == [
        ["capture.delete", "default", captures[1].id],
        ["session.delete", "default", "erased"],
    ]
    async with Client(machine.url) as client:
        assert await client.content(captures[1].id) == b"output 1"


async def test_a_key_is_changed_and_a_tenant_removed(machine: Machine) -> None:
    old = await asyncio.to_thread(make_key, machine, "read", "write")
    other = await asyncio.to_thread(
        machine._execute, "overspill-service keys create --tenant other --scopes read,write", {}
    )
    await asyncio.to_thread(machine.start)
    await fill(machine, old)
    await fill(machine, other.strip())
    listed = await asyncio.to_thread(machine._execute, "overspill-service keys list", {})
    ids = {each["tenant"]: each["id"] for each in map(json.loads, listed.splitlines())}
    _, new, _ = await asyncio.to_thread(machine.follow, "Change a key", {"KEY_ID": ids["acme"]})
    await require_all(machine, new.strip())

    (told,) = await asyncio.to_thread(machine.follow, "Remove a tenant")
    receipt = json.loads(told)
    assert (receipt["keys"], receipt["captures"], receipt["held"]) == (1, len(CONTENTS), 0)
    await require_all(machine, other.strip())
    listed = await asyncio.to_thread(machine._execute, "overspill-service keys list", {})
    assert [json.loads(line)["tenant"] for line in listed.splitlines()] == ["other"]


async def test_a_tenants_file_is_reloaded_and_a_clock_trusted(machine: Machine, tmp_path: Path) -> None:
    file, key = tmp_path / "tenants.toml", new_key()
    file.write_text("# no tenant yet\n")
    machine.configure(TENANTS=str(file))
    await asyncio.to_thread(make_key, machine, "read")  # so that nobody gets in without one
    await asyncio.to_thread(machine.start)
    with pytest.raises(Denied):
        await fill(machine, key)
    scopes = '["read", "write"]'
    file.write_text(
        f'[[tenants]]\nname = "acme"\nkeys = [{{hash = "{hash_key(key, "a-secret")}", scopes = {scopes}}}]\n'
    )
    await asyncio.to_thread(machine.follow, "Reload settings")

    async def is_let_in() -> bool:
        try:
            await fill(machine, key)
        except Denied:
            return False
        return True

    await until(is_let_in)
    await asyncio.to_thread(machine.follow, "Trust a clock that was set")
    await require_all(machine, key)


async def test_room_is_found_and_a_slow_tenant_too(machine: Machine) -> None:
    program("jq")
    await asyncio.to_thread(machine.start)
    await fill(machine)
    *_, swept = await asyncio.to_thread(machine.follow, "Free a full disk")
    assert json.loads(swept)["orphan_bytes_left"] == 0
    await require_all(machine)

    by_tenant, slowest = await asyncio.to_thread(
        machine.follow, "Find a slow tenant", {'"acme"': '"default"'}
    )
    tenant, requests, seconds = by_tenant.split()
    assert (tenant, int(requests) > len(CONTENTS), float(seconds) > 0) == ("default", True, True)
    times = [float(line.split()[0]) for line in slowest.splitlines()]
    assert times == sorted(times, reverse=True)
    assert "/v1/captures" in slowest
