"""A directory of contents, each with an entry that says what it is.

    cap_….bin     the content, as it is (the suffix is the folder's own)
    cap_….json    its entry, dated when it expires; it is written last, and a content without one does
                  not exist
    .part-…       a content on its way, as long as it will be; what a dead process left goes after an hour
    dropped.json  the last of those that had to go

Everything is reached through the directory's own descriptor and no symbolic link is followed, so nothing
outside is ever touched. Whoever changes a folder holds a lock around it. All methods raise `OSError`.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from contextlib import contextmanager, suppress
from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from typing import IO, TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from overspill import wire
from overspill.body import Filed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

T = TypeVar("T")

ORPHANED: Final = 3600.0
"""Seconds after which what nobody committed is taken for the leavings of a dead process."""
MOST_DROPPED: Final = 200
"""How many of those that had to go are remembered."""
_PIECE: Final = 1024 * 1024
_ENTRY: Final = ".json"
_PART: Final = ".part-"
_DROPPED: Final = "dropped.json"
_NO_LINKS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY: Final = _NO_LINKS | getattr(os, "O_DIRECTORY", 0)


class Spooled(Struct, frozen=True, kw_only=True):
    """What is known of a content: `reason` why it is here, `refused` why the service will never have it.

    `path` is where its agent finds it, in a workspace.
    """

    id: str
    size: int
    lines: int
    sha256: str
    session: str
    call_id: str
    tool: str
    status: str
    content_type: str
    ttl: int | None
    created: datetime
    expires: datetime
    url: str
    reason: str
    refused: str = ""
    path: str = ""


class Dropped(Struct, frozen=True, kw_only=True):
    """One that had to go, and why."""

    id: str
    call_id: str
    session: str
    size: int
    dropped: datetime
    reason: str


class Held(NamedTuple):
    """A content by the sizes and dates of its files, in bytes and seconds since the epoch; a copy may lie."""

    changed: float
    id: str
    size: int
    expires: float


class Folder:
    def __init__(self, path: Path, *, suffix: str = ".bin", mode: int = 0o600) -> None:
        """`mode` is that of the files."""
        self.path = path
        self._suffix = suffix
        self._mode = mode

    def name(self, id: str) -> str:  # noqa: A002  (the field's own name)
        """The file of a content. Raises `ValueError` for what is no capture id."""
        return _checked(id) + self._suffix

    # --- writing -----------------------------------------------------------------------------------

    def reserve(self, size: int) -> str:
        """Make a part of `size` bytes, which count as used from now on; its name."""
        part = _PART + secrets.token_hex(8)
        with self._opened() as directory, self._created(directory, part) as file:
            file.truncate(size)
        return part

    def fill(self, part: str, body: bytes | Filed) -> None:
        """Let a reserved part be `body`, on the disk itself; a file on the same file system is not copied."""
        with self._opened() as directory:
            if isinstance(body, Filed) and self._link(directory, part, body):
                return
            descriptor = os.open(part, os.O_WRONLY | _NO_LINKS, dir_fd=directory)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                for piece in _pieces(body):
                    _write(file, piece)
                os.fsync(file.fileno())

    def commit(self, part: str, entry: Spooled) -> None:
        """Let a filled part be the content of `entry`, from here on visible and safe from a crash."""
        with self._opened() as directory:
            os.rename(part, self.name(entry.id), src_dir_fd=directory, dst_dir_fd=directory)
            try:
                self._put_entry(directory, entry)
            except OSError:
                _unlink(directory, self.name(entry.id))
                raise

    def amend(self, entry: Spooled) -> None:
        """Replace the entry of a content."""
        with self._opened() as directory:
            self._put_entry(directory, entry)

    def remove(self, id: str) -> None:  # noqa: A002
        """Nothing happens where it is not there."""
        with self._opened() as directory:
            _unlink(directory, _checked(id) + _ENTRY)
            _unlink(directory, self.name(id))

    def discard(self, part: str) -> None:
        with self._opened() as directory:
            _unlink(directory, part)

    def tidy(self) -> None:
        """Remove what nobody committed within the hour."""
        before = time.time() - ORPHANED
        with self._opened() as directory:
            for found in os.scandir(directory):
                if self._is_loose(directory, found.name) and _changed(found) < before:
                    _unlink(directory, found.name)

    def remember(self, dropped: list[Dropped]) -> None:
        """Add to what `dropped` tells."""
        kept = [*self.dropped(), *dropped][-MOST_DROPPED:]
        with self._opened() as directory:
            self._put(directory, _DROPPED, msgspec.json.encode(kept))

    # --- reading -----------------------------------------------------------------------------------

    def held(self) -> list[Held]:
        """The contents that have an entry, oldest first."""
        with self._opened() as directory:
            files = {found.name: found for found in os.scandir(directory)}
            stems = [name.removesuffix(_ENTRY) for name in files if name.endswith(_ENTRY)]
            held = [
                Held(_changed(content), stem, _size(content), _changed(files[stem + _ENTRY]))
                for stem in stems
                if wire.CAPTURE_ID.fullmatch(stem) and (content := files.get(stem + self._suffix))
            ]
        return sorted(held)

    def used(self) -> int:
        """Bytes of all files."""
        with self._opened() as directory:
            return sum(map(_size, os.scandir(directory)))

    def size(self, id: str) -> int | None:  # noqa: A002
        """The bytes of a content that has an entry; None where there is none."""
        if self.entry(id) is None:
            return None
        try:
            with self.open(id) as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return None

    def entry(self, id: str) -> Spooled | None:  # noqa: A002
        """None where there is none, or none that can be understood."""
        with self._opened() as directory:
            return self._read(directory, _checked(id) + _ENTRY, Spooled)

    def entries(self) -> list[Spooled]:
        """Oldest first."""
        found = [self.entry(held.id) for held in self.held()]
        return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.created)

    def open(self, id: str) -> IO[bytes]:  # noqa: A002
        """The content, to be read. It stays readable where it is removed meanwhile."""
        with self._opened() as directory:
            return self._open(directory, self.name(id))

    def dropped(self) -> list[Dropped]:
        """The last of those that had to go, oldest first."""
        with self._opened() as directory:
            return self._read(directory, _DROPPED, list[Dropped]) or []

    # --- files -------------------------------------------------------------------------------------

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The directory's descriptor."""
        descriptor = os.open(self.path, os.O_RDONLY | _DIRECTORY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _created(self, directory: int, name: str) -> Iterator[IO[bytes]]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS
        descriptor = os.open(name, flags, self._mode, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                yield file
        except BaseException:
            _unlink(directory, name)
            raise

    def _link(self, directory: int, part: str, body: Filed) -> bool:
        """Whether the file could be had under the part's name; nobody writes to it any more."""
        link = _PART + secrets.token_hex(8)
        try:
            os.link(body.path, link, dst_dir_fd=directory, follow_symlinks=False)
        except OSError:
            return False
        try:
            with self._open(directory, link) as file:
                os.fchmod(file.fileno(), self._mode)
                os.fsync(file.fileno())
            os.utime(link, dir_fd=directory, follow_symlinks=False)
            os.rename(link, part, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            _unlink(directory, link)
            raise
        return True

    def _put_entry(self, directory: int, entry: Spooled) -> None:
        name, dated = _checked(entry.id) + _ENTRY, entry.expires.timestamp()
        self._put(directory, name, msgspec.json.encode(entry), dated)

    def _put(self, directory: int, name: str, data: bytes, dated: float | None = None) -> None:
        """Let `name` be a file with this content, at once and for good."""
        part = _PART + secrets.token_hex(8)
        with self._created(directory, part) as file:
            _write(file, data)
            if dated is not None:
                os.utime(file.fileno(), (dated, dated))
            os.fsync(file.fileno())
        os.rename(part, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)

    def _open(self, directory: int, name: str) -> IO[bytes]:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _NO_LINKS, dir_fd=directory)
        file = os.fdopen(descriptor, "rb", buffering=0)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            file.close()
            raise FileNotFoundError(name)
        return file

    def _read(self, directory: int, name: str, kind: type[T]) -> T | None:
        try:
            with self._open(directory, name) as file:
                return msgspec.json.decode(file.read(), type=kind)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _is_loose(self, directory: int, name: str) -> bool:
        """Whether a file is a part, or a content or an entry without the other."""
        if name.startswith(_PART):
            return True
        stem, dot, _ = name.partition(".")
        if not dot or not wire.CAPTURE_ID.fullmatch(stem):
            return False
        other = self.name(stem) if name.endswith(_ENTRY) else stem + _ENTRY
        try:
            os.stat(other, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return False


def _checked(id: str) -> str:  # noqa: A002
    if not wire.CAPTURE_ID.fullmatch(id):
        raise ValueError(f"{id[:100]!r} is no capture id")
    return id


def _pieces(body: bytes | Filed) -> Iterator[bytes | memoryview]:
    if isinstance(body, Filed):
        yield from body.pieces()
        return
    view = memoryview(body)
    for start in range(0, len(view), _PIECE):
        yield view[start : start + _PIECE]


def _write(file: IO[bytes], data: bytes | memoryview) -> None:
    """All of `data`: a raw write may take a part only."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _unlink(directory: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)


def _size(found: os.DirEntry[str]) -> int:
    """0 where it went meanwhile."""
    try:
        return found.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _changed(found: os.DirEntry[str]) -> float:
    try:
        return found.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return 0.0
