"""Agent programs: the documented events of their hooks, and the settings that name our hook."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from overspill import SyncClient
from overspill.integrations.agent_programs import hook
from overspill.integrations.agent_programs.programs import HOOK_PROGRAMS, PROGRAMS, WrongSettings
from overspill.integrations.agent_programs.settings_file import SettingsFile

from tests.client.shell import Shell

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

OUTPUT = "".join(f"line {number}\n" for number in range(30_000))
COMMON = {"session_id": "s-1", "transcript_path": "/t.jsonl", "cwd": "/work", "permission_mode": "default"}
OTHERS: list[dict[str, Any]] = [
    {},
    {"model": "m", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}},
    {"hooks": {"PostToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "fmt"}]}]}},
    {"hooks": {"PreToolUse": [{"hooks": []}], "AfterTool": []}, "ünïcode": ["☃"]},
]


@pytest.fixture
def service_of_the_environment(service: ServiceProcess, monkeypatch: pytest.MonkeyPatch) -> ServiceProcess:
    monkeypatch.setenv("OVERSPILL_URL", service.url)
    monkeypatch.setenv("OVERSPILL_SPOOL", "off")
    return service


@pytest.fixture
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


def answered(program: str, event: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(hook.answer_text(program, json.dumps(event).encode()))
    return answer


def claude(response: Any, **more: Any) -> dict[str, Any]:
    given = {"tool_name": "Bash", "tool_input": {"command": "seq"}, "tool_use_id": "toolu_1"}
    return {**COMMON, "hook_event_name": "PostToolUse", **given, "tool_response": response, **more}


def gemini(content: Any, **more: Any) -> dict[str, Any]:
    response = {"llmContent": content, "returnDisplay": "shown"}
    given = {"tool_name": "run_shell_command", "tool_input": {"command": "seq"}, "tool_response": response}
    return {**COMMON, "hook_event_name": "AfterTool", "timestamp": "2026-11-23T00:00:00Z", **given, **more}


def codex(command: Any, **more: Any) -> dict[str, Any]:
    given = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "call_1"}
    return {**COMMON, "hook_event_name": "PreToolUse", "turn_id": "1", "model": "gpt-6-sol", **given, **more}


def copilot(text: str, **more: Any) -> dict[str, Any]:
    given = {"toolName": "bash", "toolArgs": {"command": "seq"}, "timestamp": 1795883243942, "cwd": "/work"}
    result = {"resultType": "success", "textResultForLlm": text, **more}
    return {"sessionId": "s-1", **given, "toolResult": result}


def stored(service: ServiceProcess, text: str) -> str:
    with SyncClient(service.url) as client:
        return client.content("cap_" + text.partition("cap_")[2][:20]).decode()


# --- events ---------------------------------------------------------------------------------------


def test_claude_code_gets_a_result_of_the_tools_own_shape(service_of_the_environment: ServiceProcess) -> None:
    response = {"stdout": OUTPUT, "stderr": "", "interrupted": False, "isImage": False}
    answer = answered("claude-code", claude(response))["hookSpecificOutput"]
    shown = answer["updatedToolOutput"]

    assert answer["hookEventName"] == "PostToolUse"
    assert {name: shown[name] for name in ("stderr", "interrupted", "isImage")} == {
        "stderr": "",
        "interrupted": False,
        "isImage": False,
    }
    assert "Read more: overspill head -n 200 cap_" in shown["stdout"]
    assert stored(service_of_the_environment, shown["stdout"]) == OUTPUT


def test_what_claude_code_has_put_into_a_file_is_stored_whole(
    service_of_the_environment: ServiceProcess, tmp_path: Path
) -> None:
    (tmp_path / "output.txt").write_text(OUTPUT)
    response = {
        "stdout": OUTPUT[:12_000],
        "stderr": "",
        "interrupted": False,
        "persistedOutputPath": str(tmp_path / "output.txt"),
        "persistedOutputSize": len(OUTPUT),
    }
    shown = answered("claude-code", claude(response))["hookSpecificOutput"]["updatedToolOutput"]

    assert stored(service_of_the_environment, shown["stdout"]) == OUTPUT
    assert "persistedOutputPath" not in shown
    assert "line 0\n" in shown["stdout"]
    assert "line 29999\n" in shown["stdout"]


SAVED = (
    "Error: result (228,892 characters across 30,000 lines) exceeds maximum allowed tokens. "
    "Output has been saved to {}.\nFormat: Plain text\n"
)


def of_a_server(path: Path, folder: Path) -> dict[str, Any]:
    transcript = str(folder.with_suffix(".jsonl"))
    return claude(SAVED.format(path), tool_name="mcp__db__query", transcript_path=transcript)


def test_a_servers_result_that_claude_code_put_into_a_file_is_stored(
    service_of_the_environment: ServiceProcess, tmp_path: Path
) -> None:
    path = tmp_path / "s-1" / "tool-results" / "mcp-db-query-1.txt"
    path.parent.mkdir(parents=True)
    path.write_text(OUTPUT)
    answer = answered("claude-code", of_a_server(path, tmp_path / "s-1"))["hookSpecificOutput"]
    [block] = answer["updatedToolOutput"]

    assert block["type"] == "text"
    assert block["_meta"]["overspill"]["total_bytes"] == len(OUTPUT)
    assert stored(service_of_the_environment, block["text"]) == OUTPUT


def test_a_text_in_a_servers_structured_content_is_stored_with_lines_of_its_own(
    service_of_the_environment: ServiceProcess,
) -> None:
    event = claude(json.dumps({"content": OUTPUT, "mtime": 1}), tool_name="mcp__files__read")
    shown = json.loads(answered("claude-code", event)["hookSpecificOutput"]["updatedToolOutput"])

    assert shown["mtime"] == 1
    assert stored(service_of_the_environment, shown["content"]) == OUTPUT


@pytest.mark.parametrize("place", ["elsewhere", "link", "above", "folder", "gone"])
def test_a_server_cannot_name_a_file_that_is_not_its_result(
    service_of_the_environment: ServiceProcess, tmp_path: Path, place: str
) -> None:
    secret, folder = tmp_path / "secret", tmp_path / "s-1" / "tool-results"
    folder.mkdir(parents=True)
    secret.write_text(OUTPUT)
    (folder / "link.txt").symlink_to(secret)
    paths = {
        "elsewhere": secret,
        "link": folder / "link.txt",
        "above": folder / ".." / ".." / "secret",
        "folder": folder,
        "gone": folder / "gone.txt",
    }

    assert answered("claude-code", of_a_server(paths[place], tmp_path / "s-1")) == {}


@pytest.mark.parametrize("name", ["x" * 10_000, "a\0b", "x/" * 5_000])
def test_a_name_that_no_file_can_have_hides_no_result(
    service_of_the_environment: ServiceProcess, name: str
) -> None:
    said = f"Error: result (1 characters) exceeds maximum allowed tokens. Output has been saved to {name}.\n"
    of_server = claude(said + OUTPUT, tool_name="mcp__x__y", transcript_path="/t.jsonl")
    of_shell = claude({"stdout": OUTPUT, "stderr": "", "persistedOutputPath": name})

    for event in (of_server, of_shell):
        assert "[overspill]" in json.dumps(answered("claude-code", event))


def test_a_server_cannot_name_a_file_as_a_shell_does(
    service_of_the_environment: ServiceProcess, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(OUTPUT)
    given = {"stdout": "short", "persistedOutputPath": str(secret), "persistedOutputSize": 300_000}

    assert answered("claude-code", claude(given, tool_name="mcp__db__query")) == {}


def test_gemini_gets_the_notice_as_the_reason(service_of_the_environment: ServiceProcess) -> None:
    for content in (OUTPUT, [{"text": OUTPUT}], {"text": OUTPUT}, [OUTPUT[:9], {"text": OUTPUT[9:]}]):
        answer = answered("gemini-cli", gemini(content))

        assert answer["decision"] == "deny"
        assert stored(service_of_the_environment, answer["reason"]) == OUTPUT


PAGE = "".join(f"{number}\n" for number in range(1, 2_501))


@pytest.mark.parametrize(
    ("program", "event"),
    [
        ("gemini-cli", gemini(PAGE, tool_name="read_file")),
        ("opencode", {"tool": "read", "result": {"output": PAGE}}),
        ("claude-code", claude({"type": "text", "file": {"content": PAGE}}, tool_name="Read")),
    ],
)
def test_a_page_of_a_file_is_as_long_as_the_program_makes_it(
    service_of_the_environment: ServiceProcess, program: str, event: dict[str, Any]
) -> None:
    assert answered(program, event) == {}


def test_a_result_of_gemini_with_an_image_stays(service_of_the_environment: ServiceProcess) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "A" * 100_000}}

    assert answered("gemini-cli", gemini([{"text": OUTPUT}, image])) == {}


def test_copilot_gets_the_notice_and_all_else_of_a_result(service_of_the_environment: ServiceProcess) -> None:
    images = [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    answer = answered("copilot-cli", copilot(OUTPUT, binaryResultsForLlm=images))
    shown = answer["modifiedResult"]

    assert (shown["resultType"], shown["binaryResultsForLlm"]) == ("success", images)
    assert shown["textResultForLlm"].startswith("[overspill] Output of bash")
    assert stored(service_of_the_environment, shown["textResultForLlm"]) == OUTPUT


def saved(path: Path) -> str:
    """Return what Copilot shows in the place of an output that it has put into a file."""
    named = f"Output too large to read at once (42.9 KB). Saved to: {path}\nConsider using tools like grep …"
    return f"{named}\n\nPreview (first 500 chars):\n{OUTPUT[:500]}\n"


def test_what_copilot_has_put_into_a_file_is_stored_whole(
    service_of_the_environment: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "1795883243931-copilot-tool-output-10268-3db8a8d6-9bdb.txt"
    path.write_text(OUTPUT)
    shown = answered("copilot-cli", copilot(saved(path)))["modifiedResult"]

    assert stored(service_of_the_environment, shown["textResultForLlm"]) == OUTPUT


@pytest.mark.parametrize("name", ["below/1-copilot-tool-output-2.txt", "1-copilot-tool-output-2.txt"])
def test_a_tool_cannot_name_a_file_that_is_no_output_of_copilot(
    service_of_the_environment: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    another = tmp_path / "another"
    another.write_text(OUTPUT)
    if path.parent == tmp_path:
        path.symlink_to(another)
    else:
        another.rename(path)

    assert answered("copilot-cli", copilot(saved(path))) == {}


def test_a_name_that_copilot_cannot_have_given_hides_no_result(
    service_of_the_environment: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    long = saved(tmp_path / f"{'1' * 300}-copilot-tool-output-2.txt") + OUTPUT

    assert "modifiedResult" in answered("copilot-cli", copilot(long))


def words_behind_program(specific: dict[str, Any]) -> list[str]:
    """Return the words of the command behind those that start `overspill`."""
    words = shlex.split(specific["updatedInput"]["command"])
    return words[words.index("run") :]


@pytest.mark.parametrize(
    "command", ["seq 3", "echo 'a  b' \"$HOME\" | wc -l; exit 3", "printf 'ü\\n'", "# nothing"]
)
def test_codex_runs_the_same_command_in_ours(overspill: Shell, command: str, tmp_path: Path) -> None:
    specific = answered("codex", codex(command))["hookSpecificOutput"]
    rewritten = words_behind_program(specific)
    run = subprocess.run(["bash", "-c", command], capture_output=True, check=False, cwd=tmp_path)
    code, out, _ = overspill(*rewritten)

    assert specific["permissionDecision"] == "allow"
    options = ["--tool", "bash", "--call-id", "call_1", "--session", "s-1"]
    assert rewritten[:9] == ["run", "--host", "codex", *options]
    assert (code, out) == (run.returncode, run.stdout)


@pytest.mark.parametrize(
    "event",
    [
        codex("overspill head cap_1"),
        codex("/usr/bin/overspill grep x cap_1"),
        codex(""),
        codex(None),
        codex(["a"]),
        codex("ls", tool_name="apply_patch"),
        codex("ls", hook_event_name="PostToolUse"),
        {**codex("ls"), "tool_input": "ls"},
        {},
    ],
)
def test_codex_leaves_other_commands_alone(event: dict[str, Any]) -> None:
    assert answered("codex", event) == {}


@pytest.mark.parametrize("program", ["claude-code", "gemini-cli", "copilot-cli", "opencode"])
@pytest.mark.parametrize(
    "event",
    [
        claude({"stdout": "short", "stderr": "", "interrupted": False}),
        gemini("short"),
        copilot("short", filler=OUTPUT),
        {"toolName": "bash", "toolResult": OUTPUT},
        {"tool": "bash", "result": OUTPUT},
        {"tool": "bash", "result": {"output": "short"}, "filler": OUTPUT},
        claude(OUTPUT, hook_event_name="Stop"),
        {"filler": OUTPUT},
        {"tool_name": 7, "tool_response": None, "filler": OUTPUT},
    ],
)
def test_what_is_short_or_no_result_stays(
    service_of_the_environment: ServiceProcess, program: str, event: dict[str, Any]
) -> None:
    assert answered(program, event) == {}


# --- the process ----------------------------------------------------------------------------------


def test_a_short_result_imports_nothing_but_the_hook() -> None:
    script = (
        "import sys; from overspill.integrations.agent_programs import hook; hook.main('claude-code');"
        "loaded = {name for name in sys.modules if name.startswith('overspill')};"
        "allowed = {'overspill', *(f'overspill.integrations{rest}' for rest in"
        " ('', '.agent_programs', '.agent_programs.hook'))};"
        "sys.exit(str(loaded - allowed))"
    )
    done = subprocess.run([sys.executable, "-c", script], input=b"{}", capture_output=True, check=False)

    assert done.stderr.decode().strip() == "set()"
    assert done.stdout == b"{}\n"


@pytest.mark.parametrize(
    ("program", "event", "said"),
    [
        ("claude-code", b"not json" * 2_000, "JSONDecodeError"),
        ("claude-code", b"[" + b" " * 9_000 + b"]", "the event is not a JSON object"),
        ("claude-code", b"\xff" * 9_000, "UnicodeDecodeError"),
        ("emacs", b'{"a": "' + b"x" * 9_000 + b'"}', "there is no hook for 'emacs'"),
    ],
)
def test_whatever_goes_wrong_the_answer_changes_nothing(
    program: str, event: bytes, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(event)))

    assert hook.main(program) == 0
    out, err = capsys.readouterr()
    assert out == "{}\n"
    assert said in err


@pytest.mark.parametrize(
    ("redirected", "answer"),
    [
        ("<&-", b"{}\n"),
        ("2>&-", b"{}\n"),
        ("2>/dev/full", b"{}\n"),
        (">&-", b""),
        (">/dev/full", b""),
        ("<&- >&- 2>&-", b""),
    ],
)
def test_streams_that_are_closed_or_full_are_no_failure(redirected: str, answer: bytes) -> None:
    command = f"{shlex.quote(sys.executable)} -m overspill hook codex {redirected}"
    done = subprocess.run(["sh", "-c", command], input=b"no event", capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, answer)


CUT = f"Exit code 3\n{OUTPUT[:5_000]}\n\n... [20012 characters truncated] ...\n\n{OUTPUT[25_000:30_000]}"


def failed(error: str, command: str = "seq 30000; exit 3") -> dict[str, Any]:
    given = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "toolu_1"}
    return {**COMMON, "hook_event_name": "PostToolUseFailure", **given, "error": error}


def test_claude_code_is_told_how_to_get_the_output_of_a_failed_command_that_it_cut(
    overspill: Shell,
) -> None:
    answer = answered("claude-code", failed(CUT))["hookSpecificOutput"]
    command = shlex.split(answer["additionalContext"].partition("notice: ")[2])
    code, out, _ = overspill(*command[command.index("run") :])

    assert answer["hookEventName"] == "PostToolUseFailure"
    assert code == 3
    assert b"[overspill] Output of bash (" in out
    assert b"\n30000\n" in out


@pytest.mark.parametrize(
    "event", [failed("Exit code 3\nno"), failed("x" * 9_000), failed(CUT) | {"tool_name": "Read"}]
)
def test_what_claude_code_shows_whole_of_a_failure_needs_no_word(event: dict[str, Any]) -> None:
    assert answered("claude-code", event) == {}


def test_a_script_names_the_overspill_of_its_environment_not_itself() -> None:
    script = "from overspill.integrations.agent_programs.own_command import own_command; print(own_command())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == str([sys.executable, "-m", "overspill"])


def test_a_number_that_json_has_not_leaves_the_result(service_of_the_environment: ServiceProcess) -> None:
    event = json.dumps(claude({"stdout": OUTPUT, "n": 0})).replace('"n": 0', '"n": 1e999')

    with pytest.raises(ValueError, match="not JSON compliant"):
        hook.answer_text("claude-code", event.encode())


def test_a_session_of_a_wrong_type_is_no_reason_to_wait(
    service_of_the_environment: ServiceProcess,
) -> None:
    event = {**claude({"stdout": OUTPUT, "stderr": ""}), "session_id": ["s"], "tool_use_id": {}}

    assert "[overspill]" in json.dumps(answered("claude-code", event))


def test_codex_is_not_given_an_id_that_no_command_can_have() -> None:
    event = codex("ls", tool_use_id="call\0", session_id="s\ud800")
    command = answered("codex", event)["hookSpecificOutput"]["updatedInput"]["command"]

    assert command.isprintable()
    assert "--call-id" not in command


def test_what_codex_cuts_earlier_for_another_model_is_stored(overspill: Shell) -> None:
    shown = {}
    for model in ("gpt-6-sol", "qwen3-coder"):
        specific = answered("codex", codex("seq 1950 | sed s/$/....../", model=model))["hookSpecificOutput"]
        shown[model] = overspill(*words_behind_program(specific)).out

    assert shown["gpt-6-sol"].endswith("1950......\n")
    assert "Read more: " in shown["qwen3-coder"]


def test_without_a_service_the_notice_says_so(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERSPILL_URL", nowhere)
    monkeypatch.setenv("OVERSPILL_SPOOL", "off")

    assert "NOT STORED" in answered("gemini-cli", gemini(OUTPUT))["reason"]


def test_the_command_is_the_hook(service: ServiceProcess, overspill: Shell) -> None:
    code, out, err = overspill("hook", "gemini-cli", stdin=json.dumps(gemini(OUTPUT)).encode())

    assert (code, err) == (0, "")
    assert json.loads(out)["decision"] == "deny"


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOOK_PROGRAMS)
@pytest.mark.parametrize("settings", OTHERS, ids=str)
def test_the_hook_is_put_in_once_and_taken_out_again(name: str, settings: dict[str, Any]) -> None:
    program = HOOK_PROGRAMS[name]
    once = program.with_hook(settings, f"overspill hook {name}")
    twice = program.with_hook(once, f"/elsewhere/overspill hook {name}")
    events = [
        [hook["command"] for group in twice["hooks"][event] for hook in group.get("hooks", [group])]
        for event in program.events
    ]

    for commands in events:
        assert commands.count(f"/elsewhere/overspill hook {name}") == 1
        assert f"overspill hook {name}" not in commands
    assert program.without_hook(twice) == program.without_hook(settings)
    assert {key: once[key] for key in settings if key != "hooks"} == {
        key: settings[key] for key in settings if key != "hooks"
    }


def test_hooks_of_others_stay() -> None:
    theirs = {"matcher": "Write", "hooks": [{"type": "command", "command": "fmt"}]}
    settings = {"hooks": {"PostToolUse": [theirs], "Stop": [theirs]}}
    program = HOOK_PROGRAMS["claude-code"]
    once = program.with_hook(settings, "overspill hook claude-code")

    assert once["hooks"]["PostToolUse"][0] == theirs
    assert once["hooks"]["Stop"] == [theirs]
    assert program.without_hook(once) == settings


def test_a_hook_of_others_that_is_in_no_group_stays() -> None:
    theirs = {"type": "command", "bash": "log"}
    settings = {"hooks": {"postToolUse": [theirs]}}
    program = HOOK_PROGRAMS["copilot-cli"]
    once = program.with_hook(settings, "overspill hook copilot-cli")

    assert once["hooks"]["postToolUse"][0] == theirs
    assert len(once["hooks"]["postToolUse"]) == 2
    assert program.without_hook(once) == settings


def test_init_changes_copilots_settings_of_a_project(
    overspill: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    code, _, _ = overspill("init", "copilot-cli", "--project", "--yes")
    made = json.loads((home / ".github" / "copilot" / "settings.json").read_text())

    assert code == 0
    assert made["hooks"]["postToolUse"][0]["command"].endswith("hook copilot-cli")


@pytest.mark.parametrize(
    ("program", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("copilot-cli", "COPILOT_HOME", "settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugin/overspill.js"),
    ],
)
def test_init_changes_the_settings_in_the_folder_that_the_program_is_told_to_use(
    overspill: Shell, home: Path, program: str, variable: str, file: str
) -> None:
    overspill.environment[variable] = str(home / "moved")
    code, _, _ = overspill("init", program, "--yes")

    assert code == 0
    assert f"hook {program}" in (home / "moved" / file).read_text().replace('", "', " ")
    assert [each.name for each in home.iterdir()] == ["moved"]


def test_init_changes_a_projects_settings_wherever_those_of_the_user_are(
    overspill: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overspill.environment["CODEX_HOME"] = str(home / "moved")
    monkeypatch.chdir(home)
    code, _, _ = overspill("init", "codex", "--project", "--yes")

    assert code == 0
    assert [each.name for each in home.iterdir()] == [".codex"]


@pytest.mark.parametrize("settings", [[], {"hooks": []}, {"hooks": {"PostToolUse": {}}}, "text", None])
def test_settings_of_another_form_are_not_touched(settings: Any) -> None:
    with pytest.raises(WrongSettings):
        HOOK_PROGRAMS["claude-code"].with_hook(settings, "overspill hook claude-code")


@pytest.fixture
def home(overspill: Shell, tmp_path: Path) -> Path:
    for program in PROGRAMS.values():
        overspill.environment.pop(program.variable, None)
    overspill.environment["HOME"] = str(tmp_path)
    overspill.environment["PATH"] = "/usr/bin:/bin"
    return tmp_path


def test_init_shows_the_change_and_makes_it_when_told(overspill: Shell, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"model": "opus"}')
    path.chmod(0o600)
    code, out, err = overspill("init")
    before = path.read_text()
    told = overspill("init", "--yes")
    again = overspill("init", "--yes")

    assert (code, before) == (0, '{"model": "opus"}')
    assert b'+    "PostToolUse": [' in out
    assert "--yes makes the change" in err
    assert told[0] == again[0] == 0
    assert "nothing is to change for Claude Code" in again[2]
    assert json.loads(path.read_text())["model"] == "opus"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_init_names_a_command_that_is_found_in_a_shell_in_which_no_environment_is_active(
    overspill: Shell, home: Path, variable: str
) -> None:
    activated = home / "an environment" / "bin"
    activated.mkdir(parents=True)
    (activated / "overspill").symlink_to("/bin/true")
    usual = overspill.environment["PATH"]
    active = {variable: str(activated.parent), "PATH": f"{activated}:{usual}"}
    overspill.environment |= active

    assert overspill("init", "claude-code", "--yes").code == 0
    [group] = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["PostToolUse"]
    [program, *_] = shlex.split(group["hooks"][0]["command"])
    assert shutil.which(program, path=usual)


def test_init_takes_the_hook_out_again(overspill: Shell, home: Path) -> None:
    for name in PROGRAMS:
        assert overspill("init", name, "--yes")[0] == 0
    assert overspill("init", "--remove", "--yes")[0] == 0

    files = {name: home / each.folder / each.settings for name, each in PROGRAMS.items()}

    assert all(json.loads(files[name].read_text()) == {} for name in HOOK_PROGRAMS)
    assert not files["opencode"].exists()


def test_init_leaves_a_file_that_it_does_not_understand(overspill: Shell, home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('{// a comment\n"a": 1}')
    code, _, err = overspill("init", "gemini-cli", "--yes")

    assert code == 6
    assert f"{path}: " in err
    assert "it was not changed" in err
    assert path.read_text() == '{// a comment\n"a": 1}'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n  // mine\n  "a": 1\n}', "it has comments, which would be lost"),
        (b'{"a": "http://x",}', "it is not JSON"),
        (b'{"a": 1, "hooks": {}, "hooks": {}}', "it has 'hooks' twice in one place"),
        (b"\xff\xfe{\0}\0", "it is not UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"[]", "the settings are not a JSON object"),
    ],
)
def test_init_says_what_is_wrong_and_what_to_add_by_hand(
    overspill: Shell, home: Path, content: bytes, said: str
) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(content)
    code, _, err = overspill("init", "claude-code", "--yes")

    assert code == 6
    assert said in err
    assert 'add by hand: {"hooks": {"PostToolUse": ' in err
    assert path.read_bytes() == content


def test_init_changes_the_settings_of_others_beside_a_file_that_it_does_not_understand(
    overspill: Shell, home: Path
) -> None:
    refused, changed = home / ".claude" / "settings.json", home / ".codex" / "hooks.json"
    for path in (refused, changed):
        path.parent.mkdir()
    refused.write_text('{// a comment\n"a": 1}')
    code, out, err = overspill("init", "--yes")

    assert code == 6
    assert f"{refused}: it has comments" in err
    assert f"+++ {changed}".encode() in out
    assert "overspill hook codex" in changed.read_text()


def test_init_leaves_what_is_no_file_that_it_may_write(overspill: Shell, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text("{}")
    path.chmod(0o444)
    assert "it is read-only" in overspill("init", "claude-code", "--yes")[2]
    path.unlink()
    path.symlink_to("/dev/zero")
    assert "it is not a regular file" in overspill("init", "claude-code", "--yes")[2]
    path.unlink()
    path.symlink_to(home / "nowhere")
    assert "a link to a file that does not exist" in overspill("init", "claude-code", "--yes")[2]


@pytest.mark.parametrize(
    "content", ['\ufeff{\r\n\t"a": 1\r\n}\r\n', '{\n    "a": [\n        1\n    ]\n}\n', ""]
)
def test_init_keeps_the_style_of_a_file_and_a_link_to_it(overspill: Shell, home: Path, content: str) -> None:
    path, real = home / ".claude" / "settings.json", home / "real.json"
    path.parent.mkdir()
    real.write_bytes(content.encode())
    path.symlink_to(real)
    assert overspill("init", "claude-code", "--yes")[0] == 0
    with_hook = real.read_bytes().decode()
    assert overspill("init", "claude-code", "--remove", "--yes")[0] == 0

    assert path.is_symlink()
    assert '"PostToolUse"' in with_hook
    assert real.read_bytes().decode() == content or content == ""
    assert [each.name for each in home.iterdir() if each.name.endswith(".overspill")] == []


def test_a_settings_file_that_changed_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    file = SettingsFile(path)
    path.write_text('{"new": 1}')

    with pytest.raises(WrongSettings, match="another program"):
        file.write("{}")
    assert path.read_text() == '{"new": 1}'


def test_init_names_the_programs_that_there_are(overspill: Shell, home: Path) -> None:
    assert "no agent program was found; name one of claude-code" in overspill("init")[2]
    assert "'emacs' has no hook; there are claude-code" in overspill("init", "emacs")[2]


def test_init_fails_if_it_finds_no_program_to_guard_and_has_nothing_to_take_out(
    overspill: Shell, home: Path
) -> None:
    assert overspill("init", "--yes").code == 1
    assert overspill("init", "--remove", "--yes").code == 0


# --- a task ---------------------------------------------------------------------------------------


def test_a_question_about_a_log_of_20_mb_is_answered_by_the_hook_and_a_shell(
    service_of_the_environment: ServiceProcess, overspill: Shell
) -> None:
    declined = "2026-11-22T11:07:31 ERROR payment 4711 was declined: the card is expired\n"
    half = "".join(
        f"2026-11-22T10:00:00 INFO payment {number:09} was accepted\n" for number in range(192_000)
    )
    log = f"{half}{declined}{half}"
    answer = answered("claude-code", claude({"stdout": log, "stderr": "", "interrupted": False}))[
        "hookSpecificOutput"
    ]
    notice = answer["updatedToolOutput"]["stdout"]
    handle = "cap_" + notice.partition("cap_")[2][:20]
    found = overspill("grep", "declined", handle).out

    assert len(log) > 20_000_000
    assert declined in found
    assert len(notice) + len(found) < 8_000
