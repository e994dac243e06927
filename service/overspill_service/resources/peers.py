"""The addresses of connected clients."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network


def address_of(peer: object) -> str:
    """Return the address in a socket's `peername`, an IPv4 address as such. Empty if it has none."""
    if not isinstance(peer, tuple):
        return ""
    address = ip_address(peer[0].partition("%")[0])
    return str((address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address)


def network_of(address: str) -> str:
    """Return an IPv4 address as it is, and the /64 of an IPv6 address: one machine may have all of that."""
    return str(ip_network(f"{address}/64", strict=False)) if ":" in address else address
