"""The file of an SQLite catalog: whether it is intact, and still the one that was opened.

SQLite keeps the file open, so it would go on writing to a file that was moved away or replaced, and those
writes would be lost. A file that was found damaged is not written to before a restart.
"""

from __future__ import annotations

import errno
import os
import resource
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill_service.errors import CatalogFull, CatalogRefuses, CatalogUnavailable, ServiceError, StoreFull
from overspill_service.errors.system import failure

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

PRIVATE_MODE: Final = 0o600
PROBE_SUFFIX: Final = ".trial"
PROBE_BYTES: Final = 64 * 1024
GROWTH_BYTES: Final = 2**20
"""Bytes by which the files must be able to grow if file sizes are limited (RLIMIT_FSIZE)."""
DISK: Final = "the disk that holds the catalog"
REPLACED: Final = (
    "the catalog file was moved away or replaced while the service runs; put it back, or restart the service "
    "to use the one that is there now"
)
DAMAGED: Final = "the catalog file is damaged; {advice}"
NO_DATABASE: Final = "the catalog file is not an SQLite database; {advice}"
ADVICE: Final = (
    "stop the service, move it away and start again: it is rebuilt from the object store, all but its "
    "statistics"
)
_SYSTEM: Final = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_NOMEM")
"""Errors that hide a refusal of the operating system."""
_REASONS: Final = {
    "SQLITE_FULL": f"{DISK} is full",
    "SQLITE_READONLY": "the catalog file is read-only",
    "SQLITE_BUSY": "the catalog file is locked by another process",
    "SQLITE_LOCKED": "the catalog file is locked by another process",
    "SQLITE_IOERR": f"{DISK} fails",
    "SQLITE_CANTOPEN": "the catalog file or its log cannot be opened: see who owns them, and ulimit -n",
    "SQLITE_PERM": "the catalog file cannot be opened: no permission",
    "SQLITE_CORRUPT": DAMAGED.format(advice=ADVICE),
    "SQLITE_NOTADB": NO_DATABASE.format(advice=ADVICE),
    "SQLITE_INTERRUPT": "the catalog took too long; ask for less",
}
_DAMAGE: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


def reason(error: sqlite3.Error) -> str:
    """Return what happened, without paths or statements."""
    text = next((text for code, text in _REASONS.items() if _name(error).startswith(code)), None)
    return text or f"the catalog file cannot be used ({_name(error)})"


class CatalogFile:
    """The file of one catalog. Without a path the catalog is in memory, and every check passes."""

    def __init__(self, path: Path | None) -> None:
        """Make an empty file if there is none. Raises `OSError`."""
        self._path = path
        self._damage = ""
        if path is not None:
            _make_private(path)
            self._identity = _identity(path)

    def require_usable(self, refusal: type[CatalogUnavailable] = CatalogRefuses) -> None:
        """Raise `refusal` if the file is damaged, or was replaced by another one."""
        if self._damage:
            raise refusal(self._damage)
        if self._path is not None and not self._is_in_place(self._path):
            raise refusal(REPLACED)

    def write_probe(self) -> None:
        """Write to the file's folder, durably. Raises `OSError`."""
        if self._path is None:
            return
        _require_room_for(self._path.stat().st_size)
        probe = self._path.with_name(self._path.name + PROBE_SUFFIX)
        try:
            with open(probe, "wb", opener=_private) as file:
                file.write(bytes(PROBE_BYTES))
                file.flush()
                os.fsync(file.fileno())
        finally:
            with suppress(FileNotFoundError):
                probe.unlink()

    def failure(self, error: sqlite3.Error) -> CatalogUnavailable | ServiceError:
        """Return the error to answer with. A write probe finds out what the system refused to SQLite."""
        if _name(error).startswith(_DAMAGE):
            self._damage = reason(error)
            return CatalogRefuses(self._damage)
        return self.refused(error) or _unavailable(error)

    def explain(self, error: OSError) -> ServiceError:
        """Return the error to answer with if `write_probe` failed."""
        folder = self._path.parent if self._path is not None else None
        service_error = failure(error, DISK, folder)
        return (
            _as_catalog(service_error)
            if service_error
            else CatalogUnavailable(f"{DISK} fails: {error.strerror}")
        )

    def _is_in_place(self, path: Path) -> bool:
        try:
            return _identity(path) == self._identity
        except OSError:
            return False

    def refused(self, error: sqlite3.Error) -> ServiceError | None:
        """Return what the operating system refused to SQLite, None if it was something else."""
        if not _name(error).startswith(_SYSTEM):
            return None
        try:
            self.write_probe()
        except OSError as refusal:
            return self.explain(refusal)
        return None


def _make_private(path: Path) -> None:
    """Make an empty file if there is none. An open and close of the database would drop SQLite's locks."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_MODE))


def _identity(path: Path) -> tuple[int, int]:
    """Return device and inode. Raises `OSError`.

    While SQLite has the file open no other file gets its inode.
    """
    found = os.stat(path)  # noqa: PTH116  (twice for each transaction)
    return found.st_dev, found.st_ino


def _as_catalog(service_error: ServiceError) -> ServiceError:
    """Return a store's error as a catalog's. A full disk means that nothing was recorded."""
    if isinstance(service_error, StoreFull):
        converted: ServiceError = CatalogFull(str(service_error))
    else:
        converted = (
            CatalogUnavailable(str(service_error))
            if service_error.code == "store_unavailable"
            else service_error
        )
    converted.failure_name = service_error.failure_name
    return converted


def _unavailable(error: sqlite3.Error) -> CatalogUnavailable:
    return (CatalogFull if _name(error).startswith("SQLITE_FULL") else CatalogUnavailable)(reason(error))


def _require_room_for(size: int) -> None:
    """Raise `OSError` if a limit on file sizes leaves no room to grow."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Fail before SQLite meets the limit: its own error does not name it.
    if limit != resource.RLIM_INFINITY and limit < size + GROWTH_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_MODE)


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "") or type(error).__name__
