"""Keeps a copy of the sent bytes of a recording.

Until a secret is masked, the recording itself is the copy.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill.text.body import FileBody
from overspill.text.buffer import Buffer, CannotBuffer, counted

if TYPE_CHECKING:
    from overspill import wire
    from overspill.agent_tools.recording import Recording
    from overspill.text.body import Body

_GONE: Final = "the recording has ended"
_PIECE_BYTES: Final = 1024 * 1024


class MaskedRecording:
    """A `StreamCopy` that takes no disk as long as it is equal to the recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._equal = 0
        self._buffer: Buffer | None = None
        self._failure = ""

    @property
    def missing(self) -> str:
        """The reason why some of the given output is not kept; empty if all is."""
        return self._failure or ("" if self._buffer is None else self._buffer.missing)

    def keep(self, data: bytes, *, is_masked: bool) -> None:
        """Keep the next bytes. Raises nothing."""
        if self._buffer is None and not is_masked:
            self._equal += len(data)
            return
        with suppress(CannotBuffer):  # `missing` says it
            if self._buffer is None:
                self._buffer = Buffer()
                self._copy_equal(self._buffer)
            self._buffer.write(data)

    def finish(self, stored: wire.Entry | None) -> Body | None:
        """Return all that was sent, or None. Raises `OSError`.

        `stored` is the entry, which has the size and the digest, if the service has all of it. None if
        something is missing here, or if the recording is not in a file that can get a name.
        """
        if self.missing:
            return None
        if self._buffer is not None:
            body = self._buffer.finish()
            return None if self.missing else body
        path = self._recording.named()
        if path is None:
            return None
        if stored is None or stored.size != self._recording.size or not stored.sha256:
            return counted(path)  # the entry may lack the digest: a key that may not read is told less
        return FileBody(path, size=stored.size, lines=stored.lines, sha256=bytes.fromhex(stored.sha256))

    def close(self) -> None:
        """Remove a copy that was not finished."""
        if self._buffer is not None:
            self._buffer.close()

    def _copy_equal(self, buffer: Buffer) -> None:
        """Copy the part that is equal to the recording. Raises `CannotBuffer`."""
        at = 0
        try:
            while at < self._equal and (
                piece := self._recording.read(at, min(_PIECE_BYTES, self._equal - at))
            ):
                buffer.write(piece)
                at += len(piece)
        except OSError as error:
            self._failure = error.strerror or str(error)
        if at < self._equal:
            self._failure = self._failure or self._recording.missing or _GONE
            raise CannotBuffer(self._failure)
