"""A content and its entry while they are being written to a folder.

    .part-<token>.bin     has the content's full length from the beginning
    .part-<token>.json    has the entry's

Each file is locked from the moment it exists until it is published or discarded. So a part that nobody
has locked was left by a process that died.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from overspill.execution import forks
from overspill.spools import files
from overspill.spools.own_directory import LockedFile, lock
from overspill.text.body import FileBody, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PART: Final = ".part-"
_PIECE: Final = 1024 * 1024


class Draft:
    """The unpublished files of one capture. `sizes` has the bytes of each, by the suffix of its name.

    Make it under the spool's lock, and use it in a `with` block. Methods raise `OSError`.
    """

    def __init__(self, path: Path, sizes: Mapping[str, int], *, mode: int) -> None:
        self.size: int = sum(sizes.values())
        self._path, self._mode = path, mode
        self._token = secrets.token_hex(8)
        self._descriptors: dict[str, int] = {}
        forks.register(self)
        try:
            self._create(sizes)
        except BaseException:
            self.discard()
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def descriptors(self) -> list[int]:
        """The descriptors of the open files."""
        return list(self._descriptors.values())

    @property
    def suffixes(self) -> list[str]:
        """The suffixes of the files, the content's before the entry's."""
        return list(self._descriptors)

    def name(self, suffix: str) -> str:
        """Return the name that a file of this draft has until it is complete."""
        return f"{PART}{self._token}{suffix}"

    def fill(
        self, suffix: str, body: bytes | FileBody, *, dated: float | None = None, is_durable: bool = True
    ) -> None:
        """Write one of the files. Date it now, or `dated` seconds after the epoch.

        With `is_durable` the bytes are on the disk itself afterwards. A body in a file of the same file
        system is linked, not copied.
        """
        if not (isinstance(body, FileBody) and self._link(suffix, body)):
            for piece in _pieces(body):
                write_all(self._descriptors[suffix], piece)
        date = time.time_ns() if dated is None else int(dated * 1e9)  # finer than the system's own
        os.utime(self._descriptors[suffix], ns=(date, date))
        if is_durable:
            os.fsync(self._descriptors[suffix])

    def discard(self) -> int:
        """Remove the files that were not published; return their bytes."""
        with files.opened(self._path) as directory:
            return sum(files.remove(directory, self.name(suffix)) for suffix in self._descriptors)

    def hand_over(self, suffix: str) -> LockedFile:
        """Return one of the files, still locked. It no longer belongs to the draft."""
        return LockedFile(os.fdopen(self._descriptors.pop(suffix), "rb", buffering=0))

    def reset_after_fork(self) -> None:
        """Close the copies of the descriptors in a forked child: they would hold locks and disk space."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def close(self) -> None:
        """Unlock the files. A process that was started meanwhile may have them open too."""
        for descriptor in self._descriptors.values():
            with suppress(OSError):
                lock(descriptor, shut=False)
            os.close(descriptor)
        self._descriptors.clear()

    def _create(self, sizes: Mapping[str, int]) -> None:
        with files.opened(self._path) as directory:
            for suffix, size in sizes.items():
                descriptor = files.create(directory, self.name(suffix), self._mode)
                self._descriptors[suffix] = descriptor
                lock(descriptor)
                os.ftruncate(descriptor, size)

    def _link(self, suffix: str, body: FileBody) -> bool:
        """Link the body's file instead of the part. Return False if that cannot be done."""
        descriptor = os.open(body.path, os.O_RDONLY | files.NO_LINKS)
        try:
            is_linked = lock(descriptor) and self._replace(suffix, body.path)
            if is_linked:
                os.fchmod(descriptor, self._mode)
                descriptor, self._descriptors[suffix] = self._descriptors[suffix], descriptor
        finally:
            os.close(descriptor)
        return is_linked

    def _replace(self, suffix: str, path: Path) -> bool:
        link = f"{PART}{secrets.token_hex(8)}{suffix}"
        with files.opened(self._path) as directory:
            try:
                os.link(path, link, dst_dir_fd=directory, follow_symlinks=False)
            except OSError:
                return False
            os.rename(link, self.name(suffix), src_dir_fd=directory, dst_dir_fd=directory)
        return True


def _pieces(body: bytes | FileBody) -> Iterator[bytes | memoryview]:
    if isinstance(body, FileBody):
        yield from body.pieces()
        return
    view = memoryview(body)
    for start in range(0, len(view), _PIECE):
        yield view[start : start + _PIECE]
