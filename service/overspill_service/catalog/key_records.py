"""API keys as a catalog keeps them, and whether requests need one. Instants are seconds since the epoch."""

from enum import StrEnum
from typing import Self

from msgspec import Struct
from overspill import wire

from overspill_service.tenants.directory import KEY_ID_LENGTH


class AccessMode(StrEnum):
    """The choice whether requests need a key. It is stored, and never inferred from the keys that exist."""

    CLOSED = "closed"
    UNTIL_KEY = "until_key"
    """Open until the first key is made: the choice of who wants no keys at all."""
    OPEN = "open"
    """Open although there are keys."""

    @property
    def is_open(self) -> bool:
        return self is not AccessMode.CLOSED

    @classmethod
    def stored(cls, word: str) -> Self | None:
        """Return the mode that a catalog has. None for a damaged word: the object store then tells it."""
        return next((mode for mode in cls if mode == word), None)


class KeyRecord(Struct, frozen=True, kw_only=True):
    """An API key as it is stored: only its keyed hash, in hexadecimal, never the key."""

    hash: str
    tenant: str
    scopes: list[wire.Scope]
    name: str = ""
    created: float = 0
    expires: float | None = None
    session: str | None = None
    """The only session that the key may use; None for a key of all sessions."""
    is_prefix: bool = False
    """`session` is the beginning of the sessions that the key may use."""
    secret: str = ""
    """The id of the secret that the key is hashed with."""
    replaces: str = ""
    """The id of the key that this one was made to replace."""
    first_id: str = ""
    """The id that the key had before it was hashed with another secret. Empty if it never was."""

    @property
    def id(self) -> str:
        """The beginning of the first hash, which people and logs use as the key's name."""
        return self.first_id or self.hash[:KEY_ID_LENGTH]

    def is_expired(self, now: float) -> bool:
        return self.expires is not None and self.expires <= now
