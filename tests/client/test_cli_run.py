"""`overspill run`: a command's output, printed or stored, and its exit code."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import overspill as overspill_package
import pytest
from overspill.spools.spool import Spool

from tests.bytecode import copy_package
from tests.client.shell import CAPTURE_ID, SECONDS, Shell, command, run_code, written_to
from tests.client.spooling import spilled
from tests.servers.overspill import ServiceProcess, clean_environment

LARGE = 16 * 1024 * 1024
LONG = ["seq", "1", "30000"]
HUGE = 48 * 1024 * 1024
FLAT_KIB = 135 * 1024
"""More than the interpreter and its libraries take, 110 MiB, and less than these and the huge output do."""


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


@pytest.fixture
def patient(service: ServiceProcess, tmp_path: Path) -> Shell:
    """One that waits for the service however busy the machine is."""
    (tmp_path / "policy.toml").write_text("version = 1\nwait = 600\n")
    return Shell(service.url, OVERSPILL_POLICY=str(tmp_path / "policy.toml"))


def output_of(*words: str) -> bytes:
    return subprocess.run(words, capture_output=True, check=True).stdout


def test_a_short_output_is_printed_as_it_is(overspill: Shell) -> None:
    assert overspill("run", "--", "printf", r"a\033[1m\377\000") == (0, b"a\x1b[1m\xff\x00", "")


def test_both_streams_are_printed_in_their_order(overspill: Shell) -> None:
    script = "for n in 1 2 3; do echo out $n; echo err $n >&2; done"

    assert overspill("run", "--", "sh", "-c", script).out == "".join(f"out {n}\nerr {n}\n" for n in (1, 2, 3))


def test_a_long_output_is_stored_and_a_notice_printed(overspill: Shell) -> None:
    result = overspill("run", "--session", "cli-run", "--call-id", "c1", "--", *LONG)
    entry = json.loads(overspill("stat", "--json", result.capture).data)

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("[overspill] Output of seq (")
    assert str(result.capture) in result.out
    assert overspill("cat", result.capture).data == output_of(*LONG)
    assert (entry["tool"], entry["call_id"], entry["session"]) == ("seq", "c1", "cli-run")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -TERM $$"], 143),
        (["no-such-command"], 127),
        (["/etc/passwd"], 126),
        (["sh", "-c", "seq 1 30000; exit 3"], 3),
    ],
)
def test_the_exit_code_is_the_commands_own(overspill: Shell, words: list[str], code: int) -> None:
    assert overspill("run", "--", *words).code == code


def test_options_of_the_command_are_its_own(overspill: Shell) -> None:
    assert overspill("run", "echo", "--json", "--", "-h").out == "--json -- -h\n"


def test_the_limits_can_be_given(overspill: Shell) -> None:
    shown = overspill("run", "--max-bytes", "1000000", "--max-lines", "1000000", "--", *LONG)
    stored = overspill("run", "--max-lines", "300", "--tool", "mine", "--", "seq", "400")

    assert shown.data == output_of(*LONG)
    assert "Output of mine (" in stored.out


def test_without_a_service_the_notice_is_loud_and_the_exit_code_stays() -> None:
    shell = Shell("http://127.0.0.1:1", OVERSPILL_SPOOL="off")
    result = shell("run", "--", "sh", "-c", "seq 1 30000; exit 3")

    assert result.code == 3
    assert "NOT STORED" in result.out
    assert "could NOT be stored" in result.err
    assert "Traceback" not in result.err


def test_without_a_service_an_output_too_large_for_memory_is_spooled_whole(tmp_path: Path) -> None:
    shell = Shell("http://127.0.0.1:1", OVERSPILL_SPOOL=str(tmp_path / "spool"))
    result = shell("run", "--", "sh", "-c", f"yes line | head -c {2 * LARGE}; echo the end")
    read = shell("tail", "-n", "1", result.capture)

    assert "Stored whole on this machine" in result.out
    assert read.out.endswith("the end\n")


def test_a_short_output_needs_no_service() -> None:
    assert Shell("http://127.0.0.1:1")("run", "--", "echo", "hi") == (0, b"hi\n", "")


def test_wrong_options_stop_it_before_the_command_runs(tmp_path: Path) -> None:
    result = Shell("nonsense")("run", "--", "touch", str(tmp_path / "ran"))

    assert result.code == 2
    assert not (tmp_path / "ran").exists()


def test_on_a_terminal_the_output_is_shown_as_it_comes(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--", "sh", "-c", "echo first; read answer; echo got $answer")
    terminal.wait_for(b"first\r\n")
    terminal.press(b"it\n")

    assert terminal.ended() == 0
    assert terminal.shown == b"first\r\nit\r\ngot it\r\n"


def test_on_a_terminal_a_long_output_is_shown_whole_and_then_where_it_is(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--", "sh", "-c", "seq 1 30000; printf end")
    code, shown = terminal.ended(), terminal.shown.replace(b"\r\n", b"\n")
    capture = CAPTURE_ID.findall(shown.decode())[0]

    assert code == 0
    assert shown.startswith(
        output_of(*LONG) + b"end\noverspill: the output has 168,897 bytes, 30,001 lines; "
    )
    assert shown.endswith(f"overspill grep {capture} PATTERN\n".encode())
    assert overspill("cat", capture).data == output_of(*LONG) + b"end"


def test_without_a_service_a_terminal_is_told_that_nothing_is_stored() -> None:
    shell = Shell("http://127.0.0.1:1", OVERSPILL_SPOOL="off")
    terminal = shell.terminal("run", "--", "sh", "-c", "seq 1 30000; exit 3")

    assert terminal.ended() == 3
    assert b"30000\r\noverspill: the output is too long for a conversation and could NOT be stored" in (
        terminal.shown
    )


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--no-live"], "␛[31mred␛]0;title␇"),
        (["--raw"], "\x1b[31mred\x1b]0;title\x07"),
        (["--raw", "--no-live"], "\x1b[31mred\x1b]0;title\x07"),
    ],
)
def test_a_terminal_obeys_no_output_that_is_printed_afterwards_unless_it_is_asked_to(
    overspill: Shell, options: list[str], shown: str
) -> None:
    terminal = overspill.terminal("run", *options, "--", "printf", r"\033[31mred\033]0;title\007\n")

    assert terminal.ended() == 0
    assert terminal.shown.decode() == f"{shown}\r\n"


def test_an_agent_on_a_terminal_can_have_the_notice_alone(overspill: Shell) -> None:
    terminal = overspill.terminal("run", "--no-live", "--", *LONG, columns=1000)

    assert terminal.ended() == 0
    assert terminal.shown.startswith(b"[overspill] Output of ")
    assert b"\n15000\r" not in terminal.shown


def test_where_output_is_no_terminal_it_is_shown_on_standard_error_if_wanted(overspill: Shell) -> None:
    result = overspill("run", "--live", "--", *LONG)

    assert result.out.startswith("[overspill] Output of ")
    assert result.err.encode() == output_of(*LONG)


def test_what_the_command_leaves_behind_is_not_waited_for_and_lives_on(
    overspill: Shell, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "go")
    os.mkfifo(tmp_path / "result")
    left = f"(read go <{tmp_path}/go; echo late; echo later; echo lives >{tmp_path}/result) & echo started"
    result = overspill("run", "--", "sh", "-c", left)
    (tmp_path / "go").write_text("\n")

    assert result == (0, b"started\n", "")
    assert written_to(tmp_path / "result") == "lives\n"


def test_a_command_that_closes_its_outputs_is_waited_for(overspill: Shell) -> None:
    script = "echo told; exec >&- 2>&-; exit 9"

    assert overspill("run", "--", "sh", "-c", script) == (9, b"told\n", "")


def test_a_full_disk_costs_the_middle_of_a_huge_output_and_the_command_nothing(patient: Shell) -> None:
    huge = f"echo the beginning; yes line | head -c {64 * 1024 * 1024}; echo the end; exit 7"
    # a bound on files' sizes is a full disk that needs no disk; in 1,024 bytes
    result = patient.script(f"ulimit -S -f 20000; overspill run -- sh -c '{huge}'")
    kept = patient("cat", result.capture).data

    assert result.code == 7
    assert "overspill: the middle of the output is missing from what is kept: File too large\n" in result.err
    assert kept.startswith(b"the beginning\nline\n")
    assert kept.endswith(b"the end\n")
    gap = re.search(rb"\n\((\d\d,\d{3},\d{3} bytes) of the output are missing here: File too large\)\n", kept)
    assert gap is not None
    assert f"Stored without {gap[1].decode()} of its middle (File too large) until " in result.out


def test_where_no_file_can_be_made_some_megabytes_are_stored_whole_all_the_same(patient: Shell) -> None:
    ten = f"yes line | head -c {10 * 1024 * 1024}; echo the end"
    result = patient.script(f"ulimit -S -f 0; overspill run -- sh -c '{ten}'")
    kept = patient("cat", result.capture).data

    assert (result.code, result.err, "Stored whole until" in result.out) == (0, "", True)
    assert kept == output_of("sh", "-c", ten)


def test_a_command_meets_the_limit_on_files_as_it_would_alone(overspill: Shell, tmp_path: Path) -> None:
    writing = f"head -c 100000 /dev/zero >{tmp_path}/file"
    alone = overspill.script(f"ulimit -S -f 1; sh -c '{writing}'")
    under = overspill.script(f"ulimit -S -f 1; overspill run -- sh -c '{writing}'")

    assert (under.code, alone.code != 0) == (alone.code, True)


def test_the_command_has_the_files_that_were_given_to_it(overspill: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("given\n")

    assert overspill.script(f"overspill run -- sh -c 'cat <&7' 7<{tmp_path}/file").out == "given\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
@pytest.mark.parametrize("where", ["service", "spool"])
def test_a_long_output_is_previewed_and_kept_in_little_address_space(
    overspill: Shell, tmp_path: Path, where: str
) -> None:
    url = overspill.environment["OVERSPILL_URL"] if where == "service" else "http://127.0.0.1:1"
    shell = Shell(url, OVERSPILL_SPOOL=str(tmp_path / "spool"))
    result = shell.script("ulimit -S -v 300000; overspill run -- sh -c 'seq 1 3000000; echo the end; exit 7'")
    read = shell("tail", "-n", "1", result.capture)

    assert (result.code, "Traceback" in result.err) == (7, False)
    assert "Stored whole" in result.out
    assert "\nthe end\n[/overspill " in result.out
    assert read.out == "the end\n"


WITHOUT_THREADS = """
import _thread, threading
def refuse(*_, **__):
    raise RuntimeError("can't start new thread")
_thread.start_new_thread = threading._start_new_thread = threading._start_joinable_thread = refuse
from overspill.cli.app import main
main()
"""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run", "--", "sh", "-c", "echo short; exit 7"], 7, "short\n"),
        (["run", "--", "sh", "-c", "seq 1 30000; exit 7"], 7, "Stored whole on this machine"),
        (["usage"], 6, "overspill: no thread can be started: "),
        (["spool", "flush"], 6, "overspill: no thread can be started: "),
    ],
    ids=["short", "long", "usage", "flush"],
)
def test_where_no_thread_can_be_started_nothing_is_lost_and_no_traceback_shown(
    overspill: Shell, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    environment = {**overspill.environment, "OVERSPILL_SPOOL": str(tmp_path / "spool")}
    spool = Spool(tmp_path / "spool").partition(environment["OVERSPILL_URL"], "")
    spool.keep(spilled("waits\n"), "down")
    ended = run_code(WITHOUT_THREADS, *words, environment=environment)

    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)
    assert said in ended.stdout + ended.stderr


@pytest.mark.parametrize("variable", ["OVERSPILL_SPOOL_BYTES", "OVERSPILL_WAITING_BYTES"])
def test_the_environment_is_looked_at_before_the_command_runs(variable: str, tmp_path: Path) -> None:
    shell = Shell("http://127.0.0.1:1", **{variable: "many"})
    result = shell("run", "--", "touch", str(tmp_path / "ran"))

    assert result.code == 2
    assert variable in result.err
    assert not (tmp_path / "ran").exists()


TELLS_WHAT_IS_LOADED = """
import os, pathlib
from overspill.__main__ import run_process
from overspill.cli.command_output import guarded_output

load = guarded_output._load_end
def load_and_tell():
    load()
    pathlib.Path(os.environ["LOADED"]).touch()

guarded_output._load_end = load_and_tell
run_process()
"""
ONCE_LOADED = "while ! test -e $LOADED; do sleep 0.1; done"


def without_package(tmp_path: Path, url: str, script: str) -> "subprocess.CompletedProcess[str]":
    """Run a script, for which `$PACKAGE` is the folder of the package that runs it.

    The file `$LOADED` appears when all is loaded that is needed at the end.
    """
    package = Path(next(iter(overspill_package.__path__)))
    copy_package(package, tmp_path / "overspill")
    own = {"PACKAGE": "overspill", "LOADED": "loaded", "OVERSPILL_SPOOL": "spool"}
    own = {name: str(tmp_path / file) for name, file in own.items()}
    environment = clean_environment(OVERSPILL_URL=url, PYTHONPATH=str(tmp_path), **own)
    environment.pop("PYTHONPYCACHEPREFIX", None)
    return subprocess.run(
        [sys.executable, "-c", TELLS_WHAT_IS_LOADED, "run", "--", "sh", "-c", script],
        capture_output=True,
        check=False,
        text=True,
        cwd="/",
        env=environment,
    )


@pytest.mark.parametrize(
    ("before", "size"),
    [("echo installing; ", "168905 bytes, 30001 lines"), ("", "168894 bytes, 30000 lines")],
)
def test_a_command_may_remove_the_package_that_runs_it(
    service: ServiceProcess, tmp_path: Path, before: str, size: str
) -> None:
    script = f"{before}{ONCE_LOADED}; rm -r $PACKAGE; seq 1 30000; exit 3"
    ended = without_package(tmp_path, service.url, script)

    assert (ended.returncode, ended.stderr) == (3, "")
    assert f"too long: {size}" in ended.stdout
    assert "Stored whole until" in ended.stdout


def test_a_command_may_remove_the_package_while_the_service_is_away(tmp_path: Path) -> None:
    script = f"{ONCE_LOADED}; rm -r $PACKAGE; seq 1 30000; exit 3"
    ended = without_package(tmp_path, "http://127.0.0.1:1", script)

    assert (ended.returncode, ended.stderr.count("\n")) == (3, 1)
    assert "Stored whole on this machine" in ended.stdout
    assert "refused" in ended.stderr


@pytest.mark.parametrize("lines", [1, 30_000, 300_000])
def test_where_a_command_removes_the_package_at_once_its_output_is_printed_whole(
    service: ServiceProcess, tmp_path: Path, lines: int
) -> None:
    partition = Spool(tmp_path / "spool").partition(service.url, "")
    partition.keep(spilled("waits\n"), "down")
    ended = without_package(tmp_path, service.url, f"rm -r $PACKAGE; seq 1 {lines}; exit 3")

    assert ended.returncode == 3
    assert ended.stdout == "".join(f"{number}\n" for number in range(1, lines + 1))
    assert "the output could NOT be stored" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_memory_stays_flat_for_a_huge_output(overspill: Shell, tmp_path: Path) -> None:
    script = f"yes 'a line of the huge output' | head -c {HUGE}; echo; echo the end"
    with (tmp_path / "out").open("wb") as out:
        run_kib = overspill.peak_kib("run", "--", "sh", "-c", script, stdout=out)
    printed = (tmp_path / "out").read_text()
    capture = CAPTURE_ID.findall(printed)[0]
    with (tmp_path / "content").open("wb") as out:
        cat_kib = overspill.peak_kib("cat", capture, stdout=out)

    assert "\nthe end\n[/overspill" in printed
    assert (tmp_path / "content").read_bytes() == output_of("sh", "-c", script)
    assert run_kib < FLAT_KIB
    assert cat_kib < FLAT_KIB


def test_a_huge_output_without_a_service_is_cut_loudly() -> None:
    script = f"head -c {LARGE + 1} /dev/zero | tr '\\0' '\\n'; exit 5"
    result = Shell("http://127.0.0.1:1", OVERSPILL_SPOOL="off")("run", "--", "sh", "-c", script)

    assert result.code == 5
    assert "NOT STORED" in result.out
    assert len(result.out) < 20_000


def test_a_huge_output_that_is_wanted_whole_is_printed(overspill: Shell) -> None:
    words = ["head", "-c", str(LARGE + 1), "/dev/zero"]

    assert overspill("run", "--max-bytes", str(HUGE), "--", *words).data == bytes(LARGE + 1)


COUNT_INTERRUPTS = """
import os, signal, sys
awaited = {signal.SIGINT, signal.SIGUSR1}
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
with open(sys.argv[1], "w") as ready:
    ready.write(str(os.getpid()))
interrupts, enough = 0, int(sys.argv[2])
while interrupts < enough and signal.sigwait(awaited) == signal.SIGINT:
    interrupts += 1
print("interrupts:", interrupts)
sys.exit(42)
"""


def counting(ready: Path, enough: int) -> list[str]:
    """A command that tells its process id, and then counts interrupts until there are enough, or SIGUSR1."""
    os.mkfifo(ready)
    return [sys.executable, "-c", COUNT_INTERRUPTS, str(ready), str(enough)]


IGNORING = """
import os, signal, sys
signal.signal(getattr(signal, sys.argv[1]), signal.SIG_IGN)
os.execv(sys.argv[2], sys.argv[2:])
"""


def ignoring(name: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run `words` as a background job does, which ignores a signal."""
    return subprocess.run(
        [sys.executable, "-c", IGNORING, name, *words], capture_output=True, check=False, timeout=SECONDS
    )


def test_a_signal_that_is_ignored_stays_ignored_as_in_a_shell() -> None:
    words = ["/bin/sh", "-c", "kill -INT $$; echo survived"]
    plain = ignoring("SIGINT", *words)
    guarded = ignoring("SIGINT", *command("run", "--", *words))

    assert (plain.returncode, plain.stdout) == (0, b"survived\n")
    assert (guarded.returncode, guarded.stdout) == (0, b"survived\n")


def test_the_exit_code_is_kept_where_ended_children_are_ignored() -> None:
    assert ignoring("SIGCHLD", *command("run", "--", "/bin/sh", "-c", "exit 9")).returncode == 9


def test_an_interrupt_goes_on_to_the_command_which_decides(overspill: Shell, tmp_path: Path) -> None:
    words = counting(tmp_path / "ready", enough=1)
    process = overspill.start("run", "--", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    written_to(tmp_path / "ready")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (42, b"interrupts: 1\n", b"")


def test_the_interrupt_key_reaches_the_command_once(overspill: Shell, tmp_path: Path) -> None:
    terminal = overspill.terminal("run", "--", *counting(tmp_path / "ready", enough=99))
    command = int(written_to(tmp_path / "ready"))
    terminal.press(b"\x03")
    terminal.wait_for(b"^C")
    os.kill(command, signal.SIGUSR1)

    assert terminal.ended() == 42
    assert b"interrupts: 1\r\n" in terminal.shown
