"""Writes the audit log's lines about captures that the service removes by itself.

These removals go on while the log cannot be written, unlike removals that somebody asks for. Otherwise a full
disk would never get room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill import wire

from overspill_service.audit.events import ITSELF, Action, Event, Outcome
from overspill_service.catalog.records import instant
from overspill_service.telemetry.log_lines import without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry

LONGEST_NAME: Final = 256
"""The most bytes of a session's name in a line."""
_ACTIONS: Final = {"expired": Action.CAPTURE_EXPIRE, "unreadable": Action.CAPTURE_DROP}


async def note_removed(archive: Archive, entries: Sequence[Entry], reason: str) -> None:
    """Write a line for each removed capture, if nobody has asked for its removal.

    `reason` is that of a tombstone.
    """
    action = _ACTIONS.get(reason)
    if action is not None and entries and archive.audit.is_on:
        await archive.audit.write_all([_event(action, each) for each in entries], archive.clock())


def _event(action: Action, entry: Entry) -> Event:
    about = {
        "capture": entry.id,
        "session": without_secrets(wire.fit(entry.session, LONGEST_NAME)),
        "stored_size": entry.stored_size,
        "expires": instant(entry.expires).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }
    return Event(action=action, outcome=Outcome.SUCCESS, tenant=entry.tenant, user=ITSELF, about=about)
