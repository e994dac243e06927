"""Tokens of an OIDC issuer (JWT, RFC 7519) as credentials, verified with its public keys."""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace
from overspill.reading.latest import Latest
from overspill.wire import Scope, fit, host_name, is_loopback

from overspill_service.errors import Unauthorized
from overspill_service.settings.errors import SettingError
from overspill_service.tenants.directory import OF_ALL_SESSIONS, TENANT_PATTERN, Principal, SessionBound
from overspill_service.web.issuer_keys import IssuerKeys

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.settings.settings import Settings
    from overspill_service.tenants.directory import TenantDirectory

LEEWAY_SECONDS: Final = 30
"""How far the issuer's clock may be off."""
MAX_TOKEN: Final = 8 * 1024
CACHE_SECONDS: Final = 10.0
"""How long a verified token is trusted without verifying it again."""
MAX_CACHED: Final = 10_000
MAX_SUBJECT: Final = 256
KEY_ID: Final = "jwt"
"""The key id in logs for a request with a token."""
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_REFUSED: Final = "the token is not valid here"
_INSTANTS: Final = ("exp", "nbf", "iat")
_END_OF_TIME: Final = 2**53


def is_token(text: str) -> bool:
    """Return whether a credential has the form of a JWT."""
    return len(text) <= MAX_TOKEN and _FORM.fullmatch(text) is not None


class Forged(Unauthorized):
    """The token is not the issuer's.

    A client that sends many of these is guessing, or wastes the service's time.
    """


class VerifiedToken(NamedTuple):
    """A token that was verified a moment ago. Claims that nobody asks for are not kept."""

    until: float
    """The time, by the monotonic clock, until which it is not verified again."""
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
        """Return the principal of the token. Raises `Unauthorized`, and `CredentialsUnavailable`."""
        digest = _digest(token)
        verified = self._look_up(digest)
        if verified is None:
            claims = await self._verify(token)
            principal = self._principal_of(claims, directory)
            verified = VerifiedToken(time.monotonic() + CACHE_SECONDS, float(claims["exp"]), principal)
            self._cache[digest] = verified
        return replace(verified.principal, tenant=directory.tenant(verified.principal.tenant.name))

    def is_known(self, token: str) -> bool:
        """Return whether the token was verified here before, so it is not forged."""
        verified = self._cache.get(_digest(token))
        return verified is not None and verified.expires > self._clock()

    def _look_up(self, digest: bytes) -> VerifiedToken | None:
        verified = self._cache.get(digest)
        is_fresh = (
            verified is not None and verified.until > time.monotonic() and verified.expires > self._clock()
        )
        return verified if is_fresh else None

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
        is_bound = settings.jwt_session_claim in claims
        session = claims.get(settings.jwt_session_claim)
        if is_bound and not isinstance(session, str):  # null too: the issuer knew of no session
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
    """Return the token's subject (RFC 7519, section 4.1.2) in a form for logs."""
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
