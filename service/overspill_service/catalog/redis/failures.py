"""The meaning of redis-py's errors: whether to retry, and which message the user gets.

The text of an error may quote addresses, keys or values, so it is never passed on. The server's answer begins
with its error code (RESP). redis-py has no field for the code, so it is read from the answer.
"""

from __future__ import annotations

import re
import socket
import ssl
from typing import Final

from redis import exceptions as redis_errors

from overspill_service.errors.certificates import causes, distrust

READ_ONLY: Final = "Redis is read-only (a replica?)"
NO_TLS: Final = "Redis did not answer over TLS; is TLS on at this port? (redis:// is without TLS)"
NO_TLS_FILES: Final = (
    "the files for TLS in the catalog's URL (ssl_ca_certs, ssl_certfile, ssl_keyfile) cannot be read, or "
    "have no certificates and keys, as PEM"
)
_IN_CLUSTER: Final = "Redis is a node of a cluster; write redis+cluster:// in the catalog's URL"

_DENIED: Final = (
    redis_errors.AuthenticationError,
    redis_errors.AuthorizationError,
    redis_errors.NoPermissionError,
    redis_errors.AuthenticationWrongNumberOfArgsError,
)
_LOST: Final = (redis_errors.ConnectionError, redis_errors.TimeoutError, OSError)
_CLUSTER: Final = (redis_errors.ClusterError, redis_errors.RedisClusterException, redis_errors.TryAgainError)

_REASONS: Final = {
    "READONLY": READ_ONLY,
    "OOM": "Redis is out of memory",
    "MISCONF": "Redis cannot persist and refuses writes",
    "NOREPLICAS": "Redis has too few replicas to take writes",
    "CLUSTERDOWN": "the Redis cluster is down",
    "MASTERDOWN": "the Redis replica has lost its master",
    "LOADING": "Redis is loading its data",
    "BUSY": "Redis is busy with a script",
    "MOVED": _IN_CLUSTER,
    "CROSSSLOT": _IN_CLUSTER,
    "NOAUTH": "Redis refuses the credentials",
    "NOPERM": "Redis refuses the credentials",
}
_COMMAND: Final = re.compile(r"run the '([a-z|]{1,40})' command")
_IN_SCRIPT: Final = re.compile("ACL failure in script|user executing the script can't")
_CODES: Final[dict[type, str]] = {
    redis_errors.ReadOnlyError: "READONLY",
    redis_errors.OutOfMemoryError: "OOM",
    redis_errors.BusyLoadingError: "LOADING",
    redis_errors.ClusterDownError: "CLUSTERDOWN",
    redis_errors.MasterDownError: "MASTERDOWN",
}
"""Errors whose code redis-py has cut off the text."""
_FOREIGN: Final = (
    "Redis holds a value that is not of the catalog: it is damaged, or another program uses keys ov1:*; "
    "empty this database to have the catalog rebuilt from the object store"
)
_TEXTS: Final = {
    NO_TLS: NO_TLS,
    NO_TLS_FILES: NO_TLS_FILES,
    "max number of clients": "Redis takes no more connections (maxclients)",
    "WRONGTYPE": _FOREIGN,
    "not an integer": _FOREIGN,
    "attempt to ": _FOREIGN,  # calculate with nil, say: a script that read no number
}
"""Reasons of errors without a code, by a part of their text. Those of our own are what they say."""
_TEMPORARY: Final = ("READONLY", "CLUSTERDOWN", "MASTERDOWN", "LOADING", "BUSY", "NOREPLICAS")
_REFUSALS: Final = ("OOM", "MISCONF")
_KINDS: Final = (
    (_DENIED, "Redis refuses the credentials"),
    (redis_errors.TimeoutError, "Redis did not answer in time"),
    (_CLUSTER, "the Redis cluster is not reachable"),
    (_LOST, "Redis is not reachable"),
)


def is_temporary(error: Exception) -> bool:
    """Return whether the same command may succeed in a moment."""
    if isinstance(error, _DENIED) or _is_untrusted(error):
        return False
    return isinstance(error, (*_LOST, *_CLUSTER)) or _code(error) in _TEMPORARY


def is_refusal(error: Exception) -> bool:
    """Return whether nothing of the command was done. A script is refused at its first write."""
    return _code(error) in _REFUSALS


def reason(error: Exception) -> str:
    """Return what happened, in words that a user may see."""
    if forbidden := _forbidden(error):
        return forbidden
    if code := _code(error):
        return _REASONS[code]
    if text := next((reason for text, reason in _TEXTS.items() if text in str(error)), None):
        return text
    if isinstance(error.__cause__ or error.__context__ or error, socket.gaierror):
        return "the host of Redis is not known; correct the catalog's URL"
    if _is_untrusted(error):
        return distrust("Redis", error, "ssl_ca_certs= of the catalog's URL")
    text = next((text for kinds, text in _KINDS if isinstance(error, kinds)), None)
    return text or f"Redis refused a command ({type(error).__name__})"


def _forbidden(error: Exception) -> str:
    """Return what the Redis user may not do, if the answer says so.

    Only the name of a command is passed on.
    """
    text = str(error)
    if not isinstance(error, redis_errors.NoPermissionError) and not _IN_SCRIPT.search(text):
        return ""
    command = _COMMAND.search(text)
    if command:
        return f"the Redis user may not run {command[1].upper()}"
    return "the Redis user may not use every key ov1:* and every command that the catalog needs"


def _is_untrusted(error: Exception) -> bool:
    return any(isinstance(each, ssl.SSLCertVerificationError) for each in causes(error))


def _code(error: Exception) -> str | None:
    """Return the error code. In the error of a script it may stand anywhere in the text (Redis 6)."""
    words = [_CODES.get(type(error)), *str(error).replace("-", " ").split()]
    return next((word for word in words if word in _REASONS), None)
