"""The agent programs that have hooks or plugins: where their settings are, and how those name our hook.

Sources: code.claude.com/docs/en/hooks, geminicli.com/docs/hooks/reference, developers.openai.com/codex/hooks,
docs.github.com/en/copilot/reference/copilot-cli-reference/cli-hooks-reference, opencode.ai/docs/plugins.
"""

from __future__ import annotations

import copy
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

_OURS: Final = "overspill"


class WrongSettings(Exception):
    """A settings file has another form than its program's documentation says."""


@dataclass(frozen=True, kw_only=True)
class AgentProgram:
    """A program that may be guarded, with `executable` as its name on the PATH.

    A user's settings are `settings` below `folder` of the home. If the environment has `variable`, the
    program takes the folder that it names instead of `folder`. In a project, `folder` and `settings` are
    below the project's own folder, unless `project_settings` names another file there.
    """

    name: str
    title: str
    executable: str
    folder: str
    variable: str
    settings: str
    project_settings: str = ""

    def is_here(self, root: Path, *, is_project: bool) -> bool:
        """Return whether the program is installed, or was used below `root`, the home or a project."""
        folder = self._folder(root, is_project=is_project)
        return shutil.which(self.executable) is not None or folder.is_dir()

    def path(self, root: Path, *, is_project: bool) -> Path:
        """Return where its settings are below `root`, the home or a project."""
        if is_project and self.project_settings:
            return root / self.project_settings
        moved = "" if is_project else os.environ.get(self.variable, "")
        return (Path(moved) if moved else root / self.folder) / self.settings

    def _folder(self, root: Path, *, is_project: bool) -> Path:
        """Return the folder that there is if the program was used."""
        return self.path(root, is_project=is_project).parent


@dataclass(frozen=True, kw_only=True)
class HookProgram(AgentProgram):
    """A program whose settings have a hook at each of `events`.

    `matcher` chooses the tools; without one, hooks stand in no groups. `timeout` is in the
    program's own unit.
    """

    events: tuple[str, ...]
    matcher: str | None
    timeout: int

    def with_hook(self, settings: dict[str, Any], command: str) -> dict[str, Any]:
        """Return the settings with our hook, once. Raises `WrongSettings`."""
        changed = self.without_hook(settings)
        for event in self.events:
            groups = changed.setdefault("hooks", {}).setdefault(event, [])
            hook = {"type": "command", "command": command, "timeout": self.timeout}
            groups.append(hook if self.matcher is None else {"matcher": self.matcher, "hooks": [hook]})
        return changed

    def without_hook(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings without our hook; all else stays. Raises `WrongSettings`."""
        changed = copy.deepcopy(settings)
        events = _table(changed, "hooks")
        known = [event for event in self.events if event in events]
        for event in known:
            events[event] = self._others(event, events[event])
            if not events[event]:
                del events[event]
        if known and not events:
            del changed["hooks"]
        return changed

    def _others(self, event: str, groups: Any) -> list[Any]:
        """Return the groups of an event without our hook. Raises `WrongSettings`."""
        if not isinstance(groups, list):
            raise WrongSettings(f"hooks.{event} is not a list")
        for group in groups:
            if isinstance(group, dict) and isinstance(group.get("hooks"), list):
                group["hooks"] = [hook for hook in group["hooks"] if not self._is_ours(hook)]
        return [group for group in groups if not (self._is_ours(group) or _is_empty(group))]

    def _is_ours(self, hook: Any) -> bool:
        command = hook.get("command") if isinstance(hook, dict) else None
        return isinstance(command, str) and command.endswith(f" hook {self.name}") and _OURS in command


@dataclass(frozen=True, kw_only=True)
class PluginProgram(AgentProgram):
    """A program that loads plugins from a folder: `settings` is a file of ours alone in it."""

    def _folder(self, root: Path, *, is_project: bool) -> Path:
        return super()._folder(root, is_project=is_project).parent


def _is_empty(group: Any) -> bool:
    return isinstance(group, dict) and group.get("hooks") == []


def _table(settings: Any, name: str) -> dict[str, Any]:
    if not isinstance(settings, dict):
        raise WrongSettings("the settings are not a JSON object")
    table = settings.get(name, {})
    if not isinstance(table, dict):
        raise WrongSettings(f"{name} is not a JSON object")
    return table


CLAUDE_CODE: Final = HookProgram(
    name="claude-code",
    title="Claude Code",
    executable="claude",
    folder=".claude",
    variable="CLAUDE_CONFIG_DIR",
    settings="settings.json",
    events=("PostToolUse", "PostToolUseFailure"),
    matcher="*",
    timeout=30,
)
GEMINI_CLI: Final = HookProgram(
    name="gemini-cli",
    title="Gemini CLI",
    executable="gemini",
    folder="",
    variable="GEMINI_CLI_HOME",
    settings=".gemini/settings.json",
    events=("AfterTool",),
    matcher=".*",
    timeout=30_000,  # milliseconds
)
CODEX: Final = HookProgram(
    name="codex",
    title="Codex",
    executable="codex",
    folder=".codex",
    variable="CODEX_HOME",
    settings="hooks.json",
    events=("PreToolUse",),
    matcher="Bash",
    timeout=30,
)
COPILOT_CLI: Final = HookProgram(
    name="copilot-cli",
    title="Copilot CLI",
    executable="copilot",
    folder=".copilot",
    variable="COPILOT_HOME",
    settings="settings.json",
    project_settings=".github/copilot/settings.json",
    events=("postToolUse",),
    matcher=None,
    timeout=30,
)
OPENCODE: Final = PluginProgram(
    name="opencode",
    title="opencode",
    executable="opencode",
    folder=".config",
    variable="XDG_CONFIG_HOME",
    settings="opencode/plugin/overspill.js",
    project_settings=".opencode/plugin/overspill.js",
)
Program: TypeAlias = HookProgram | PluginProgram
HOOK_PROGRAMS: Final = {program.name: program for program in (CLAUDE_CODE, GEMINI_CLI, CODEX, COPILOT_CLI)}
PROGRAMS: Final[Mapping[str, Program]] = {**HOOK_PROGRAMS, OPENCODE.name: OPENCODE}
