"""Tokens of an OIDC issuer (JWT, RFC 7519) as credentials: verified with its public keys (JWKS, RFC 7517).

Only signatures with a public key are taken: with a shared secret, whoever can verify could also sign.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import os
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import aiohttp
from aiohttp import hdrs
from msgspec.structs import replace
from overspill.reading.latest import Latest
from overspill.wire import Scope, fit, host_name, is_loopback

from overspill_service.errors import CredentialsUnavailable, Unauthorized
from overspill_service.resources.tasks import run_to_completion
from overspill_service.settings.errors import SettingError
from overspill_service.tenants.directory import OF_ALL_SESSIONS, TENANT_PATTERN, Principal, SessionBound

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.settings.settings import Settings
    from overspill_service.tenants.directory import TenantDirectory

RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS: Final = (*RSA_ALGORITHMS, "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS: Final = 30
"""How far the issuer's clock may be off."""
REFRESH_SECONDS: Final = 300.0
"""How long the issuer's keys are used before they are read again."""
RETRY_SECONDS: Final = 10.0
"""How long a key that is not among them is not looked for again: anybody can name any key in a token."""
FETCH_SECONDS: Final = 5.0
MAX_BYTES: Final = 2**20
MAX_TOKEN: Final = 8 * 1024
CACHE_SECONDS: Final = 10.0
"""How long a verified token is trusted without verifying it again."""
MAX_CACHED: Final = 10_000
MAX_SUBJECT: Final = 256
KEY_ID: Final = "jwt"
"""The id, in logs, of who came with a token."""
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_REFUSED: Final = "the token is not valid here"
_KINDS: Final = ("RSA", "EC", "OKP")
"""Kinds of keys (`kty`, RFC 7518, section 6.1, and RFC 8037) with which only their owner can sign."""
_INSTANTS: Final = ("exp", "nbf", "iat")
_END_OF_TIME: Final = 2**53

log = logging.getLogger(__name__)


def is_token(text: str) -> bool:
    """Return whether a credential has the form of a JWT."""
    return len(text) <= MAX_TOKEN and _FORM.fullmatch(text) is not None


class IssuerKey(NamedTuple):
    """A public key of the issuer, and the algorithms that it may verify."""

    key: Any
    algorithms: tuple[str, ...]


class IssuerKeys:
    """The issuer's public keys, by their ids. Read again now and then, and when a token names another one."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._keys: dict[str, IssuerKey] = {}
        self._read_at = self._tried_at = -math.inf
        self._lock = asyncio.Lock()

    async def find(self, key_id: str) -> IssuerKey | None:
        """Return the key, None if the issuer has none with this id. Raises `CredentialsUnavailable`.

        A request with a known key never waits for requests that invent one. A client that hangs up does not
        end the reading: otherwise one that hangs up again and again would keep all others from new keys.
        """
        if key_id not in self._keys or self._is_worth_reading(key_id):
            async with self._lock:
                if self._is_worth_reading(key_id):
                    self._tried_at = time.monotonic()
                    await run_to_completion(self._refresh())
        if self._read_at == -math.inf:
            raise CredentialsUnavailable("the issuer's public keys cannot be read now; try again in a moment")
        return self._keys.get(key_id)

    def _is_worth_reading(self, key_id: str) -> bool:
        now = time.monotonic()
        is_old = now - self._read_at > REFRESH_SECONDS
        return (is_old or key_id not in self._keys) and now - self._tried_at > RETRY_SECONDS

    async def _refresh(self) -> None:
        """Read the keys. If that fails, those that were read before stay in use."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                text = await (self._fetch() if "://" in self._source else asyncio.to_thread(self._load))
            keys = await asyncio.to_thread(_keys_of, text)  # a MiB of keys takes long
        except (OSError, aiohttp.ClientError, ValueError, RecursionError) as error:
            log.warning("the issuer's public keys cannot be read: %s: %s", type(error).__name__, error)
        else:
            self._keys = keys
            self._read_at = time.monotonic()

    async def _fetch(self) -> str:
        """Return what the issuer serves. Nothing is decompressed: a small answer may be a large text."""
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.get(
                self._source, allow_redirects=False, headers={hdrs.ACCEPT_ENCODING: "identity"}
            ) as answer,
        ):
            if answer.status != HTTPStatus.OK:
                raise ValueError(f"{self._source} answers {answer.status}")
            data = bytearray()
            async for piece in answer.content.iter_any():
                data += piece
                if len(data) > MAX_BYTES:
                    raise ValueError(f"more than {MAX_BYTES} bytes")
        return data.decode()

    def _load(self) -> str:
        at_once = os.O_RDONLY | os.O_NONBLOCK  # a pipe would keep its thread for ever
        with os.fdopen(os.open(self._source, at_once), "rb") as file:
            return (file.read(MAX_BYTES) or b"").decode()


def _keys_of(text: str) -> dict[str, IssuerKey]:
    """Return the keys of a JWKS by their ids, without those that verify no token.

    Raises `ValueError` if there are none, and `RecursionError` for nesting without end.
    """
    keys = {}
    document = json.loads(text)
    listed = document.get("keys") if isinstance(document, dict) else None
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(name := each.get("kid", ""), str):
            key = _key_of(each)
            if key is not None:
                keys[name] = key
    if not keys:
        raise ValueError("no public key for signatures is in it")
    return keys


def _key_of(described: dict[str, Any]) -> IssuerKey | None:
    """Return the key that one entry of a JWKS describes, None if it verifies no token."""
    from jwt import PyJWK  # noqa: PLC0415  (an extra)
    from jwt.exceptions import PyJWTError  # noqa: PLC0415

    is_for_signatures = described.get("use", "sig") == "sig" and described.get("kty") in _KINDS
    if not is_for_signatures or described.get("alg", ALGORITHMS[0]) not in ALGORITHMS:
        return None
    try:
        key = PyJWK(described)
    except (PyJWTError, ValueError, TypeError):
        return None
    # One without `alg` is for all algorithms of its kind (RFC 7517, section 4.4).
    is_for_all = described["kty"] == "RSA" and "alg" not in described
    return IssuerKey(key.key, RSA_ALGORITHMS) if is_for_all else IssuerKey(key, ALGORITHMS)


class Forged(Unauthorized):
    """The token is not of the issuer: whoever sends many of these guesses, or wastes the service's time."""


class VerifiedToken(NamedTuple):
    """A token that was verified a moment ago. Claims that nobody asks for are not kept."""

    until: float
    """By the monotonic clock: until when it is not verified again."""
    expires: float
    """By the shared clock."""
    principal: Principal


class Tokens:
    """Verifies tokens. Belongs to one event loop."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        """`clock` gives seconds since the epoch. Raises `SettingError`."""
        _check(settings)
        self._settings, self._clock = settings, clock
        self._keys = IssuerKeys(settings.jwt_keys)
        self._cache: Latest[bytes, VerifiedToken] = Latest(MAX_CACHED)

    async def principal(self, token: str, directory: TenantDirectory) -> Principal:
        """Return who the token stands for. Raises `Unauthorized`, and `CredentialsUnavailable`."""
        digest = _digest(token)
        known = self._look_up(digest)
        if known is None:
            claims = await self._verify(token)
            principal = self._principal_of(claims, directory)
            known = VerifiedToken(time.monotonic() + CACHE_SECONDS, float(claims["exp"]), principal)
            self._cache[digest] = known
        return replace(known.principal, tenant=directory.tenant(known.principal.tenant.name))

    def is_known(self, token: str) -> bool:
        """Return whether the token was verified here before: nobody has forged it."""
        known = self._cache.get(_digest(token))
        return known is not None and known.expires > self._clock()

    def _look_up(self, digest: bytes) -> VerifiedToken | None:
        known = self._cache.get(digest)
        is_fresh = known is not None and known.until > time.monotonic() and known.expires > self._clock()
        return known if is_fresh else None

    async def _verify(self, token: str) -> dict[str, Any]:
        import jwt  # noqa: PLC0415  (an extra)

        try:
            key = await self._keys.find(str(jwt.get_unverified_header(token).get("kid", "")))
            if key is None:
                raise Forged(f"{_REFUSED}: its issuer has no such key")
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=key.algorithms,
                audience=self._settings.jwt_audience,
                issuer=self._settings.jwt_issuer,
                options={  # instants are compared with the clock that all replicas share
                    "require": ["exp", "iss", "aud"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.DecodeError, jwt.InvalidAlgorithmError, jwt.exceptions.InvalidKeyError) as error:
            raise Forged(f"{_REFUSED}: {error}") from error
        except jwt.exceptions.PyJWTError as error:
            raise Unauthorized(f"{_REFUSED}: {error}") from error
        _require_instants(claims, self._clock())
        return claims

    def _principal_of(self, claims: dict[str, Any], directory: TenantDirectory) -> Principal:
        settings = self._settings
        tenant = claims.get(settings.jwt_tenant_claim)
        if not isinstance(tenant, str) or not re.fullmatch(TENANT_PATTERN, tenant):
            raise Unauthorized(f"{_REFUSED}: its claim {settings.jwt_tenant_claim} names no tenant")
        session = claims.get(settings.jwt_session_claim)
        if session is not None and not isinstance(session, str):
            raise Unauthorized(f"{_REFUSED}: its claim {settings.jwt_session_claim} is not text")
        words = claims.get(settings.jwt_scopes_claim, "")
        words = words.split() if isinstance(words, str) else words if isinstance(words, list) else []
        scopes = frozenset(scope for scope in Scope if scope.value in words)
        return Principal(
            tenant=directory.tenant(tenant),
            scopes=scopes if session is None else scopes - OF_ALL_SESSIONS,
            session=None if session is None else SessionBound(session),
            key_id=KEY_ID,
            subject=_subject_of(claims),
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _require_instants(claims: dict[str, Any], now: float) -> None:
    """Raise `Unauthorized` if an instant is not a number of seconds (RFC 7519, section 2), or says no."""
    for name in _INSTANTS:
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _END_OF_TIME:
            raise Unauthorized(f"{_REFUSED}: its claim {name} is not a number of seconds since 1970")
    if claims["exp"] <= now - LEEWAY_SECONDS:
        raise Unauthorized(f"{_REFUSED}: it has expired")
    if max(claims.get("nbf", 0), claims.get("iat", 0)) > now + LEEWAY_SECONDS:
        raise Unauthorized(f"{_REFUSED}: it is not valid yet")


def _subject_of(claims: dict[str, Any]) -> str:
    """Return who the token is about (RFC 7519, section 4.1.2), as logs may have it."""
    subject = claims.get("sub")
    return fit(subject, MAX_SUBJECT) if isinstance(subject, str) else ""


def _check(settings: Settings) -> None:
    try:
        import jwt  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        raise SettingError(
            "jwt_issuer needs a library: from a checkout: pip install './service[jwt]'"
        ) from error
    scheme, separator, rest = settings.jwt_keys.partition("://")
    if not settings.jwt_keys or not settings.jwt_audience:
        raise SettingError(
            "jwt_issuer needs jwt_keys, a file or an https:// URL with its public keys, and jwt_audience"
        )
    if separator and scheme != "https" and not is_loopback(host_name(rest.partition("/")[0])):
        raise SettingError(f"jwt_keys={settings.jwt_keys}: keys are fetched over https:// only")
