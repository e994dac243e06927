"""Keeps the output of a command: in memory, then in a file, or only its two ends if there is no room.

    all (memory, up to MEMORY_BYTES)
    all (a nameless file)
    start (memory, up to START_BYTES) | a gap | the last END_BYTES   if the file cannot be written

Taking bytes never raises: the command must not fail because its output cannot be kept.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Self

from overspill.text import quantities
from overspill.text.long_files import long_file_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY_BYTES: Final = 1024 * 1024
START_BYTES: Final = 12 * 1024 * 1024
"""Bytes of the beginning that are kept if there is no room for the whole. With the end they are few enough
to be captured without a file."""
END_BYTES: Final = 1024 * 1024
"""Bytes of the end that are kept if there is no room for the whole."""
MAX_BYTES: Final = 4 * 1024 * 1024 * 1024
_FREE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of the disk that are left free, for the command and for others."""
_CHECK_EVERY_BYTES: Final = 16 * 1024 * 1024
"""Bytes that are written between two checks of the free space."""
_PIECE_BYTES: Final = 1024 * 1024


class Recording:
    """Takes bytes as they come. Use it in a `with` block, which frees memory and disk."""

    def __init__(
        self,
        *,
        in_memory: int = MEMORY_BYTES,
        start: int = START_BYTES,
        last: int = END_BYTES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.size: int = 0
        self._in_memory, self._max_start, self._max_last, self._max_bytes = in_memory, start, last, max_bytes
        self._start = bytearray()
        self._last = bytearray()
        self._file: IO[bytes] | None = None
        self._why_no_file = ""
        self._written = 0
        self._checked_at = -_CHECK_EVERY_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    @property
    def is_short(self) -> bool:
        """Whether the output is so short that it is in memory."""
        return self.size <= self._in_memory

    @property
    def is_filed(self) -> bool:
        """Return whether the output is in a temporary file."""
        return self._file is not None

    @property
    def gap(self) -> int:
        """The number of bytes that are missing between the two ends."""
        return 0 if self._file is not None else self.size - len(self._start) - len(self._last)

    @property
    def missing(self) -> str:
        """The reason why bytes are missing in the middle; empty if all are there."""
        return self._why_no_file if self.gap else ""

    def take(self, data: bytes) -> None:
        """Take more of the output. If there is no room for all of it, its middle is dropped."""
        self.size += len(data)
        rest = memoryview(data)
        if self._file is None:
            rest = self._kept_in_memory(rest, self._max_start if self._why_no_file else self._in_memory)
        if rest and not self._why_no_file:
            rest = self._kept_in_memory(self._written_to_file(rest), self._max_start)
        if rest:
            self._last += rest
            del self._last[: -self._max_last]

    def pieces(self, offset: int = 0) -> Iterator[bytes]:
        """Yield all bytes from `offset` on, with a line instead of missing bytes. Raises `OSError`."""
        while piece := self.read(offset, _PIECE_BYTES):
            offset += len(piece)
            yield piece
        if self.gap:
            gone = quantities.plural(self.gap, "byte")
            yield f"\n({gone} of the output are missing here: {self._why_no_file})\n".encode()
        if self._last:
            yield bytes(self._last)

    def content(self, errors: str) -> str | Iterator[bytes]:
        """Return a short output as a text, and a longer one in pieces. `errors` is as for `bytes.decode`."""
        return b"".join(self.pieces()).decode("utf-8", errors) if self.is_short else self.pieces()

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` bytes from `offset` on, for a reader in another thread.

        They are those of the output as long as nothing is `missing`. Raises `OSError`.
        """
        file = self._file
        if file is None:
            return bytes(self._start[offset : offset + limit])
        try:
            return os.pread(file.fileno(), limit, offset)
        except ValueError as error:  # it was closed meanwhile
            raise OSError(str(error)) from error

    def named(self) -> Path | None:
        """Return a new name for the file, which has all of the output; None if it is in no such file.

        The file stays under that name until its receiver removes it.
        """
        if self._file is None or self._last:
            return None
        path = Path(self._folder) / f"overspill-{secrets.token_hex(8)}.out"
        try:
            number = self._file.fileno()  # given as a folder too, it makes Python call linkat(2)
            os.link(f"/proc/self/fd/{number}", path, src_dir_fd=number, follow_symlinks=True)
        except OSError:  # a system or a disk that gives a nameless file no name
            return None
        return path

    def give_up_middle(self, reason: str) -> None:
        """Keep the two ends and free the disk. Raises `OSError` if they cannot be read back."""
        self._why_no_file = reason
        file, self._file = self._file, None
        if file is None:
            return
        with file:
            start_size = len(self._start)
            self._start += os.pread(file.fileno(), self._max_start - start_size, start_size)
            end_of_start = max(start_size, self._max_start)
            self._last[:0] = os.pread(
                file.fileno(), self._max_last, max(end_of_start, self._written - self._max_last)
            )

    def has_room_for_a_copy(self) -> bool:
        """Return whether the disk has room for a copy."""
        return _free(self._folder) - self.size > _FREE_BYTES

    @cached_property
    def _folder(self) -> str:
        """The folder for the file. Raises `OSError` if there is none."""
        return long_file_folder() or tempfile.gettempdir()

    def _kept_in_memory(self, data: memoryview, limit: int) -> memoryview:
        """Add data to the beginning in memory. Return the rest, which is too much for that."""
        if self._last:  # the beginning ended before
            return data
        room = max(0, limit - len(self._start))
        self._start += data[:room]
        return data[room:]

    def _written_to_file(self, rest: memoryview) -> memoryview:
        """Write to the file. Return what could not be written."""
        try:
            self._check_can_be_made()
            if self._file is None:
                self._file = self._new_file()
            while rest:
                count = os.write(self._file.fileno(), rest)
                self._written += count
                rest = rest[count:]
        except OSError as error:
            self._give_up_file(error)
        return rest

    def _new_file(self) -> IO[bytes]:
        """Return a file with the bytes that were in memory. Raises `OSError`."""
        file = _nameless_file(self._folder)
        try:
            while self._written < len(self._start):
                self._written += os.write(file.fileno(), memoryview(self._start)[self._written :])
        except OSError:
            file.close()
            raise
        return file

    def _check_can_be_made(self) -> None:
        """Raise `OSError` if the disk is nearly full, or if the output is longer than any capture may be."""
        if self._written - self._checked_at < _CHECK_EVERY_BYTES:
            return
        self._checked_at = self._written
        if _free(self._folder) < _FREE_BYTES:
            raise OSError(f"less than {quantities.readable_size(_FREE_BYTES)} are free in {self._folder}")
        if self.size > self._max_bytes:
            raise OSError(f"no more than {quantities.readable_size(self._max_bytes)} are kept")

    def _give_up_file(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        try:
            self.give_up_middle(reason)
        except OSError:  # what was written cannot even be read back: it is in the gap
            self._max_start = len(self._start)


def _nameless_file(folder: str) -> IO[bytes]:
    """Return a new file that is gone when the process ends, and may get a name. Raises `OSError`."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # a disk that has no such files
            descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
            return os.fdopen(descriptor, "w+b", buffering=0)
    return tempfile.TemporaryFile("w+b", buffering=0, prefix="overspill-run-", dir=folder)


def _free(folder: str) -> int:
    """Return the bytes that are free in the folder. Raises `OSError` if it is gone."""
    return shutil.disk_usage(folder).free
