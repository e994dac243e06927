"""The line of a request in the audit log: who did what, from where, to what, and what became of it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from overspill_service.audit.events import Action, Event, Outcome
from overspill_service.telemetry import logs
from overspill_service.web.client_address import CLIENT_ADDRESS
from overspill_service.web.service import SERVICE

if TYPE_CHECKING:
    from overspill_service.tenants.directory import Principal
    from overspill_service.web.service import Service

_ACTION: Final = web.RequestKey("action", Action)
_READS_WANTED: Final = web.RequestKey("reads_wanted", bool)
_REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_ABOUT: Final = ("capture", "captures", "stored_size", "held", "session", "api_key")
"""Fields of the request's log lines that say what it was about."""


async def begin(service: Service, request: web.Request, action: Action | None) -> None:
    """Note what a request wants. Raises `AuditUnavailable` for a change that could not be written down."""
    if action is None or not service.audit.is_on:
        return
    request[_ACTION] = action
    if not action.is_read:
        await service.audit.require_working()


def note_principal(request: web.Request, principal: Principal) -> None:
    """Note whether the tenant wants its reads written down."""
    request[_READS_WANTED] = principal.tenant.audits_reads


async def end(request: web.Request, status: int | None) -> None:
    """Write the line of a request that was answered with this status, None if its client hung up."""
    action = request.get(_ACTION)
    is_refused = status in _REFUSED
    if action is None or (action.is_read and not is_refused and not request.get(_READS_WANTED)):
        return
    service, known = request.app[SERVICE], logs.current_fields()
    resource = request.match_info.route.resource
    event = Event(
        action=action,
        outcome=_outcome(status),
        tenant=logs.bound_field("tenant"),
        user=logs.bound_field("key"),
        address=request[CLIENT_ADDRESS],
        is_refused=is_refused,
        code=logs.bound_field("code"),
        method=request.method,
        path="" if resource is None else resource.canonical,
        status=status,
        request_id=logs.bound_field("request_id"),
        about={name: known[name] for name in _ABOUT if name in known},
    )
    await service.audit.write(event, service.archive.clock())


def _outcome(status: int | None) -> Outcome:
    if status is None:
        return Outcome.UNKNOWN
    return Outcome.SUCCESS if status < HTTPStatus.BAD_REQUEST else Outcome.FAILURE
