"""The address that a request comes from: its connection's, or the one that a trusted proxy has noted.

A proxy adds the address of its own client at the end of a header. Everything before that came from the
client, which can write anything. So the header counts only on connections of trusted proxies, and is read
from its end: the first address that is not a trusted proxy is the client's.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiohttp import web

    from overspill_service.settings.addresses import Network

_HOP: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::\d+)?|([0-9.]+)(?::\d+)?|([0-9A-Fa-f:.]+)")
"""An address with or without a port: `[2001:db8::1]:80`, `192.0.2.1:80`, `2001:db8::1`."""
_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_PAIR: Final = re.compile(rf'({_WORD})=(?:({_WORD})|"((?:[^"\\]|\\.)*+)")')
_OPTIONAL_PAIR: Final = rf"[ \t]*+(?:{_PAIR.pattern})?[ \t]*+"
_ELEMENT: Final = re.compile(rf"{_OPTIONAL_PAIR}(?:;{_OPTIONAL_PAIR})*+")
"""An element of `Forwarded` (RFC 7239, section 4): `for="[2001:db8::1]:80";proto=https`."""
MAX_ELEMENT: Final = 1024
"""Characters of an element, at most."""

_PASSED_ON: Final = (hdrs.X_FORWARDED_FOR, hdrs.FORWARDED, hdrs.VIA, "X-Real-IP", "X-Forwarded-Host")
"""Headers by which proxies say that they pass a request on."""


class ClientAddresses:
    """Finds the addresses of clients behind the proxies of these networks."""

    def __init__(self, proxies: Sequence[Network], header: str, scraping: Sequence[Network] = ()) -> None:
        """`header`: the one that the proxies write, in lower case; another one is the client's own.

        `scraping`: who may read the metrics without a key.
        """
        self._proxies, self._is_standard, self._scraping = proxies, header == "forwarded", scraping

    def of(self, request: web.Request, peer: str | None = None) -> str:
        """Return the address. `peer`: that of the connection, which aiohttp forgets with the client."""
        address = _normal(peer or request.remote or "")
        if not self._proxies or not self.is_proxy(address):
            return address
        for hop in _standard_hops(request) if self._is_standard else _hops(request):
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
        """Return whether a request from this address may read the metrics without a key.

        A proxy's own address counts for the proxy's own requests only, not for those that it passes on.
        """
        if any(name in request.headers for name in _PASSED_ON):
            is_known = self.is_proxy(_normal(request.remote or "")) and not self.is_proxy(address)
            return is_known and _is_in(address, self._scraping)
        return _is_in(address, self._scraping)


def _is_in(address: str, networks: Sequence[Network]) -> bool:
    return bool(address) and any(ipaddress.ip_address(address) in network for network in networks)


def _hops(request: web.Request) -> Iterator[str]:
    """Yield the addresses in `X-Forwarded-For`, the last one first."""
    return reversed(",".join(request.headers.getall(hdrs.X_FORWARDED_FOR, ())).split(","))


def _standard_hops(request: web.Request) -> Iterator[str]:
    """Yield the addresses in `Forwarded`, the last one first. A malformed element yields an empty text.

    It is read from its end: a client that opens a quoted text hides in it what a proxy writes behind.
    """
    field = ",".join(request.headers.getall(hdrs.FORWARDED, ()))
    end = len(field)
    while end >= 0:
        begin = _last_element(field, end)
        yield "" if begin is None else _hop_of(field[begin:end])
        end = -1 if begin is None else begin - 1


def _last_element(field: str, end: int) -> int | None:
    """Return the start of the element that ends there. None if there is no element."""
    comma = end
    while comma >= 0:
        comma = field.rfind(",", 0, comma)  # or one in a quoted text
        if end - comma > MAX_ELEMENT:
            break
        if _ELEMENT.fullmatch(field, comma + 1, end):
            return comma + 1
    return None


def _hop_of(element: str) -> str:
    """Return the client that an element names, empty if it names none or several."""
    pairs = [found for found in _PAIR.finditer(element) if found[1].lower() == "for"]
    return (pairs[0][2] or pairs[0][3] or "") if len(pairs) == 1 else ""


@lru_cache(maxsize=1024)
def _normal(address: str) -> str:
    """Return the address in its usual form; a mapped IPv4 address as IPv4. Empty if it is no address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)
