"""Who sent a request. Only the credential in the request decides."""

from __future__ import annotations

import logging
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import hdrs

from overspill_service.catalog.records import KEY_ID_LENGTH
from overspill_service.errors import Forbidden, Unauthorized
from overspill_service.telemetry import logs
from overspill_service.tenants import KEY_PATTERN, Principal, hash_key
from overspill_service.web.header_fields import list_field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiohttp import web
    from overspill.wire import Scope

    from overspill_service.catalog import KeyStore
    from overspill_service.tenants import TenantDirectory

KEY_CACHE_SECONDS: Final = 15.0
"""How long a key from the catalog is trusted without asking again. A revocation takes up to so long."""
MAX_CACHED_KEYS: Final = 10_000
USE_SECONDS: Final = 60.0
"""How precisely the last use of a key is recorded."""
_NO_KEY: Final = "this service needs a key: send `Authorization: Bearer` and the key"
_WRONG_KEY: Final = "the key is not known here, was revoked or has expired"


log = logging.getLogger(__name__)


class CachedKey(NamedTuple):
    """A key of the catalog that was found a moment ago."""

    until: float
    """By the monotonic clock: until when the catalog is not asked again."""
    expires: float | None
    """By the shared clock: when the key expires."""
    principal: Principal

    def has_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


class Authenticator:
    """Finds the principal of a request by its credential."""

    def __init__(
        self,
        directory: TenantDirectory,
        keys: KeyStore,
        *,
        clock: Callable[[], float],
        secrets: Sequence[str],
        allows_anonymous: bool,
    ) -> None:
        self._directory, self._keys, self._clock = directory, keys, clock
        self._secrets, self._allows_anonymous = secrets, allows_anonymous
        self._cache: dict[str, CachedKey] = {}
        self._unreported: dict[str, float] = {}
        """When keys were last used, by their hashes, as far as the catalog was not told yet."""
        self._reported: dict[str, float] = {}

    @property
    def allows_anonymous(self) -> bool:
        """Whether requests need no key."""
        return self._allows_anonymous

    def replace_directory(self, directory: TenantDirectory, *, allows_anonymous: bool) -> None:
        """Use this directory from now on."""
        self._directory, self._allows_anonymous = directory, allows_anonymous
        self._cache.clear()

    async def principal(self, request: web.Request, scope: Scope) -> Principal:
        """Return the principal. Raises `Unauthorized` without a valid key, `Forbidden` without the scope."""
        if self._allows_anonymous:
            return self._directory.anonymous()
        scheme, _, key = (list_field(request.headers, hdrs.AUTHORIZATION) or "").partition(" ")
        if scheme.lower() != "bearer" or not KEY_PATTERN.fullmatch(key.strip()):
            raise Unauthorized(_NO_KEY if not key.strip() else _WRONG_KEY)
        principal = await self._authenticate(key.strip())
        if scope not in principal.scopes:
            raise Forbidden(
                f"this needs the scope {scope.value}; the key has {', '.join(sorted(principal.scopes))}"
            )
        return principal

    async def refresh(self) -> None:
        """Require keys from now on if there is one now."""
        if self._allows_anonymous and await self._keys.keys():
            self._allows_anonymous = False
            log.warning("there is a key now: from now on every request needs one")

    async def report_uses(self) -> None:
        """Record in the catalog when keys were last used, if one was."""
        used, self._unreported = self._unreported, {}
        if used:
            await self._keys.note_uses(used)

    async def _authenticate(self, key: str) -> Principal:
        """Return the principal of a key, whichever secret it was hashed with. Raises `Unauthorized`."""
        hashes = [hash_key(key, secret) for secret in self._secrets]
        # Both secrets are tried while keys change; the last one decides about the refusal.
        for key_hash in hashes[:-1]:
            with suppress(Unauthorized):
                return await self._lookup(key_hash)
        return await self._lookup(hashes[-1])

    async def _lookup(self, key_hash: str) -> Principal:
        principal = await self._find(key_hash)
        logs.bind_fields(key=key_hash[:KEY_ID_LENGTH])
        now = self._clock()
        if now - self._reported.get(key_hash, -math.inf) >= USE_SECONDS:
            if len(self._reported) >= MAX_CACHED_KEYS:  # costs one more report for each key, no more
                self._reported.clear()
            self._reported[key_hash] = self._unreported[key_hash] = now
        return principal

    async def _find(self, key_hash: str) -> Principal:
        principal = self._directory.find(key_hash, self._clock())
        if principal is not None:
            return principal
        known = self._cache.get(key_hash)
        if known is not None and known.until > time.monotonic() and not known.has_expired(self._clock()):
            return known.principal
        record = await self._keys.find_key(key_hash)
        if record is None or (record.expires is not None and record.expires <= self._clock()):
            self._cache.pop(key_hash, None)
            raise Unauthorized(_WRONG_KEY)
        principal = Principal(tenant=self._directory.tenant(record.tenant), scopes=frozenset(record.scopes))
        self._cache_key(key_hash, principal, record.expires)
        return principal

    def _cache_key(self, key_hash: str, principal: Principal, expires: float | None) -> None:
        if len(self._cache) >= MAX_CACHED_KEYS:
            self._cache.clear()
        self._cache[key_hash] = CachedKey(time.monotonic() + KEY_CACHE_SECONDS, expires, principal)
