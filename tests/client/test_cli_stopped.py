"""Signals that end a command while it stores something: what is kept, what it says, and its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from overspill import SyncClient
from overspill.cli.command_output.signal_relay import signals_relayed
from overspill.cli.signal_handlers import handled
from overspill.spools.spool import Spool
from overspill.wire import State

from tests.client.shell import CAPTURE_ID, OVERSPILL, SECONDS, Shell, run_code
from tests.servers.overspill import ForkedService, running
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from tests.servers.launcher import Forked, Piped
    from tests.servers.overspill import ServiceProcess

EITHER = {128 + signal.SIGINT, 128 + signal.SIGTERM}
"""The exit codes after both: the system may deliver the second one first."""


@pytest.fixture(scope="module")
def hanging_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that tests stop for a while: `hung`."""
    with running(ForkedService(tmp_path_factory.mktemp("overspill"))) as own:
        yield own


@contextmanager
def hung(service: ServiceProcess) -> Iterator[None]:
    os.kill(service.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(service.pid, signal.SIGCONT)


def put_live(service: ServiceProcess, **variables: str) -> AbstractContextManager[Piped]:
    words = ["put", "--live", "--session", "stopped"]
    return OVERSPILL.piped(words, Shell(service.url, **variables).environment, seconds=SECONDS)


def begun(client: SyncClient, put: Piped) -> str:
    """Its handle, once the service has two lines, and the command knows that of the first."""
    handle = put.stdout.readline().decode().strip()
    for line, lines in ((b"so\n", 1), (b"far\n", 2)):
        put.stdin.write(line)
        put.stdin.flush()
        client.wait(handle, lines=lines, timeout=SECONDS)
    return handle


def send_at_once(process: Forked, *numbers: int) -> None:
    """Send signals to a process that goes on only when all of them have come."""
    for number in (signal.SIGSTOP, *numbers, signal.SIGCONT):
        process.send_signal(number)


def ended(put: Piped) -> tuple[int, str]:
    return put.process.wait(SECONDS), put.stderr.read().decode()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_live_capture_with_all_that_has_come(service: ServiceProcess, name: str) -> None:
    number = signal.Signals[name]
    with SyncClient(service.url) as client, put_live(service) as put:
        handle = begun(client, put)
        put.process.send_signal(number)
        code, said = ended(put)
        entry, content = client.get(handle), client.content(handle)

    assert (code, said) == (
        128 + number,
        f"overspill: ended by {name}; {handle} has all that came until then\n",
    )
    assert (entry.state, entry.status, content) == (State.PARTIAL, f"ended by {name}", b"so\nfar\n")


def test_what_a_service_that_hangs_does_not_take_before_a_signal_ends_it_is_kept_here(
    hanging_service: ServiceProcess, tmp_path: Path
) -> None:
    spool = Spool(tmp_path / "spool")
    with (
        SyncClient(hanging_service.url) as client,
        put_live(hanging_service, OVERSPILL_SPOOL=str(spool.path)) as put,
    ):
        handle = begun(client, put)
        with hung(hanging_service):
            put.stdin.write(b"the rest\n")
            put.stdin.flush()
            put.process.send_signal(signal.SIGTERM)
            code, said = ended(put)
        partition = spool.partition(client.address.url, client.address.key)
        kept = partition.find(handle, None)
        assert kept is not None
        with partition.open(kept) as file:
            content = file.read()

    assert code == 143
    assert said.startswith(
        f"overspill: ended by SIGTERM; {handle} is on this machine only, until it is uploaded: "
    )
    assert (kept.status, content) == ("ended by SIGTERM", b"so\nfar\nthe rest\n")


def test_at_its_end_a_live_put_says_what_it_waits_for_and_a_second_signal_what_is_lost(
    hanging_service: ServiceProcess, tmp_path: Path
) -> None:
    with (
        SyncClient(hanging_service.url) as client,
        put_live(hanging_service, OVERSPILL_SPOOL=str(tmp_path)) as put,
    ):
        handle = begun(client, put)
        with hung(hanging_service):
            put.stdin.write(b"the rest\n")
            put.stdin.close()
            waits = put.stderr.readline().decode()
            send_at_once(put.process, signal.SIGINT, signal.SIGTERM)
            code, said = ended(put)

    assert "waiting for the service to take the rest; after a minute" in waits
    assert "or soon after Ctrl-C, that is kept on this machine" in waits
    what = f"overspill: the rest is NOT stored: {handle} has at least the first"
    assert code in EITHER
    assert said in {f"{what} 3 bytes\n", f"{what} 7 bytes\n"}


SEQUENCE = b"".join(b"%d\n" % number for number in range(1, 30_001))
GOES_ON = (
    "seq 30000; until test -e next; do sleep 0.02; done; echo more; until test -e last; do sleep 0.02; done"
)


def run(service: ServiceProcess, folder: Path, script: str) -> AbstractContextManager[Piped]:
    shell = Shell(service.url, OVERSPILL_SESSION=folder.name, OVERSPILL_SPOOL=str(folder / "spool"))
    words = ["run", "--", "sh", "-c", f"cd {folder}; echo $$ > pid; {script}"]
    return OVERSPILL.piped(words, shell.environment, seconds=SECONDS)


def has_begun(service: ServiceProcess, folder: Path) -> str:
    """The handle of what `GOES_ON` prints, once the service has it and `run` knows that of the most."""
    with SyncClient(service.url) as client:
        wait_until(lambda: client.list(session=folder.name).captures, "the live capture")
        handle = client.list(session=folder.name).captures[0].id
        wait_until(lambda: client.live_status(handle).accepted == len(SEQUENCE), "the beginning")
        (folder / "next").touch()
        wait_until(lambda: client.live_status(handle).accepted > len(SEQUENCE), "more")
    return handle


def wait_for_end(folder: Path) -> None:
    """Until the command of `run` has ended."""
    wait_until(lambda: (folder / "pid").exists() and (folder / "pid").read_text(), "the command")
    command = Path(f"/proc/{(folder / 'pid').read_text().strip()}")
    wait_until(lambda: not command.exists(), "the end of the command")


def kept_here(service: ServiceProcess, folder: Path, handle: str) -> bytes:
    partition = Spool(folder / "spool").partition(service.url, "")
    entry = partition.find(handle, None)
    assert entry is not None
    with partition.open(entry) as file:
        return file.read()


def test_an_interrupt_after_the_command_leaves_its_output_here_under_its_handle(
    hanging_service: ServiceProcess, tmp_path: Path
) -> None:
    with run(hanging_service, tmp_path, f"{GOES_ON}; echo end; exit 3") as process:
        handle = has_begun(hanging_service, tmp_path)
        with hung(hanging_service):
            (tmp_path / "last").touch()
            wait_for_end(tmp_path)
            process.process.send_signal(signal.SIGINT)
            code, said = ended(process)
        notice = process.stdout.read().decode()

    assert (code, kept_here(hanging_service, tmp_path, handle)) == (130, SEQUENCE + b"more\nend\n")
    assert handle in notice
    assert said.splitlines() == [
        "overspill: the output is on this machine only, until it is uploaded",
        "overspill: ended by SIGINT",
    ]


def test_a_signal_while_the_service_is_asked_to_store_an_output_loses_nothing_of_it(
    hanging_service: ServiceProcess, tmp_path: Path
) -> None:
    with hung(hanging_service), run(hanging_service, tmp_path, "seq 3000") as process:
        wait_for_end(tmp_path)
        process.process.send_signal(signal.SIGTERM)
        code, said = ended(process)
        handle = CAPTURE_ID.findall(process.stdout.read().decode())[0]

    assert (code, said.splitlines()[1:]) == (143, ["overspill: ended by SIGTERM"])
    assert said.startswith("overspill: the output is on this machine only, until it is uploaded")
    assert kept_here(hanging_service, tmp_path, handle) == SEQUENCE[: SEQUENCE.index(b"\n3001\n") + 1]


def test_a_second_signal_after_the_command_says_how_much_of_its_output_is_stored(
    hanging_service: ServiceProcess, tmp_path: Path
) -> None:
    with run(hanging_service, tmp_path, f"{GOES_ON}; echo end") as process:
        handle = has_begun(hanging_service, tmp_path)
        with hung(hanging_service):
            (tmp_path / "last").touch()
            wait_for_end(tmp_path)
            send_at_once(process.process, signal.SIGINT, signal.SIGTERM)
            code, said = ended(process)

    known = [f"{size:,} bytes\n" for size in (len(SEQUENCE), len(SEQUENCE + b"more\n"))]
    assert code in EITHER
    assert said.startswith(f"overspill: the rest is NOT stored: {handle} has at least the first ")
    assert said.partition(" first ")[2] in known


def test_a_signal_that_comes_when_the_command_has_ended_is_not_lost_on_it() -> None:
    came: list[int] = []
    with (
        handled({signal.SIGTERM: lambda number, _: came.append(number)}),
        signals_relayed() as relay,
        subprocess.Popen(["true"]) as child,
    ):
        relay.connect(child)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        os.kill(os.getpid(), signal.SIGTERM)

    assert came == [signal.SIGTERM]


TWO_SIGNALS = """
import os, signal, sys
from importlib import import_module
from overspill.cli.app import main

def signalled(*given, **named):
    done = original(*given, **named)
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    return done

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
module, name = import_module(sys.argv[1]), sys.argv[2]
sys.argv[1:] = ["run", "--", "seq", "3000"]
original = getattr(module, name)
setattr(module, name, signalled)
main()
"""
"""Two signals come when a function of `run` has been called."""


@pytest.mark.parametrize(
    "after", ["child_process drain", "guarded_output run_command", "finished_output masked_output"]
)
def test_two_signals_after_the_command_end_it_wherever_it_is(
    nowhere: str, tmp_path: Path, after: str
) -> None:
    module, name = after.split()
    environment = Shell(nowhere, OVERSPILL_SPOOL=str(tmp_path)).environment
    done = run_code(TWO_SIGNALS, f"overspill.cli.command_output.{module}", name, environment=environment)

    assert (done.returncode, done.stderr) == (130, "overspill: nothing of it is stored\n")


def test_two_signals_while_the_notice_is_printed_say_nothing_wrong(nowhere: str, tmp_path: Path) -> None:
    environment = Shell(nowhere, OVERSPILL_SPOOL=str(tmp_path)).environment
    done = run_code(TWO_SIGNALS, "overspill.cli.output", "line", environment=environment)
    handle = CAPTURE_ID.findall(done.stdout)[0]

    assert (done.returncode, done.stderr) == (130, "overspill: ended by SIGINT\n")
    assert Spool(tmp_path).partition(nowhere, "").find(handle, None) is not None
