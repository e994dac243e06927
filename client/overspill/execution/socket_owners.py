"""Finds the user whose program is at the other end of a connection on this machine. Only on Linux.

Source: sock_diag(7), linux/inet_diag.h. A message is a header of netlink(7), then one of these:

    request   family, protocol, 2 bytes, states (u32), socket id
    answer    family, 3 bytes, socket id, 3 numbers (u32), user id (u32), inode (u32)
    socket id own port, other's port (both as on the wire), own address, other's (16 bytes each), 12 bytes
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from functools import cache
from typing import Final

# The names of these constants are the kernel's: linux/netlink.h, linux/sock_diag.h, netinet/tcp.h.
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 0x1
_NLM_F_DUMP: Final = 0x300
_NLMSG_ERROR: Final = 2
_NLMSG_DONE: Final = 3
_TCP_LISTEN_STATE: Final = 1 << 10
_ALL_STATES: Final = 0xFFFFFFFF
_MESSAGE_HEADER: Final = struct.Struct("=IHHII")
_REQUEST_FIELDS: Final = struct.Struct("=BBBBI")
_SOCKET_ID: Final = struct.Struct("!HH16s16s")
_NO_COOKIE: Final = bytes(4) + b"\xff" * 8
_OWNER_OFFSET: Final = 4 + 48 + 12
_UINT: Final = struct.Struct("=I")
_INT: Final = struct.Struct("=i")
_ANSWER_BYTES: Final = 64 * 1024

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@cache
def can_tell_owners() -> bool:
    """Return whether this system says who owns a socket."""
    try:
        listener_owners("localhost", 1)
    except OSError:
        return False
    return hasattr(os, "geteuid")


def listener_owners(host: str, port: int) -> frozenset[int]:
    """Return the ids of the users whose programs may answer at this address of this machine.

    Empty if nobody listens there. `host` may be `localhost`. Raises `OSError` if the system does not say it.
    """
    wanted = {
        ipaddress.ip_address(name) for name in (("127.0.0.1", "::1") if host == "localhost" else (host,))
    }
    owners = set()
    for family in (socket.AF_INET, socket.AF_INET6):
        ends = _SOCKET_ID.pack(port, 0, bytes(16), bytes(16))
        for own, owner in _ask(family, _NLM_F_DUMP, _TCP_LISTEN_STATE, ends):
            if own.is_unspecified or own in wanted:
                owners.add(owner)
    return frozenset(owners)


def client_owner(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the id of the user whose program connects from `client` to `server`, addresses of this machine.

    None if it is gone. Raises `OSError` if the system does not say it.
    """
    own, other = ipaddress.ip_address(client[0]), ipaddress.ip_address(server[0])
    family = socket.AF_INET if own.version == 4 else socket.AF_INET6  # noqa: PLR2004  (IPv4)
    ends = _SOCKET_ID.pack(client[1], server[1], own.packed.ljust(16, b"\0"), other.packed.ljust(16, b"\0"))
    try:
        return next((owner for _, owner in _ask(family, 0, _ALL_STATES, ends)), None)
    except FileNotFoundError:  # there is no such connection
        return None


def _ask(family: int, flags: int, states: int, ends: bytes) -> list[tuple[_Address, int]]:
    """Return the own address and the owner of each socket. Raises `OSError`."""
    if not hasattr(socket, "AF_NETLINK"):
        raise OSError("this system does not say who owns a socket")
    payload = _REQUEST_FIELDS.pack(family, socket.IPPROTO_TCP, 0, 0, states) + ends + _NO_COOKIE
    header = _MESSAGE_HEADER.pack(
        _MESSAGE_HEADER.size + len(payload), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST | flags, 0, 0
    )
    found: list[tuple[_Address, int]] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.sendto(header + payload, (0, 0))
        is_last = False
        while not is_last:
            is_last = _read(kernel.recv(_ANSWER_BYTES), found) or not flags
    return found


def _read(answer: bytes, found: list[tuple[_Address, int]]) -> bool:
    """Add what the messages of an answer say. Return whether it is the last one. Raises `OSError`."""
    at = 0
    while at < len(answer):
        size, kind, *_ = _MESSAGE_HEADER.unpack_from(answer, at)
        body = answer[at + _MESSAGE_HEADER.size : at + size]
        if kind == _NLMSG_ERROR and (code := -_INT.unpack_from(body)[0]):
            raise OSError(code, os.strerror(code))
        if kind in (_NLMSG_ERROR, _NLMSG_DONE):
            return True
        found.append((_own_address(body), _UINT.unpack_from(body, _OWNER_OFFSET)[0]))
        at += (size + 3) & ~3  # NLMSG_ALIGN: each message begins at a multiple of 4 bytes
    return False


def _own_address(body: bytes) -> _Address:
    """Return the address that a socket has here, an IPv4 address as such."""
    packed = body[8 : 8 + 16]  # behind family, 3 bytes, and both ports
    if body[0] == socket.AF_INET:
        return ipaddress.IPv4Address(packed[:4])
    address = ipaddress.IPv6Address(packed)
    return address.ipv4_mapped or address
