"""The key of requests: the client's own, or for a service on this machine the one in the user's key file.

It warns of a key that goes to the service unencrypted, and of one that expires soon.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import TYPE_CHECKING, Final

from overspill.errors import error_of
from overspill.execution.socket_owners import can_tell_owners, listener_owners
from overspill.wire import Code, UnsafeKeyFile, local_key_file, read_local_key

if TYPE_CHECKING:
    from overspill.transfer.address import Address

SUPERUSER: Final = 0
"""The id of root, who can read every file anyway."""
_INSTANT_CHARS: Final = len("2026-11-23T06:00:00Z")
"""The most characters of the service's time that are logged, because it may be any text."""
_PLAIN_HTTP_VARIABLE: Final = "OVERSPILL_PLAIN_HTTP"
_log: Final = logging.getLogger("overspill")


def own_key(address: Address) -> str:
    """Return the key for requests to `address`: its own, or that of this machine's user if it is local.

    The file is read for each request: a service that starts later may make it, or replace it. Raises
    `Unauthorized` if others may use the file, or if another user's program listens where the service should.
    """
    if address.key and not address.is_local and address.url.startswith("http:"):
        warn_of_plain_http(address.url)
    if address.key or not address.is_local or (path := local_key_file()) is None:
        return address.key
    try:
        key = read_local_key(path)
    except UnsafeKeyFile as error:
        raise error_of(Code.UNAUTHORIZED, str(error)) from error
    except OSError as error:
        raise error_of(Code.UNAUTHORIZED, f"{path} cannot be read: {error.strerror}") from error
    if key:
        _require_own_service(address)
    return key


def _require_own_service(address: Address) -> None:
    """Raise `Unauthorized` if a program of another user may answer: it would be sent the key, and captures.

    Where the system does not say who listens, nobody knows.
    """
    if not can_tell_owners():
        return
    host, port = address.end
    try:
        strangers = listener_owners(host, port) - {os.geteuid(), SUPERUSER}
    except OSError:
        return
    if strangers:
        raise error_of(
            Code.UNAUTHORIZED,
            f"a program of another user (uid {min(strangers)}) listens at {address.url} and is sent nothing: "
            "end it, or give a key of that service as OVERSPILL_KEY",
        )


@functools.cache
def warn_of_plain_http(url: str) -> None:
    """Log once for each service that a key goes there unencrypted, unless the environment allows it."""
    if os.environ.get(_PLAIN_HTTP_VARIABLE, "").strip().lower() not in {"1", "true", "yes"}:
        _log.warning(
            "the key for %s goes there over plain http, and whoever is on the way can read it: use https, or "
            "set %s=true if the network is your own",
            url,
            _PLAIN_HTTP_VARIABLE,
        )


@functools.lru_cache(maxsize=256)
def warn_of_expiry(url: str, expires: str) -> None:
    """Log once for each service that its key expires soon."""
    _log.warning("the key for %s expires soon (%r): ask for another one", url, expires[:_INSTANT_CHARS])
