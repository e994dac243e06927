"""Notes whether several tenants use one process at the same time.

Threads of all kinds share the cores. So all kinds use this answer, whatever the tenants ask for.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

TOGETHER_SECONDS: Final = 1.0
"""How long several tenants count as asking, after a request of one followed a request of another."""


class TenantMix:
    """The tenants that use one process. Belongs to one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._latest = ""
        """The tenant that asked last. Empty before the first one."""
        self._changed_at = -math.inf
        """When the last request came whose tenant was not that of the request before it."""

    def note(self, tenant: str) -> None:
        """Remember that a tenant asks, or has work done. The process's own work has no name."""
        if not tenant or tenant == self._latest:
            return
        if self._latest:
            self._changed_at = self._clock()
        self._latest = tenant

    @property
    def is_mixed(self) -> bool:
        """Whether several tenants ask at once."""
        return self._clock() - self._changed_at < TOGETHER_SECONDS
