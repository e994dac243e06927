"""Codex: it cuts a result before its hooks see it, so a shell command is run by `overspill run` instead.

The answer has the form that Codex accepts for a rewritten command: `updatedInput` together with the decision
`allow`. Codex still asks its user, by its own rules, about the command as it is then.
"""

from __future__ import annotations

import os
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from overspill.integrations.agent_programs.own_command import own_command

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHELL: Final = "bash"
_OURS: Final = "overspill"
_OF_OPENAI: Final = "gpt-"
_OTHERS_BYTES: Final = 9_000
"""Of a model that it does not know, Codex cuts results at 10,000 bytes, not tokens."""


def before_tool_use(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the command of a PreToolUse event in `overspill run`; nothing for another event."""
    tool_input = event.get("tool_input")
    tool_input = tool_input if isinstance(tool_input, dict) else {}
    command = tool_input.get("command")
    if event.get("hook_event_name") != "PreToolUse" or not isinstance(command, str) or not command.strip():
        return {}
    if event.get("tool_name") != "Bash" or _runs_ours(command):
        return {}
    if os.environ.get("OVERSPILL_POLICY"):
        _check_policy()
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": {**tool_input, "command": _run_by_overspill(command, event)},
        }
    }


def _check_policy() -> None:
    """Raise what is wrong with the environment's policy here: a command in `overspill run` would not run."""
    from overspill.guard.environment_policy import environment_policy  # noqa: PLC0415  (seldom needed)

    environment_policy()


def _runs_ours(command: str) -> bool:
    """Return whether the command begins with ours: its answers are short."""
    first, *_ = command.split(maxsplit=1)
    return PurePath(first).name == _OURS


def _run_by_overspill(command: str, event: Mapping[str, Any]) -> str:
    """Return the command line that runs `command` in a shell, and stores its output if it is long."""
    names = {"--call-id": event.get("tool_use_id"), "--session": event.get("session_id")}
    facts = {name: str(value) for name, value in names.items() if value and str(value).isprintable()}
    options = [word for pair in facts.items() for word in pair]
    model = event.get("model")
    is_known = not isinstance(model, str) or model.startswith(_OF_OPENAI)
    limit = [] if is_known else ["--max-bytes", str(_OTHERS_BYTES)]
    words = ["run", "--host", "codex", *limit, "--tool", _SHELL, *options, "--", _SHELL, "-c", command]
    return shlex.join([*own_command(), *words])  # by its path: a login shell may have another PATH
