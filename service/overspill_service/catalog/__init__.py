"""The catalog port: what is known of captures, and until when.

The object store alone is the truth; a catalog can be lost and is then rebuilt from it. Every method is
one atomic step and raises `CatalogUnavailable` when the catalog does not answer. Instants are seconds
since the epoch; the caller passes `now`, so that an adapter has no clock of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill_service.catalog.records import (
        Entry,
        Generation,
        KeyRecord,
        Query,
        Quota,
        Tombstone,
        Totals,
    )


class Entries(Protocol):
    async def commit(self, entry: Entry, quota: Quota) -> Entry | Tombstone:
        """Record a new capture and add it to the totals; return the entry that now holds the id.

        Where the id has an entry already, that one is returned and nothing changes. A tombstone of the id
        gives way, except one of this very upload, which is returned: what was removed never comes back by
        a step that came late. Raises `QuotaExceeded` where the totals with this entry would pass the quota,
        and `CatalogIncomplete` where there is a quota and the totals cannot be held to it yet. After either,
        and after `CatalogRefuses`, nothing was recorded.
        """

    async def get(self, tenant: str, capture: str) -> Entry | Tombstone | None:
        """The entry or tombstone of an id, also of an expired capture that is not swept yet.

        Raises `RecordDamaged` where an entry cannot be decoded; every other method that meets it does too,
        or passes over it and remembers it for `damaged`.
        """

    async def restore(self, entry: Entry) -> bool:
        """Put an entry in the place of a record of its id that cannot be decoded; false where none is."""

    def damaged(self) -> list[tuple[str, str]]:
        """Take the tenants and ids of the records that were passed over since this was last asked."""

    async def find(
        self, tenant: str, query: Query, *, now: float, limit: int, cursor: str | None = None
    ) -> tuple[list[Entry], str | None]:
        """A page of unexpired captures, newest first, and the cursor of the next page.

        A page has about a MiB of entries at most, so large ones come in shorter pages.
        Pages neither repeat nor skip a capture that exists throughout. One with a cursor is never empty,
        though it may be shorter than `limit`. Raises `InvalidParameter` on a cursor that this method did
        not return.
        """

    async def amend(self, entry: Entry, *, expires: float, marker: str | None) -> Entry | None:
        """Give the entry a new expiry and marker, unless its marker was changed meanwhile.

        Returns this upload's entry as it then is: with this marker where it was changed, with another one
        where somebody came first. None where the upload is gone.
        """

    async def remove(self, entry: Entry, tombstone: Tombstone, *, keep: float) -> bool:
        """Put a tombstone, kept for `keep` seconds, in the entry's place and take it off the totals.

        False where this upload of it was gone already, or an expired one was given a later expiry meanwhile.
        """


class Ledger(Protocol):
    async def tenants(self) -> list[str]:
        """Every tenant that ever stored a capture."""

    async def forget_tenant(self, tenant: str) -> None:
        """Forget a tenant that has no captures, and its tombstones, as if it had never stored any."""

    async def totals(self, tenant: str) -> Totals:
        """The stored totals: exactly the sum over the entries, at any moment."""

    async def expired(self, tenant: str, *, now: float, limit: int) -> list[Entry]:
        """Entries whose time has come, the longest expired first; about a MiB of them at most."""


class Coordination(Protocol):
    async def lease(self, name: str, holder: str, ttl: float) -> bool:
        """Take or renew a lease for `ttl` seconds; false while another holds it."""

    async def release(self, name: str, holder: str) -> None:
        """Give a lease back; nothing where another holds it."""

    async def once(self, name: str, ttl: float) -> bool:
        """True the first time within `ttl` seconds that this name is asked for."""

    async def is_complete(self) -> bool:
        """Whether the catalog knows every capture: false when new or lost, until it is rebuilt."""

    async def is_rebuild_due(self) -> bool:
        """Whether a rebuild should run: while incomplete, and where late losses are possible once more."""

    async def is_settled(self) -> bool:
        """Whether no change is missing any more, not even one whose writer died before a loss was noticed."""

    async def begin_rebuild(self) -> str:
        """Say that a rebuild begins; return what `mark_complete` takes at its end."""

    async def mark_complete(self, began: str) -> None:
        """Say that the rebuild has ended. It counts only if nothing was lost since it began."""

    async def generation(self) -> Generation | None:
        """Return the generation; None if the catalog notices by itself that it is an older one."""

    async def begin_generation(self, name: str, *, is_closed: bool) -> None:
        """Give the catalog the name of its next generation. Nothing if it has no generations."""

    async def doubt(self, *, is_older: bool) -> None:
        """Ask for a rebuild. A catalog that `is_older` than its objects is incomplete until then."""


class KeyStore(Protocol):
    async def add_key(self, key: KeyRecord) -> None: ...
    async def find_key(self, key_hash: str) -> KeyRecord | None: ...
    async def keys(self) -> list[KeyRecord]: ...
    async def revoke_key(self, key_hash: str) -> bool: ...

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        """Remember when keys were last used, by their hashes; also keys of the tenants' file."""

    async def uses(self) -> dict[str, float]:
        """When each key was last used, by its hash."""


class Catalog(Entries, Ledger, Coordination, KeyStore, Protocol):
    async def now(self) -> float | None:
        """The time of the catalog's own clock, in seconds since the epoch; None where it has none."""

    async def ping(self) -> None:
        """Return when the catalog answers and takes writes. Raises `CatalogRefuses` if it may lose them."""

    async def close(self) -> None: ...


@runtime_checkable
class HasWarnings(Protocol):
    """A catalog that can say what in its set-up puts entries at risk, for an operator."""

    async def warnings(self) -> list[str]:
        """What is worth changing, a sentence each. Raises `CatalogUnavailable`."""
