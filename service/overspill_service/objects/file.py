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
import itertools
import logging
import os
import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from overspill_service.errors import ServiceError, StoreUnavailable, Unavailable
from overspill_service.errors.checks import CheckResult
from overspill_service.errors.system import failure
from overspill_service.objects import durable_files, folder_walk
from overspill_service.objects.checks import check_operations
from overspill_service.objects.durable_files import CAN_TELL_CACHED
from overspill_service.objects.folder_walk import BUCKET_CHARACTERS, FOLDERS, SLASH, TEMPORARY_MARK
from overspill_service.objects.keys import check_key, check_prefix, owner_of
from overspill_service.objects.reserve import NO_ROOM, Reserve
from overspill_service.objects.threads import Threads
from overspill_service.resources.quick_work import QuickWork, is_on_local_disk
from overspill_service.store_format.object_keys import records_removal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from pathlib import Path

    from overspill_service.objects import StoredObject

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE_BYTES: Final = 128 * 1024
"""Bytes of a range that the event loop reads itself, at most."""
READERS: Final = 2
"""Threads that one tenant's reads use at once."""
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
        self._readers = Threads("object-reads", READERS, deadline)
        """Threads of their own: a read takes little time, and a write must reach the disk."""
        self._quick = QuickWork(is_possible=CAN_TELL_CACHED and is_on_local_disk(self._root))
        self._page_size = page_size
        self._reserve = Reserve(self._root)
        self._known_folders: set[Path] = set()
        self._identity: tuple[int, int] | None = None
        """Device and inode of the folder, once it was used."""

    async def put(self, key: str, pieces: Sequence[bytes]) -> bool:
        """Store an object. On a nearly full disk the last room is for the records of removals."""
        prepare = self._reserve.give if records_removal(key) else self._reserve.keep
        return await self._run(owner_of(key), self._write, self._path_of(key), pieces, prepare)

    async def make_room(self) -> None:
        await self._run("", self._reserve.give)

    async def read(self, key: str, start: int, length: int) -> bytes:
        path = self._path_of(key)
        if (cached := self._cached(path, start, length)) is not None:
            return cached
        work = partial(durable_files.read, path, start, length)
        data = await self._run_in(self._readers, owner_of(key), work)
        if data is None:
            raise KeyError(key)
        return data

    def _cached(self, path: Path, start: int, length: int) -> bytes | None:
        """Return a short range at once if the system has it in memory."""
        is_short = start >= 0 and length <= AT_ONCE_BYTES
        if not is_short or not self._quick.is_allowed:
            return None
        with self._quick.watched():
            return self._in_same_folder(partial(durable_files.read_cached, path, start, length))

    async def copy(self, key: str, new_key: str) -> None:
        """Link the object's file to a second name. It keeps the time at which it was stored."""
        path, new_path = self._path_of(key), self._path_of(new_key)
        await self._run(owner_of(new_key), self._link, path, new_path)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        check_prefix(prefix)
        owner = owner_of(prefix)
        await self._run(owner, self._ensure_folder, self._root)
        walk = folder_walk.objects(self._root, "", prefix)
        while page := await self._run(owner, folder_walk.next_page, walk, self._page_size):
            for stored in page:
                yield stored

    async def delete(self, keys: Iterable[str]) -> None:
        rest = iter(keys)
        while batch := [*itertools.islice(rest, self._page_size)]:
            await self._run(owner_of(batch[0]), durable_files.unlink, [self._path_of(key) for key in batch])

    async def sweep_temporary(self, age: float) -> int:
        await self._run("", self._ensure_folder, self._root)
        return await self._run("", folder_walk.sweep_temporary, self._root, age)

    async def keeps_versions(self) -> bool:
        """Return False: deleted objects are gone."""
        return False

    async def now(self) -> None:
        """Return None: the clock is this machine's."""

    def path_of(self, key: str) -> Path:
        """Return the file of an object, whether it exists or not."""
        return self._path_of(key)

    async def foreign(self) -> AsyncIterator[str]:
        """Yield every file in the folder that is not an object of the service, by its path in the folder."""
        files = await self._run("", folder_walk.foreign, self._root, self._path_of)
        for each in files:
            yield each

    def prepare(self) -> None:
        """Make the folder, and close this store. Raises `OSError` if the folder cannot be used. Blocks.

        A full disk can still be read from, and removed from.
        """
        try:
            self._write_probe()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            log.warning("%s", failure(error, DISK, self._root))
        finally:
            self._close()

    @property
    def folder(self) -> Path:
        return self._root

    async def ping(self) -> None:
        """Write an object of usual size, and remove it. Raises what `put` raises."""
        await self._run("", self._write_probe)

    async def check(self) -> Sequence[CheckResult]:
        results = await check_operations(self)
        with suppress(Unavailable):
            free = await self._run("", self._free_space)
            results.append(CheckResult("free space", free > 0, f"{free / 2**30:.1f} GiB"))
        return results

    async def close(self) -> None:
        self._close()

    def _close(self) -> None:
        self._threads.close()
        self._readers.close()

    async def _run(self, owner: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run_in(self._threads, owner, partial(work, *args, **kwargs))

    async def _run_in(self, threads: Threads, owner: str, work: Callable[[], T]) -> T:
        """Do the work in one of the threads that `owner` may use now."""
        try:
            return await threads.run(owner, self._in_same_folder, work)
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
        """Return the failure, without the paths of the error."""
        if isinstance(error, TimeoutError):
            seconds = self._threads.deadline
            return StoreUnavailable(f"the object store's disk did not answer within {seconds:g} s")
        service_error = failure(error, DISK, self._root)
        return service_error or StoreUnavailable(
            f"the object store's folder cannot be used: {error.strerror}"
        )

    def _path_of(self, key: str) -> Path:
        check_key(key)
        segments = key.split("/")
        depth = min(FOLDERS, len(segments) - 1)
        name = SLASH.join(segments[depth:])
        return self._root.joinpath(*segments[:depth], name[:BUCKET_CHARACTERS] + TEMPORARY_MARK, name)

    def _write(self, path: Path, pieces: Sequence[bytes], prepare: Callable[[], None]) -> bool:
        self._ensure_folder(self._root)
        prepare()
        self._ensure_folder(path.parent)
        temporary = path.with_name(f"{path.name}{TEMPORARY_MARK}{secrets.token_hex(6)}")
        is_new = False
        try:
            # A link fails if the name exists; a rename would replace an object that is there.
            with durable_files.durably_written(temporary, pieces), suppress(FileExistsError):
                os.link(temporary, path)
                is_new = True
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        durable_files.synchronise(path.parent)
        return is_new

    def _link(self, path: Path, new_path: Path) -> None:
        self._ensure_folder(self._root)
        self._ensure_folder(new_path.parent)
        try:
            with suppress(FileExistsError):
                os.link(path, new_path)
        except FileNotFoundError as error:
            raise KeyError(path.name) from error
        durable_files.synchronise(new_path.parent)

    def _ensure_folder(self, folder: Path) -> None:
        """Make the folder if it is missing, and make its name durable, once in this process."""
        if folder in self._known_folders and folder.is_dir():  # it may have been deleted by hand
            return
        if not folder.is_dir() or self._root in folder.parents:
            if folder == self._root:
                self._require_same()  # it is never made again
            self._ensure_folder(folder.parent)
            folder.mkdir(mode=0o700, exist_ok=True)
            durable_files.synchronise(folder.parent)
        if folder == self._root and self._identity is None:
            found = folder.stat()
            self._identity = found.st_dev, found.st_ino
        if len(self._known_folders) >= MAX_KNOWN_FOLDERS:
            self._known_folders.clear()
        self._known_folders.add(folder)

    def _write_probe(self) -> None:
        """Write an object durably, and remove it."""
        self._ensure_folder(self._root)
        if not os.access(self._root, os.R_OK | os.X_OK):  # W_OK would call a read-only disk forbidden
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        self._reserve.keep()
        path = self._root / PROBE_FILE
        try:
            with durable_files.durably_written(path, [bytes(PROBE_BYTES)], "wb"):
                pass
        finally:
            with suppress(FileNotFoundError):
                path.unlink()

    def _free_space(self) -> int:
        status = os.statvfs(self._root)
        return status.f_bavail * status.f_frsize
