"""Walk through the folder of a store: objects in the order of their keys, temporary files, foreign files."""

from __future__ import annotations

import fcntl
import heapq
import itertools
import os
import time
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from overspill_service.objects import StoredObject
from overspill_service.objects.keys import is_key
from overspill_service.objects.reserve import NAME as RESERVE
from overspill_service.store_format.object_keys import is_service_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

FOLDERS: Final = 2
"""Leading segments of a key that have a folder each."""
BUCKET_CHARACTERS: Final = 5
"""Characters of the rest of the key that choose a folder: `cap_` and one character of the capture id."""
TEMPORARY_MARK: Final = "~"
SLASH: Final = ","
ABANDONED_SECONDS: Final = 3600
WRITER_SECONDS: Final = 10.0
"""Age of a temporary file in seconds at which its writer, if it still runs, has locked it."""


def next_page(walk: Iterator[StoredObject], size: int) -> Sequence[StoredObject]:
    return [*itertools.islice(walk, size)]


def objects(folder: Path, base: str, prefix: str) -> Iterator[StoredObject]:
    """Yield the objects in `folder` in the order of their keys. All these keys begin with `base`."""
    buckets, folders = _subfolders(folder, base, prefix)
    here = (_files(folder / name, base, prefix) for name in sorted(buckets, key=_unescaped))
    below = (objects(folder / name, f"{base}{name}/", prefix) for name in sorted(folders, key="{}/".format))
    # Files of this folder and those of the folders below interleave in the order of keys: merge both streams.
    flat = itertools.chain.from_iterable
    yield from heapq.merge(flat(here), flat(below), key=attrgetter("key"))


def _subfolders(folder: Path, base: str, prefix: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the folders of files, and the folders of folders, that may hold keys with the prefix."""
    buckets, folders = [], []
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in names:
        if name.endswith(TEMPORARY_MARK) and _overlap(base + _unescaped(name), prefix):
            buckets.append(name)
        elif is_key(name) and base.count("/") < FOLDERS and _overlap(f"{base}{name}/", prefix):
            folders.append(name)
    return buckets, folders


def foreign(root: Path, path_of: Callable[[str], Path]) -> list[str]:
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = root.joinpath(folder, name)
            *folders, _ = path.relative_to(root).parts[:-1] or ("",)
            key = "/".join([*folders, _unescaped(name)])
            if TEMPORARY_MARK not in name and not (
                is_key(key) and is_service_key(key) and path_of(key) == path
            ):
                found.append(str(path.relative_to(root)))
    return found


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _unescaped(name: str) -> str:
    return name.removesuffix(TEMPORARY_MARK).replace(SLASH, "/")


def _files(folder: Path, base: str, prefix: str) -> Sequence[StoredObject]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            key = base + _unescaped(entry.name)
            with suppress(FileNotFoundError):  # deleted meanwhile
                if TEMPORARY_MARK in entry.name:
                    _remove_abandoned(entry)
                elif key.startswith(prefix) and is_key(key):
                    status = entry.stat(follow_symlinks=False)
                    found.append(StoredObject(key, status.st_size, status.st_mtime))
    return sorted(found, key=attrgetter("key"))


def _remove_abandoned(entry: os.DirEntry[str]) -> None:
    if time.time() - entry.stat(follow_symlinks=False).st_mtime > ABANDONED_SECONDS:
        os.unlink(entry.path)  # noqa: PTH108  (a DirEntry has the path as text)


def sweep_temporary(root: Path, age: float) -> int:
    """Delete temporary files that nobody writes. Return the bytes of the others."""
    remaining = 0
    for folder, _, names in os.walk(root):
        for name in names:
            with suppress(FileNotFoundError):  # its writer has just removed it
                if TEMPORARY_MARK in name and name != RESERVE:
                    remaining += _remaining_size(root.joinpath(folder, name), max(age, WRITER_SECONDS))
    return remaining


def _remaining_size(path: Path, age: float) -> int:
    status = path.stat()
    if time.time() - status.st_mtime <= age:
        return status.st_size
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # it is being written
            return status.st_size
        path.unlink()
    return 0
