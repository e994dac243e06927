"""Who sent a request: the credential in it decides, and nothing else."""

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
    from overspill_service.tenants import Directory

REMEMBERED_SECONDS: Final = 15.0
"""How long a key found in the catalog is trusted without asking again: the most that a revocation lags."""
REMEMBERED_KEYS: Final = 10_000
USE_SECONDS: Final = 60.0
"""How exactly the last use of a key is known."""
_NO_KEY: Final = "this service needs a key: send `Authorization: Bearer` and the key"
_WRONG_KEY: Final = "the key is not known here, was revoked or has expired"


log = logging.getLogger(__name__)


class Remembered(NamedTuple):
    """A key of the catalog that was found a moment ago."""

    until: float
    """By the monotonic clock: how long nobody asks the catalog again."""
    expires: float | None
    """By the shared clock: when the key itself expires."""
    principal: Principal

    def has_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now


class Authenticator:
    """Tells from a request's credential, and from nothing else, who asks."""

    def __init__(
        self,
        directory: Directory,
        keys: KeyStore,
        *,
        clock: Callable[[], float],
        secrets: Sequence[str],
        allows_anonymous: bool,
    ) -> None:
        self._directory, self._keys, self._clock = directory, keys, clock
        self._secrets, self._allows_anonymous = secrets, allows_anonymous
        self._remembered: dict[str, Remembered] = {}
        self._unreported: dict[str, float] = {}
        """When keys were last used, by their hashes, as far as the catalog is to be told."""
        self._reported: dict[str, float] = {}

    @property
    def allows_anonymous(self) -> bool:
        """Whether everyone may do everything."""
        return self._allows_anonymous

    def replace_directory(self, directory: Directory, *, allows_anonymous: bool) -> None:
        """Let in whom this directory names, from now on."""
        self._directory, self._allows_anonymous = directory, allows_anonymous
        self._remembered.clear()

    async def principal(self, request: web.Request, scope: Scope) -> Principal:
        """Who asks. Raises `Unauthorized` without a valid key, `Forbidden` where it lacks the scope."""
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
        """Close an open service if there is a key now."""
        if self._allows_anonymous and await self._keys.keys():
            self._allows_anonymous = False
            log.warning("there is a key now: from now on every request needs one")

    async def report_uses(self) -> None:
        """Tell the catalog when keys were last used, if one was."""
        used, self._unreported = self._unreported, {}
        if used:
            await self._keys.note_uses(used)

    async def _authenticate(self, key: str) -> Principal:
        """Who a key stands for, whichever of the secrets it was hashed with. Raises `Unauthorized`."""
        hashes = [hash_key(key, secret) for secret in self._secrets]
        for key_hash in hashes[:-1]:
            with suppress(Unauthorized):
                return await self._lookup(key_hash)
        return await self._lookup(hashes[-1])

    async def _lookup(self, key_hash: str) -> Principal:
        principal = await self._find(key_hash)
        logs.bind_fields(key=key_hash[:KEY_ID_LENGTH])
        now = self._clock()
        if now - self._reported.get(key_hash, -math.inf) >= USE_SECONDS:
            if len(self._reported) >= REMEMBERED_KEYS:
                self._reported.clear()
            self._reported[key_hash] = self._unreported[key_hash] = now
        return principal

    async def _find(self, key_hash: str) -> Principal:
        principal = self._directory.find(key_hash, self._clock())
        if principal is not None:
            return principal
        known = self._remembered.get(key_hash)
        if known is not None and known.until > time.monotonic() and not known.has_expired(self._clock()):
            return known.principal
        record = await self._keys.find_key(key_hash)
        if record is None or (record.expires is not None and record.expires <= self._clock()):
            self._remembered.pop(key_hash, None)
            raise Unauthorized(_WRONG_KEY)
        principal = Principal(tenant=self._directory.tenant(record.tenant), scopes=frozenset(record.scopes))
        self._remember(key_hash, principal, record.expires)
        return principal

    def _remember(self, key_hash: str, principal: Principal, expires: float | None) -> None:
        if len(self._remembered) >= REMEMBERED_KEYS:
            self._remembered.clear()
        self._remembered[key_hash] = Remembered(time.monotonic() + REMEMBERED_SECONDS, expires, principal)
