"""All that a command printed: in memory while it is short, then in a file, and without room its two ends.

    head (memory, up to IN_MEMORY) | the rest (a nameless file)
    head                           | a gap | the last bytes        where the file cannot be written

Taking bytes never raises: what becomes of the recording is no business of the command's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import IO, TYPE_CHECKING, Final, Self

from overspill import measure

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_MEMORY: Final = 16 * 1024 * 1024
LAST: Final = 1024 * 1024
"""Bytes kept of the end where there is no room for the whole."""
MOST: Final = 4 * 1024 * 1024 * 1024
_RESERVE: Final = 64 * 1024 * 1024
"""Bytes of the disk that are left to the command and to everybody else."""
_LOOK: Final = 16 * 1024 * 1024
"""Bytes written between two looks at the room that is left."""
_BLOCK: Final = 1024 * 1024


class Recording:
    """Takes bytes as they come; use it in a `with` block, which gives memory and disk back.

    `missing` is why bytes are missing in the middle; empty where all is there.
    """

    def __init__(self, *, in_memory: int = IN_MEMORY, last: int = LAST, most: int = MOST) -> None:
        self.size = 0
        self.missing = ""
        self._in_memory, self._most_last, self._most = in_memory, last, most
        self._head = bytearray()
        self._last = bytearray()
        self._file: IO[bytes] | None = None
        self._written = 0
        self._looked = -_LOOK

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def is_in_memory(self) -> bool:
        """Whether `data` gives all that there is."""
        return self._file is None

    def take(self, data: bytes) -> None:
        self.size += len(data)
        room = self._in_memory - len(self._head)
        self._head += data[:room]
        rest = memoryview(data)[room:] if room < len(data) else memoryview(b"")
        if rest and not self.missing:
            rest = self._filed(rest)
        if rest:
            self._last += rest
            del self._last[: -self._most_last]

    def data(self) -> bytes:
        """What is in memory, with a line in the place of what is missing."""
        if not self.missing:
            return bytes(self._head)
        gone = self.size - len(self._head) - len(self._last)
        mark = f"\n({measure.counted(gone, 'byte')} of the output are missing here: {self.missing})\n"
        return b"".join([self._head, mark.encode(), self._last])

    def pieces(self) -> Iterator[bytes]:
        """All of it from the beginning, in pieces. Raises `OSError`."""
        yield bytes(self._head)
        offset = 0
        while self._file is not None and (piece := os.pread(self._file.fileno(), _BLOCK, offset)):
            offset += len(piece)
            yield piece

    def give_up_middle(self, why: str) -> None:
        """Keep the two ends, and give the disk back."""
        if self._file is not None:
            start = max(0, self._written - self._most_last)
            self._last[:0] = os.pread(self._file.fileno(), self._most_last, start)
        self.missing = why
        self._close()

    def has_room_for_a_copy(self) -> bool:
        """Whether the disk could take all of it once more."""
        return _free() - self.size > _RESERVE

    def _filed(self, rest: memoryview) -> memoryview:
        """Write to the file; what could not be written."""
        try:
            self._look_for_room()
            if self._file is None:
                self._file = tempfile.TemporaryFile("w+b", buffering=0, prefix="overspill-run-")  # noqa: SIM115  (closed by `_close`)
            while rest:
                count = os.write(self._file.fileno(), rest)
                self._written += count
                rest = rest[count:]
        except OSError as error:
            self._stop(error)
        return rest

    def _look_for_room(self) -> None:
        """Raises `OSError` where the disk, or what a capture may have, is nearly full."""
        if self._written - self._looked < _LOOK:
            return
        self._looked = self._written
        if _free() < _RESERVE:
            raise OSError(f"less than {measure.readable(_RESERVE)} are free in {tempfile.gettempdir()}")
        if self.size > self._most:
            raise OSError(f"no more than {measure.readable(self._most)} are kept")

    def _stop(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        try:
            self.give_up_middle(reason)
        except OSError:  # what was written cannot even be read back
            self.missing = reason
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _free() -> int:
    """Bytes free for temporary files. Raises `OSError` where there is no folder for them."""
    return shutil.disk_usage(tempfile.gettempdir()).free
