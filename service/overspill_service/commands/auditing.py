"""The lines of the operator's commands in the audit log."""

from __future__ import annotations

import os
import pwd
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overspill_service.audit.events import Action, Event, Outcome, Phase
from overspill_service.telemetry.log_lines import without_secrets
from overspill_service.telemetry.logs import bound_fields, current_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from overspill_service.audit.log import AuditLog

ACTIONS: Final = {
    "keys create": Action.KEY_CREATE,
    "keys rotate": Action.KEY_ROTATE,
    "keys revoke": Action.KEY_REVOKE,
    "access": Action.ACCESS_CHOOSE,
    "erase": Action.TENANT_ERASE,
    "sweep": Action.SWEEP,
    "rebuild": Action.CATALOG_REBUILD,
    "restore": Action.CATALOG_RESTORE,
    "trust-clock": Action.CLOCK_TRUST,
}
"""The names in the audit log of the commands that change something."""
_ABOUT: Final = {"key": "api_key", "mode": "access", "session": "session", "scopes": "scopes"}


async def audited(
    work: Coroutine[Any, Any, int], log: AuditLog, command: str, options: Mapping[str, Any]
) -> int:
    """Run a command, with a line before it and one that says what became of it. Return its exit code.

    The first line is there whatever ends the command. Raises `AuditUnavailable` if it cannot be written: then
    nothing was done.
    """
    action = ACTIONS.get(command)
    if action is None or (command == "access" and options["mode"] is None):
        return await work
    with bound_fields():
        return await _audited(work, log, partial(_event, action, command=command, options=options))


async def _audited(work: Coroutine[Any, Any, int], log: AuditLog, event: Callable[..., Event]) -> int:
    outcome, phase = Outcome.UNKNOWN, Phase.START
    try:
        await log.write(event(outcome, phase), time.time())
        await log.require_working()
        outcome, phase = Outcome.FAILURE, Phase.END
        code = await work
        outcome = Outcome.FAILURE if code else Outcome.SUCCESS
        return code
    finally:
        work.close()
        if phase is Phase.END:
            await log.write(event(outcome, phase), time.time())


def _event(action: Action, outcome: Outcome, phase: Phase, command: str, options: Mapping[str, Any]) -> Event:
    """Return a line of a command. It has what the command has bound to the fields of the log."""
    about = {
        ours: without_secrets(str(options[theirs])) for theirs, ours in _ABOUT.items() if options.get(theirs)
    }
    return Event(
        action=action,
        outcome=outcome,
        phase=phase,
        tenant=options.get("tenant") or "",
        user=_user(),
        about={"command": command, **about, **current_fields()},
    )


def _user() -> str:
    """Return the name of this process's user, whatever the environment says of it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without a name, as in some containers
        return str(os.getuid())
