"""Detect whether Redis still holds what the last rebuild put there.

Redis loses acknowledged writes when it restarts, when a replica that lags takes over, and when two masters
have served at once. A mark in Redis names the servers for which a rebuild has ended:

- A restart or a promotion changes the run ids or replication ids, so they differ from the mark's.
- A split does not change the ids of the master that survives. What was written to the other master is lost,
  and only the processes that wrote it know. So every process remembers the servers that it last spoke with.
  If other servers answer, and the process has written since the last rebuild began, it begins a new epoch,
  which makes the mark void.
- Such a process may have died. So a rebuild runs a second time, a minute after the first.

Eviction deletes single keys, so totals and indexes no longer fit the entries. A process that notices it, or
its end, begins an epoch with a special prefix; or the epoch is gone, and Redis has evicted something. In both
cases the next rebuild starts with an empty catalog. Redis without an epoch that has evicted nothing was
emptied: what was written to it since is right, so it stays.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill_service.catalog.redis import coordination_scripts, key_names, server_settings

if TYPE_CHECKING:
    from overspill_service.catalog.redis.client import RedisClient

SECOND_PASS_SECONDS: Final = 60.0
"""Seconds from the beginning of a rebuild to its second pass."""
MARGIN_SECONDS: Final = 1.0
"""Seconds of uncertainty when the age of a write is compared with the age of a rebuild."""
PASSES: Final = 2
EVICTED: Final = "evicted-"
"""The prefix of an epoch in which single keys may be missing."""


class Mark(NamedTuple):
    """The mark of what a rebuild has completed: four words in Redis."""

    servers: str
    epoch: str
    """A random word. A counter could repeat a lost value."""
    began: int
    """When the rebuild began, in milliseconds by Redis' clock."""
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


class RedisState(NamedTuple):
    """The state of Redis at one moment."""

    servers: str
    epoch: str
    """Empty if there is none, or Redis has lost it."""
    mark: Mark | None

    @property
    def is_complete(self) -> bool:
        return self.mark is not None and self.mark[:2] == self[:2]


class Completeness:
    """One process's view of Redis. `state` names the last complete state; it is empty while incomplete."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._servers: str | None = None
        self._written_at = -math.inf
        self._replacement_lock = asyncio.Lock()
        self.state = ""

    def note_write(self) -> None:
        """Note that Redis has just acknowledged a write of this process."""
        self._written_at = time.monotonic()

    async def is_complete(self) -> bool:
        return (await self._read_state()).is_complete

    async def is_rebuild_due(self) -> bool:
        """Return True while incomplete, and again a minute after the last rebuild began."""
        current = await self._read_state()
        if current.mark is None or not current.is_complete:
            return True
        return current.mark.passes < PASSES and await self._age(current.mark.began) >= SECOND_PASS_SECONDS

    async def is_settled(self) -> bool:
        """Return whether the second pass has ended. It finds the losses of processes that died."""
        current = await self._read_state()
        return current.mark is not None and current.is_complete and current.mark.passes >= PASSES

    async def begin(self) -> str:
        """Record that a rebuild begins. Return the argument for `finish`."""
        current = await self._read_state()
        was_evicted = await self._was_evicted(current)
        if was_evicted:
            await self._client.delete_matching(key_names.OF_TENANTS)
        if was_evicted or not current.epoch:
            await self._client.call("SET", key_names.EPOCH, _new_epoch())
            current = await self._read_state()
        mark = Mark(current.servers, current.epoch, await self._now(), 1)
        await self._client.call("SET", key_names.REBUILD, str(mark))
        return str(mark)

    async def finish(self, began: str) -> None:
        """Set the mark to the state in which the rebuild began. It is void if the state has changed since."""
        mark, stored = (
            Mark.parse(began.encode()),
            Mark.parse(await self._client.call("GET", key_names.COMPLETE)),
        )
        if mark is None:
            raise ValueError(f"{began!r} does not name the beginning of a rebuild")
        if stored is not None and stored[:2] == mark[:2]:
            mark = mark._replace(passes=PASSES)
        await self._client.call("SET", key_names.COMPLETE, str(mark))

    async def _was_evicted(self, current: RedisState) -> bool:
        """Return whether single keys may be missing, perhaps epoch and mark too."""
        if current.epoch:
            return current.epoch.startswith(EVICTED)
        return current.mark is not None or server_settings.has_evicted(await self._client.info("stats"))

    async def note_end_of_eviction(self) -> None:
        """Record that single keys may be missing if the epoch was evicted, even if Redis has restarted."""
        await self._client.call("SET", key_names.EPOCH, EVICTED + _new_epoch(), "NX")

    async def doubt(self, kind: str = "") -> None:
        """Make the mark void. `kind` is `EVICTED` if single keys may have been lost."""
        self.state = ""
        await self._client.step(
            coordination_scripts.NEW_EPOCH, [key_names.EPOCH], _new_epoch(), EVICTED, kind
        )

    async def _read_state(self) -> RedisState:
        servers, epoch, mark = await asyncio.gather(
            self._identity(),
            self._client.call("GET", key_names.EPOCH),
            self._client.call("GET", key_names.COMPLETE),
        )
        if self._servers not in (None, servers):  # other servers than last time: were our writes lost?
            await self._handle_replacement(servers)
            return await self._read_state()
        self._servers = servers
        current = RedisState(servers, _word(epoch), Mark.parse(mark))
        self.state = f"{servers} {current.epoch}" if current.is_complete else ""
        return current

    async def _handle_replacement(self, servers: str) -> None:
        """Begin a new epoch if this process wrote to servers that have been replaced."""
        async with self._replacement_lock:
            if self._servers != servers and await self._may_have_lost(servers):
                await self.doubt()
            self._servers = servers

    async def _may_have_lost(self, servers: str) -> bool:
        """Return whether the last write may be lost: no rebuild on these servers began after it."""
        if self._written_at == -math.inf:
            return False
        since_written = time.monotonic() - self._written_at
        rebuild = Mark.parse(await self._client.call("GET", key_names.REBUILD))
        if rebuild is None or rebuild.servers != servers:
            return True
        return since_written <= await self._age(rebuild.began) + MARGIN_SECONDS

    async def _identity(self) -> str:
        """Return a digest of the ids of the server processes and of their replication histories."""
        server, replication = await asyncio.gather(
            self._client.info("server"), self._client.info("replication")
        )
        names = _sorted(server, "run_id") + _sorted(replication, "master_replid")
        return hashlib.sha256(" ".join(names).encode()).hexdigest()[:32]

    async def _age(self, began: int) -> float:
        return (await self._now() - began) / 1000

    async def _now(self) -> int:
        """Return the time by Redis' clock, in milliseconds."""
        seconds, microseconds = await self._client.step(coordination_scripts.NOW, [key_names.REBUILD])
        return int(seconds) * 1000 + int(microseconds) // 1000


def _word(epoch: bytes | None) -> str:
    """Return the epoch. Empty if there is none, or what there is cannot be one."""
    words = (epoch or b"").decode(errors="replace").split()
    return words[0] if len(words) == 1 else ""


def _new_epoch() -> str:
    return secrets.token_hex(8)


def _sorted(servers: list[dict[str, Any]], fact: str) -> list[str]:
    return sorted(str(facts.get(fact, "")) for facts in servers)
