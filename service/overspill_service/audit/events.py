"""The events of the audit log, as JSON lines in the Elastic Common Schema
(https://www.elastic.co/guide/en/ecs/8.17).

Facts without a field in the schema are under `overspill`. A line never has a key or any content.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from overspill_service.audit.visible_text import visible

SCHEMA: Final = "8.17"
SERVICE: Final = "overspill-service"


class Outcome(StrEnum):
    """The outcome of an action. `unknown`: the client hung up before the answer, or a command begins."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class Phase(StrEnum):
    """The phase of a command, which has two lines. A request has one line."""

    WHOLE = ""
    START = "start"
    END = "end"


class Action(StrEnum):
    """The action that was done or tried."""

    CAPTURE_STORE = "capture.store"
    CAPTURE_READ = "capture.read"
    CAPTURE_LIST = "capture.list"
    CAPTURE_CHANGE = "capture.change"
    CAPTURE_HOLD = "capture.hold"
    CAPTURE_RELEASE = "capture.release"
    CAPTURE_DELETE = "capture.delete"
    CAPTURE_EXPIRE = "capture.expire"
    CAPTURE_DROP = "capture.drop"
    SESSION_HOLD = "session.hold"
    SESSION_RELEASE = "session.release"
    SESSION_DELETE = "session.delete"
    TENANT_ERASE = "tenant.erase"
    SWEEP = "sweep"
    KEY_CREATE = "key.create"
    KEY_LIST = "key.list"
    KEY_ROTATE = "key.rotate"
    KEY_REVOKE = "key.revoke"
    PAGE_SIGN_IN = "page.sign_in"
    PAGE_CODE = "page.code"
    ACCESS_CHOOSE = "access.choose"
    CATALOG_REBUILD = "catalog.rebuild"
    CATALOG_RESTORE = "catalog.restore"
    CLOCK_TRUST = "clock.trust"

    @property
    def is_read(self) -> bool:
        """Return whether it changes nothing: written only for tenants that want it, or if it was refused."""
        return self in _READS

    @property
    def category(self) -> str:
        """Return the `event.category` of the schema."""
        return _CATEGORIES.get(self.split(".", maxsplit=1)[0], "file")

    @property
    def type(self) -> str:
        """Return the `event.type` of the schema."""
        return _TYPES.get(self.rpartition(".")[2], "access" if self.is_read else "change")


_READS: Final = {Action.CAPTURE_READ, Action.CAPTURE_LIST, Action.KEY_LIST}
_CATEGORIES: Final = {
    "key": "iam",
    "page": "authentication",
    "access": "configuration",
    "catalog": "configuration",
    "clock": "configuration",
}
_TYPES: Final = {
    "sign_in": "start",
    "store": "creation",
    "create": "creation",
    "delete": "deletion",
    "expire": "deletion",
    "drop": "deletion",
    "erase": "deletion",
    "sweep": "deletion",
    "revoke": "deletion",
}
ITSELF: Final = "service"
"""The user of what the service does by itself."""
REFUSED: Final = "denied"
"""The `event.type` of what a key may not do."""


class Event(Struct, frozen=True, kw_only=True):
    """One thing that was done or tried. Empty fields are left out of its line."""

    action: Action
    outcome: Outcome
    phase: Phase = Phase.WHOLE
    tenant: str = ""
    user: str = ""
    """Who: the id of a key, or the name of the user who ran a command."""
    subject: str = ""
    """Who, as the issuer of a token says (`sub`)."""
    address: str = ""
    is_refused: bool = False
    """Whether the credential did not suffice."""
    code: str = ""
    """The code of the problem that the answer was."""
    detail: str = ""
    method: str = ""
    path: str = ""
    """The route, with braces for what changes."""
    status: int | None = None
    request_id: str = ""
    trace_id: str = ""
    about: dict[str, Any] = {}
    """The subject of the event: capture, session, call id, key, and the removed captures."""

    def line(self, seconds: float) -> bytes:
        """Return the event as one line. `seconds` since the epoch is when it happened."""
        at = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
        document = {
            "@timestamp": at.replace("+00:00", "Z"),
            "ecs": {"version": SCHEMA},
            "service": {"name": SERVICE},
            "process": {"pid": os.getpid()},
            "event": self._event(),
            "organization": {"id": self.tenant},
            "user": {"id": self.user, "name": self.subject},
            "source": {"address": self.address},
            "http": {
                "request": {"id": self.request_id, "method": self.method},
                "response": {"status_code": self.status},
            },
            "url": {"path": self.path},
            "error": {"code": self.code, "message": self.detail},
            "trace": {"id": self.trace_id},
            "overspill": self.about,
        }
        return visible(msgspec.json.encode(_without_empty(document)).decode()).encode() + b"\n"

    def _event(self) -> dict[str, Any]:
        return {
            "kind": "event",
            "dataset": "overspill.audit",
            "category": [self.action.category],
            "type": [self.action.type, *filter(None, (self.phase.value, REFUSED if self.is_refused else ""))],
            "action": self.action.value,
            "outcome": self.outcome.value,
        }


def _without_empty(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without fields that are empty, nor objects of such."""
    fields = {
        name: _without_empty(value) if isinstance(value, dict) else value for name, value in document.items()
    }
    return {name: value for name, value in fields.items() if value not in ("", None, {})}
