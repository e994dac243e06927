"""The line of a request in the audit log: who did what, from where, to what, and with which outcome."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from overspill.wire import CAPTURE_ID, fit

from overspill_service.audit.events import Action, Event, Outcome
from overspill_service.telemetry.log_lines import without_secrets
from overspill_service.web.exchange import EXCHANGE
from overspill_service.web.service import SERVICE

if TYPE_CHECKING:
    from overspill_service.web.service import Service

_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_ABOUT: Final = ("capture", "captures", "stored_size", "held", "session", "api_key", "new_api_key")
"""Fields of the request's log lines that name its subject."""
_NAMED: Final = {"id": "api_key"}
"""The names of path parameters in the audit log."""
_LONGEST: Final = 256
"""Bytes of a name in a line: some daemons of syslog cut a line of 8 KiB."""

ACTIONS: Final = web.AppKey("actions", dict[tuple[str, str], Action])
"""The actions of the routes, by their methods and paths."""


def begin(request: web.Request) -> None:
    """Note the action of a request, before anything can refuse it."""
    exchange = request[EXCHANGE]
    exchange.action = request.app[ACTIONS].get((request.method, exchange.route))


async def require_log(service: Service, request: web.Request) -> None:
    """Raise `AuditUnavailable` for a change that could not be written down."""
    action = request[EXCHANGE].action
    if action is not None and not action.is_read:
        await service.audit.require_working()


async def end(request: web.Request, status: int | None) -> None:
    """Write the line of a request that was answered with this status, None if its client hung up."""
    exchange = request[EXCHANGE]
    action, fields = exchange.action, exchange.fields
    is_refused = status in _REFUSED
    if action is None or (action.is_read and not is_refused and not exchange.are_reads_audited):
        return
    service = request.app[SERVICE]
    event = Event(
        action=action,
        outcome=_outcome(status),
        tenant=fields.get("tenant", ""),
        user=fields.get("key", ""),
        subject=fields.get("subject", ""),
        address=exchange.address,
        is_refused=is_refused,
        code=fields.get("code", ""),
        method=request.method,
        path=exchange.route,
        status=status,
        request_id=exchange.request_id,
        about=_about(request, fields),
    )
    await service.audit.write(event, service.archive.clock())


def _about(request: web.Request, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the subject of a request: the names in its path, and the fields found since."""
    values: dict[str, Any] = {_NAMED.get(name, name): value for name, value in request.match_info.items()}
    if CAPTURE_ID.fullmatch(values.get("ref", "")):
        values["capture"] = values.pop("ref")
    about = values | {name: fields[name] for name in _ABOUT if name in fields}
    return {name: _fit(value) if isinstance(value, str) else value for name, value in about.items()}


def _fit(name: str) -> str:
    """Return a name as a line may have it: of bounded length, and never a key."""
    return without_secrets(fit(name, _LONGEST))


def _outcome(status: int | None) -> Outcome:
    if status is None:
        return Outcome.UNKNOWN
    return Outcome.SUCCESS if status < HTTPStatus.BAD_REQUEST else Outcome.FAILURE
