"""Tenants with their limits, who a request comes from, and the tenants' file."""

from __future__ import annotations

import os
import stat
import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct
from overspill.wire import END, Scope

from overspill_service.errors import Forbidden
from overspill_service.settings.units import BYTES, LONGEST_TTL, SECONDS, parse_values

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TENANT_PATTERN: Final = "^[a-z0-9][a-z0-9-]{0,62}" + END
DEFAULT_TENANT: Final = "default"
KEY_ID_LENGTH: Final = 12
WARNING_SECONDS: Final = 14 * 24 * 3600.0
"""How long before its end a key is said to expire."""
LOCAL: Final = "local"
"""The id, in logs, of the key of this machine's user."""
ALL_SCOPES: Final = frozenset(Scope)
OF_ALL_SESSIONS: Final = frozenset({Scope.ADMIN, Scope.FLEET})
"""Scopes that no credential of some sessions has."""
MAX_FILE_SIZE: Final = 16 * 2**20
"""Bytes of the tenants' file, at most."""

TOTALS: Final = ("max_captures", "max_stored_size", "max_content_size", "max_metadata_size")
"""The limits on a tenant's totals."""

Redaction = Literal["off", "mask", "tag", "refuse"]
TenantName = Annotated[str, Meta(pattern=TENANT_PATTERN)]


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one tenant. Sizes in bytes, times in seconds; 0 is no limit on a total."""

    max_capture_size: int
    max_stored_size: int
    max_captures: int
    max_content_size: int = 0
    max_metadata_size: int = 0
    are_exact: bool = True
    """Somebody has set a limit on a total. Then captures are refused while the totals are not known."""
    default_ttl: int
    max_ttl: int
    min_ttl: int = 1
    max_scan_cpu: int = 0
    """Seconds of CPU time of scans a minute, on all replicas."""
    max_request_rate: int = 0
    max_key_share: int = 100
    """Percent of the rate that one key may use while others are in use."""
    redaction: Redaction = "off"
    """The treatment of secrets in stored content: keep them, stars, a tag with their kind, or a refusal."""


class Tenant(Struct, frozen=True, kw_only=True):
    name: str
    limits: Limits
    audits_reads: bool = False
    """Whether the audit log has a line for each read too."""


class SessionBound(Struct, frozen=True):
    """The sessions that a key may use: one, or all that begin so."""

    session: str
    is_prefix: bool = False

    def allows(self, session: str) -> bool:
        return session.startswith(self.session) if self.is_prefix else session == self.session

    def __str__(self) -> str:
        return f"sessions that begin with {self.session!r}" if self.is_prefix else f"session {self.session!r}"


class Expiry(Struct, frozen=True):
    """The times at which a key expires and was made, in seconds since the epoch; 0 if unknown."""

    at: float
    created: float = 0

    def is_near(self, now: float) -> bool:
        """Return whether to warn its holder: in its last two weeks, or the last quarter of its life."""
        return now >= self.at - min(WARNING_SECONDS, (self.at - self.created) / 4)


class Principal(Struct, frozen=True, kw_only=True):
    """The sender of a request: the tenant, the scopes of the key, and the sessions that it may use."""

    tenant: Tenant
    scopes: frozenset[Scope]
    session: SessionBound | None = None
    """None for a key of all sessions."""
    key_id: str = ""
    """The id of the key, for logs. Empty without one."""
    expiry: Expiry | None = None
    """None for a key without an end, and for tokens, whose holders renew them all the time."""
    subject: str = ""
    """The subject of a token according to its issuer, for logs."""
    key_hash: str = ""
    """The name of the key in sessions of the web page. Empty if the credential cannot have sessions."""

    @property
    def name(self) -> str:
        """The name of this reader in captures: the subject of a token, else the key's id."""
        return self.subject or self.key_id

    def require(self, scope: Scope) -> None:
        """Raise `Forbidden` if the key lacks the scope."""
        if scope not in self.scopes:
            own = ", ".join(sorted(self.scopes))
            raise Forbidden(f"this needs the scope {scope.value}; the key has {own}")


class FileKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key in the tenants' file."""

    hash: Annotated[str, Meta(pattern="^[0-9a-f]{64}" + END)]
    scopes: list[Scope]
    name: str = ""
    expires: Annotated[float, Meta(ge=0)] | None = None
    session: str | None = None
    is_prefix: bool = False


class FileTenant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant in the tenants' file. A missing limit is the service's default."""

    name: TenantName
    keys: list[FileKey] = []
    max_capture_size: Annotated[int, Meta(ge=1, extra=BYTES)] | None = None
    max_stored_size: Annotated[int, Meta(ge=0, extra=BYTES)] | None = None
    max_captures: Annotated[int, Meta(ge=0)] | None = None
    max_content_size: Annotated[int, Meta(ge=0, extra=BYTES)] | None = None
    max_metadata_size: Annotated[int, Meta(ge=0, extra=BYTES)] | None = None
    default_ttl: Annotated[int, Meta(ge=1, extra=SECONDS)] | None = None
    max_ttl: Annotated[int, Meta(ge=1, le=LONGEST_TTL, extra=SECONDS)] | None = None
    min_ttl: Annotated[int, Meta(ge=1, extra=SECONDS)] | None = None
    max_scan_cpu: Annotated[int, Meta(ge=0, extra=SECONDS)] | None = None
    max_request_rate: Annotated[int, Meta(ge=0)] | None = None
    max_key_share: Annotated[int, Meta(ge=1, le=100)] | None = None
    redaction: Redaction | None = None
    audit_reads: bool = False

    def limits(self, defaults: Limits) -> Limits:
        """Return all limits. Raises `ValueError` if the default TTL is outside the tenant's own bounds."""
        values = {name: getattr(self, name, None) for name in Limits.__struct_fields__}
        own_limits = {name: value for name, value in values.items() if value is not None}
        are_exact = defaults.are_exact or any(map(own_limits.get, TOTALS))
        limits = msgspec.structs.replace(defaults, are_exact=are_exact, **own_limits)
        if not limits.min_ttl <= limits.default_ttl <= limits.max_ttl:
            raise ValueError(
                f"the tenant {self.name}: default_ttl ({limits.default_ttl}) must lie between "
                f"min_ttl ({limits.min_ttl}) and max_ttl ({limits.max_ttl})"
            )
        return limits


class TenantsFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tenants: list[FileTenant] = []


def read_tenants(path: Path) -> list[FileTenant]:
    """Return the tenants of a TOML file. Raises `ValueError` that says what is wrong where."""
    try:
        document = tomllib.loads(_text_of(path))
        tenants = msgspec.convert(_with_numbers(document), TenantsFile).tenants
        for tenant in tenants:
            _require_bound(tenant)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # the base class of TOML's, UTF-8's and msgspec's errors
        raise ValueError(f"{path}: {error}") from error
    except RecursionError:
        raise ValueError(f"{path}: its values are nested too deeply") from None
    _refuse_duplicates(path, "tenant", [tenant.name for tenant in tenants])
    _refuse_duplicates(path, "key hash", [key.hash for tenant in tenants for key in tenant.keys])
    return tenants


def _text_of(path: Path) -> str:
    """Return the text of a file, and of nothing that may never end. Raises `OSError`, `ValueError`."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("this is not a file")
        data = file.read(MAX_FILE_SIZE + 1)
    if len(data) > MAX_FILE_SIZE:
        raise ValueError(f"the file has more than {MAX_FILE_SIZE} bytes")
    if not data:
        raise ValueError(
            "the file is empty, as if it were being written; to have no tenants, put a comment in it"
        )
    return data.decode()


def _require_bound(tenant: FileTenant) -> None:
    """Raise `ValueError` if a key that is to be bound to sessions would reach all of them."""
    for key in tenant.keys:
        if key.is_prefix and not key.session:
            raise ValueError(
                f"the tenant {tenant.name}: a key with is_prefix needs a session that is not empty"
            )
        if key.session is not None and not OF_ALL_SESSIONS.isdisjoint(key.scopes):
            raise ValueError(f"the tenant {tenant.name}: a key with a session cannot have admin or fleet")


def _with_numbers(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with its tenants' sizes and durations as numbers. Raises `ValueError`."""
    tenants = document.get("tenants", [])
    if not isinstance(tenants, list):
        return document
    read = [parse_values(each, FileTenant) if isinstance(each, dict) else each for each in tenants]
    return document | {"tenants": read}


def _refuse_duplicates(path: Path, label: str, values: Iterable[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{path}: the {label} {value} is given twice")
        seen.add(value)


class TenantDirectory:
    """The tenants of the tenants' file, with limits and keys. Other tenants have the default limits."""

    def __init__(self, defaults: Limits, tenants: Iterable[FileTenant] = ()) -> None:
        self._defaults = defaults
        self._anonymous: Principal | None = None
        self._tenants: dict[str, Tenant] = {}
        self._file_keys: list[tuple[str, FileKey]] = []
        self._keys: dict[str, Principal] = {}
        for each in tenants:
            tenant = Tenant(name=each.name, limits=each.limits(defaults), audits_reads=each.audit_reads)
            self._tenants[each.name] = tenant
            self._file_keys += [(each.name, key) for key in each.keys]
            self._keys |= {key.hash: _principal(tenant, key) for key in each.keys}

    @property
    def has_keys(self) -> bool:
        return bool(self._keys)

    def file_keys(self) -> list[tuple[str, FileKey]]:
        """Return the keys of the tenants' file, each with its tenant."""
        return self._file_keys

    def tenant(self, name: str) -> Tenant:
        return self._tenants.get(name) or Tenant(name=name, limits=self._defaults)

    def anonymous(self) -> Principal:
        """Return the principal of a service without keys: the default tenant with every scope."""
        if self._anonymous is None:
            self._anonymous = Principal(tenant=self.tenant(DEFAULT_TENANT), scopes=ALL_SCOPES)
        return self._anonymous

    def local(self, key_hash: str) -> Principal:
        """Return the principal of this machine's user: the default tenant with every scope."""
        return Principal(
            tenant=self.tenant(DEFAULT_TENANT), scopes=ALL_SCOPES, key_id=LOCAL, key_hash=key_hash
        )

    def knows(self, key_hash: str) -> bool:
        """Return whether the tenants' file has this key, expired or not."""
        return key_hash in self._keys

    def find(self, key_hash: str, now: float) -> Principal | None:
        """Return the principal of a key of the tenants' file, None if there is none or it has expired."""
        principal = self._keys.get(key_hash)
        if principal is None or (principal.expiry is not None and principal.expiry.at <= now):
            return None
        return principal


def _principal(tenant: Tenant, key: FileKey) -> Principal:
    return Principal(
        tenant=tenant,
        scopes=frozenset(key.scopes),
        session=None if key.session is None else SessionBound(key.session, key.is_prefix),
        key_id=key.hash[:KEY_ID_LENGTH],
        key_hash=key.hash,
        expiry=None if key.expires is None else Expiry(key.expires),
    )
