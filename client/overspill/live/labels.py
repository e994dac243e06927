"""The labels of a live capture for its command and its masked secrets, and the values for its end."""

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
_EXIT_CODES: Final = range(-(2**31), 2**32)
"""The exit codes that `wire.Completion` takes."""


def command_label(command: str | Sequence[str], redactor: Redactor | None) -> dict[str, str]:
    """Return the label with the beginning of a command line, whose secrets are masked."""
    line = command if isinstance(command, str) else shlex.join(command)
    if redactor is not None:
        line = redactor.redact(line).text
    return {wire.COMMAND_LABEL: wire.fit(line, LABEL_BYTES)}


def redacted_label(masked: Mapping[str, int], description: Description) -> dict[str, str]:
    """Return the label that says which secrets were masked, if there were any and there is room for it."""
    if not masked:
        return {}
    label = {wire.REDACTED_LABEL: wire.fit(counts_text(masked), LABEL_BYTES)}
    return label if has_room({**description.labels, **label}, description) else {}


def labels_at_end(
    description: Description, masked: Mapping[str, int], exit_code: int | None
) -> dict[str, str]:
    """Return all labels of a stream that has ended."""
    coded = {} if exit_code is None else {wire.EXIT_CODE_LABEL: str(exit_code)}
    return {**description.labels, **redacted_label(masked, description), **coded}


def has_room(labels: Mapping[str, str], description: Description) -> bool:
    """Return whether the service takes a capture with these labels."""
    texts = (
        description.session,
        description.call_id,
        description.tool,
        description.status,
        description.content_type,
        *labels,
        *labels.values(),
    )
    size = sum(len(wire.fit(text).encode()) for text in texts)
    return len(labels) < wire.MAX_LABELS and size + wire.SHORT_VALUE <= wire.MAX_METADATA


def check_ending(status: object, exit_code: object) -> None:
    """Check the values for a live capture's end. Raises `TypeError` and `ValueError`."""
    if status is not None and not isinstance(status, str):
        raise TypeError(f"status must be text (str), not {type(status).__name__}")
    if exit_code is None:
        return
    if isinstance(exit_code, bool) or not isinstance(exit_code, int):
        raise TypeError(f"exit_code must be a whole number, not {exit_code!r}")
    if exit_code not in _EXIT_CODES:
        raise ValueError(f"exit_code must be that of a process, in 32 bits, not {exit_code}")
