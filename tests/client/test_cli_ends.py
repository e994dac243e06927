"""The ends of commands: exit codes, messages on standard error, closed pipes, full disks, interrupts."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from overspill.cli import app
from overspill.cli.command_types import LazyCommand

from tests.client.shell import Result, Shell, command, interruptible
from tests.servers.overspill import ForkedService, ServiceProcess, service_command

ABSENT = "cap_aaaaaaaaaaaaaaaaaaaa"
NOBODY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["cat", ABSENT], 3),
        (["tail", "no id at all"], 2),
        (["grep", ABSENT, "x"], 3),
        (["ls", "--limit", "0"], 2),
        (["unheard-of"], 2),
        (["--url", "nonsense", "usage"], 2),
        (["--url", NOBODY, "usage"], 5),
        (["--key", "not a key", "usage"], 2),
    ],
)
def test_each_kind_of_failure_has_its_exit_code_and_no_traceback(
    overspill: Shell, words: list[str], code: int
) -> None:
    result = overspill(*words)

    assert (result.code, result.data) == (code, b"")
    assert result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["lines", ABSENT, "900:901"], 0, "there is no line 900: the capture has 1 line"),
        (["cat", ABSENT, "-o", "/nonexistent/file"], 6, "/nonexistent/file: No such file or directory"),
        (["put", "--name", "x"], 2, "Invalid value for --name: it needs --live"),
        (
            ["grep", ABSENT, "x", "--cursor", "zzz"],
            2,
            "--cursor takes the cursor that the same search printed",
        ),
        (["stat", "call:nobody's"], 3, "search all sessions with --session ''"),
        (["advise", "--policy", "/nonexistent"], 2, "overspill: /nonexistent: No such file or directory"),
        (["open", "--print", "cap_oops"], 2, "'cap_oops' is not a capture id"),
        (["open", "--print", "cap_bbbbbbbbbbbbbbbbbbbb"], 3, "there is no capture cap_bbbbbbbbbbbbbbbbbbbb"),
        (["mcp-proxy", "--url", "nonsense"], 2, "'nonsense' is not a URL such as https://"),
        (["put", ""], 2, "Invalid value for FILE: it is empty"),
        (["put", "--live", "--json"], 2, "Invalid value for --json: --live prints the handle alone"),
        (["run", "--max-bites", "9", "--", "echo"], 2, "No such option '--max-bites'"),
        (["run", "--", ""], 2, "Invalid value for COMMAND: it is empty"),
        (["open", "--json"], 2, "No such option '--json'"),
        (["cat", "--json", ABSENT], 2, "No such option '--json'"),
        (["gateway", "--listen", "127.0.0.1:99999"], 2, "is not HOST:PORT, such as"),
        (["mcp", "--http", "127.0.0.1:65536"], 2, "is not HOST:PORT, such as"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_message_says_what_is_wrong_and_what_to_do(
    overspill: Shell, words: list[str], code: int, said: str
) -> None:
    capture = overspill.put(b"some\n")
    result = overspill(*(capture if word == ABSENT else word for word in words))

    assert (result.code, result.data) == (code, b"")
    assert said in result.err


@pytest.mark.parametrize("descriptor", ["<", ">"])
def test_a_proxy_without_a_client_says_so_and_ends(descriptor: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    line = f"{shlex.join(command('mcp-proxy', '--', 'cat'))} {descriptor} {file}"
    done = subprocess.run(
        ["sh", "-c", f"sleep 0 | {line} | cat; exit 0" if descriptor == "<" else f"sleep 0 | {line}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "must be a pipe, a socket or a terminal: an MCP client starts this command" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_setting_of_the_spool_is_said_before_anything_is_stored(service: ServiceProcess) -> None:
    result = Shell(service.url, OVERSPILL_SPOOL_BYTES="many")("put", stdin=b"x")

    assert (result.code, result.data) == (2, b"")
    assert "OVERSPILL_SPOOL_BYTES must be a number of bytes" in result.err


def test_a_problem_is_one_line_with_the_request_id(overspill: Shell) -> None:
    result = overspill("stat", ABSENT)

    assert result.err.startswith(f"overspill: there is no capture {ABSENT}; ")
    assert "(not_found, request " in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["stat", ABSENT],
        ["cat", "no id at all"],
        ["cat", "call:"],
        ["grep", ABSENT, r"(a)\1"],
        ["grep", ABSENT, "("],
        ["grep", ABSENT, r"a\nb"],
        ["grep", ABSENT, "(?=a)"],
        ["grep", ABSENT, "x", "--cursor", "zzz"],
        ["ttl", ABSENT, "2000w"],
        ["put", "--label", "bad name=x"],
        ["put", "--label", f"{'n' * 200}=x"],
        ["put", "--ttl", "2000w"],
        ["put", "--content-type", "no type"],
        ["rm", "call:"],
        ["rm", "--session", "", "--yes"],
    ],
    ids=" ".join,
)
def test_errors_speak_of_the_command_line_and_not_of_the_wire(overspill: Shell, words: list[str]) -> None:
    capture = overspill.put(b"some\n")
    result = overspill(*(capture if word == ABSENT and words[0] != "stat" else word for word in words))

    assert result.code in (2, 3), result
    assert result.err
    assert not re.search(r"HTTP|/v1/|Overspill-|\b(?!charset)[a-z_]+=|parameter|header|query", result.err)


COMMANDS = [
    *("run", "ls", "stat", "usage", "summary", "grep", "cat", "head", "tail", "lines", "put", "rm", "ttl"),
    *(
        "top",
        "advise",
        "holdout",
        "hook",
        "init",
        "gateway",
        "demo",
        "completion",
        "spool list",
        "spool flush",
        "spool drop",
    ),
]


def examples_in(help_page: str) -> list[str]:
    return [line.strip() for line in help_page.partition("Examples:\n")[2].splitlines() if line.strip()]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_of_its_own_command(overspill: Shell, name: str) -> None:
    examples = examples_in(overspill(*name.split(), "--help").out)

    assert examples
    assert all(f"overspill {name}" in example for example in examples)


def test_the_examples_are_words_that_the_commands_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is run without a service: what it gets wrong would be told before the service is missed."""
    shell = Shell(NOBODY, OVERSPILL_SPOOL=str(tmp_path / "spool"), HOME=str(tmp_path))
    network = {"run", "demo", "completion", "gateway"}
    lines = [
        example.partition("overspill ")[2].partition(" | ")[0].rstrip(")")
        for name in COMMANDS
        if name not in network
        for example in examples_in(shell(*name.split(), "--help").out)
    ]
    (tmp_path / ".claude").mkdir()  # an agent program was used here
    (tmp_path / "build.log").touch()
    (tmp_path / "report.json").touch()
    (tmp_path / "demo.cast").write_text('{"version": 2, "width": 80, "height": 24}\n[1.0, "o", "hello"]\n')
    monkeypatch.chdir(tmp_path)

    def done_as(line: str) -> Result:
        words, _, source = line.partition(" < ")
        stdin = Path(source).read_bytes() if source else b""
        return shell(*shlex.split(words, comments=True), stdin=stdin)

    inits = [line for line in lines if line.startswith("init")]  # these change the same file: one by one
    others = [line for line in lines if line not in inits]
    with ThreadPoolExecutor(max_workers=8) as threads:  # most of the time each waits for a service
        results = dict(zip(others, threads.map(done_as, others), strict=True))
    results |= {line: done_as(line) for line in inits}

    assert len(results) > 20
    assert {line: result for line, result in results.items() if result.code not in (0, 3, 5)} == {}


def test_the_version_is_told(overspill: Shell) -> None:
    told = overspill("--version")

    assert re.fullmatch(r"overspill \d+\.\d+\.\d+\n", told.out)
    assert overspill("-V") == told


def test_without_a_service_the_message_says_how_to_get_one() -> None:
    result = Shell(NOBODY)("ls")

    assert result.code == 5
    assert "overspill-service serve" in result.err
    assert "OVERSPILL_URL" in result.err


def test_what_the_key_or_a_limit_forbids_is_refused(tmp_path: Path) -> None:
    service = ForkedService(tmp_path, max_capture_size=1000)
    made = service_command(
        *("keys", "create", "--data", service.data, "--tenant", "acme", "--scopes", "read,write")
    )
    service.start()
    try:
        without, keyed = Shell(service.url), Shell(service.url, OVERSPILL_KEY=made.stdout.strip())
        capture = keyed.put(b"small")
        ends = [without("usage"), keyed("put", stdin=b"x" * 1001), keyed("rm", capture)]
    finally:
        service.stop()

    assert [end.code for end in ends] == [4, 4, 4]
    assert "OVERSPILL_KEY" in ends[0].err
    assert "1000" in ends[1].err


def test_a_reader_that_stops_early_is_no_error(overspill: Shell) -> None:
    capture = overspill.put(os.urandom(2_000_000))
    result = overspill.script(f"overspill cat {capture} | head -c 10 | wc -c; echo ${{PIPESTATUS[0]}}")

    assert result.out.split() == ["10", "141"]
    assert result.err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_a_failure(overspill: Shell) -> None:
    capture = overspill.put(b"x" * 100)
    result = overspill.script(f"overspill cat {capture} > /dev/full")

    assert result.code == 6
    assert result.err == "overspill: standard output: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["--help", "--version", "grep --help"])
def test_help_that_cannot_be_written_is_a_failure_and_no_traceback(overspill: Shell, words: str) -> None:
    result = overspill.script(f"overspill {words} > /dev/full")

    assert result.code == 6
    assert result.err == "overspill: standard output: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("words", "code"), [("tail no-id", 2), ("stat --wrong", 2), ("run -- /nonexistent/command", 127)]
)
def test_a_message_that_cannot_be_written_leaves_the_exit_code(
    overspill: Shell, words: str, code: int
) -> None:
    assert overspill.script(f"overspill {words} 2> /dev/full").code == code


def test_a_closed_standard_output_is_a_failure(overspill: Shell) -> None:
    result = overspill.script("overspill usage >&-")

    assert result.code == 6
    assert result.err == "overspill: standard output is closed\n"


def test_an_interrupt_ends_a_command_quietly(overspill: Shell) -> None:
    process = overspill.start("put", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"x" * 1_000_000)  # more than a pipe holds: it has begun to read
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (130, b"", b"overspill: interrupted\n")


INTERRUPTED_LOADING = """
import os, signal, sys
class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
from overspill.__main__ import run_process
run_process()
"""


@pytest.mark.parametrize(
    "module",
    [
        "click.core",
        "overspill.cli.app",
        "overspill.cli.commands.run",
        "overspill.cli.spool_upload",
        "overspill.cli.command_output.guarded_output",
    ],
)
def test_an_interrupt_ends_a_command_quietly_while_it_is_loaded(overspill: Shell, module: str) -> None:
    with interruptible():
        ended = subprocess.run(
            [sys.executable, "-c", INTERRUPTED_LOADING, "run", "--", "echo", module],
            capture_output=True,
            check=False,
            env=overspill.environment,
        )

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, b"", b"overspill: interrupted\n")


def test_without_the_extra_it_says_what_to_install() -> None:
    hidden = "import sys; sys.modules['click'] = None; from overspill.__main__ import main; sys.exit(main())"
    result = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stdout) == (2, "")
    assert "pip install './client[cli]'" in result.stderr


def test_an_mcp_server_without_its_extra_says_what_to_install() -> None:
    hidden = "import sys; sys.modules['mcp'] = None; from overspill.__main__ import main; sys.exit(main())"
    result = subprocess.run(
        [sys.executable, "-c", hidden, "mcp"], capture_output=True, text=True, check=False
    )

    assert (result.returncode, result.stdout) == (2, "")
    assert "pip install './client[mcp]'" in result.stderr


@pytest.mark.parametrize("words", [("mcp", "--http"), ("gateway", "--listen")])
def test_a_server_announces_no_address_that_another_has(overspill: Shell, words: tuple[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = overspill(*words, address)

    assert (result.code, result.out) == (6, "")
    assert result.err == f"overspill: {address}: Address already in use\n"


COMPLETING = {"_OVERSPILL_COMPLETE": "bash_complete", "COMP_WORDS": "overspill su", "COMP_CWORD": "1"}


@pytest.mark.parametrize(
    ("words", "variables"),
    [(["--help"], {}), (["--version"], {}), ([], COMPLETING)],
    ids=["help", "version", "completion"],
)
def test_what_needs_no_command_waits_for_no_library_of_one(
    words: list[str], variables: dict[str, str]
) -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *command(*words)[1:]],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}

    assert result.stdout
    assert "click" in imported
    assert not imported & {"aiohttp", "msgspec", "backports.zstd", "rich", "asyncio"}
    assert not imported & {"overspill.wire", "overspill.errors", "overspill.transfer"}


IMPORTED = """
import atexit, os, sys
import click, overspill.cli.app
for name in sys.argv[1:]:
    if os.fork() == 0:
        sys.argv[1:] = [name, "--help"]
        out = os.dup(1)
        os.dup2(2, 1)  # what the help prints
        atexit.register(lambda: os.write(out, " ".join([name, *sys.modules]).encode() + b"\\n"))
        from overspill.__main__ import main
        main()
        sys.exit()
    os.wait()
"""
"""Prints of each command the modules that its help imports, in processes that have what all of them need."""


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    done = subprocess.run([sys.executable, "-c", IMPORTED, *app.COMMANDS], capture_output=True, check=True)
    return {name: set(modules) for name, *modules in map(str.split, done.stdout.decode().splitlines())}


@pytest.mark.parametrize("name", app.COMMANDS)
def test_the_help_of_a_command_waits_for_nothing_that_the_command_does(
    imported: dict[str, set[str]], name: str
) -> None:
    modules = imported[name]

    assert f"overspill.cli.commands.{name.replace('-', '_')}" in modules
    assert not modules & {"aiohttp", "re2", "backports.zstd", "overspill.transfer.compression", "rich"}
    assert not modules & {"overspill.transfer.client", "overspill.guard.guard", "overspill.delivery.storage"}


@pytest.mark.parametrize("name", app.COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_begins_with(name: str) -> None:
    summary = app.COMMANDS[name]
    itself = LazyCommand(name, summary).load()

    assert itself.name == name
    assert itself.help is not None
    assert itself.help.partition("\n")[0] == summary


@pytest.mark.parametrize("words", [(), ("spool",)], ids=" ".join)
def test_a_list_of_commands_has_room_for_each_summary(words: tuple[str, ...]) -> None:
    commands = Shell(NOBODY)(*words, "--help").out.partition("Commands:\n")[2].partition("Examples:")[0]

    assert "..." not in commands


def test_help_documents_the_exit_codes() -> None:
    assert "Exit codes: 0 done; 1 grep found nothing" in Shell(NOBODY)("--help").out
