"""The ledger held against a service that nobody disturbs any more."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from overspill import wire
from overspill.errors import Absent, OverspillError

from tests.faults.traffic import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from overspill.transfer.client import Client

    from tests.chaos.ledger import Capture, Ledger

T = TypeVar("T")

AT_ONCE: Final = 16
SETTLE_SECONDS: Final = 150.0
"""Within which listings, totals and expiries are right: a rebuild, and the second one a minute later."""


async def settle(ledger: Ledger, clients: Sequence[Client], sessions: Sequence[str]) -> None:
    """Enter as wrong what the services do not hold as the ledger says. Content must be right at once."""
    for client in clients:
        await until(client.ready, SETTLE_SECONDS)
    found = await _held(ledger, clients)
    if not _is_same(found):  # a removal without an answer may have come to its end between two looks
        found = await _held(ledger, clients)
    if not _is_same(found):
        ledger.wrongs.append("replicas hold different captures")
    for client in clients:
        await _lists(ledger, client, sessions, found[0])


async def _held(ledger: Ledger, clients: Sequence[Client]) -> list[set[str]]:
    return [await _present(ledger, client) for client in clients]


def _is_same(found: Sequence[set[str]]) -> bool:
    return all(each == found[0] for each in found)


async def _present(ledger: Ledger, client: Client) -> set[str]:
    """The ids of the captures that can be read, each held against the ledger."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(capture: Capture) -> str:
        async with limit:
            return capture.id if await _is_present(ledger, client, capture) else ""

    return set(await asyncio.gather(*map(one, ledger.captures))) - {""}


async def _is_present(ledger: Ledger, client: Client, capture: Capture) -> bool:
    try:
        content = await _patiently(lambda: client.content(capture.id))
        entry = await _patiently(lambda: client.get(capture.id))
    except Absent as error:
        if capture.is_owed:
            ledger.wrong(f"lost ({type(error).__name__})", capture)
        return False
    except OverspillError as error:
        ledger.wrong(f"cannot be read ({error})", capture)
        return False
    if hashlib.sha256(content).digest() != capture.sha256:
        ledger.wrong("other bytes than were stored", capture)
    if capture.presences == {False}:
        ledger.wrong("back after its removal", capture)
    elif not capture.may_expire_at(entry.expires.timestamp()) and not await _gets_right_expiry(
        capture, client
    ):
        ledger.wrong(f"another expiry ({entry.expires}) than was set", capture)
    return True


async def _gets_right_expiry(capture: Capture, client: Client) -> bool:
    """A change that Redis lost with its writer is found by the rebuild that runs again."""

    async def is_right() -> bool:
        entry = await _patiently(lambda: client.get(capture.id))
        return capture.may_expire_at(entry.expires.timestamp())

    try:
        await until(is_right, SETTLE_SECONDS)
    except TimeoutError:
        return False
    return True


async def _patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer; asked for again where there was none yet: looks for what is gone are limited in rate."""
    deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while True:
        try:
            return await ask()
        except Absent:
            raise
        except OverspillError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(getattr(error, "retry_after", None) or 1)


async def _look_again(ledger: Ledger, client: Client, present: set[str]) -> None:
    """Correct what is present by the requests without an answer that have come to their end since."""
    for capture in ledger.captures:
        if len(capture.presences) > 1:
            is_there = await _is_present(ledger, client, capture)
            (present.add if is_there else present.discard)(capture.id)
    await asyncio.sleep(1)


async def _lists(ledger: Ledger, client: Client, sessions: Sequence[str], present: set[str]) -> None:
    """The listing, the totals and the look-ups by call id tell of just the captures that are there."""
    listed: list[str] = []

    async def is_right() -> bool:
        listed[:] = [each.id for session in sessions async for each in client.iterate(session=session)]
        usage = await client.usage()
        if sorted(listed) == sorted(present) and usage.captures == len(present):
            return True
        await _look_again(ledger, client, present)
        return False

    try:
        await until(is_right, SETTLE_SECONDS)
    except TimeoutError:
        missing, strange = sorted(present - set(listed)), sorted(set(listed) - present)
        counted = (await client.usage()).captures
        ledger.wrongs.append(
            f"of {len(present)} captures the listing misses {len(missing)} ({missing[:3]}), "
            f"it has {len(strange)} that are gone ({strange[:3]}), and usage counts {counted}"
        )
        for capture in ledger.captures:
            if capture.id in (*missing, *strange):
                ledger.wrong("listed wrongly", capture)
        return
    for capture in ledger.owed:
        found = await _patiently(partial(client.get, wire.CALL_PREFIX + capture.call_id, session=""))
        if found.id != capture.id:
            ledger.wrong(f"its call id leads to {found.id}", capture)
