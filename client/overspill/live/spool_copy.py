"""All of a stream, kept in a temporary file for the spool."""

from __future__ import annotations

from contextlib import suppress

from overspill.text.buffer import Buffer, CannotBuffer


class BufferedCopy:
    """A stream's copy, in a `Buffer`. Whoever makes the copy finishes or closes its buffer."""

    def __init__(self) -> None:
        self.buffer: Buffer = Buffer()

    @property
    def missing(self) -> str:
        """Why not all that was given is kept; empty if it is."""
        return self.buffer.missing

    def keep(self, data: bytes, *, is_masked: bool) -> None:  # noqa: ARG002  (other copies need it)
        """Keep what comes next. Raises nothing."""
        with suppress(CannotBuffer):  # `missing` says it
            self.buffer.write(data)
