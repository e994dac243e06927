"""All that a command printed: in memory while it is short, then in a file, and without room its two ends.

    start (memory, up to IN_MEMORY) | the rest (a nameless file)
    start (memory, up to START) | a gap | the last bytes        where the file cannot be written

Taking bytes never raises: what becomes of the recording is no business of the command's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import IO, TYPE_CHECKING, Final, Self

from overspill.text import measure

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_MEMORY: Final = 1024 * 1024
START: Final = 12 * 1024 * 1024
"""Bytes kept of the beginning where there is no room for the whole. With the end they are few enough to be
captured without a file."""
LAST: Final = 1024 * 1024
"""Bytes kept of the end where there is no room for the whole."""
MOST: Final = 4 * 1024 * 1024 * 1024
_RESERVE: Final = 64 * 1024 * 1024
"""Bytes of the disk that are left to the command and to everybody else."""
_LOOK: Final = 16 * 1024 * 1024
"""Bytes written between two looks at the room that is left."""
_BLOCK: Final = 1024 * 1024


class Recording:
    """Takes bytes as they come; use it in a `with` block, which gives memory and disk back."""

    def __init__(
        self, *, in_memory: int = IN_MEMORY, start: int = START, last: int = LAST, most: int = MOST
    ) -> None:
        self.size: int = 0
        self._in_memory, self._most_start, self._most_last, self._most = in_memory, start, last, most
        self._start = bytearray()
        self._last = bytearray()
        self._file: IO[bytes] | None = None
        self._why_no_file = ""
        self._written = 0
        self._looked = -_LOOK

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def is_short(self) -> bool:
        """Whether it is so short that it is in memory anyway."""
        return self.size <= self._in_memory

    @property
    def is_filed(self) -> bool:
        """Return whether the output is in a temporary file."""
        return self._file is not None

    @property
    def gap(self) -> int:
        """Return how many bytes are missing between the two ends."""
        return 0 if self._file is not None else self.size - len(self._start) - len(self._last)

    @property
    def missing(self) -> str:
        """Say why bytes are missing in the middle; empty where all is there."""
        return self._why_no_file if self.gap else ""

    def take(self, data: bytes) -> None:
        """Take more of the output; what there is no place for is left out of its middle."""
        self.size += len(data)
        rest = memoryview(data)
        if self._file is None:
            rest = self._held(rest, self._most_start if self._why_no_file else self._in_memory)
        if rest and not self._why_no_file:
            rest = self._held(self._filed(rest), self._most_start)
        if rest:
            self._last += rest
            del self._last[: -self._most_last]

    def pieces(self) -> Iterator[bytes]:
        """All of it from the beginning, with a line in the place of what is missing. Raises `OSError`."""
        for start in range(0, len(self._start), _BLOCK):
            yield bytes(self._start[start : start + _BLOCK])
        offset = 0
        while self._file is not None and (piece := os.pread(self._file.fileno(), _BLOCK, offset)):
            offset += len(piece)
            yield piece
        if self.gap:
            gone = measure.plural(self.gap, "byte")
            yield f"\n({gone} of the output are missing here: {self._why_no_file})\n".encode()
        if self._last:
            yield bytes(self._last)

    def give_up_middle(self, why: str) -> None:
        """Keep the two ends, and give the disk back. Raises `OSError` where they cannot be read back."""
        self._why_no_file = why
        file, self._file = self._file, None
        if file is None:
            return
        with file:
            room = self._most_start - len(self._start)
            self._start += os.pread(file.fileno(), room, 0)
            self._last[:0] = os.pread(
                file.fileno(), self._most_last, max(room, self._written - self._most_last)
            )

    def has_room_for_a_copy(self) -> bool:
        """Whether the disk could take all of it once more."""
        return _free() - self.size > _RESERVE

    def _held(self, data: memoryview, most: int) -> memoryview:
        """Add to the beginning in memory; return what is too much for that."""
        if self._last:  # the beginning ended before
            return data
        room = max(0, most - len(self._start))
        self._start += data[:room]
        return data[room:]

    def _filed(self, rest: memoryview) -> memoryview:
        """Write to the file; return what could not be written."""
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
            raise OSError(f"less than {measure.readable_size(_RESERVE)} are free in {tempfile.gettempdir()}")
        if self.size > self._most:
            raise OSError(f"no more than {measure.readable_size(self._most)} are kept")

    def _stop(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        try:
            self.give_up_middle(reason)
        except OSError:  # what was written cannot even be read back: it is in the gap
            self._most_start = len(self._start)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _free() -> int:
    """Bytes free for temporary files. Raises `OSError` where there is no folder for them."""
    return shutil.disk_usage(tempfile.gettempdir()).free
