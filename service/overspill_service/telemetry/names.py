"""Bounds on label values. A client may send any tool name, and a fleet may have any number of tenants."""

from __future__ import annotations

from typing import Final

from overspill_service.catalog.statistics import OTHER

MAX_TENANTS: Final = 1000
RESERVED_TOOLS: Final = 4
"""Tool names that every tenant may have, regardless of others."""
MAX_TOOLS: Final = 100
"""Tool names of one tenant."""
SHARED_TOOLS: Final = 4000
"""Tool names of all tenants beyond their reserved ones."""


class BoundedNames:
    """Keeps the first `limit` names, and replaces all others by `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def __call__(self, name: str) -> str:
        if name not in self._known:
            if len(self._known) >= self._limit:
                return OTHER
            self._known.add(name)
        return name


class ToolNames:
    """Keeps each tenant's first tool names. No tenant's names take the reserved room of another one."""

    def __init__(
        self, reserved: int = RESERVED_TOOLS, limit: int = MAX_TOOLS, shared: int = SHARED_TOOLS
    ) -> None:
        self._reserved, self._limit, self._shared = reserved, limit, shared
        self._known: dict[str, set[str]] = {}

    def __call__(self, tenant: str, tool: str) -> str:
        names = self._known.setdefault(tenant, set())
        if tool not in names:
            if len(names) >= self._limit or (len(names) >= self._reserved and self._shared <= 0):
                return OTHER
            self._shared -= len(names) >= self._reserved
            names.add(tool)
        return tool
