"""Issue, rotate and find API keys, for the command line and the admin routes."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace
from overspill.wire import MAX_LIFE

from overspill_service.catalog.key_records import KeyRecord
from overspill_service.errors import KeyNotFound, KeyRefused, ServiceError
from overspill_service.telemetry.log_lines import without_secrets
from overspill_service.tenants.directory import OF_ALL_SESSIONS
from overspill_service.tenants.keys import hash_key, new_key, secret_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from overspill.wire import Scope

    from overspill_service.archive.keyring import Keyring

DAY: Final = 86_400.0
DEFAULT_LIFE: Final = 365 * DAY
"""Seconds that a key lives unless its creator says otherwise."""
DEFAULT_OVERLAP: Final = 7 * DAY
"""Seconds that a key still works after another one was made to replace it."""

MAX_KEYS: Final = 1000
"""The most keys of a tenant, and the most that are remembered, including expired ones."""


class IssuedKey(NamedTuple):
    """A new key, and its record. The key itself is stored nowhere."""

    key: str
    record: KeyRecord


class KeyIssuer:
    """Issues keys that are hashed with `secret`."""

    def __init__(self, keyring: Keyring, secret: str) -> None:
        self._keyring, self._secret = keyring, secret

    async def issue(  # noqa: PLR0913  (one keyword for each thing that is kept with a key)
        self,
        tenant: str,
        scopes: Sequence[Scope],
        *,
        now: float,
        name: str = "",
        life: float | None = DEFAULT_LIFE,
        session: str | None = None,
        is_prefix: bool = False,
        replaces: str = "",
    ) -> IssuedKey:
        """Make a key that works for `life` seconds, or without end if that is None.

        Raises `KeyRefused` if the tenant has `MAX_KEYS` already, a bound key would reach all sessions, or the
        life is longer than `MAX_LIFE`.
        """
        _require_bound(scopes, session, is_prefix=is_prefix)
        if life is not None and life > MAX_LIFE:
            raise KeyRefused(f"a key lives {MAX_LIFE / DAY:g} days at most, or without end")
        await self._make_room(tenant, now)
        key = new_key()
        record = KeyRecord(
            hash=hash_key(key, self._secret),
            tenant=tenant,
            scopes=list(scopes),
            name=name,
            created=now,
            expires=None if life is None else now + life,
            session=session,
            is_prefix=is_prefix,
            secret=secret_id(self._secret),
            replaces=replaces,
        )
        async with self._revoked_unless_told(record):
            await self._keyring.add(record)
        return IssuedKey(key, record)

    @asynccontextmanager
    async def _revoked_unless_told(self, record: KeyRecord) -> AsyncIterator[None]:
        """Revoke a new key if the block fails or is cancelled: nobody gets the key then."""
        try:
            yield
        except BaseException:
            with suppress(ServiceError):
                await self._keyring.revoke(record.hash)
            raise

    async def rotate(
        self, old: KeyRecord, *, now: float, life: float | None, overlap: float | None = DEFAULT_OVERLAP
    ) -> IssuedKey:
        """Make a key with the rights of another one, which works for another `overlap` seconds at most.

        Raises `KeyRefused` if the other key has a successor already, or has expired. After a failure there is
        no successor, though the other key may end as if there were one.
        """
        if old.is_expired(now):
            raise KeyRefused(f"the key {old.id} has expired: make a new one")
        await self._require_no_successor(old, now)
        issued = await self.issue(
            old.tenant,
            old.scopes,
            now=now,
            name=old.name,
            life=life,
            session=old.session,
            is_prefix=old.is_prefix,
            replaces=old.id,
        )
        async with self._revoked_unless_told(issued.record):
            # Of two rotations at once, each may see the other one: then both are refused.
            await self._require_no_successor(old, now, but=issued.record.id)
            if overlap is not None:
                await self._end(old, now + overlap)
        return issued

    async def _end(self, old: KeyRecord, at: float) -> None:
        """Let a key end at `at` or before, with all its records, also one that is added meanwhile."""
        while late := [
            each
            for each in await self._keyring.keys()
            if each.id == old.id and (each.expires is None or each.expires > at)
        ]:
            for each in late:
                await self._keyring.change(replace(each, expires=at))

    async def _require_no_successor(self, old: KeyRecord, now: float, *, but: str = "") -> None:
        for each in await self._keyring.keys():
            if each.replaces == old.id and each.id != but and not each.is_expired(now):
                raise KeyRefused(
                    f"the key {old.id} is being replaced by {each.id} already, and two at once are enough: "
                    "revoke one of them first"
                )

    async def _make_room(self, tenant: str, now: float) -> None:
        """Forget the keys that expired first if there are too many.

        Raises `KeyRefused` if none has expired.
        """
        records = await self.of_tenant(tenant)
        expired = sorted(
            (each for each in records if each.is_expired(now)), key=lambda each: each.expires or 0
        )
        alive = len(records) - len(expired)
        if alive >= MAX_KEYS:
            raise KeyRefused(f"the tenant has {alive} keys, and may have {MAX_KEYS}: revoke some first")
        for each in expired[: max(0, len(records) + 1 - MAX_KEYS)]:
            await self._keyring.revoke(each.hash)

    async def revoke(self, key_id: str, tenant: str | None = None) -> list[KeyRecord]:
        """Remove a key for good. Return its records: one for each secret that it was hashed with.

        With `tenant`, another tenant's key does not exist. Raises `KeyNotFound`.
        """
        found = await self.named(key_id, tenant)
        for record in found:
            await self._keyring.revoke(record.hash)
        return found

    async def rehash(self, key: str, old: KeyRecord) -> KeyRecord:
        """Store a key also under the hash of the current secret. Raises `KeyNotFound` if it was revoked."""
        fresh = replace(
            old, hash=hash_key(key, self._secret), secret=secret_id(self._secret), first_id=old.id
        )
        await self._keyring.add(fresh)
        if not await self._keyring.has(old.hash):  # revoked between the two steps
            await self._keyring.revoke(fresh.hash)
            raise KeyNotFound(f"the key {old.id} was revoked")
        current = await self._keyring.stored(old.hash)
        if current is not None and current.expires != fresh.expires:  # rotated between the two steps
            fresh = replace(fresh, expires=current.expires)
            await self._keyring.change(fresh)
        return fresh

    async def of_tenant(self, tenant: str) -> list[KeyRecord]:
        return [record for record in await self._keyring.keys() if record.tenant == tenant]

    async def stored(self, key_hash: str) -> KeyRecord | None:
        """Return the key as it is now, None if there is none. Asks the object store."""
        return await self._keyring.stored(key_hash)

    async def named(self, name: str, tenant: str | None = None) -> list[KeyRecord]:
        """Return the records of the key with this id or hash, the newest last. Raises `KeyNotFound`."""
        found = [
            record
            for record in await self._keyring.keys()
            if name in (record.id, record.hash) and tenant in (None, record.tenant)
        ]
        if not found:
            raise KeyNotFound(f"there is no key with the id {without_secrets(name)[:100]!r}")
        return found


def _require_bound(scopes: Sequence[Scope], session: str | None, *, is_prefix: bool) -> None:
    """Raise `KeyRefused` if a key that is to be bound to sessions would reach all of them."""
    if session is not None and not OF_ALL_SESSIONS.isdisjoint(scopes):
        raise KeyRefused("a key that is bound to sessions cannot have the scopes admin and fleet")
    if is_prefix and not session:
        raise KeyRefused("every session begins with an empty prefix: name one, or bind the key to nothing")
