"""Agents that store, read, change and remove captures while faults strike, and enter it in the ledger."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.errors import Absent, CaptureDamaged, OverspillError
from overspill.transfer.client import Client

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tests.chaos.ledger import Capture, Ledger

TIMEOUT: Final = 6.0
"""Seconds that an agent waits for one answer."""
PAUSE: Final = 0.05
PAUSE_AFTER_FAILURE: Final = 0.5
"""Seconds between two requests, at most."""
RANGE: Final = 4096
DAY: Final = 24 * 3600


class Agent:
    """One session: it alone changes its captures, so it knows their order; it reads everybody's."""

    def __init__(self, ledger: Ledger, clients: Sequence[Client], name: str, seed: int) -> None:
        self._ledger, self._clients, self.session = ledger, clients, name
        self._chance = random.Random(f"{seed} {name}")
        self._own: list[Capture] = []
        self._failed = self._is_stopping = False

    def stop(self) -> None:
        """End after the request that is under way, whose answer counts."""
        self._is_stopping = True

    async def run(self) -> None:
        """Do one thing after another until `stop`."""
        steps: list[Callable[[], Awaitable[None]]] = [
            self._store_new,
            self._store_again,
            self._read,
            self._remove,
            self._change_expiry,
        ]
        while not self._is_stopping:
            (step,) = self._chance.choices(steps, (6, 1, 6, 0.5, 0.5))
            self._failed = False
            await step()
            await asyncio.sleep(self._chance.random() * (PAUSE_AFTER_FAILURE if self._failed else PAUSE))

    def _name(self, call_id: str, sha256: bytes) -> str:
        return wire.capture_id(self.session, call_id, sha256)

    def _client(self, capture: Capture, what: str) -> Client:
        """The client of any replica, for a request that the capture's history tells of."""
        number = self._chance.randrange(len(self._clients))
        capture.note(f"{what} at replica {number + 1}, asked")
        return self._clients[number]

    async def _store_new(self) -> None:
        made = self._ledger.make(self._chance, self.session, self._name)
        self._own.append(made)
        await self._store(made)

    async def _store_again(self) -> None:
        if self._own:
            await self._store(self._chance.choice(self._own))

    async def _store(self, capture: Capture) -> None:
        capture.asked(is_there=True)
        try:
            client = self._client(capture, "put")
            entry = await client.put(capture.content, call_id=capture.call_id, session=self.session)
        except OverspillError as error:
            self._count(capture, "put", error)
            capture.unanswered(is_there=True)
            return
        self._count(capture, "put", expires=entry.expires)
        capture.answered(is_there=True)
        capture.renewed(entry.expires.timestamp())
        if entry.sha256 != capture.sha256.hex():
            self._ledger.wrong("stored with another digest", capture)

    async def _remove(self) -> None:
        if not self._own:
            return
        capture = self._chance.choice(self._own)
        may_be, version = capture.presences, capture.version
        capture.asked(is_there=False)
        try:
            await self._client(capture, "delete").delete(capture.id)
        except Absent as error:
            self._absent(capture, "delete", may_be, version + 1, error)
        except OverspillError as error:
            self._count(capture, "delete", error)
            capture.unanswered(is_there=False)
        else:
            self._count(capture, "delete")
            capture.answered(is_there=False)
            capture.expiries = set()

    async def _change_expiry(self) -> None:
        if not self._own:
            return
        capture = self._chance.choice(self._own)
        ttl = self._chance.randrange(2 * DAY, 9 * DAY)
        may_be, version = capture.presences, capture.version
        asked_at = time.time()
        try:
            entry = await self._client(capture, f"patch to {ttl}").set_ttl(capture.id, ttl)
        except Absent as error:
            self._absent(capture, "patch", may_be, version, error)
        except OverspillError as error:
            self._count(capture, "patch", error)
            capture.lingering_expiries.append(asked_at + ttl)
        else:
            self._count(capture, "patch", expires=entry.expires)
            capture.expiries = {entry.expires.timestamp()}

    async def _read(self) -> None:
        if not self._ledger.captures:
            return
        capture = self._chance.choice(self._ledger.captures)
        may_be, version = capture.presences, capture.version
        try:
            await self._chance.choice((self._read_whole, self._read_range))(capture)
        except Absent as error:
            self._absent(capture, "get", may_be, version, error)
        except CaptureDamaged as error:
            self._count(capture, "get", error)
            self._ledger.wrong(f"called damaged ({error})", capture)
        except OverspillError as error:
            self._count(capture, "get", error)
        else:
            self._count(capture, "get")
            if may_be == {False} and capture.version == version:
                self._ledger.wrong("read after its removal", capture)

    async def _read_whole(self, capture: Capture) -> None:
        content = await self._client(capture, "get").content(capture.id)
        if hashlib.sha256(content).digest() != capture.sha256:
            self._ledger.wrong("read with wrong bytes", capture)

    async def _read_range(self, capture: Capture) -> None:
        if not capture.size:
            await self._read_whole(capture)
            return
        start = self._chance.randrange(capture.size)
        client = self._client(capture, "get")
        content = await client.content(capture.id, wire.ByteRange(start, start + RANGE - 1))
        if content != capture.content[start : start + RANGE]:
            self._ledger.wrong(f"read with wrong bytes from {start} on", capture)

    def _absent(self, capture: Capture, what: str, may_be: set[bool], version: int, error: Absent) -> None:
        """404 or 410: wrong where the capture was owed all the while."""
        self._count(capture, what, error)
        self._failed = False
        if may_be == {True} and capture.version == version:
            self._ledger.wrong(f"acknowledged, and then {type(error).__name__}", capture)

    def _count(
        self, capture: Capture, what: str, error: OverspillError | None = None, expires: object = ""
    ) -> None:
        self._failed = error is not None
        answer = type(error).__name__ if error else "answered"
        capture.note(f"{what} {answer} {expires}".rstrip())
        self._ledger.answers[f"{what} {answer}"] += 1
