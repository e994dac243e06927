"""Reads catalog URLs that name a Redis.

    redis://[user:password@]host[:port][/db]
    rediss://…                               the same over TLS
    redis+sentinel://[user:password@]host[:port],…/service[/db]
    redis+cluster://[user:password@]host[:port],…

All take `?deadline=` (seconds for one operation). `?tls=yes` turns TLS on for sentinels and clusters; with
it go `ssl_ca_certs=`, `ssl_certfile=`, `ssl_keyfile=` (files) and `ssl_check_hostname=no`. Sentinels that
want a password of their own take `?sentinel_password=`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from overspill.wire import is_loopback

from overspill_service.catalog.redis import connections
from overspill_service.catalog.redis.catalog import RedisCatalog
from overspill_service.catalog.redis.client import DEADLINE_SECONDS, RedisClient
from overspill_service.catalog.redis.links import ANSWER_SECONDS, LinkOptions
from overspill_service.catalog.url_errors import wrong_url

if TYPE_CHECKING:
    from overspill_service.catalog.redis.client import Connection
    from overspill_service.catalog.redis.links import Address

REDIS_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
_TLS_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_OPTIONS: Final = {"deadline", "tls", "ssl_check_hostname", *_TLS_FILES}


def open_redis(parts: SplitResult, *, require_tls: bool = False) -> RedisCatalog:
    """Return the catalog in Redis. Nothing connects before its first use.

    Raises `ValueError` if the URL is wrong, or if `require_tls` is not met.
    """
    if require_tls and not _is_safe(parts):
        raise wrong_url(
            parts,
            "Redis is reached without TLS, and require_tls is set: write rediss://, or tls=yes in the URL of "
            "sentinels and clusters",
        )
    connection = _CONNECTIONS[parts.scheme](parts)
    return RedisCatalog(RedisClient(connection, _deadline(parts)))


def _redis(parts: SplitResult) -> Connection:
    """Return the connection for `redis:` and `rediss:`."""
    address, *more = _addresses(parts, REDIS_PORT)
    if more:
        raise wrong_url(
            parts, "redis:// takes one address; several need redis+sentinel:// or redis+cluster://"
        )
    return connections.server(address, _link(parts, _database(parts, _names(parts))))


def _sentinel(parts: SplitResult) -> Connection:
    service, *rest = _names(parts) or [""]
    if not service:
        raise wrong_url(
            parts, "the service that the sentinels watch is missing: redis+sentinel://host:port/service"
        )
    options = _link(parts, _database(parts, rest))
    password = _options(parts).get("sentinel_password") or None
    return connections.sentinel(_addresses(parts, SENTINEL_PORT), service, options, password)


def _cluster(parts: SplitResult) -> Connection:
    if _names(parts):
        raise wrong_url(parts, "a Redis cluster has no databases; leave the path out")
    return connections.cluster(_addresses(parts, REDIS_PORT), _link(parts))


_CONNECTIONS: Final = {
    "redis": _redis,
    "rediss": _redis,
    "redis+sentinel": _sentinel,
    "redis+cluster": _cluster,
}


def _names(parts: SplitResult) -> list[str]:
    return [name for name in unquote(parts.path).split("/") if name]


def _link(parts: SplitResult, db: int = 0) -> LinkOptions:
    """Return the options of a link. Raises `ValueError` for TLS options without TLS."""
    name, _, password = parts.netloc.rpartition("@")[0].partition(":")
    return LinkOptions(
        db=db,
        username=unquote(name) or None,
        password=unquote(password) or None,
        answer_seconds=min(ANSWER_SECONDS, _deadline(parts)),
        **_tls(parts),
    )


def _addresses(parts: SplitResult, default: int) -> list[Address]:
    hosts = parts.netloc.rpartition("@")[2]
    return [_address(parts, text, default) for text in hosts.split(",")]


def _address(parts: SplitResult, text: str, default: int) -> Address:
    try:
        address = urlsplit(f"//{text}")
        host, port = address.hostname, address.port
    except ValueError as error:
        raise wrong_url(parts, f"{text!r} is not a host:port") from error
    if not host:
        raise wrong_url(parts, "the host is missing")
    return host, default if port is None else port


def _database(parts: SplitResult, names: list[str]) -> int:
    if not names:
        return 0
    if len(names) > 1 or not names[0].isdecimal():
        raise wrong_url(parts, f"{'/'.join(names)!r} is not a database number")
    return int(names[0])


def _options(parts: SplitResult) -> dict[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    allowed = _OPTIONS | ({"sentinel_password"} if parts.scheme == "redis+sentinel" else set())
    if unknown := sorted(set(options) - allowed):
        raise wrong_url(
            parts, f"the option {unknown[0]!r} is not known here; there are {', '.join(sorted(allowed))}"
        )
    return options


def _deadline(parts: SplitResult) -> float:
    text = _options(parts).get("deadline", str(DEADLINE_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < float("inf"):
        raise wrong_url(parts, f"deadline={text} is not a number of seconds")
    return seconds


def _tls(parts: SplitResult) -> dict[str, Any]:
    """Return redis-py's TLS options. Raises `ValueError` for TLS options without TLS."""
    options = _options(parts)
    tls = _yes_no(parts, "tls", options.get("tls", "no")) or parts.scheme == "rediss"
    tls_options: dict[str, Any] = {name: value for name, value in options.items() if name in _TLS_FILES}
    if missing := next((name for name, value in tls_options.items() if not Path(value).is_file()), None):
        raise wrong_url(parts, f"{missing}={tls_options[missing]}: there is no such file")
    if "ssl_check_hostname" in options:
        tls_options["ssl_check_hostname"] = _yes_no(
            parts, "ssl_check_hostname", options["ssl_check_hostname"]
        )
    if tls_options and not tls:
        raise wrong_url(parts, f"{next(iter(tls_options))} needs rediss:// or tls=yes")
    return {"tls": True, **tls_options} if tls else {}


def _is_safe(parts: SplitResult) -> bool:
    """Return whether nobody on the way can read what goes to this Redis."""
    return bool(_tls(parts)) or all(is_loopback(host) for host, _ in _addresses(parts, REDIS_PORT))


def _yes_no(parts: SplitResult, name: str, text: str) -> bool:
    if text not in ("yes", "no"):
        raise wrong_url(parts, f"{name}={text} is neither yes nor no")
    return text == "yes"
