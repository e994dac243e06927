"""Threads that tenants share fairly: a free one goes to the tenant that has the fewest running.

Of several such tenants the one that has used the least CPU time comes first. There is one more thread than a
tenant may use, so that the next tenant need not wait for work to end. While several tenants ask for anything,
each uses half of the threads, because a thread's work takes cores and the interpreter's lock from all others.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from overspill_service.errors import CpuTimeUsed
from overspill_service.resources.tenant_mix import TenantMix
from overspill_service.resources.threads import Pool, cpu_threads, give_way

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE: Final = 60.0
PAUSES: Final = 9
"""A tenant may hold the interpreter's lock for a tenth of the time: then others get it in between."""

LITTLE: Final = 0.01
"""The part of a limit on CPU time below which other replicas need not know."""

P = ParamSpec("P")
T = TypeVar("T")


class FairThreads:
    """The threads of one process for one kind of work. Belongs to one event loop."""

    def __init__(
        self,
        name: str,
        *,
        mix: TenantMix | None = None,
        note: Callable[[str, float, float], None] = lambda *_: None,
        clock: Callable[[], float] = time.monotonic,
        threads: int | None = None,
        gives_way: bool = True,
        halves: bool = True,
    ) -> None:
        """`note` gets the tenant of each batch, the seconds that it waited and its seconds of CPU time.

        `mix` says whether several tenants use the process. Without it, only tenants of these threads count.
        `gives_way`: other threads come first while cores are short. `halves`: tenants that ask at once
        use half of the threads each; of no use where threads wait for another machine.
        """
        self.share = threads or cpu_threads()
        """The most threads that one tenant uses at once, while no other one asks."""
        self._half = max(1, self.share // 2) if halves else self.share
        self._idle = self.share + 1
        self._pool = Pool(self._idle, name, give_way if gives_way else lambda: None)
        self._tenants: dict[str, Tenant] = {}
        self._busy: dict[Tenant, None] = {}
        """The tenants whose work runs or waits."""
        self._mix = mix or TenantMix(clock)
        self._note, self._clock = note, clock
        self._is_closed = False

    def of(self, name: str) -> TenantThreads:
        """Return the threads as one tenant uses them."""
        return TenantThreads(self, self._tenant(name))

    def _tenant(self, name: str) -> Tenant:
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = self._tenants[name] = Tenant(name)
        return tenant

    def start(self, tenant: Tenant, work: Callable[[], T], lock: asyncio.Lock | None = None) -> Batch:
        """Begin `work` as soon as the tenant may have a thread. Release `lock` some time after its end.

        Raises `RuntimeError` once the threads are closed.
        """
        if self._is_closed:
            raise RuntimeError("the threads are closed")
        if tenant.is_idle:
            lowest = min((each.used for each in self._busy), default=0.0)
            tenant.used = max(tenant.used, lowest)  # time without work earns nothing
            self._busy[tenant] = None
        batch = Batch(tenant, work, self._clock(), lock)
        self._mix.note(tenant.name)
        tenant.waiting.append(batch)
        self._begin_waiting()
        return batch

    def _begin_waiting(self) -> None:
        limit = self._half if self._mix.is_mixed else self.share
        while self._idle and (ready := [each for each in self._busy if each.may_begin(limit)]):
            batch = min(ready, key=lambda each: (each.running, each.used)).waiting.popleft()
            if batch.result.cancelled():
                self._settle(batch)
                continue
            self._idle -= 1
            batch.tenant.running += 1
            batch.waited = self._clock() - batch.since
            self._pool.start(batch.run, partial(self._end, batch))

    def _end(self, batch: Batch) -> None:
        self._idle += 1
        batch.tenant.running -= 1
        batch.tenant.charge(batch.cpu)
        self._note(batch.tenant.name, batch.waited, batch.cpu)
        self._settle(batch)
        self._begin_waiting()

    def _settle(self, batch: Batch) -> None:
        if batch.tenant.is_idle:
            self._busy.pop(batch.tenant, None)
        batch.settle()

    def close(self, *, waits: bool = True) -> None:
        """Begin nothing more, and cancel waiting work. With `waits`, return when running work has ended."""
        self._is_closed = True
        waiting = [batch for tenant in self._busy for batch in tenant.waiting]
        for batch in waiting:
            batch.result.cancel()
        self._pool.close(waits=waits)


class TenantThreads:
    """One tenant's use of the threads, in the shape of `Workers`."""

    def __init__(self, threads: FairThreads, tenant: Tenant) -> None:
        self._threads, self._tenant = threads, tenant
        self.threads, self.tenant = threads.share, tenant.name

    def start(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        return self._threads.start(self._tenant, lambda: work(*args, **kwargs)).result

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.start(work, *args, **kwargs)


class Tenant:
    """The running and waiting work of one tenant, and the CPU time that it has used."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[Batch] = deque()
        self.running = 0
        self.locking = asyncio.Lock()
        """Held while work of the tenant holds the interpreter's lock, and for a while after it."""
        self.used = 0.0
        """Seconds of CPU time, to compare tenants by."""
        self.spent = self.spent_elsewhere = 0.0
        """Seconds that count against the limit: used here, and by other replicas."""
        self._limit, self._at = 0, -math.inf
        """The limit, in seconds a minute, and when the seconds were counted down last."""
        self._has_worked = False
        """Whether it used CPU time since `counts` was asked last."""

    @property
    def is_idle(self) -> bool:
        return not (self.waiting or self.running)

    def may_begin(self, limit: int) -> bool:
        return bool(self.waiting) and self.running < limit

    def charge(self, seconds: float) -> None:
        self.used += seconds
        self.spent += seconds
        self._has_worked = True

    def require_cpu(self, limit: int, now: float) -> None:
        """Raise `CpuTimeUsed` if `limit` seconds a minute are spent; 0 is no limit."""
        self._limit = limit
        total = self._count_down(now)
        if limit and total >= limit:
            raise CpuTimeUsed(limit, 1 + int((total - limit) * MINUTE / limit))

    def counts(self, now: float) -> bool:
        """Return whether other replicas should know of its seconds, and it of theirs."""
        total, has_worked = self._count_down(now), self._has_worked
        self._has_worked = False
        return self._limit > 0 and (has_worked or total > LITTLE * self._limit)

    def _count_down(self, now: float) -> float:
        """Subtract the regained seconds, here and elsewhere in proportion.

        Return the seconds that are left.
        """
        total = self.spent + self.spent_elsewhere
        regained = (now - self._at) * self._limit / MINUTE if self._limit else math.inf
        left = max(0.0, 1 - regained / total) if total else 0.0
        self.spent, self.spent_elsewhere, self._at = self.spent * left, self.spent_elsewhere * left, now
        return total * left


class Batch:
    """Work that runs in one thread, and its result for the event loop."""

    def __init__(
        self, tenant: Tenant, work: Callable[[], Any], since: float, lock: asyncio.Lock | None
    ) -> None:
        self.tenant, self._work, self.since, self._lock = tenant, work, since, lock
        self.result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waited = self.cpu = 0.0
        self._value: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the work, in a thread, unless its caller has given it up."""
        if self.result.cancelled():
            return
        began = time.thread_time()
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001  (`settle` raises it where the result is awaited)
            self._error = error
        self.cpu = time.thread_time() - began

    def settle(self) -> None:
        """Hand on the result, unless its caller is gone."""
        if self._lock is not None:
            asyncio.get_running_loop().call_later(PAUSES * self.cpu, self._lock.release)
        if self.result.done():
            return
        if self._error is not None:
            self.result.set_exception(self._error)
        else:
            self.result.set_result(self._value)
