"""The socket of a server on this machine. It listens before anybody gets its address."""

from __future__ import annotations

import os
import socket


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 picks a free one. Raises `OSError`, which names the address."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        number = error.errno or 0
        raise OSError(number, os.strerror(number), f"{host}:{port}") from error


def url_of(host: str, listener: socket.socket) -> str:
    """Return the URL at which clients find it, without a path."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"
