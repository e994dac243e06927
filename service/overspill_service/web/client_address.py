"""The address that a request comes from: its connection's, or that which a trusted proxy has noted.

A proxy adds the address of its own client at the end of a header. What stands before that came from the
client, which can write anything. So the header counts only on connections of trusted proxies, and is read
from its end: the first address that is no trusted proxy is the client's.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from overspill_service.settings.addresses import Network

_HOP: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::\d+)?|([0-9.]+)(?::\d+)?|([0-9A-Fa-f:.]+)")
"""An address with or without a port: `[2001:db8::1]:80`, `192.0.2.1:80`, `2001:db8::1`."""


_PASSED_ON: Final = (hdrs.X_FORWARDED_FOR, hdrs.FORWARDED, hdrs.VIA, "X-Real-IP", "X-Forwarded-Host")
"""Headers by which proxies say that they pass a request on."""


class ClientAddresses:
    """Finds the addresses of clients behind the proxies of these networks."""

    def __init__(self, proxies: Sequence[Network], header: str, scraping: Sequence[Network] = ()) -> None:
        """`header`: the one that the proxies write, in lower case; another one is the client's own.

        `scraping`: who may read the metrics without a key.
        """
        self._proxies, self._is_standard, self._scraping = proxies, header == "forwarded", scraping

    def of(self, request: web.Request) -> str:
        """Return the address, empty if the connection has none any more."""
        address = _normal(request.remote or "")
        if not self._proxies or not self.is_proxy(address):
            return address
        for hop in reversed(_standard_hops(request) if self._is_standard else _hops(request)):
            found = _HOP.fullmatch(hop.strip())
            before = _normal(found[1] or found[2] or found[3]) if found else ""
            if not before:  # a hidden or malformed hop: nobody knows who stands before it
                break
            address = before
            if not self.is_proxy(address):
                break
        return address

    def is_proxy(self, address: str) -> bool:
        """Return whether it is the address of a trusted proxy."""
        return _is_in(address, self._proxies)

    def may_scrape(self, request: web.Request, address: str) -> bool:
        """Return whether a request of this address comes from where the metrics may be read without a key.

        A proxy's own address counts for the proxy's own requests only, not for those that it passes on.
        """
        if any(name in request.headers for name in _PASSED_ON):
            is_known = self.is_proxy(_normal(request.remote or "")) and not self.is_proxy(address)
            return is_known and _is_in(address, self._scraping)
        return _is_in(address, self._scraping)


def _is_in(address: str, networks: Sequence[Network]) -> bool:
    return bool(address) and any(ipaddress.ip_address(address) in network for network in networks)


def _hops(request: web.Request) -> list[str]:
    """Return what `X-Forwarded-For` lists, the client first."""
    return ",".join(request.headers.getall(hdrs.X_FORWARDED_FOR, ())).split(",")


def _standard_hops(request: web.Request) -> list[str]:
    """Return what `Forwarded` lists (RFC 7239), the client first."""
    return [element.get("for", "") for element in request.forwarded]


@lru_cache(maxsize=1024)
def _normal(address: str) -> str:
    """Return the address in its usual form, an IPv4 address as such. Empty for what is none."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)
