"""Reads the variables of the environment that concern the spool."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from overspill.execution.state_folder import state_folder

MAX_BYTES: Final = 1024**3
"""The most bytes that the spool takes of the disk, unless `OVERSPILL_SPOOL_BYTES` says otherwise."""
WAITING_BYTES: Final = 1024**3
"""Bytes of outputs that may wait for the service, unless `OVERSPILL_WAITING_BYTES` says otherwise."""
EXIT_SECONDS: Final = 0.5
"""Seconds for uploads at the end of a guard or a process, unless `OVERSPILL_EXIT_SECONDS` says otherwise."""
FINGERPRINT: Final = re.compile(r"[0-9a-f]{32}")
_OFF: Final = "off"
_SECONDS: Final = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6})?")
_SIZE: Final = re.compile(r"([0-9]{1,18}) ?(?:(?:([KMGT])(i?))?B)?", re.IGNORECASE)


def is_off() -> bool:
    """Return whether the environment wants no spool."""
    return os.environ.get("OVERSPILL_SPOOL", "").strip().lower() == _OFF


def directory() -> Path:
    """Return the directory of `OVERSPILL_SPOOL`, else `overspill/spool` in the user's state directory.

    Without a home directory it is one of the user's own in the directory for temporary files.
    """
    value = os.environ.get("OVERSPILL_SPOOL", "").strip()
    if value:
        return Path(os.path.expanduser(value))  # noqa: PTH111
    return state_folder() / "spool"


def max_bytes() -> int:
    """Return the most bytes of the spool. Raises `ValueError` if `OVERSPILL_SPOOL_BYTES` is not a size."""
    return _bytes_of("OVERSPILL_SPOOL_BYTES", MAX_BYTES)


def waiting_bytes() -> int:
    """Return the most bytes that wait for the service. Raises `ValueError` if the variable is not a size."""
    return _bytes_of("OVERSPILL_WAITING_BYTES", WAITING_BYTES)


def _bytes_of(variable: str, otherwise: int) -> int:
    value = os.environ.get(variable, "").strip()
    if not value:
        return otherwise
    size = _SIZE.fullmatch(value)
    if size is None:
        raise ValueError(
            f"{variable} must be a number of bytes, or such as 512MiB, 10GiB, 5GB; it is {value!r}"
        )
    number, prefix, binary = size.groups()
    factor: int = (1024 if binary else 1000) ** (" KMGT".index(prefix.upper()) if prefix else 0)
    return int(number) * factor


def exit_seconds() -> float:
    """Return the seconds for uploads at the end. Raises `ValueError` if the variable is not a number."""
    value = os.environ.get("OVERSPILL_EXIT_SECONDS", "").strip()
    if not value:
        return EXIT_SECONDS
    if _SECONDS.fullmatch(value) is None:
        raise ValueError(
            f"OVERSPILL_EXIT_SECONDS must be a number of seconds, or 0 for none; it is {value!r}"
        )
    return float(value)


def fingerprint(url: str, key: str) -> str:
    """Return what a service and a key are known by on the disk, which does not give the key away."""
    return hashlib.sha256(f"{url}\0{key}".encode()).hexdigest()[:32]
