"""Detects requests that a web page of another site has made. Every server of ours makes this check.

A browser sends what any page asks it to send, from the machine of its user. It says where a request comes
from: `Origin` (RFC 6454) and `Sec-Fetch-Site` (W3C Fetch Metadata). A page whose own host name was made to
point to this machine (DNS rebinding) comes from "the same origin", but its name then stands in `Host`.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_SITE: Final = frozenset({"same-origin", "none"})
"""Values of `Sec-Fetch-Site`: of a page of this very origin, and of an address that a person typed."""
LONGEST_NAME: Final = 300
"""Characters of a name and a port: a host name has at most 253."""
_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s\[\]:@/?#\\]+))(?::\d*)?")
"""A name or an address, with or without a port (RFC 9110, section 7.2): no user, no path."""


class ForeignRequest(Exception):
    """A page of another site has made this request, or a host name was used that is not of this face."""


def require_own_origin(
    headers: Mapping[str, str], hosts: frozenset[str] | None, *, is_page: bool = False
) -> None:
    """Return if no page of another site has made a request with these headers. Else raise `ForeignRequest`.

    `hosts` are the names, in lower case, that the face answers to besides those of this machine; None for a
    face that answers to any name. `is_page` is for a page that people may follow links to.
    """
    host = headers.get("Host", "")
    if hosts is not None and not _is_answered(host, hosts):
        raise ForeignRequest(f"the host {host_name(host)[:100]!r} is not one that this service answers to")
    origin = headers.get("Origin")
    if origin is not None and not _is_of(origin, host, hosts or frozenset()):
        raise ForeignRequest(f"a page of {origin[:100]!r} has sent this")
    site = headers.get("Sec-Fetch-Site", "none")
    if site.lower() not in OWN_SITE and not (is_page and headers.get("Sec-Fetch-Mode") == "navigate"):
        raise ForeignRequest("a page of another site has sent this")


def _is_answered(host: str, hosts: frozenset[str]) -> bool:
    """Return whether a `Host` field names one of the hosts, or this machine."""
    return _is_known(host, hosts) if len(host) <= LONGEST_NAME else host_name(host) in hosts


@lru_cache(maxsize=256)
def _is_known(host: str, hosts: frozenset[str]) -> bool:
    """Do the same as `_is_answered`: clients send the same few fields again and again."""
    name = host_name(host)
    return name in hosts or is_loopback(name)


def host_name(host: str) -> str:
    """Return the name of a `Host` field, without port and brackets, in lower case. Empty if it is none."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower().removesuffix(".") if found else ""


def is_loopback(name: str) -> bool:
    """Return whether a host name or address is this machine's own, whoever resolves it."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _is_of(origin: str, host: str, hosts: frozenset[str]) -> bool:
    """Return whether an `Origin` is that of `host`, or of one of `hosts`. Any scheme: a proxy may end TLS."""
    scheme, separator, authority = origin.lower().partition("://")
    if not separator or scheme not in {"http", "https"}:
        return False  # `null`, or an extension's
    return authority == host.lower() or host_name(authority) in hosts
