"""Guards the tool result in a hook's event, and answers in the form that the program expects."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from overspill.guard.guard import Guard
from overspill.integrations.agent_programs.own_command import shell_command
from overspill.integrations.host_policy import host_policy
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_READ: Final = "head -n 200 {id}"
"""Every agent program has a shell: the notice names a command that works in it."""


class _HookGuard(Guard):
    """A guard for one result. It uploads nothing unasked: the program waits for the hook to end."""

    _uploads_unasked = False


def answered(
    program: str, answer: Callable[[Guard, Mapping[str, Any]], dict[str, Any]], event: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what `answer` makes of the event of a program, with a guard for the environment's service."""
    policy = replace(host_policy(program), reader=f"{shlex.join(shell_command())} {_READ}")
    with SyncClient() as client, _HookGuard(client, policy) as guard:
        return answer(guard, event)
