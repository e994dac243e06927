"""API keys over HTTP: what an admin key may make and see. A key itself is shown once, when it is made."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from typing import Annotated, Final

from msgspec import Meta, Struct

from overspill.wire.identity import MAX_VALUE
from overspill.wire.paths import Scope

MAX_NAME: Final = 200
MAX_LIFE: Final = 100 * 365 * 24 * 3600
"""Seconds that a key may live, if it has an end."""
_Seconds = Annotated[int, Meta(ge=1, le=MAX_LIFE)]


class NewKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request for a key. `ttl` in seconds; null is a key without end."""

    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=len(Scope))]
    name: Annotated[str, Meta(max_length=MAX_NAME)] = ""
    ttl: _Seconds | None = 365 * 24 * 3600
    session: Annotated[str, Meta(max_length=MAX_VALUE)] | None = None
    """The only session that the key may use; null for all."""
    is_prefix: bool = False
    """`session` is what every session begins with that the key may use."""


class Rotation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a rotation: seconds that the new key lives, and that the old one still works."""

    ttl: _Seconds | None = 365 * 24 * 3600
    overlap: _Seconds | None = 7 * 24 * 3600


class Key(Struct, frozen=True, kw_only=True):
    """The record of a key, without the key itself."""

    id: str
    name: str
    scopes: list[Scope]
    session: str | None
    is_prefix: bool
    created: datetime
    expires: datetime | None
    last_used: datetime | None = None
    """To the minute; null if it was never used."""


class IssuedKey(Struct, frozen=True, kw_only=True):
    """A new key. It is shown here and never again: only its hash is stored."""

    key: str
    about: Key


class Keys(Struct, frozen=True, kw_only=True):
    """The tenant's keys, oldest first. Those of the tenants' file are not among them."""

    keys: list[Key]
