"""The labels that a live capture gets from us: of the command that makes it, and of the secrets in it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.redaction.masking import counts_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from overspill.live.ports import Description
    from overspill.redaction.redactor import Redactor

LABEL_BYTES: Final = 256


def command_label(command: str | Sequence[str], redactor: Redactor | None) -> dict[str, str]:
    """Return the label with the beginning of a command line, whose secrets are masked."""
    line = command if isinstance(command, str) else shlex.join(command)
    if redactor is not None:
        line = redactor.redact(line).text
    return {wire.COMMAND_LABEL: wire.fit(line, LABEL_BYTES)}


def redacted_label(masked: Mapping[str, int], told: Description) -> dict[str, str]:
    """Return the label that says which secrets were masked, if there were any and there is room for it."""
    if not masked:
        return {}
    label = {wire.REDACTED_LABEL: wire.fit(counts_text(masked), LABEL_BYTES)}
    return label if has_room({**told.labels, **label}, told) else {}


def has_room(labels: Mapping[str, str], told: Description) -> bool:
    """Return whether the service takes a capture with these labels."""
    texts = told.session, told.call_id, told.tool, told.status, told.content_type, *labels, *labels.values()
    size = sum(len(wire.fit(text).encode()) for text in texts)
    return len(labels) < wire.MAX_LABELS and size + wire.SHORT_VALUE <= wire.MAX_METADATA
