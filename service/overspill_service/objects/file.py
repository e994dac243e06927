"""Objects as files in one folder of this machine: `file:///folder`.

    {root}/{first segment}/{second segment}/{first 5 characters of the rest}~/{rest of the key}

The rest of a key, with `,` for `/`, is one file name. So the captures of a tenant are spread over 32 folders
in the order of their keys: a listing streams, and no emptied folder has to be removed. Neither `,` nor `~`
occurs in a key. A file name with a `~` is temporary. `list` skips such files, and removes old ones.

The root folder is made at its first use. Afterwards it must stay the same folder: one that was moved away or
replaced is refused before and after each step, and never made again.

An object is written to a temporary file and synchronised. Then it is linked to its name, which fails if the
name exists. Then its folder is synchronised, and the parent of every folder that is new to this process.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Literal, ParamSpec, TypeVar

from overspill_service.errors import CaptureDamaged, ServiceError, StoreUnavailable, Unavailable
from overspill_service.errors.checks import CheckResult
from overspill_service.errors.system import failure
from overspill_service.objects import folder_walk
from overspill_service.objects.checks import check_operations
from overspill_service.objects.folder_walk import BUCKET_CHARACTERS, FOLDERS, SLASH, TEMPORARY_MARK
from overspill_service.objects.keys import check_key, check_prefix
from overspill_service.objects.threads import Threads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from overspill_service.objects import StoredObject

P = ParamSpec("P")
T = TypeVar("T")

MAX_KNOWN_FOLDERS: Final = 10_000
PROBE_FILE: Final = f"trial{TEMPORARY_MARK}"
"""The file that `ping` writes and removes. Several processes may do so at once."""
PROBE_BYTES: Final = 64 * 1024
DISK: Final = "the object store's disk"
REPLACED: Final = (
    "the object store's folder was moved away or replaced while the service runs; put it back, or restart "
    "the service to use the one that is there now"
)


class FileStore:
    def __init__(self, root: Path, *, threads: int = 4, deadline: float = 60, page_size: int = 1000) -> None:
        """`deadline`: seconds for one operation, or for one step of `page_size` keys of a longer one."""
        self._root = root.absolute()
        self._threads = Threads("objects", threads, deadline)
        self._page_size = page_size
        self._known_folders: set[Path] = set()
        self._identity: tuple[int, int] | None = None
        """Device and inode of the folder, once it was used."""

    async def put(self, key: str, pieces: Sequence[bytes]) -> bool:
        return await self._run(self._write, self._path_of(key), pieces)

    async def read(self, key: str, start: int, length: int) -> bytes:
        data = await self._run(_read, self._path_of(key), start, length)
        if data is None:
            raise KeyError(key)
        return data

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        check_prefix(prefix)
        await self._run(self._ensure_folder, self._root)
        walk = folder_walk.objects(self._root, "", prefix)
        while page := await self._run(folder_walk.next_page, walk, self._page_size):
            for stored in page:
                yield stored

    async def delete(self, keys: Iterable[str]) -> None:
        places = map(self._path_of, keys)
        while batch := [*itertools.islice(places, self._page_size)]:
            await self._run(_unlink, batch)

    async def sweep_temporary(self, age: float) -> int:
        await self._run(self._ensure_folder, self._root)
        return await self._run(folder_walk.sweep_temporary, self._root, age)

    async def keeps_versions(self) -> bool:
        """Return False: what is deleted is gone."""
        return False

    async def now(self) -> None:
        """Return None: the clock is this machine's."""

    def path_of(self, key: str) -> Path:
        """Return the file of an object, whether it exists or not."""
        return self._path_of(key)

    async def foreign(self) -> AsyncIterator[str]:
        """Yield every file in the folder that is no object of the service, by its path in the folder."""
        files = await self._run(folder_walk.foreign, self._root, self._path_of)
        for each in files:
            yield each

    def prepare(self) -> None:
        """Make the folder, and close this store. Raises `OSError` if the folder cannot be used. Blocks."""
        try:
            self._write_probe()
        finally:
            self._threads.close()

    @property
    def folder(self) -> Path:
        return self._root

    async def ping(self) -> None:
        """Write an object of usual size, and remove it. Raises what `put` raises."""
        await self._run(self._write_probe)

    async def check(self) -> Sequence[CheckResult]:
        results = await check_operations(self)
        with suppress(Unavailable):
            free = await self._run(self._free_space)
            results.append(CheckResult("free space", free > 0, f"{free / 2**30:.1f} GiB"))
        return results

    async def close(self) -> None:
        self._threads.close()

    async def _run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._threads.run(lambda: self._in_same_folder(lambda: work(*args, **kwargs)))
        except OSError as error:
            raise self._failure(error) from error

    def _in_same_folder(self, work: Callable[[], T]) -> T:
        """Do the work, and raise `StoreUnavailable` if the folder is not the one that was used first."""
        self._require_same()
        result = work()
        self._require_same()
        return result

    def _require_same(self) -> None:
        if self._identity is None:
            return
        try:
            found = os.stat(self._root)  # noqa: PTH116  (twice for each operation)
        except FileNotFoundError as error:
            raise StoreUnavailable(REPLACED) from error
        if (found.st_dev, found.st_ino) != self._identity:
            raise StoreUnavailable(REPLACED)

    def _failure(self, error: OSError) -> ServiceError:
        """Return the failure without the paths in the error."""
        if isinstance(error, TimeoutError):
            seconds = self._threads.deadline
            return StoreUnavailable(f"the object store's disk did not answer within {seconds:g} s")
        known = failure(error, DISK, self._root)
        return known or StoreUnavailable(f"the object store's folder cannot be used: {error.strerror}")

    def _path_of(self, key: str) -> Path:
        check_key(key)
        segments = key.split("/")
        depth = min(FOLDERS, len(segments) - 1)
        name = SLASH.join(segments[depth:])
        return self._root.joinpath(*segments[:depth], name[:BUCKET_CHARACTERS] + TEMPORARY_MARK, name)

    def _write(self, path: Path, pieces: Sequence[bytes]) -> bool:
        self._ensure_folder(path.parent)
        temporary = path.with_name(f"{path.name}{TEMPORARY_MARK}{secrets.token_hex(6)}")
        is_new = False
        try:
            # A link fails if the name exists; a rename would replace an object that is there.
            with _durably_written(temporary, pieces), suppress(FileExistsError):
                os.link(temporary, path)
                is_new = True
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        _synchronise(path.parent)
        return is_new

    def _ensure_folder(self, folder: Path) -> None:
        """Make the folder if it is missing, and make its name durable, once in this process."""
        if folder in self._known_folders and folder.is_dir():  # it may have been deleted by hand
            return
        if not folder.is_dir() or self._root in folder.parents:
            if folder == self._root:
                self._require_same()  # it is never made again
            self._ensure_folder(folder.parent)
            folder.mkdir(mode=0o700, exist_ok=True)
            _synchronise(folder.parent)
        if folder == self._root and self._identity is None:
            found = folder.stat()
            self._identity = found.st_dev, found.st_ino
        if len(self._known_folders) >= MAX_KNOWN_FOLDERS:
            self._known_folders.clear()
        self._known_folders.add(folder)

    def _write_probe(self) -> None:
        """Write an object durably, and remove it."""
        self._ensure_folder(self._root)
        if not os.access(self._root, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        path = self._root / PROBE_FILE
        try:
            with _durably_written(path, [bytes(PROBE_BYTES)], "wb"):
                pass
        finally:
            with suppress(FileNotFoundError):
                path.unlink()

    def _free_space(self) -> int:
        status = os.statvfs(self._root)
        return status.f_bavail * status.f_frsize


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


@contextmanager
def _durably_written(path: Path, pieces: Sequence[bytes], mode: Literal["xb", "wb"] = "xb") -> Iterator[None]:
    """Write a file durably. It is locked until the block ends, so that no sweep removes it."""
    with open(path, mode, opener=_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the system releases it if this process dies
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
        yield


def _synchronise(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path, start: int, length: int) -> bytes | None:
    """Return the bytes of the range, None if there is no such file."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return None
    with file:
        size = os.fstat(file.fileno()).st_size
        if start < 0:
            start, length = max(0, size + start), min(size, -start)
        if start + length > size:
            raise CaptureDamaged(f"a stored object ends at byte {size}, before byte {start + length}")
        file.seek(start)
        return file.read(length)


def _unlink(paths: Iterable[Path]) -> None:
    changed = set()
    for path in paths:
        with suppress(FileNotFoundError):
            path.unlink()
            changed.add(path.parent)
    for folder in changed:
        _synchronise(folder)
