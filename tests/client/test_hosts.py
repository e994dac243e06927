"""Agent programs that cut what is too long themselves: no limit, notice or answer is above what they show."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from overspill import Guard, Policy, SyncClient
from overspill.agent_tools.reading_tools import reading_tools
from overspill.guard.hosts import HOSTS, Host, host_of_client
from overspill.integrations.agent_programs import hook
from overspill.text.limits import Limits, exceeds

from tests.client.shell import OVERSPILL, SECONDS, Shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LINES = "".join(f"{number} GET /items/{number} 200\n" for number in range(40_000))
TOOLS = ("", "read_file", "grep_search", "mine")


def shows_whole(host: Host, text: str) -> bool:
    return not exceeds(text, host.limits)


@pytest.fixture
def guard(service: ServiceProcess, request: pytest.FixtureRequest) -> Iterator[Guard]:
    with SyncClient(service.url, session=request.node.nodeid) as client, Guard(client, spool=False) as made:
        yield made


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("host", HOSTS)
def test_whatever_goes_into_a_conversation_is_shown_whole(nowhere: str, host: str, tool: str) -> None:
    policy = Policy(tools={"mine": Limits(500_000, max_tokens=90_000)}, wait=0.1).for_host(host)
    with SyncClient(nowhere) as client, Guard(client, policy, spool=False) as guard:
        for size in (100, 4_000, 7_990, 8_010, 21_000, 37_000, 51_000, 1_000_000):
            shown = guard.process_sync(LINES[:size], tool=tool, call_id=f"{host}{size}").value

            assert shows_whole(HOSTS[host], shown)


def test_a_stricter_policy_stays_as_it_is() -> None:
    mine = Policy(max_bytes=3_000, max_lines=50, max_tokens=700, tools={"mine": 100}, lost_preview_bytes=500)
    hosted = mine.for_host("vscode")

    assert hosted.limits("")[:4] == (3_000, 50, None, 700)
    assert hosted.limits("mine")[:4] == (100, 50, None, 700)
    assert hosted.lost_preview_bytes == 500


def test_a_program_that_is_not_known_is_named_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="there is no host 'emacs'; there are claude-code, cline, codex"):
        Policy().for_host("emacs")


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("claude-code", "claude-code"),
        ("Visual Studio Code", "vscode"),
        ("Visual Studio Code - Insiders", "vscode"),
        ("gemini-cli-mcp-client-files", "gemini-cli"),
        ("codex-mcp-client", "codex"),
        ("Cline", "cline"),
        ("qwen-cli-mcp-client-x", "qwen-code"),
        ("claude-ai", None),
        ("", None),
    ],
)
def test_a_program_is_known_by_what_its_client_calls_itself(name: str, host: str | None) -> None:
    assert host_of_client(name) == host


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("asked", [{}, {"max_chars": 40_000}, {"max_chars": "40000"}, {"max_chars": None}])
def test_no_answer_of_a_reading_tool_is_longer_than_the_host_shows(
    guard: Guard, host: str, asked: dict[str, Any]
) -> None:
    most = HOSTS[host].answer_chars
    capture = guard.process_sync(LINES, tool="logs", call_id="call_1").capture
    inspect_output, list_captures = reading_tools(guard, max_chars=most)
    for arguments in ({"lines": 20_000}, {"mode": "grep", "pattern": "GET"}, {"mode": "summary"}):
        answer = inspect_output.call({"capture": capture, **arguments, **asked})

        assert "error" not in answer
        assert len(json.dumps(answer)) <= most
    assert len(json.dumps(list_captures.call({}))) <= most
    assert inspect_output.parameters["properties"]["max_chars"]["maximum"] <= most


def test_a_long_list_is_as_short_as_the_host_needs(guard: Guard) -> None:
    for number in range(40):
        guard.process_sync(
            f"{number}{LINES[:60_000]}", tool=f"a tool with a long name {'x' * 80}", call_id=f"c{number}"
        )
    _, list_captures = reading_tools(guard, max_chars=HOSTS["vscode"].answer_chars)
    answer = list_captures.call({"limit": 50})

    assert 0 < len(answer["captures"]) < 40
    assert len(json.dumps(answer)) <= 8_000
    assert list_captures.call(answer["next"])["captures"]


# --- the policy file of the environment ---------------------------------------------------------


@pytest.fixture
def policy_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "policy.toml"
    path.write_text("version = 1\nmax_bytes = 1000\n", encoding="utf-8")
    monkeypatch.setenv("OVERSPILL_POLICY", str(path))
    return path


def event(size: int) -> bytes:
    told = {"hook_event_name": "PostToolUse", "tool_name": "Write", "tool_response": {"text": LINES[:size]}}
    return json.dumps(told).encode()


def test_a_hook_keeps_to_the_policy_of_the_environment(
    service: ServiceProcess, policy_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERSPILL_URL", service.url)
    monkeypatch.setenv("OVERSPILL_SPOOL", "off")

    assert "cap_" in hook.answer_text("claude-code", event(4_000))
    monkeypatch.delenv("OVERSPILL_POLICY")
    assert hook.answer_text("claude-code", event(4_000)) == "{}"


@pytest.mark.parametrize("program", ["claude-code", "gemini-cli", "codex"])
def test_a_hook_with_a_wrong_policy_changes_nothing_and_says_why(policy_file: Path, program: str) -> None:
    policy_file.write_text("version = 1\nmax_bites = 3\n", encoding="utf-8")
    events = {
        "claude-code": event(4_000),
        "gemini-cli": event(4_000),
        "codex": b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}',
    }
    with pytest.raises(ValueError, match="do you mean 'max_bytes'"):
        hook.answer_text(program, events[program])


@pytest.fixture
def shell(service: ServiceProcess, policy_file: Path) -> Shell:
    made = Shell(service.url)
    made.environment["OVERSPILL_POLICY"] = str(policy_file)
    return made


@pytest.mark.parametrize("command", [["run", "--", "echo", "hi"], ["mcp-proxy", "--", "cat"]])
def test_a_command_with_a_wrong_policy_does_not_begin(
    shell: Shell, policy_file: Path, command: list[str]
) -> None:
    policy_file.write_text("version = 1\nmax_bites = 3\n", encoding="utf-8")
    done = shell(*command)

    assert done.code == 2
    assert done.out == ""
    assert "OVERSPILL_POLICY" in done.err
    assert "do you mean 'max_bytes'?" in done.err


def test_a_command_keeps_to_the_policy_of_the_environment(shell: Shell) -> None:
    assert "cap_" in shell("run", "--no-live", "--", "seq", "1000").out


def test_a_notice_names_a_command_that_works_where_the_path_has_none(service: ServiceProcess) -> None:
    shell = Shell(service.url, PATH="/usr/bin:/bin")
    notice = shell("run", "--no-live", "--", "seq", "100000").out
    read_more = notice.partition("Read more: ")[2].partition(". Do not rerun")[0]
    read = subprocess.run(["sh", "-c", read_more], env=shell.environment, capture_output=True, check=False)

    assert read.stdout.decode().splitlines() == [str(number) for number in range(1, 201)]


def test_a_command_prints_no_more_than_its_host_shows(service: ServiceProcess) -> None:
    shell = Shell(service.url)
    command = ("--no-live", "--", "seq", "1950")

    assert shell("run", *command).out.endswith("1950\n")
    assert shell("run", "--host", "opencode", *command).out.endswith("1950\n")
    assert "cap_" in shell("run", "--host", "cline", *command).out
    assert "there are claude-code, cline" in shell("run", "--host", "emacs", *command).err


def test_an_agent_sees_what_a_command_says_that_runs_on(service: ServiceProcess) -> None:
    words = ["run", "--host", "codex", "--", "sh", "-c", "echo ready; read line; echo got $line"]
    with OVERSPILL.piped(words, Shell(service.url).environment, seconds=SECONDS) as piped:
        first = piped.stdout.readline()
        piped.stdin.write(b"it\n")
        piped.stdin.flush()
        rest = piped.stdout.read()

    assert (first, rest) == (b"ready\n", b"got it\n")


def test_an_agent_is_told_where_the_rest_of_a_command_is_that_runs_on(service: ServiceProcess) -> None:
    words = ["run", "--host", "codex", "--call-id", "c-1", "--", "sh", "-c", "seq 30000; read line"]
    with OVERSPILL.piped(words, Shell(service.url).environment, seconds=SECONDS) as piped:
        shown = [piped.stdout.readline().decode() for _ in range(101)]
        piped.stdin.close()
        rest = piped.stdout.read().decode()

    assert shown[:100] == [f"{number}\n" for number in range(1, 101)]
    assert shown[100].endswith(" tail -n 200 call:c-1\n")
    assert rest.startswith("[overspill] Output of sh (c-1, ")
