"""opencode: what its plugin hands to the hook, and the plugin itself, run by Node."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from overspill.integrations.agent_programs.opencode_plugin import plugin_text

from tests.client.shell import Shell
from tests.client.test_agent_programs import (
    OUTPUT,
    answered,
    home,
    overspill,
    service_of_the_environment,
    stored,
)

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

__all__ = ["home", "overspill", "service_of_the_environment"]

CALL = {"tool": "bash", "sessionID": "ses_1", "callID": "call_1"}
NOTES = (
    "\n\n<shell_metadata>\nshell tool terminated command after exceeding timeout 1000 ms.\n</shell_metadata>"
)
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def cut(path: Path, notes: str = "") -> dict[str, Any]:
    """Return the event of an output that opencode has put into a file."""
    named = f"...output truncated...\n\nFull output saved to: {path}\n\n"
    return {**CALL, "result": {"output": f"{named}{OUTPUT[-2_000:]}{notes}", "outputPath": str(path)}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    made = tmp_path / "opencode" / "tool-output"
    made.mkdir(parents=True)
    return made


def test_a_result_is_replaced_by_its_notice(service_of_the_environment: ServiceProcess) -> None:
    shown = answered("opencode", {**CALL, "result": {"output": OUTPUT}})["output"]

    assert shown.startswith("[overspill] Output of bash (call_1) too long")
    assert "Read more: overspill head -n 200 cap_" in shown
    assert stored(service_of_the_environment, shown) == OUTPUT


@pytest.mark.parametrize("notes", ["", NOTES])
def test_what_opencode_has_put_into_a_file_is_stored_whole_and_what_it_says_of_it_stays(
    service_of_the_environment: ServiceProcess, folder: Path, notes: str
) -> None:
    (folder / "tool_1").write_text(OUTPUT)
    shown = answered("opencode", cut(folder / "tool_1", notes))["output"]

    assert stored(service_of_the_environment, shown) == OUTPUT
    assert shown.partition("<shell_metadata>")[1:] == NOTES.partition("<shell_metadata>")[1:] or not notes


@pytest.mark.parametrize("name", ["link", "below", "above", "another", "folder", "gone"])
def test_a_tool_cannot_name_a_file_that_is_no_output_of_opencode(
    service_of_the_environment: ServiceProcess, folder: Path, name: str
) -> None:
    secret = folder.parent / "tool_secret"
    secret.write_text(OUTPUT)
    (folder / "tool_link").symlink_to(secret)
    (folder / "tool_folder").mkdir()
    (folder / "tool_folder" / "tool_1").write_text(OUTPUT)
    (folder / "another").write_text(OUTPUT)
    paths = {
        "link": folder / "tool_link",
        "below": folder / "tool_folder" / "tool_1",
        "above": folder / ".." / "tool_secret",
        "another": folder / "another",
        "folder": folder / "tool_folder",
        "gone": folder / "tool_gone",
    }

    assert answered("opencode", cut(paths[name])) == {}


def test_the_image_of_a_servers_result_stays(service_of_the_environment: ServiceProcess) -> None:
    content = [{"type": "text", "text": OUTPUT}, IMAGE]
    answer = answered(
        "opencode", {**CALL, "tool": "kit_pic", "result": {"content": content, "isError": False}}
    )

    assert list(answer) == ["content"]
    assert answer["content"][-1] == IMAGE
    assert stored(service_of_the_environment, answer["content"][0]["text"]) == OUTPUT


def test_an_answer_of_our_server_is_shown_whole(service_of_the_environment: ServiceProcess) -> None:
    content = [{"type": "text", "text": OUTPUT[:14_000]}]
    event = {**CALL, "tool": "overspill_inspect_output", "result": {"content": content}}

    assert answered("opencode", event) == {}


def run_by_node(tmp_path: Path, command: list[str], result: dict[str, Any]) -> Any:
    """Return the result that the plugin makes of this one."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    (tmp_path / "overspill.mjs").write_text(plugin_text(command))
    (tmp_path / "run.mjs").write_text(
        "import { Overspill } from './overspill.mjs'\n"
        "let text = ''\n"
        "for await (const chunk of process.stdin) text += chunk\n"
        "const result = JSON.parse(text)\n"
        "const hooks = await Overspill()\n"
        "await hooks['tool.execute.after']({ tool: 'bash', sessionID: 'ses_1', callID: 'call_1' }, result)\n"
        "console.log(JSON.stringify(result))\n"
    )
    words, given = [node, str(tmp_path / "run.mjs")], json.dumps(result)
    done = subprocess.run(words, input=given, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


HOOK = [sys.executable, "-m", "overspill", "hook", "opencode"]


def test_the_plugin_puts_the_notice_into_a_result_and_all_else_stays(
    service_of_the_environment: ServiceProcess, tmp_path: Path
) -> None:
    given = {"title": "seq", "metadata": {"exit": 0}, "output": OUTPUT, "attachments": []}
    shown = run_by_node(tmp_path, HOOK, given)

    assert shown == {**given, "output": shown["output"]}
    assert stored(service_of_the_environment, shown["output"]) == OUTPUT


@pytest.mark.parametrize(
    "command",
    [
        ["/nowhere/overspill"],
        ["false"],
        ["echo", "no JSON"],
        ["echo", "null"],
        [*HOOK[:-1], "emacs"],
    ],
    ids=str,
)
def test_the_plugin_leaves_a_result_if_the_hook_goes_wrong(tmp_path: Path, command: list[str]) -> None:
    assert run_by_node(tmp_path, command, {"output": OUTPUT}) == {"output": OUTPUT}


def test_the_plugin_starts_nothing_for_a_short_result(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    result = {"output": "short", "metadata": {"output": OUTPUT}}

    assert run_by_node(tmp_path, ["touch", str(touched)], result) == result
    assert not touched.exists()


def test_init_writes_the_plugin_and_replaces_its_own(overspill: Shell, home: Path) -> None:
    path = home / ".config" / "opencode" / "plugin" / "overspill.js"
    path.parent.mkdir(parents=True)
    path.write_text(plugin_text(["/elsewhere/overspill", "hook", "opencode"]))
    code, out, _ = overspill("init", "--yes")

    assert code == 0
    assert b'-const COMMAND = ["/elsewhere/overspill"' in out
    assert '"hook", "opencode"]' in path.read_text()
    assert "nothing is to change for opencode" in overspill("init", "--yes").err


def test_init_leaves_a_plugin_that_is_not_its_own(overspill: Shell, home: Path) -> None:
    path = home / ".config" / "opencode" / "plugin" / "overspill.js"
    path.parent.mkdir(parents=True)
    path.write_text("// mine\n")
    code, _, err = overspill("init", "opencode", "--yes")

    assert code == 6
    assert "it is a plugin that overspill init did not write; it was not changed" in err
    assert overspill("init", "opencode", "--remove", "--yes").code == 0
    assert path.read_text() == "// mine\n"


def test_init_writes_the_plugin_of_a_project(
    overspill: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)

    assert overspill("init", "opencode", "--project", "--yes").code == 0
    assert (home / ".opencode" / "plugin" / "overspill.js").is_file()
