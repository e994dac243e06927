"""Finds out who sent a request. Only the credential in the request decides."""

from __future__ import annotations

import hmac
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import hdrs
from overspill.reading.latest import Latest

from overspill_service.errors import (
    CatalogIncomplete,
    KeyNotFound,
    RecordDamaged,
    Unauthorized,
)
from overspill_service.tenants.directory import Expiry, Principal, SessionBound
from overspill_service.tenants.keys import KEY_LENGTH, LOCAL_PREFIX, hash_key, is_key
from overspill_service.web.key_uses import KeyUses
from overspill_service.web.tokens import Forged, is_token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiohttp import web

    from overspill_service.archive.key_issuing import KeyIssuer
    from overspill_service.catalog import Catalog
    from overspill_service.catalog.key_records import KeyRecord
    from overspill_service.tenants.directory import TenantDirectory
    from overspill_service.web.open_mode import OpenMode
    from overspill_service.web.page_sessions import PageSessions
    from overspill_service.web.request_rates import RequestRates
    from overspill_service.web.tokens import Tokens

KEY_CACHE_SECONDS: Final = 10.0
"""Seconds for which a key from the catalog is trusted without asking again.

A revocation takes up to this long.
"""
MAX_CACHED_KEYS: Final = 10_000
# No text after a colon or "Bearer" here: where clients show a reason to models, that is left out as a secret.
NO_KEY: Final = "this service needs a key, and the request has none in the header `Authorization`"
_WRONG_KEY: Final = "the key is not known here, was revoked or has expired"
NOT_LOCAL: Final = (
    "the service takes the key file of its own user only, and only on loopback; send a key of its own in the "
    "header `Authorization`"
)
_LOST: Final = "the catalog is being rebuilt, and may lack this key; try again in a moment"


class CachedKey(NamedTuple):
    """A key of the catalog that was found a moment ago."""

    until: float
    """The time, by the monotonic clock, until which the catalog is not asked again."""
    expires: float | None
    """By the shared clock: when the key expires."""
    principal: Principal

    def has_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


class Authenticator:
    """Finds the principal of a request by its credential."""

    def __init__(  # noqa: PLR0913  (one for each kind of credential, and what they need)
        self,
        directory: TenantDirectory,
        catalog: Catalog,
        issuer: KeyIssuer,
        mode: OpenMode,
        sessions: PageSessions,
        rates: RequestRates,
        *,
        clock: Callable[[], float],
        secrets: Sequence[str],
        local_key: str = "",
        tokens: Tokens | None = None,
    ) -> None:
        self._directory, self._catalog, self._issuer, self._mode = directory, catalog, issuer, mode
        self._sessions = sessions
        self._clock, self._secrets, self._local_key = clock, secrets, local_key
        self._tokens, self._rates = tokens, rates
        self._cache: Latest[str, CachedKey] = Latest(MAX_CACHED_KEYS)
        self.uses = KeyUses(catalog, clock)

    def replace_directory(self, directory: TenantDirectory) -> None:
        """Use this directory from now on."""
        self._directory = directory
        self._cache.clear()

    async def principal(self, request: web.Request, address: str) -> Principal:
        """Return the principal: of the key, else of the web page's session. `address`: the client's.

        Raises `Unauthorized` without a valid one, `RateExceeded` after too many unknown ones, and `Forbidden`
        for a change that lacks the token of its session.
        """
        credentials = request.headers.getall(hdrs.AUTHORIZATION, ())
        if len(credentials) > 1:
            raise Unauthorized(f"Authorization is given {len(credentials)} times; send it once")
        if credentials:
            principal = self._look_up(credentials[0]) or await self._of_any(credentials[0], address)
        elif (claims := await self._sessions.claims(request)) is not None:
            principal = await self.of_hash(claims.key)
        else:
            principal = await self._anonymous()
        return principal

    def _look_up(self, credential: str) -> Principal | None:
        """Return the principal of a key that was looked up lately, or is in the tenants' file."""
        scheme, _, key = credential.partition(" ")
        if scheme != "Bearer" or len(key) != KEY_LENGTH:
            return None
        for secret in self._secrets:
            key_hash = hash_key(key, secret)
            principal = self._directory.find(key_hash, self._clock()) or self._cached(key_hash)
            if principal is not None:
                self.uses.note(key_hash)
                return principal
        return None

    async def of_key(self, key: str, address: str) -> Principal:
        """Return the principal of a key. Raises `Unauthorized`, `RateExceeded`."""
        return await self._of_credential(f"Bearer {key}", address)

    async def of_hash(self, key_hash: str) -> Principal:
        """Return the principal of a key by its hash.

        Raises `Unauthorized` if the key was removed, and `CatalogIncomplete` if that is not known.
        """
        if self._local_key and key_hash == hash_key(self._local_key):
            return self._directory.local(key_hash)
        principal = self._directory.find(key_hash, self._clock()) or self._cached(key_hash)
        principal = principal or await self._find("", key_hash, is_current=True)
        if principal is None and not await self._catalog.is_complete():
            raise CatalogIncomplete(_LOST)
        if principal is None:
            raise Unauthorized("the session of the web page has ended with its key: sign in again")
        self.uses.note(key_hash)
        return principal

    async def _anonymous(self) -> Principal:
        if await self._mode.is_open():
            return self._directory.anonymous()
        raise Unauthorized(NO_KEY)

    async def _of_any(self, credential: str, address: str) -> Principal:
        """Return the principal of a credential. If no key was ever made, an unknown one is ignored."""
        try:
            return await self._of_credential(credential, address)
        except (Unauthorized, CatalogIncomplete):
            if await self._mode.has_no_keys():
                return self._directory.anonymous()
            raise

    async def _of_credential(self, credential: str, address: str) -> Principal:
        scheme, _, text = credential.partition(" ")
        key = text.strip()
        if self._tokens is not None and scheme.lower() == "bearer" and is_token(key):
            return await self._of_token(self._tokens, key, address)
        if scheme.lower() != "bearer" or not is_key(key):
            raise Unauthorized(NO_KEY if not key else _WRONG_KEY)
        if key.startswith(LOCAL_PREFIX):
            return await self._of_local_key(key)
        return await self._authenticate(key, address)

    async def _of_token(self, tokens: Tokens, token: str, address: str) -> Principal:
        """Return the principal of a token. Raises `RateExceeded` after too many that are not the issuer's."""
        guesses = None if tokens.is_known(token) else self._rates.require_guesses_left(address)
        try:
            return await tokens.principal(token, self._directory)
        except Forged:
            if guesses is not None:
                guesses.take()
            raise

    async def _of_local_key(self, key: str) -> Principal:
        """Return the principal of a machine's user.

        A client sends that key by itself, even where none is needed.
        """
        if self._local_key and hmac.compare_digest(key, self._local_key):
            return self._directory.local(hash_key(key))
        if await self._mode.is_open():
            return self._directory.anonymous()
        raise Unauthorized(NOT_LOCAL)

    async def _authenticate(self, key: str, address: str) -> Principal:
        """Return the principal of a key, whichever secret it was hashed with.

        Raises `Unauthorized`, and `RateExceeded` if the address has tried too many unknown keys.
        """
        hashes = [hash_key(key, secret) for secret in self._secrets]
        is_new = self._cache.keys().isdisjoint(hashes) and not any(map(self._directory.knows, hashes))
        is_counted = is_new and not await self._mode.has_no_keys()
        guesses = self._rates.require_guesses_left(address) if is_counted else None
        if principal := await self._lookup_any(key, hashes):
            return principal
        if guesses is not None:
            guesses.take()
        if not await self._catalog.is_complete():
            raise CatalogIncomplete(_LOST)
        if principal := await self._lookup_any(key, hashes):  # it may have come back before that was asked
            return principal
        raise Unauthorized(_WRONG_KEY)

    async def _lookup_any(self, key: str, hashes: Sequence[str]) -> Principal | None:
        for key_hash in hashes:
            if principal := await self._lookup(key, key_hash, is_current=key_hash == hashes[0]):
                return principal
        return None

    async def _lookup(self, key: str, key_hash: str, *, is_current: bool) -> Principal | None:
        principal = self._directory.find(key_hash, self._clock()) or self._cached(key_hash)
        if principal is None:
            principal = await self._find(key, key_hash, is_current=is_current)
        if principal is not None:
            self.uses.note(key_hash)
        return principal

    def _cached(self, key_hash: str) -> Principal | None:
        cached = self._cache.get(key_hash)
        if cached is None or cached.until <= time.monotonic() or cached.has_expired(self._clock()):
            return None
        return cached.principal

    async def _find(self, key: str, key_hash: str, *, is_current: bool) -> Principal | None:
        """Return the principal of a key of the catalog, None if there is none or it has expired."""
        asked_at = time.monotonic()  # it may be revoked while the answer is on its way
        record = await self._record(key_hash)
        if record is None or record.is_expired(self._clock()):
            self._cache.pop(key_hash, None)
            return None
        if not is_current:  # from now on it works without the former secret
            with suppress(KeyNotFound):
                await self._issuer.rehash(key, record)
        principal = self._principal_of(record)
        self._cache[key_hash] = CachedKey(asked_at + KEY_CACHE_SECONDS, record.expires, principal)
        return principal

    async def _record(self, key_hash: str) -> KeyRecord | None:
        """Return a key of the catalog.

        An incomplete catalog may be older than the key's revocation or rotation. A record that cannot be
        decoded is read from the object store.
        """
        try:
            found = await self._catalog.find_key(key_hash)
        except RecordDamaged:
            return await self._issuer.stored(key_hash)
        if found is None or await self._catalog.is_complete():
            return found
        return await self._issuer.stored(key_hash)

    def _principal_of(self, record: KeyRecord) -> Principal:
        bound = None if record.session is None else SessionBound(record.session, record.is_prefix)
        return Principal(
            tenant=self._directory.tenant(record.tenant),
            scopes=frozenset(record.scopes),
            session=bound,
            key_id=record.id,
            expiry=None if record.expires is None else Expiry(record.expires, record.created),
            key_hash=record.hash,
        )
