"""Copy all objects from one store to another of any kind, and prove that the copies are equal.

Both stores list their keys in the same order, so one pass finds what the target lacks. Every object is read
back from the target and compared, also one that was there before. So an interrupted copy can be continued.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from overspill_service.errors import CaptureDamaged, StoreUnavailable
from overspill_service.objects import StoredObject  # noqa: TC001  (a field's type)
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format.object_keys import is_kept_elsewhere

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill_service.objects import ObjectStore

CONCURRENCY: Final = 4
"""Objects that are copied at the same time. Each is in memory as a whole: usually 17 MiB."""
PAGE: Final = 1000


class CopyResult(Struct, frozen=True, kw_only=True):
    """The result of a copy, in objects."""

    copied: int
    present: int
    """Objects that the target had before, with the same bytes."""
    extra: int
    """Objects of the target that the source does not have, and that were not deleted."""
    deleted: int
    size: int
    """Bytes of all objects of the source."""


class Pair(NamedTuple):
    """One key, and what each store lists under it."""

    source: StoredObject | None
    target: StoredObject | None


async def copy_objects(source: ObjectStore, target: ObjectStore, *, deletes: bool) -> CopyResult:
    """Copy what the target lacks. With `deletes` also delete what the source does not have.

    Raises `StoreUnavailable` if the target returns other bytes than it was given, or none.
    """
    copied = present = size = 0
    extra: list[str] = []
    async for page in _pages(_pairs(source, target)):
        extra += [pair.target.key for pair in page if pair.source is None and pair.target is not None]
        wanted = [pair for pair in page if pair.source is not None]
        are_new = await fan_out(partial(_copy, source, target), wanted, concurrency=CONCURRENCY)
        copied, present = copied + sum(are_new), present + len(wanted) - sum(are_new)
        size += sum(pair.source.size for pair in wanted if pair.source is not None)
    if deletes:
        await target.delete(extra)
    deleted = len(extra) if deletes else 0
    return CopyResult(copied=copied, present=present, extra=len(extra) - deleted, deleted=deleted, size=size)


async def _copy(source: ObjectStore, target: ObjectStore, pair: Pair) -> bool:
    """Copy one object if the target lacks it, and compare it. Return whether the target lacked it."""
    stored = pair.source
    assert stored is not None
    try:
        data = await source.read(stored.key, 0, stored.size)
    except KeyError:  # removed meanwhile
        return False
    if pair.target is None:
        await target.put(stored.key, [data])
    elif pair.target.size != stored.size:
        raise _mismatch(stored.key)
    try:
        copied_data = await target.read(stored.key, 0, stored.size)
    except (KeyError, CaptureDamaged) as error:
        raise _mismatch(stored.key) from error
    if copied_data != data:
        raise _mismatch(stored.key)
    return pair.target is None


def _mismatch(key: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"the target does not hold the bytes of the source under {key}; delete it there, and copy again"
    )


async def _pairs(source: ObjectStore, target: ObjectStore) -> AsyncIterator[Pair]:
    """Yield every key of either store, in order."""
    ahead, behind = _own_objects(source), _own_objects(target)
    one, other = await anext(ahead, None), await anext(behind, None)
    while one is not None or other is not None:
        if one is None or (other is not None and other.key < one.key):
            yield Pair(None, other)
            other = await anext(behind, None)
        elif other is None or one.key < other.key:
            yield Pair(one, None)
            one = await anext(ahead, None)
        else:
            yield Pair(one, other)
            one, other = await anext(ahead, None), await anext(behind, None)


async def _own_objects(store: ObjectStore) -> AsyncIterator[StoredObject]:
    async for stored in store.list(""):
        if is_kept_elsewhere(stored.key):
            yield stored


async def _pages(pairs: AsyncIterator[Pair]) -> AsyncIterator[list[Pair]]:
    page: list[Pair] = []
    async for pair in pairs:
        page.append(pair)
        if len(page) == PAGE:
            yield page
            page = []
    yield page
