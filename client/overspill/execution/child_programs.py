"""Programs that are run as children: the environment that they get, and the exit codes that a shell gives."""

from __future__ import annotations

import os
from typing import Final

SECRETS: Final = frozenset(
    {"OVERSPILL_KEY", "OVERSPILL_NOTICE_KEY", "OVERSPILL_KEY_SECRET", "OVERSPILL_PREVIOUS_KEY_SECRET"}
)
"""Variables that open the captures of the agent's fleet."""
_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126
_SIGNAL_BASE: Final = 128


class ProgramNotStarted(Exception):
    """The program could not be started. `code` is the exit code that a shell would give."""

    def __init__(self, program: str, error: OSError) -> None:
        super().__init__(f"{program}: {error.strerror or error}")
        self.code: int = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE


def child_environment() -> dict[str, str]:
    """Return this process's environment without Overspill's keys: a tool's output could show them."""
    return {name: value for name, value in os.environ.items() if name not in SECRETS}


def shell_exit_code(code: int) -> int:
    """Return a shell's exit code for a child's. It is 128 + n after signal n, for which Python gives -n."""
    return code if code >= 0 else _SIGNAL_BASE - code
