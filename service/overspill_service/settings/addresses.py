"""Addresses and networks as settings write them."""

import ipaddress
from typing import TypeAlias

from overspill.wire import host_name

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_of(text: str) -> tuple[Network, ...]:
    """Return addresses and networks that commas separate. Raises `ValueError`."""
    return tuple(map(ipaddress.ip_network, filter(None, map(str.strip, text.split(",")))))


def hosts_of(text: str) -> frozenset[str]:
    """Return host names and addresses that commas separate, in lower case. Raises `ValueError`."""
    return frozenset(map(_host, filter(None, map(str.strip, text.split(",")))))


def _host(text: str) -> str:
    is_bare = text.count(":") > 1 and not text.startswith("[")
    written = f"[{text}]" if is_bare else text
    name = host_name(written)
    if not name or "*" in name or written.endswith(":") or written.lower().rstrip(".").strip("[]") != name:
        raise ValueError(f"{text!r} is not a host name")
    return name


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT` or `[IPv6]:PORT`. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 2**16):
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
