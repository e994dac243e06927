"""A client's settings, read and checked once: the service's URL, the key, timeouts and retries."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from overspill import wire
from overspill.transfer.argument_checks import check_text

_PORTS: Final = {"http": 80, "https": 443}
_LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Address(Struct, frozen=True, kw_only=True):
    """A service and how to reach it. Timeouts are seconds; `retries` counts attempts after the first."""

    url: str
    key: str
    timeout: float
    connect_timeout: float
    retries: int

    @property
    def is_local(self) -> bool:
        """Whether the service runs on this machine."""
        return urlsplit(self.url).hostname in _LOCAL_HOSTS

    @property
    def end(self) -> tuple[str, int]:
        """The host and the port that connections go to."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or _PORTS[parts.scheme]

    def __repr__(self) -> str:
        return f"Address({self.url!r}, key={'set' if self.key else 'none'})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("url", self.url), ("key", "set" if self.key else "none")]


def checked_url(url: str | None) -> str:
    """Return `url`, else `OVERSPILL_URL`, else the default, without a slash at its end.

    Raises `ValueError`, which says what is wrong with it.
    """
    if url is not None:
        check_text("the service's URL", url)
    text = (os.environ.get("OVERSPILL_URL") or wire.DEFAULT_URL if url is None else url).strip()
    parts = _split(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"the service's URL must look like {wire.DEFAULT_URL} or https://host; it is {text!r}"
        )
    if "@" in parts.netloc:
        raise ValueError("the service's URL must hold no user or password: give the key as OVERSPILL_KEY")
    if parts.query or parts.fragment:
        raise ValueError(f"the service's URL must have no query or fragment; it is {text!r}")
    return text.rstrip("/")


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"the service's URL is malformed: {error}") from error
    return parts


def checked_key(key: str | None) -> str:
    """Return `key`, else `OVERSPILL_KEY`, else an empty text. Raises `ValueError` without showing the key."""
    if key is not None:
        check_text("the key", key)
    text = (os.environ.get("OVERSPILL_KEY", "") if key is None else key).strip()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("the key must be printable ASCII without spaces; check OVERSPILL_KEY")
    return text
