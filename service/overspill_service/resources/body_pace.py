"""How fast a tenant's uploads come while other tenants ask: the event loop that receives them serves all.

Receiving is work of the loop's own thread, and what has come is compressed and stored on the same cores and
disk. So a tenant with a fast network would take as much of them as there is.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.resources.tenant_mix import TenantMix

RATE: Final = 64 * 2**20
"""Bytes a second of one tenant's uploads, while others ask. Of all of them, by each process."""
BURST_SECONDS: Final = 0.02
"""How much of that may come at once, so a short upload never waits."""
MAX_TENANTS: Final = 1000


class BodyPace:
    """The pace of one process's uploads. Belongs to one event loop."""

    def __init__(self, mix: TenantMix, clock: Callable[[], float] = time.monotonic) -> None:
        self._mix, self._clock = mix, clock
        self._due: Latest[str, float] = Latest(MAX_TENANTS)
        """When the bytes that have come of a tenant would have come at the rate."""

    def pause(self, tenant: str, size: int) -> float:
        """Count bytes of an upload that have come. Return the seconds to wait before more are received."""
        if not self._mix.is_mixed:
            return 0.0
        now = self._clock()
        due = max(self._due.get(tenant, -math.inf), now - BURST_SECONDS) + size / RATE
        self._due[tenant] = due
        return max(0.0, due - now)
