"""The steps of a store's self-examination that every adapter shares: write, read, list and delete a probe."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from overspill_service.errors import ServiceError, StoreUnavailable
from overspill_service.objects import CheckResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill_service.objects import ObjectStore

PROBES: Final = ".probe/"
"""Where probes live: outside of every version's keys, so that no listing of captures meets one."""
CONTENT: Final = b"overspill"


def probe_key() -> str:
    return f"{PROBES}probe-{secrets.token_hex(8)}"


async def outcome(name: str, step: Callable[[], Awaitable[str]]) -> CheckResult:
    """The result of one step, which returns a detail or raises what is wrong."""
    try:
        return CheckResult(name, ok=True, detail=await step())
    except ServiceError as error:
        return CheckResult(name, ok=False, detail=str(error))


async def check_operations(store: ObjectStore) -> list[CheckResult]:
    """Put, read, list and delete a small object; without a put the rest is not tried."""
    key = probe_key()
    results = [await outcome("put", lambda: _put(store, key))]
    if not results[0].ok:
        return results
    results.append(await outcome("read", lambda: _read(store, key)))
    results.append(await outcome("list", lambda: _list(store, key)))
    results.append(await outcome("delete", lambda: _delete(store, key)))
    return results


async def _put(store: ObjectStore, key: str) -> str:
    await store.put(key, [CONTENT])
    return ""


async def _read(store: ObjectStore, key: str) -> str:
    try:
        found = await store.read(key, 4, 5)
    except KeyError:
        raise StoreUnavailable(
            "what was just written is not there yet: the store is not consistent"
        ) from None
    if found != CONTENT[4:9]:
        raise StoreUnavailable("a range read gives other bytes than were written")
    return ""


async def _list(store: ObjectStore, key: str) -> str:
    if key not in [stored.key async for stored in store.list(PROBES)]:
        raise StoreUnavailable("a listing does not show what was just written")
    return ""


async def _delete(store: ObjectStore, key: str) -> str:
    await store.delete([key])
    try:
        await store.read(key, 0, 1)
    except KeyError:
        return ""
    raise StoreUnavailable("what was deleted can still be read")
