"""A directory of contents, each with an entry that says what it is.

    cap_….bin     the content, as it is (the suffix is the folder's own)
    cap_….json    its entry, dated when it expires; one without the other does not exist
    .part-…       a `Draft`
    dropped.json  the last captures that were removed without an upload; its bytes do not count

Publish and remove under the spool's lock, which also guards the total of its bytes. The methods that do so
return the bytes that they freed. All methods raise `OSError`.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from overspill import wire
from overspill.spools import files
from overspill.spools.draft import PART, Draft
from overspill.spools.entries import Dropped, Spooled
from overspill.spools.own_directory import lock

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

MAX_DROPPED: Final = 200
"""The number of captures removed without an upload that are remembered."""
ENTRY: Final = ".json"
_DROPPED: Final = "dropped.json"


class StoredFile(NamedTuple):
    """A capture as the sizes and dates of its files show it. The dates of copied files may be wrong.

    `size` is the bytes of the content, `disk_size` of content and entry. `changed` and `expires` are seconds
    since the epoch.
    """

    changed: float
    id: str
    size: int
    disk_size: int
    expires: float


class Stock(NamedTuple):
    """All files of a folder: their bytes, the captures oldest first, and the names of all other files."""

    size: int
    stored_files: list[StoredFile]
    loose: list[str]


class Folder:
    """The files of one service and key: two for each capture, its content and its entry."""

    def __init__(self, path: Path, *, suffix: str = ".bin", mode: int = 0o600) -> None:
        """`mode` is the mode of the files."""
        self.path = path
        self.suffix = suffix
        self._mode = mode

    def name(self, id: str) -> str:  # noqa: A002  (the field's own name)
        """Return the file name of a content. Raises `ValueError` for anything but a capture id."""
        return _checked(id) + self.suffix

    def begin(self, entry: int, content: int | None = None) -> Draft:
        """Make a draft of an entry of `entry` bytes, and of `content` bytes of content, if that is given."""
        sizes = {} if content is None else {self.suffix: content}
        return Draft(self.path, {**sizes, ENTRY: entry}, mode=self._mode)

    def publish(self, draft: Draft, id: str) -> int:  # noqa: A002
        """Publish a filled draft as the content and the entry of `id`. Return the bytes that it replaces."""
        freed = 0
        with files.opened(self.path) as directory:
            try:
                for suffix in draft.suffixes:
                    name = _checked(id) + suffix
                    freed += files.size(directory, name)
                    os.rename(draft.name(suffix), name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError:
                if self.suffix in draft.suffixes:
                    files.remove(directory, self.name(id))
                raise
        return freed

    def remove(self, id: str) -> int:  # noqa: A002
        """Remove a capture, if it is there. Return the bytes that it had."""
        with files.opened(self.path) as directory:
            return sum(files.remove(directory, _checked(id) + suffix) for suffix in (ENTRY, self.suffix))

    def clear(self, name: str) -> int:
        """Remove a loose file, unless it was published meanwhile or is still written. Return its bytes."""
        with files.opened(self.path) as directory:
            is_left = _is_dead(directory, name) if name.startswith(PART) else self._is_single(directory, name)
            return files.remove(directory, name) if is_left else 0

    def sync(self) -> None:
        """Write the names of all files to the disk itself."""
        with files.opened(self.path) as directory:
            os.fsync(directory)

    def remember(self, dropped: list[Dropped]) -> None:
        """Add to the list that `dropped` returns. For one process at a time."""
        data = msgspec.json.encode([*self.dropped(), *dropped][-MAX_DROPPED:])
        with Draft(self.path, {ENTRY: len(data)}, mode=self._mode) as draft:
            draft.fill(ENTRY, data, is_durable=False)
            with files.opened(self.path) as directory:
                os.rename(draft.name(ENTRY), _DROPPED, src_dir_fd=directory, dst_dir_fd=directory)

    def stock(self) -> Stock:
        """Look at all files, with a system call for each."""
        with files.opened(self.path) as directory:
            names = [each.name for each in os.scandir(directory) if self._is_own(each.name)]
            found = {  # sizes and dates alone: a status of each of many files takes memory
                name: (status.st_size, status.st_mtime)
                for name in names
                if (status := files.found(directory, name))
            }
        stored_files = [
            StoredFile(content[1], stem, content[0], content[0] + size, changed)
            for name, (size, changed) in found.items()
            if _is_entry(name) and (content := found.get((stem := name.removesuffix(ENTRY)) + self.suffix))
        ]
        paired = {each.id for each in stored_files}
        loose = [name for name in found if name.partition(".")[0] not in paired]
        return Stock(sum(size for size, _ in found.values()), sorted(stored_files), loose)

    def stored_files(self) -> list[StoredFile]:
        """Return the contents that have an entry, oldest first."""
        return self.stock().stored_files

    def is_empty(self) -> bool:
        """Return whether nothing is kept here. It reads no more names than it needs."""
        with files.opened(self.path) as directory, os.scandir(directory) as found:
            return not any(_is_entry(each.name) for each in found)

    def changed(self, id: str) -> float | None:  # noqa: A002
        """Return when a content was written, in seconds since the epoch; None if there is none."""
        with files.opened(self.path) as directory:
            status = files.found(directory, self.name(id))
        return None if status is None else status.st_mtime

    def has(self, id: str) -> bool:  # noqa: A002
        """Return whether a content and its entry are there."""
        with files.opened(self.path) as directory:
            return all(files.exists(directory, _checked(id) + suffix) for suffix in (ENTRY, self.suffix))

    def size(self, id: str) -> int | None:  # noqa: A002
        """Return the bytes of a content that has an entry; None if there is none."""
        if self.entry(id) is None:
            return None
        try:
            with self.open(id) as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return None

    def entry(self, id: str) -> Spooled | None:  # noqa: A002
        """Return the entry of a capture, or None if there is none that can be decoded."""
        with files.opened(self.path) as directory:
            found = _read(directory, _checked(id) + ENTRY, Spooled)
            return found if found is not None and found.id == id else None

    def entries(self) -> list[Spooled]:
        """Return all entries, oldest first."""
        found = [self.entry(stored_file.id) for stored_file in self.stored_files()]
        return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.created)

    def open(self, id: str) -> IO[bytes]:  # noqa: A002
        """Open a content to read it. It stays readable if it is removed meanwhile."""
        with files.opened(self.path) as directory:
            return files.open_regular(directory, self.name(id))

    def dropped(self) -> list[Dropped]:
        """Return the last captures that were removed without an upload, oldest first."""
        with files.opened(self.path) as directory:
            return _read(directory, _DROPPED, list[Dropped]) or []

    def _is_own(self, name: str) -> bool:
        """Return whether a file counts: a part, a content or an entry."""
        stem, dot, suffix = name.partition(".")
        is_kept = wire.CAPTURE_ID.fullmatch(stem) and dot + suffix in (ENTRY, self.suffix)
        return bool(is_kept) or name.startswith(PART)

    def _is_single(self, directory: int, name: str) -> bool:
        """Return whether a file is a content without an entry, or an entry without a content."""
        stem = name.partition(".")[0]
        other = self.name(stem) if name.endswith(ENTRY) else stem + ENTRY
        return not files.exists(directory, other)


def _is_entry(name: str) -> bool:
    return name.endswith(ENTRY) and wire.CAPTURE_ID.fullmatch(name.removesuffix(ENTRY)) is not None


def _is_dead(directory: int, part: str) -> bool:
    """Return whether nobody has a part locked: the process that made it died."""
    try:
        with files.open_regular(directory, part) as file:
            return lock(file.fileno())
    except OSError:
        return False


def _checked(id: str) -> str:  # noqa: A002
    if not wire.CAPTURE_ID.fullmatch(id):
        raise ValueError(f"{id[:100]!r} is not a capture id")
    return id


def _read(directory: int, name: str, kind: type[T]) -> T | None:
    try:
        with files.open_regular(directory, name) as file:
            return msgspec.json.decode(file.read(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
