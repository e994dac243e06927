"""The catalog port: the entries of captures, and all other shared state.

The object store is the source of truth. A catalog may be lost, and is then rebuilt from it. Every method is
one atomic step, and raises `CatalogUnavailable` if the catalog does not answer. Instants are seconds since
the epoch. The caller passes `now`, so an adapter needs no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from overspill_service.catalog.live import LiveBuffers, LiveNews, LiveSchedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from overspill_service.catalog.backlogs import Backlog
    from overspill_service.catalog.key_records import AccessMode, KeyRecord
    from overspill_service.catalog.quotas import Quota, Totals
    from overspill_service.catalog.readers import Reader, ReadNote
    from overspill_service.catalog.records import Entry, Generation, Query, Tombstone
    from overspill_service.catalog.statistics import Cell, Packed, Resolution


class Entries(Protocol):
    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        """Record a new capture and add it to the totals. Return the entry that now holds the id.

        If the id has an entry already, that one is returned and nothing changes. A tombstone of the id is
        replaced. A tombstone of this very upload is not: it is returned, so a late step never brings a
        removed capture back. The upload's reservation ends. Raises `QuotaExceeded` if
        the totals with this entry and with what other uploads have reserved would exceed the quota. Raises
        `CatalogIncomplete` if there is an exact quota and the totals are not known yet. After these errors,
        and after `CatalogRefuses`, nothing was recorded.
        """

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        """Return the entry or tombstone of an id. An expired capture has its entry until it is swept.

        Raises `RecordDamaged` if the record cannot be decoded. Every other method that meets such a record
        raises it too, or skips the record and remembers it for `damaged`.
        """

    async def restore(self, entry: Entry) -> bool:
        """Replace the record of the entry's id if it cannot be decoded.

        Return False if it can, or if there is none.
        """

    def damaged(self) -> list[tuple[str, str]]:
        """Return the tenants and ids of records that were skipped since the last call."""

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        """Return a page of captures that have not expired, newest first, and the cursor of the next page.

        A page has at most about a MiB of entries, so large entries come in shorter pages. Pages neither
        repeat nor skip a capture that exists all the time. A page with a cursor is never empty, but may be
        shorter than `limit`. Raises `InvalidParameter` for a cursor that this method did not return.
        """

    async def largest(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        """Return captures that have not expired, the largest first, at most about a MiB of entries.

        There may be fewer if thousands of larger ones have expired and are not removed yet.
        """

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        """Set the entry's expiry and marker, unless its marker has changed meanwhile.

        Return this upload's entry as it then is: with this marker if it was set, with another one if another
        change came first. Return None if the upload is gone.
        """

    async def note_read(self, entry: Entry, at: float, reader: str = "") -> bool:
        """Record when and by which key the capture was first read.

        Return False if that is known, or the upload is gone.
        """

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        """Replace the entry by a tombstone that lasts `keep` seconds, and subtract it from the totals.

        If `keep` is 0, nothing takes the entry's place.

        Return False if this upload has no entry any more, or one that the tombstone may not replace.
        """


class Readers(Protocol):
    """The readers of captures, kept as long as the entry. No object has them: a lost catalog loses them."""

    async def note_readers(self, tenant: str, notes: Sequence[ReadNote], *, max_bytes: int) -> None:
        """Remember who has read captures, and when first and last. Drop notes of uploads that are gone.

        Of each capture `wire.MAX_READERS` are remembered, within `readers.MAX_BYTES`: those who read last. A
        note is dropped too if the readers of all captures of the tenant would take more than `max_bytes`; 0
        is no limit.
        """

    async def readers(self, tenant: str, capture: str) -> list[Reader]:
        """Return who has read a capture, the latest reader first."""


class Ledger(Protocol):
    async def tenants(self) -> list[str]:
        """Return every tenant that has ever stored a capture."""

    async def forget_tenant(self, tenant: str) -> None:
        """Forget a tenant without captures, and its tombstones, as if it had never stored any."""

    async def totals(self, tenant: str) -> Totals:
        """Return the totals. They always equal the sums over the entries.

        Raises `RecordDamaged` if they cannot be read.
        """

    async def recount(self, tenant: str) -> None:
        """Replace damaged totals by the sums over the entries. Raises `RecordDamaged` if one is damaged."""

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        """Return entries that have expired, the earliest first, at most about a MiB of them."""


class Reservations(Protocol):
    """The parts of a tenant's quota that unfinished uploads take."""

    async def reserve(
        self,
        tenant: str,
        upload: str,
        size: int,
        stored_size: int,
        quota: Quota,
        *,
        keep: float,
        captures: int = 1,
    ) -> None:
        """Reserve `size` and `stored_size` bytes for an upload, instead of what it had reserved.

        `captures` is 0 for a capture that grows: its entry counts already. The reservation lapses after
        `keep` seconds. Raises what `commit` raises, and then leaves it as it was.
        """

    async def free(self, tenant: str, upload: str) -> None:
        """End the reservation of an upload. Do nothing if it has none."""


class Coordination(Protocol):
    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        """Take or renew a lease for `ttl` seconds. Return False if another holder has it."""

    async def release(self, name: str, holder: str) -> None:
        """Give a lease back. Do nothing if another holder has it."""

    async def is_leased(self, name: str) -> bool:
        """Return whether any holder has the lease."""

    async def once(self, name: str, ttl: float) -> bool:
        """Return True for the first call with this name within `ttl` seconds."""

    async def tell(self, name: str, holder: str, figure: float, *, keep: float) -> float:
        """Keep a holder's figure for `keep` seconds. Return the sum of those of all other holders."""

    async def is_complete(self) -> bool:
        """Return whether the catalog knows every capture.

        A new or lost catalog does not until it is rebuilt.
        """

    async def is_rebuild_due(self) -> bool:
        """Return whether a rebuild should run: while incomplete, and again if late losses are possible."""

    async def is_settled(self) -> bool:
        """Return whether no change can be missing, not even one of a process that has died."""

    async def begin_rebuild(self) -> str:
        """Record that a rebuild begins. Return the argument for `mark_complete`."""

    async def mark_complete(self, began: str) -> None:
        """Record that the rebuild has ended. It counts only if nothing was lost since it began."""

    async def generation(self) -> Generation | None:
        """Return the generation, or None if the catalog itself notices that it is an older copy."""

    async def begin_generation(self, name: str, *, is_closed: bool) -> None:
        """Give the catalog the name of its next generation. Do nothing if it has no generations."""

    async def doubt(self, *, is_older: bool) -> None:
        """Ask for a rebuild. A catalog that `is_older` than its objects is incomplete until then."""


class KeyStore(Protocol):
    async def add_key(self, key: KeyRecord) -> None: ...

    async def find_key(self, key_hash: str) -> KeyRecord | None:
        """Return a key, None if there is none. Raises `RecordDamaged` if its record cannot be decoded."""

    async def keys(self) -> list[KeyRecord]:
        """Return all keys, the newest last, without those whose records cannot be decoded."""

    async def revoke_key(self, key_hash: str) -> bool: ...

    async def access_mode(self) -> AccessMode | None:
        """Return whether requests need a key, None if that was never chosen here or is lost."""

    async def set_access_mode(self, mode: AccessMode) -> None: ...

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        """Remember when keys were last used, by their hashes. Keys of the tenants' file count too."""

    async def uses(self) -> dict[str, float]:
        """Return when each key was last used, by its hash."""


class Statistics(Protocol):
    """Sums of events, by tenant and time. A lost catalog loses them: no object has them."""

    async def add_sums(
        self, tenant: str, sums: Mapping[Cell, int], *, now: float, batch: str, memory: float
    ) -> bool:
        """Add to the buckets of `now`. Return False, and add nothing, if `batch` was added before.

        The name of a batch is remembered for `memory` seconds, unless `MAX_BATCHES` came after it.
        """

    async def sums(
        self, tenant: str, resolution: Resolution, *, since: float, until: float, tool: str | None = None
    ) -> dict[int, Packed]:
        """Return the sums of every bucket that begins in `since <= start < until`, by its start.

        With `tool` only the sums of this tool. Buckets without any are missing, and so are those beyond their
        time.
        """

    async def keep_rollup(self, tenant: str, name: str, rollup: bytes, *, now: float, keep: float) -> None:
        """Keep a roll-up of buckets that have ended, instead of an earlier one of this name.

        It may be forgotten at any time. It is forgotten after `keep` seconds without another roll-up of the
        tenant.
        """

    async def rollup(self, tenant: str, name: str) -> bytes | None:
        """Return the roll-up that `keep_rollup` keeps under this name. None if there is none now."""

    async def forget_rollups(self, tenant: str) -> None:
        """Forget all roll-ups of a tenant, because a bucket that had ended has changed."""


class Backlogs(Protocol):
    """The backlogs of clients' spools. A lost catalog has them again after the next reports."""

    async def note_backlog(
        self, tenant: str, spool: str, backlog: Backlog, *, now: float, keep: float
    ) -> None:
        """Remember a spool's backlog for `keep` seconds, instead of an earlier one; forget an empty one.

        A spool beyond `MAX_SPOOLS` is not remembered.
        """

    async def backlogs(self, now: float) -> dict[str, Backlog]:
        """Return the backlog in all spools of each tenant."""


class Catalog(
    Entries,
    Readers,
    Ledger,
    Reservations,
    Coordination,
    KeyStore,
    Statistics,
    Backlogs,
    LiveBuffers,
    LiveSchedule,
    LiveNews,
    Protocol,
):
    async def now(self) -> float | None:
        """Return the time of the catalog's own clock, or None if it has none."""

    async def ping(self) -> None:
        """Return if the catalog answers and accepts writes. Raises `CatalogRefuses` if it may lose them."""

    async def close(self) -> None: ...


@runtime_checkable
class HasWarnings(Protocol):
    """A catalog that can say which of its settings put entries at risk."""

    async def warnings(self) -> list[str]:
        """Return a sentence for each setting that should change. Raises `CatalogUnavailable`."""
