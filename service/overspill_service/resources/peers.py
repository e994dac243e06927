"""The addresses of connected clients."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


def peer_of(transport: asyncio.BaseTransport) -> str:
    """Return the address at the other end, an IPv4 address as such. Empty if there is none."""
    return address_of(transport.get_extra_info("peername"))


def address_of(peer: Any) -> str:
    """Return the address in a socket's `peername`. Empty for a socket without addresses."""
    if not isinstance(peer, tuple):
        return ""
    address = ip_address(peer[0].partition("%")[0])
    return str((address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address)


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, and the /64 of an IPv6 address: one machine may have all of that."""
    return str(ip_network(f"{address}/64", strict=False)) if ":" in address else address
