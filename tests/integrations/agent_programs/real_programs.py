"""The agent programs themselves, from npm: how each is installed, and started before a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from overspill.integrations.agent_programs.programs import PROGRAMS

from tests.integrations.agent_programs.scripted_model import CHAT, GEMINI, MESSAGES, RESPONSES, Api, ShellCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FOLDER: Final = Path.home() / ".cache" / "overspill-tests" / "agent-programs"
SECONDS: Final = 240


@dataclass(frozen=True, kw_only=True)
class RealProgram:
    """A program of `overspill init`, in the version that was tried last.

    `write_settings` gets the home and the model's address. `setup` is the script that npm would run.
    """

    name: str
    package: str
    version: str
    words: tuple[str, ...]
    api: Api
    shell: str
    command: str
    """The argument of the shell that holds the command."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    write_settings: Callable[[Path, str], None]
    variables: Callable[[str], dict[str, str]]
    setup: str = ""

    def call(self, command: str) -> ShellCall:
        """Return the call of its shell that runs `command`."""
        return ShellCall(self.shell, {self.command: command, **self.arguments})

    def start(self, home: Path, url: str, environment: Mapping[str, str]) -> str:
        """Run it once before the model at `url`, and return what it printed."""
        project = home / "project"
        project.mkdir()
        executable = self._installed() / "node_modules" / ".bin" / PROGRAMS[self.name].executable
        done = subprocess.run(
            [str(executable), *self.words],
            cwd=project,
            env={**environment, "HOME": str(home), "IS_SANDBOX": "1", **self.variables(url)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return done.stdout

    def _installed(self) -> Path:
        """Return the folder of the package, which is downloaded once."""
        folder = FOLDER / f"{self.name}-{self.version}"
        if not (folder / "is-installed").exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text("{}")
            package = f"{self.package}@{self.version}"
            _run(folder, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", package)
            if self.setup:
                _run(folder / "node_modules" / self.package, "node", self.setup)
            (folder / "is-installed").touch()
        return folder


def _run(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)


def _nothing(home: Path, url: str) -> None:
    """Write no settings: variables say it all."""


def _claude_variables(url: str) -> dict[str, str]:
    quiet = dict.fromkeys(("DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1")
    return {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": url, **quiet}


def _write_codex_settings(home: Path, url: str) -> None:
    provider = f'name = "local"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "LOCAL_KEY"\n'
    settings = f'model = "gpt-5.1-codex"\nmodel_provider = "local"\n[model_providers.local]\n{provider}'
    (home / ".codex" / "config.toml").write_text(settings)


def _write_gemini_settings(home: Path, url: str) -> None:
    path = home / ".gemini" / "settings.json"
    settings = json.loads(path.read_text()) | {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    path.write_text(json.dumps(settings))


def _write_opencode_settings(home: Path, url: str) -> None:
    options = {"baseURL": f"{url}/v1", "apiKey": "key"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "local", "options": options}
    settings = {"model": "local/m", "provider": {"local": {**provider, "models": {"m": {"name": "m"}}}}}
    (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps(settings))


REAL_PROGRAMS: Final = (
    RealProgram(
        name="claude-code",
        package="@anthropic-ai/claude-code",
        version="2.1.197",
        words=("-p", "go", "--dangerously-skip-permissions", "--model", "claude-sonnet-4-5"),
        api=MESSAGES,
        shell="Bash",
        command="command",
        arguments={"description": "Count."},
        write_settings=_nothing,
        variables=_claude_variables,
        setup="install.cjs",
    ),
    RealProgram(
        name="codex",
        package="@openai/codex",
        version="0.171.0",
        words=(
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--dangerously-bypass-hook-trust",
            "go",
        ),
        api=RESPONSES,
        shell="exec_command",
        command="cmd",
        write_settings=_write_codex_settings,
        variables=lambda _: {"LOCAL_KEY": "key"},
    ),
    RealProgram(
        name="gemini-cli",
        package="@google/gemini-cli",
        version="0.61.0",
        words=("--yolo", "-m", "gemini-2.5-flash", "-p", "go"),
        api=GEMINI,
        shell="run_shell_command",
        command="command",
        write_settings=_write_gemini_settings,
        variables=lambda url: {
            "GEMINI_API_KEY": "key",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
    ),
    RealProgram(
        name="opencode",
        package="opencode-ai",
        version="1.18.33",
        words=("run", "go"),
        api=CHAT,
        shell="bash",
        command="command",
        arguments={"description": "Count."},
        write_settings=_write_opencode_settings,
        variables=lambda _: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        setup="postinstall.mjs",
    ),
)


def asked_for() -> set[str]:
    """Return the names of the programs that `OVERSPILL_PROGRAMS` names: some with commas between, or all."""
    asked = os.environ.get("OVERSPILL_PROGRAMS", "")
    return (
        {each.name for each in REAL_PROGRAMS}
        if asked == "all"
        else {name.strip() for name in asked.split(",")}
    )
