"""Opens the catalog that a URL names.

    sqlite:                        catalog.sqlite in the service's data directory
    sqlite:///dir/file             that file
    memory:                        nothing is kept; for tests
    redis://host…, rediss:, …      a Redis: see `redis.urls`

Imports redis-py only for a Redis.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

from overspill_service.catalog.sqlite.catalog import SqliteCatalog
from overspill_service.catalog.url_errors import wrong_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog import Catalog

FORMS: Final = (
    "sqlite:///file, redis://host:port/db, rediss://host:port/db, "
    "redis+sentinel://host:port,host:port/service, redis+cluster://host:port,host:port"
)
_REDIS: Final = ("redis", "rediss", "redis+sentinel", "redis+cluster")


def open_catalog(
    url: str, *, data_dir: Path, clock: Callable[[], float] = time.time, require_tls: bool = False
) -> Catalog:
    """Return the catalog that a URL names. Redis is not connected before its first use.

    `clock` is this machine's. With `require_tls` a server must be reached by TLS, or run on this machine.
    Raises `ValueError` if the URL is wrong, `CatalogUnavailable` if the file cannot be used.
    """
    parts = _split(url)
    if parts.scheme == "memory":
        if parts.netloc or parts.path or parts.query:
            raise wrong_url(parts, "memory: has nothing after the colon")
        return SqliteCatalog(None, clock)
    if parts.scheme == "sqlite":
        return SqliteCatalog(_path(parts, data_dir), clock)
    if parts.scheme in _REDIS:
        # Imported here: redis-py takes longer than all else of a catalog, and other catalogs do not need it.
        from overspill_service.catalog.redis.urls import open_redis  # noqa: PLC0415

        return open_redis(parts, require_tls=require_tls)
    raise ValueError(f"there is no catalog of the kind {parts.scheme!r}; write one of {FORMS}")


def sqlite_file(url: str, *, data_dir: Path) -> Path | None:
    """Return the file of an SQLite catalog, None for other catalogs.

    Raises `ValueError` if the URL is wrong.
    """
    parts = _split(url)
    return _path(parts, data_dir) if parts.scheme == "sqlite" else None


def _split(url: str) -> SplitResult:
    """Split a URL that may name several hosts. Raises `ValueError`."""
    try:
        # Newer versions of Python refuse the brackets of an IPv6 address behind another host.
        parts = urlsplit(url.replace("[", "%5B").replace("]", "%5D"))
        if "," not in parts.netloc:
            return urlsplit(url)
        return parts._replace(netloc=parts.netloc.replace("%5B", "[").replace("%5D", "]"))
    except ValueError:
        # The cause is left out: it may quote a password.
        raise ValueError(f"this is not a URL; write one of {FORMS}") from None


def _path(parts: SplitResult, data_dir: Path) -> Path:
    path = unquote(parts.path)
    if parts.netloc or parts.query or path[:1] not in ("", "/"):
        raise wrong_url(parts, "a file is written sqlite:///dir/file, with three slashes")
    return Path(path) if path.strip("/") else data_dir / "catalog.sqlite"
