"""Makes the label with the command line that a command's live capture gets before it runs. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from overspill import wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.redaction.redactor import Redactor

LABEL_BYTES: Final = 256


def command_label(command: str | Sequence[str], redactor: Redactor | None) -> dict[str, str]:
    """Return the label with the beginning of a command line, whose secrets are masked."""
    line = command if isinstance(command, str) else shlex.join(command)
    if redactor is not None:
        line = redactor.redact(line).text
    return {wire.COMMAND_LABEL: wire.fit(line, LABEL_BYTES)}
