"""Admits requests to the event loop, so that a tenant that sends many does not hold up others.

    alone      while one tenant sends requests, each begins at once
    mixed      while several do, a tenant has at most `FEW` new ones; its other requests wait
    new        a request is new for a moment, even if it ends sooner: so a flood of small ones leaves time
    in turn    a tenant's only client, which asks over one connection, request by request, never waits
    running    a request that has not ended is new for longer: so uploads that wait for a disk leave time too
    strained   while the loop is busy or late, requests are new for longer still, so fewer begin

So a request that comes during another tenant's flood finds few requests before it at each of its steps.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from overspill_service.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import Callable

FEW: Final = 2
"""The most new requests of one tenant. So it may begin 500 short ones a second, and 166 of any length."""
NEW_SECONDS: Final = 0.004
"""Seconds for which a request that has ended is new."""
RUNNING_NEW_SECONDS: Final = 0.012
"""Seconds for which a request that has not ended is new."""
STRAINED_TIMES: Final = 4
"""The factor by which requests are new for longer while the loop is strained, so a quarter of them begin."""
BUSY: Final = 0.6
"""The loop is strained if its thread takes this part of the time: each step waits for others' steps then."""
LATE_SECONDS: Final = 0.001
"""It is strained too if its ticks are this late on average. On an idle machine they are a tenth as late."""
SMOOTHING: Final = 0.1
"""The weight of each tick in the averages of how busy the loop is, and how late."""
MIXED_SECONDS: Final = 0.1
"""How long requests count as mixed once one tenant's has followed another's, or came while that waits."""
TICK_SECONDS: Final = 0.001
QUEUE_SECONDS: Final = 5.0
"""How long a request waits before it is refused."""
_BUSY: Final = "this process is busy, and many of the tenant's requests wait already"


class Admission:
    """The admission of one process's requests. Belongs to one event loop."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or asyncio.get_running_loop().time
        self._last = ""
        """The tenant of the last request. Empty before the first one."""
        self._mixed_until = 0.0
        self._new: dict[str, dict[Admitted, None]] = {}
        """New requests by tenant, the oldest first."""
        self._waiting: dict[str, deque[tuple[object, asyncio.Future[Admitted]]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._strain = Strain()

    def try_admit(self, tenant: str, source: object = None) -> Admitted | None:
        """Admit a request of the tenant, whose `end` must be called. Return None if it has to wait.

        `source` is the connection that it came over; None is unknown.
        """
        now = self._clock()
        if self._last not in ("", tenant) or self._waiting.keys() - {tenant}:
            self._mixed_until = now + MIXED_SECONDS
        self._last = tenant
        if now < self._mixed_until and (tenant in self._waiting or not self._may_begin(tenant, source, now)):
            return None
        return self._begun(tenant, source, now)

    def _may_begin(self, tenant: str, source: object, now: float) -> bool:
        return self._room(tenant, now) > 0 or all(each.is_before(source) for each in self._new[tenant])

    async def wait(self, tenant: str, source: object = None) -> Admitted:
        """Wait until a request of the tenant is admitted. Raises `Overloaded`."""
        admitted: asyncio.Future[Admitted] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append((source, admitted))
        self._watch()
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                return await admitted
        except (TimeoutError, asyncio.CancelledError) as error:
            if admitted.done() and not admitted.cancelled():  # it came at the same moment
                admitted.result().end()
            if isinstance(error, TimeoutError):
                raise Overloaded(_BUSY, 1) from error
            raise

    def end(self, admitted: Admitted) -> None:
        admitted.has_ended = True
        now = self._clock()
        left = admitted.since + NEW_SECONDS * self._strain.times - now
        if left > 0 and now < self._mixed_until:
            asyncio.get_running_loop().call_later(left, self._forget, admitted)
        else:
            self._forget(admitted)

    def _forget(self, admitted: Admitted) -> None:
        """Let another request begin instead of one that has ended."""
        new = self._new.get(admitted.tenant)
        if new is None or admitted not in new:  # it is new no more
            return
        del new[admitted]
        if admitted.tenant in self._waiting:
            self._wake(admitted.tenant, self._clock())
        elif not new:
            del self._new[admitted.tenant]

    def _begun(self, tenant: str, source: object, now: float) -> Admitted:
        admitted = Admitted(self, tenant, now, source)
        self._new.setdefault(tenant, {})[admitted] = None
        return admitted

    def _room(self, tenant: str, now: float) -> int:
        """Return how many requests of the tenant may begin."""
        new = self._new.get(tenant)
        if new is None:
            return FEW
        lifetime = RUNNING_NEW_SECONDS * self._strain.times
        while new and (oldest := next(iter(new))).since <= now - lifetime:
            del new[oldest]
        return FEW - len(new)

    def _watch(self) -> None:
        if self._timer is None and self._waiting:
            self._strain.begin_tick(self._clock())
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        """Let requests begin in the places of those that are no longer new."""
        self._timer = None
        now = self._clock()
        self._strain.end_tick(now)
        for tenant in list(self._waiting):
            self._wake(tenant, now)
        self._watch()

    def _wake(self, tenant: str, now: float) -> None:
        """Let the next requests of the tenant begin: as many as may be new, or all if it is alone."""
        queue = self._waiting[tenant]
        is_mixed = now < self._mixed_until
        while queue and (not is_mixed or self._room(tenant, now) > 0):
            source, admitted = queue.popleft()
            if not admitted.done():  # else its request was given up
                admitted.set_result(self._begun(tenant, source, now))
        if not queue:
            del self._waiting[tenant]


class Strain:
    """The load of the event loop: how busy and how late it is, on average over ticks of `TICK_SECONDS`."""

    def __init__(self, cpu: Callable[[], float] = time.thread_time) -> None:
        """`cpu`: the seconds of CPU time of the loop's thread."""
        self._cpu = cpu
        self._began = self._spent = 0.0
        self.busy = self.lateness = 0.0
        """The part of the time that the thread takes, and the seconds that ticks are late."""

    def begin_tick(self, now: float) -> None:
        self._began, self._spent = now, self._cpu()

    def end_tick(self, now: float) -> None:
        took = max(now - self._began, TICK_SECONDS)
        self.busy += SMOOTHING * (min(1.0, (self._cpu() - self._spent) / took) - self.busy)
        self.lateness += SMOOTHING * (took - TICK_SECONDS - self.lateness)

    @property
    def times(self) -> int:
        """The factor by which requests count as new for longer now."""
        return STRAINED_TIMES if self.busy >= BUSY or self.lateness >= LATE_SECONDS else 1


class Admitted:
    """One request that has begun."""

    __slots__ = ("_admission", "_source", "has_ended", "since", "tenant")

    def __init__(self, admission: Admission, tenant: str, since: float, source: object = None) -> None:
        self._admission, self.tenant, self.since, self._source = admission, tenant, since, source
        self.has_ended = False

    def is_before(self, source: object) -> bool:
        """Return whether it has ended before the next request over the same connection."""
        return self.has_ended and source is not None and self._source is source

    def end(self) -> None:
        """Note that the request has ended."""
        self._admission.end(self)
