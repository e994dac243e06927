"""Sessions of the web page: a browser holds one instead of a key, sealed by the service.

    base64url(claims as JSON) . base64url(HMAC-SHA-256 of that)

The claims name the key by its hash, so a session has the scopes of its key and ends with it. Nothing is
stored for a session until it is signed out. The catalog remembers that for as long as it would have lasted.
The secret of the seals is an object that all replicas share.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from overspill.reading.latest import Latest
from overspill.wire import Header

from overspill_service.errors import Forbidden, RateExceeded
from overspill_service.resources.token_buckets import TokenBuckets
from overspill_service.store_format.object_keys import PAGE_SECRET

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from overspill_service.catalog import Catalog
    from overspill_service.objects import ObjectStore
    from overspill_service.tenants.directory import Principal

COOKIE: Final = "overspill_page"
SESSION_SECONDS: Final = 12 * 3600
CODE_SECONDS: Final = 120
SECRET_BYTES: Final = 32
MAX_COOKIE: Final = 4096
SAFE: Final = frozenset({"GET", "HEAD"})
TRUST_SECONDS: Final = 10.0
"""Seconds for which a session that was not signed out is not looked up again."""
MAX_TRUSTED: Final = 10_000
SIGN_INS_RATE: Final = 1.0
SIGN_INS_BURST: Final = 60
"""Sessions and codes that a tenant gets: the catalog remembers for hours which were used, or signed out."""
MAX_TENANTS: Final = 10_000


class Use(StrEnum):
    """The use of sealed claims."""

    SESSION = "session"
    CODE = "code"
    """To sign in, once."""


class Claims(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The claims that are sealed. `until` in seconds since the epoch."""

    key: str
    """The hash of the key that was signed in with."""
    use: Use
    until: int
    nonce: str


class PageSessions:
    """Seals and opens the sessions of the web page. `clock` gives seconds since the epoch."""

    def __init__(self, store: ObjectStore, catalog: Catalog, clock: Callable[[], float]) -> None:
        self._store, self._catalog, self._clock = store, catalog, clock
        self._secret = b""
        self._trusted: Latest[str, float] = Latest(MAX_TRUSTED)
        """By the nonces of sessions: until when, by the monotonic clock, they are not looked up again."""
        self._lock = asyncio.Lock()
        self._rates = TokenBuckets(
            "sign-ins", SIGN_INS_RATE, SIGN_INS_BURST, time.monotonic, max_keys=MAX_TENANTS
        )

    async def session_for(self, principal: Principal) -> tuple[str, Claims]:
        """Return a new session for a key. Raises `RateExceeded`."""
        self._count(principal)
        return await self._sealed(principal.key_hash, Use.SESSION, SESSION_SECONDS)

    async def code_for(self, principal: Principal) -> tuple[str, Claims]:
        """Return a code that signs a browser in, once, within `CODE_SECONDS`. Raises `RateExceeded`."""
        self._count(principal)
        return await self._sealed(principal.key_hash, Use.CODE, CODE_SECONDS)

    def _count(self, principal: Principal) -> None:
        bucket = self._rates.of(principal.tenant.name)
        if seconds := bucket.take():
            raise RateExceeded("the tenant signs in too often", SIGN_INS_BURST, seconds, bucket.policy)

    async def claims(self, request: web.Request) -> Claims | None:
        """Return the claims of a request's session, None if it has none, or one that has ended.

        A read with the token of another session has none: another tab of the browser has signed in with
        another key, and its cookie came instead. Raises `Forbidden` if the request would change something
        without the session's token: a page of another site can make a browser send the cookie, but cannot
        know the token.
        """
        sealed = request.cookies.get(COOKIE, "")
        found = await self._session(sealed)
        if found is None:
            return None
        token = request.headers.get(Header.PAGE_TOKEN, "").encode("utf-8", "replace")
        if hmac.compare_digest(token, self.token_of(sealed).encode()):
            return found
        if request.method not in SAFE:
            raise Forbidden(f"a session of the web page changes nothing without {Header.PAGE_TOKEN}")
        return None if token else found

    async def _session(self, sealed: str) -> Claims | None:
        found, asked_at = await self._unseal(sealed, Use.SESSION) if sealed else None, time.monotonic()
        if found is None or self._trusted.get(found.nonce, 0.0) > asked_at:
            return found
        if await self._catalog.is_leased(_sign_out_lease(found)):
            return None
        self._trusted[found.nonce] = asked_at + TRUST_SECONDS
        return found

    async def end(self, sealed: str) -> None:
        """Sign a session out: its cookie stops working; on other replicas after some seconds."""
        found = await self._unseal(sealed, Use.SESSION) if sealed else None
        if found is not None:
            await self._catalog.lease(_sign_out_lease(found), "page", found.until - self._clock())
            self._trusted.pop(found.nonce, None)

    async def redeem(self, code: str) -> Claims | None:
        """Return the claims of a code, None if it is wrong, has ended or was used before on any replica."""
        found = await self._unseal(code, Use.CODE)
        if found is None:
            return None
        is_first = await self._catalog.lease(f"page:{found.nonce}", secrets.token_hex(8), 2.0 * CODE_SECONDS)
        return found if is_first else None

    def token_of(self, sealed: str) -> str:
        """Return the token that requests of this session need to change something."""
        return _encoded(_mac(self._secret, b"token:" + sealed.encode()))

    async def _sealed(self, key: str, use: Use, seconds: int) -> tuple[str, Claims]:
        until = int(self._clock()) + seconds
        claims = Claims(key=key, use=use, until=until, nonce=secrets.token_hex(16))
        body = _encoded(msgspec.json.encode(claims))
        return f"{body}.{_encoded(_mac(await self._shared_secret(), body.encode()))}", claims

    async def _unseal(self, sealed: str, use: Use) -> Claims | None:
        body, _, seal = sealed.partition(".")
        if len(sealed) > MAX_COOKIE or not sealed.isascii():
            return None
        expected = _encoded(_mac(await self._shared_secret(), body.encode()))
        if not hmac.compare_digest(seal, expected):
            return None
        claims = msgspec.json.decode(base64.urlsafe_b64decode(body + "=="), type=Claims)
        return claims if claims.use is use and claims.until > self._clock() else None

    async def _shared_secret(self) -> bytes:
        """Return the secret of all replicas. The first one that needs it makes it."""
        async with self._lock:
            if not self._secret:
                await self._store.put(PAGE_SECRET, [secrets.token_bytes(SECRET_BYTES)])
                self._secret = await self._store.read(PAGE_SECRET, 0, SECRET_BYTES)
            return self._secret


def _sign_out_lease(claims: Claims) -> str:
    """Return the name of the lease that says that a session was signed out."""
    return f"page-ended:{claims.nonce}"


def _mac(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, data, hashlib.sha256)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
