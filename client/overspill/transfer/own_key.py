"""The key that a client uses by itself for a service on this machine: the one in its user's key file."""

from __future__ import annotations

import functools
import logging
import os
from typing import TYPE_CHECKING, Final

from overspill.errors import error_of
from overspill.wire import Code, UnsafeKeyFile, local_key_file, read_local_key

if TYPE_CHECKING:
    from overspill.transfer.address import Address


_log = logging.getLogger("overspill")
_VARIABLE: Final = "OVERSPILL_PLAIN_HTTP"


@functools.cache
def warn_of_plain_http(url: str) -> None:
    """Log once for each service that a key goes there unencrypted, unless the environment allows it."""
    if os.environ.get(_VARIABLE, "").strip().lower() not in {"1", "true", "yes"}:
        _log.warning(
            "the key for %s goes there over plain http, and whoever is on the way can read it: use https, or "
            "set %s=true if the network is your own",
            url,
            _VARIABLE,
        )


def own_key(address: Address) -> str:
    """Return the key for requests to `address`: its own, else that of this machine's user if it is near.

    The file is read for each request: a service that starts later may make it, or replace it. Raises
    `Unauthorized` if others may use the file.
    """
    if address.key and not address.is_near and address.url.startswith("http:"):
        warn_of_plain_http(address.url)
    if address.key or not address.is_near or (path := local_key_file()) is None:
        return address.key
    try:
        return read_local_key(path)
    except UnsafeKeyFile as error:
        raise error_of(Code.UNAUTHORIZED, str(error)) from error
    except OSError as error:
        raise error_of(Code.UNAUTHORIZED, f"{path} cannot be read: {error.strerror}") from error
