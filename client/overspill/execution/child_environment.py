"""The environment of programs that are run for an agent: without what opens the captures of its fleet."""

from __future__ import annotations

import os
from typing import Final

SECRETS: Final = frozenset(
    {"OVERSPILL_KEY", "OVERSPILL_NOTICE_KEY", "OVERSPILL_KEY_SECRET", "OVERSPILL_PREVIOUS_KEY_SECRET"}
)


def child_environment() -> dict[str, str]:
    """Return this process's environment without Overspill's keys: a tool's output could show them."""
    return {name: value for name, value in os.environ.items() if name not in SECRETS}
