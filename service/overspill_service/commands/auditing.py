"""The lines of the operator's commands in the audit log."""

from __future__ import annotations

import getpass
import time
from typing import TYPE_CHECKING, Any, Final

from overspill_service.audit.events import Action, Event, Outcome

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

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
"""What the audit log calls the commands that change something."""
_ABOUT: Final = {"key": "api_key", "mode": "access", "session": "session", "scopes": "scopes"}


async def audited(
    work: Coroutine[Any, Any, int], log: AuditLog, command: str, options: Mapping[str, Any]
) -> int:
    """Run a command, and write down what became of it. Return its exit code."""
    action = ACTIONS.get(command)
    if action is None or (command == "access" and options["mode"] is None):
        return await work
    outcome = Outcome.FAILURE
    try:
        code = await work
        outcome = Outcome.FAILURE if code else Outcome.SUCCESS
        return code
    finally:
        await log.write(_event(action, outcome, command, options), time.time())


def _event(action: Action, outcome: Outcome, command: str, options: Mapping[str, Any]) -> Event:
    about = {ours: options[theirs] for theirs, ours in _ABOUT.items() if options.get(theirs)}
    return Event(
        action=action,
        outcome=outcome,
        tenant=options.get("tenant") or "",
        user=_user(),
        about={"command": command, **about},
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return ""
