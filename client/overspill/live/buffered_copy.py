"""All of a stream, kept in a temporary file for the spool."""

from __future__ import annotations

from contextlib import suppress

from overspill.text.buffer import Buffer, CannotBuffer


class BufferedCopy:
    """A stream's copy, in a `Buffer` of its own. Its owner finishes or closes that."""

    def __init__(self) -> None:
        self.buffer: Buffer = Buffer()

    @property
    def missing(self) -> str:
        """Why not all that was given is kept; empty if it is."""
        return self.buffer.missing

    def keep(self, data: bytes, *, is_masked: bool) -> None:  # noqa: ARG002  (what others keep depends on it)
        """Keep what comes next. Raises nothing."""
        with suppress(CannotBuffer):  # it says what is missing
            self.buffer.write(data)
