"""Wrappers of the two ports that count and time every operation of a back end.

Each wrapper has the methods of its port and no others. The type checker compares the shapes where the
composition root uses a wrapper as the port.
"""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from overspill_service.catalog import Catalog
from overspill_service.objects import ObjectStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from overspill_service.objects import StoredObject
    from overspill_service.telemetry.metrics import Metrics

P = ParamSpec("P")
T = TypeVar("T")
Port = TypeVar("Port")


class _Metered(Generic[Port]):
    def __init__(self, inner: Port, backend: str, metrics: Metrics) -> None:
        """`backend` is the value of the metrics' label of that name."""
        self._inner, self._backend, self._metrics = inner, backend, metrics
        methods = vars(type(self)).items()
        metrics.expect_operations(backend, [name for name, method in methods if _is_counted(method)])

    def _count(self, name: str, result: str, seconds: float) -> None:
        self._metrics.operation(self._backend, name, result, seconds)


def _is_counted(method: object) -> bool:
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def _counted(
    method: Callable[Concatenate[Any, P], Awaitable[T]],
) -> Callable[Concatenate[_Metered[Any], P], Coroutine[Any, Any, T]]:
    """Return the port's method, counted and timed."""
    name = method.__name__

    async def counted(self: _Metered[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        start = time.perf_counter()
        result = "failed"
        try:
            answer: T = await getattr(self._inner, name)(*args, **kwargs)
            result = "done"
            return answer
        finally:
            self._count(name, result, time.perf_counter() - start)

    counted.__doc__ = method.__doc__
    return counted


class MeteredStore(_Metered[ObjectStore]):
    """An object store whose operations are counted."""

    put = _counted(ObjectStore.put)
    read = _counted(ObjectStore.read)
    copy = _counted(ObjectStore.copy)
    delete = _counted(ObjectStore.delete)
    make_room = _counted(ObjectStore.make_room)
    sweep_temporary = _counted(ObjectStore.sweep_temporary)
    keeps_versions = _counted(ObjectStore.keeps_versions)
    now = _counted(ObjectStore.now)
    ping = _counted(ObjectStore.ping)
    close = _counted(ObjectStore.close)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Count a listing as one operation.

        Its time is the time of the store, without the caller's time between two objects. A listing that the
        caller breaks off counts as done.
        """
        seconds, result = 0.0, "failed"
        listing = aiter(self._inner.list(prefix))
        try:
            while True:
                start = time.perf_counter()
                try:
                    stored = await anext(listing)
                except StopAsyncIteration:
                    break
                finally:
                    seconds += time.perf_counter() - start
                yield stored
            result = "done"
        except GeneratorExit:
            result = "done"
            raise
        finally:
            self._count("list", result, seconds)


class MeteredCatalog(_Metered[Catalog]):
    """A catalog whose operations are counted."""

    commit = _counted(Catalog.commit)
    get = _counted(Catalog.get)
    restore = _counted(Catalog.restore)
    find = _counted(Catalog.find)
    largest = _counted(Catalog.largest)
    amend = _counted(Catalog.amend)
    note_read = _counted(Catalog.note_read)
    remove = _counted(Catalog.remove)

    note_readers = _counted(Catalog.note_readers)
    readers = _counted(Catalog.readers)

    tenants = _counted(Catalog.tenants)
    forget_tenant = _counted(Catalog.forget_tenant)
    totals = _counted(Catalog.totals)
    recount = _counted(Catalog.recount)
    expired = _counted(Catalog.expired)

    reserve = _counted(Catalog.reserve)
    free = _counted(Catalog.free)

    lease = _counted(Catalog.lease)
    release = _counted(Catalog.release)
    is_leased = _counted(Catalog.is_leased)
    once = _counted(Catalog.once)
    tell = _counted(Catalog.tell)
    is_complete = _counted(Catalog.is_complete)
    is_rebuild_due = _counted(Catalog.is_rebuild_due)
    is_settled = _counted(Catalog.is_settled)
    begin_rebuild = _counted(Catalog.begin_rebuild)
    mark_complete = _counted(Catalog.mark_complete)
    generation = _counted(Catalog.generation)
    begin_generation = _counted(Catalog.begin_generation)
    doubt = _counted(Catalog.doubt)

    add_key = _counted(Catalog.add_key)
    find_key = _counted(Catalog.find_key)
    keys = _counted(Catalog.keys)
    revoke_key = _counted(Catalog.revoke_key)
    access_mode = _counted(Catalog.access_mode)
    set_access_mode = _counted(Catalog.set_access_mode)
    note_uses = _counted(Catalog.note_uses)
    uses = _counted(Catalog.uses)

    add_sums = _counted(Catalog.add_sums)
    sums = _counted(Catalog.sums)
    keep_rollup = _counted(Catalog.keep_rollup)
    rollup = _counted(Catalog.rollup)
    forget_rollups = _counted(Catalog.forget_rollups)

    note_backlog = _counted(Catalog.note_backlog)
    backlogs = _counted(Catalog.backlogs)

    open_live = _counted(Catalog.open_live)
    doubt_live = _counted(Catalog.doubt_live)
    append_live = _counted(Catalog.append_live)
    live = _counted(Catalog.live)
    live_totals = _counted(Catalog.live_totals)
    plan_cut = _counted(Catalog.plan_cut)
    end_live = _counted(Catalog.end_live)
    replace = _counted(Catalog.replace)
    forget_live = _counted(Catalog.forget_live)
    schedule = _counted(Catalog.schedule)
    due = _counted(Catalog.due)
    scheduled_after = _counted(Catalog.scheduled_after)
    scheduled_count = _counted(Catalog.scheduled_count)
    watch = _counted(Catalog.watch)
    unwatch = _counted(Catalog.unwatch)

    now = _counted(Catalog.now)
    ping = _counted(Catalog.ping)
    close = _counted(Catalog.close)

    def damaged(self) -> list[tuple[str, str]]:
        """Not counted: the answer is in this process's memory, no back end is asked."""
        return self._inner.damaged()
