"""Whether Redis still holds what a rebuild put there.

Redis loses acknowledged writes when it restarts, when a replica takes over that lagged behind, and when two
masters served at once for a while. A mark in Redis names the servers that a rebuild has completed:

- After a restart or a promotion the run ids or replication ids differ from those in the mark.
- After a split, the ids of the server that survived are still those of the mark. What was written to the
  loser is missing all the same, and only its writers know. So every process remembers the servers that it
  last spoke with. Where others answer, and it has written since the last rebuild began, it begins a new
  epoch, which makes the mark void.
- A writer may have died by then. So a rebuild runs once more a minute after the first one.

Eviction takes single keys, so that totals and indexes no longer fit the entries. It begins an epoch of its
own kind, or takes the epoch itself. Either way the next rebuild starts from an empty catalog.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill_service.catalog.redis import key_names, scripts

if TYPE_CHECKING:
    from overspill_service.catalog.redis.link import Link

SECOND_PASS_SECONDS: Final = 60.0
"""From the beginning of a rebuild to the one that runs again."""
MARGIN_SECONDS: Final = 1.0
"""Seconds of doubt when the age of a write is compared with that of a rebuild."""
PASSES: Final = 2
EVICTED: Final = "evicted-"
"""How an epoch begins in which single keys may be missing."""


class Mark(NamedTuple):
    """What a rebuild has completed: four words in Redis."""

    servers: str
    epoch: str
    """A random word, so that one that was lost never comes back by counting."""
    began: int
    """Milliseconds of Redis' own clock."""
    passes: int

    @classmethod
    def parse(cls, value: bytes | None) -> Mark | None:
        words = (value or b"").decode(errors="replace").split()
        match words:
            case servers, epoch, began, passes if began.isdecimal() and passes.isdecimal():
                return cls(servers, epoch, int(began), int(passes))
        return None

    def __str__(self) -> str:
        return " ".join(map(str, self))


class Observation(NamedTuple):
    """What Redis says at one moment."""

    servers: str
    epoch: str
    """Empty where there is none, or Redis has lost it."""
    mark: Mark | None

    @property
    def is_complete(self) -> bool:
        return self.mark is not None and self.mark[:2] == self[:2]

    @property
    def was_evicted(self) -> bool:
        """Whether single keys may be missing, the epoch's own among them."""
        return self.epoch.startswith(EVICTED) or (self.mark is not None and not self.epoch)


class Completeness:
    """One process's view. `state` names the complete state that it saw last; it is empty while incomplete."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._servers: str | None = None
        self._written_at = -math.inf
        self._replacement_lock = asyncio.Lock()
        self.state = ""

    def note_write(self) -> None:
        """Remember that Redis has just acknowledged a write of this process."""
        self._written_at = time.monotonic()

    async def is_complete(self) -> bool:
        return (await self._observe()).is_complete

    async def is_rebuild_due(self) -> bool:
        """True while incomplete, and once more a minute after the rebuild began that made it complete."""
        observed = await self._observe()
        if observed.mark is None or not observed.is_complete:
            return True
        return observed.mark.passes < PASSES and await self._age(observed.mark.began) >= SECOND_PASS_SECONDS

    async def is_settled(self) -> bool:
        """Whether the rebuild that runs again has ended too: it finds what writers lost that died."""
        observed = await self._observe()
        return observed.mark is not None and observed.is_complete and observed.mark.passes >= PASSES

    async def begin(self) -> str:
        """Note that a rebuild begins now; return what `finish` takes."""
        observed = await self._observe()
        if observed.was_evicted:
            await self._link.forget(key_names.OF_TENANTS)
        if observed.was_evicted or not observed.epoch:
            await self._link.call("SET", key_names.EPOCH, _new_epoch())
            observed = await self._observe()
        mark = Mark(observed.servers, observed.epoch, await self._now(), 1)
        await self._link.call("SET", key_names.REBUILD, str(mark))
        return str(mark)

    async def finish(self, began: str) -> None:
        """Mark what was complete when the rebuild began: it counts only if that is what is there now."""
        mark, stored = (
            Mark.parse(began.encode()),
            Mark.parse(await self._link.call("GET", key_names.COMPLETE)),
        )
        if mark is None:
            raise ValueError(f"{began!r} does not name the beginning of a rebuild")
        if stored is not None and stored[:2] == mark[:2]:
            mark = mark._replace(passes=PASSES)
        await self._link.call("SET", key_names.COMPLETE, str(mark))

    async def doubt(self, kind: str = "") -> None:
        """Make the mark void. `kind` is `EVICTED` where single keys may have been lost."""
        self.state = ""
        await self._link.step(scripts.NEW_EPOCH, [key_names.EPOCH], _new_epoch(), EVICTED, kind)

    async def _observe(self) -> Observation:
        servers, epoch, mark = await asyncio.gather(
            self._identity(),
            self._link.call("GET", key_names.EPOCH),
            self._link.call("GET", key_names.COMPLETE),
        )
        if self._servers not in (None, servers):
            await self._handle_replacement(servers)
            return await self._observe()
        self._servers = servers
        observed = Observation(servers, (epoch or b"").decode(errors="replace"), Mark.parse(mark))
        self.state = f"{servers} {observed.epoch}" if observed.is_complete else ""
        return observed

    async def _handle_replacement(self, servers: str) -> None:
        """Begin a new epoch where this process wrote to servers that others have replaced since."""
        async with self._replacement_lock:
            if self._servers != servers and await self._may_have_lost(servers):
                await self.doubt()
            self._servers = servers

    async def _may_have_lost(self, servers: str) -> bool:
        """Whether the last write may be missing: it is younger than the last rebuild on these servers."""
        if self._written_at == -math.inf:
            return False
        since_written = time.monotonic() - self._written_at
        rebuild = Mark.parse(await self._link.call("GET", key_names.REBUILD))
        if rebuild is None or rebuild.servers != servers:
            return True
        return since_written <= await self._age(rebuild.began) + MARGIN_SECONDS

    async def _identity(self) -> str:
        """A digest of the server processes that hold the data, and of the histories that they continue."""
        server, replication = await asyncio.gather(self._link.info("server"), self._link.info("replication"))
        names = _sorted(server, "run_id") + _sorted(replication, "master_replid")
        return hashlib.sha256(" ".join(names).encode()).hexdigest()[:32]

    async def _age(self, began: int) -> float:
        return (await self._now() - began) / 1000

    async def _now(self) -> int:
        """Milliseconds by Redis' clock."""
        seconds, microseconds = await self._link.step(scripts.NOW, [key_names.REBUILD])
        return int(seconds) * 1000 + int(microseconds) // 1000


def _new_epoch() -> str:
    return secrets.token_hex(8)


def _sorted(servers: list[dict[str, Any]], fact: str) -> list[str]:
    return sorted(str(facts.get(fact, "")) for facts in servers)
