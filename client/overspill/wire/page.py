"""Signing in at the web page."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)

from msgspec import Struct

from overspill.wire.paths import Scope  # noqa: TC001  (as above)


class SignIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body that signs a browser in: a key, or a code that somebody with a key has asked for."""

    key: str = ""
    code: str = ""


class SignedIn(Struct, frozen=True, kw_only=True):
    """The sender of a request to the page, and what they may do."""

    tenant: str
    scopes: list[Scope]
    session: str | None = None
    """The only session that the key may use; null for all."""
    is_prefix: bool = False
    """Whether `session` is only the beginning of the names of the key's sessions."""
    key: str = ""
    """The id of the key; empty if no key is needed."""
    token: str = ""
    """The `Overspill-Page-Token` that requests which change something need, besides the cookie."""
    until: datetime | None = None
    """When the session ends; null if there is no session, because nobody needs to sign in."""


class SignInCode(Struct, frozen=True, kw_only=True):
    """A code that signs one browser in, once. It is empty where nobody needs to sign in."""

    code: str
    until: datetime
