"""Decides who may use our MCP server or gateway over HTTP: callers with its token, else this user's programs.

It owns the token. It does no HTTP: it gets the token that a caller has sent, and its address. It raises
nothing.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from typing import Final

from overspill.execution.socket_owners import can_tell_owners, client_owner

_TOKEN_BYTES: Final = 24


class Callers:
    """The callers of one listening server. `token` is what they must send, empty if they need none."""

    def __init__(self, token: str = "", *, anyone: bool = False) -> None:
        """Without a token, take this user's programs, or `anyone`.

        Make a token if the system cannot distinguish users.
        """
        self._is_open = anyone and not token
        self.is_token_made: bool = not (token or anyone or can_tell_owners())
        self.token: str = secrets.token_urlsafe(_TOKEN_BYTES) if self.is_token_made else token

    def refusal(self, token: str, client: tuple[str, int] | None, server: tuple[str, int]) -> str:
        """Return why a caller is refused, empty if it is not.

        `token` is the one that it has sent; `client` and `server` are the addresses of both ends.
        """
        if self.token:
            is_right = hmac.compare_digest(token.encode(), self.token.encode())
            return "" if is_right else "its token is wrong"
        if self._is_open or (client is not None and _is_own(client, server)):
            return ""
        return "it comes from a program of another user"


def _is_own(client: tuple[str, int], server: tuple[str, int]) -> bool:
    with suppress(OSError):  # the system does not say it
        return client_owner(client, server) == os.geteuid()
    return False
