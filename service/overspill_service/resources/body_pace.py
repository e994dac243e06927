"""Limits the pace of a tenant's uploads while other tenants ask: one event loop serves all of them.

Receiving is work of the loop's own thread, and received bytes are compressed and stored on the same cores and
disk. So a tenant with a fast network would take all of them.
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
        """For each tenant, the time at which its bytes would have come at the rate."""

    def pause(self, tenant: str, size: int) -> float:
        """Count bytes of an upload that have come. Return the seconds to wait before more are received."""
        if not self._mix.is_mixed:
            return 0.0
        now = self._clock()
        due = max(self._due.get(tenant, -math.inf), now - BURST_SECONDS) + size / RATE
        self._due[tenant] = due
        return max(0.0, due - now)
