"""The secret with which the marks of notices are made. Who has it recognises the notices of all others.

It is derived from `OVERSPILL_NOTICE_KEY`, or else from `OVERSPILL_KEY`: agents with the same key of the
service recognise each other's notices. With neither it is in the file `notice-key` in the user's state
folder, which only that user can read, and which is made when it is first needed. If that file cannot be made
or is not safe, the process has a secret of its own, and forked children share it.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from overspill.execution.state_folder import state_folder

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME: Final = "notice-key"
_BYTES: Final = 32
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def notice_key() -> bytes:
    """Return the 32 bytes of the secret. Raises nothing."""
    environ = os.environ
    secret = environ.get("OVERSPILL_NOTICE_KEY", "")
    if secret:
        return _derived(secret, b"notice key")
    secret = environ.get("OVERSPILL_KEY", "")
    return _derived(secret, b"service key") if secret else _of_user(state_folder())


@lru_cache(maxsize=16)
def _derived(secret: str, source: bytes) -> bytes:
    return blake2b(secret.encode("utf-8", "surrogateescape"), digest_size=_BYTES, person=source).digest()


@lru_cache(maxsize=16)
def _of_user(folder: Path) -> bytes:
    path = folder / FILE_NAME
    with suppress(OSError):
        if not path.exists():
            folder.mkdir(0o700, parents=True, exist_ok=True)
            _make(path)
        found = _read(path)
        if found is not None:
            return found
    return secrets.token_bytes(_BYTES)


def _make(path: Path) -> None:
    """Make the file, unless another process does so first: it is never there without all of its bytes."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, _CREATE, 0o600)
    try:
        os.write(descriptor, secrets.token_bytes(_BYTES))
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(descriptor)
        draft.unlink()


def _read(path: Path) -> bytes | None:
    """Return the secret in the file; None if others than this user could read or write it."""
    descriptor = os.open(path, _READ)
    try:
        found = os.fstat(descriptor)
        is_own = not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & _OTHERS)
        data = os.read(descriptor, _BYTES + 1)
    finally:
        os.close(descriptor)
    return data if is_own and stat.S_ISREG(found.st_mode) and len(data) == _BYTES else None
