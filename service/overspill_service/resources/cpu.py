"""Threads for work that would block the event loop: compression, decompression, hashing, small reads.

The libraries release the GIL during this work, so as many threads as cores keep every core busy.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, TypeVar

from overspill_service.resources.fair_threads import FairThreads, Tenant, TenantThreads

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.resources.tenant_mix import TenantMix

INLINE_FRAMES: Final = 256
"""Frames whose metadata is processed in less than a millisecond."""

P = ParamSpec("P")
T = TypeVar("T")


class Workers(Protocol):
    """Threads as one request uses them: those of the process, or a tenant's share of them."""

    @property
    def threads(self) -> int:
        """The number of threads that may work for the request at once."""

    def start(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Begin `work` as soon as a thread is free."""

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `work`, done in a thread. A cancelled caller does not wait for it."""


class Inline:
    """No threads: work that takes well under a millisecond runs at once, on the event loop."""

    threads = 1

    def start(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(work(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  (it is raised where the result is awaited)
            done.set_exception(error)
        return done

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return work(*args, **kwargs)


INLINE: Final = Inline()


class CpuThreads(TenantThreads):
    """The threads for all but scans and uploads. Used without `of`, they work for the process itself."""

    def __init__(self, threads: int | None = None, mix: TenantMix | None = None) -> None:
        super().__init__(FairThreads("cpu", mix=mix, threads=threads, gives_way=False), Tenant(""))

    def of(self, tenant: str) -> Workers:
        """Return the threads as one tenant uses them. It does not wait for the reads of another tenant."""
        return self._threads.of(tenant)

    async def run_for_frames(self, count: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of work on the metadata of `count` frames.

        Many frames are processed in a thread.
        """
        return await self.run(work, *args, **kwargs) if count > INLINE_FRAMES else work(*args, **kwargs)

    def close(self) -> None:
        self._threads.close()
