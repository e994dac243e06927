"""A copy of a whole stream in a temporary file. The spool gets it if the service does not take the stream."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from overspill.errors.client_errors import NotSpooled
from overspill.text.buffer import Buffer, CannotBuffer

if TYPE_CHECKING:
    from overspill.live.ports import Description, StreamSpool


class SpoolCopy:
    """A stream's copy, for a `spool` and the service at `url`. Its maker closes it."""

    def __init__(self, spool: StreamSpool, url: str, key: str) -> None:
        self._spool, self._url, self._key = spool, url, key
        self._buffer = Buffer()

    @property
    def missing(self) -> str:
        """The reason why some of the stream is not kept; empty if all is."""
        return self._buffer.missing

    def keep(self, data: bytes, *, is_masked: bool) -> None:  # noqa: ARG002  (other copies need it)
        """Keep the next bytes. Raises nothing."""
        with suppress(CannotBuffer):  # `missing` says it
            self._buffer.write(data)

    def spool(self, description: Description, reason: str, producer: str) -> None:
        """Give the copy to the spool. Raises `OSError`, and `NotSpooled`, also if it is not whole."""
        body = self._buffer.finish()
        if self.missing:
            raise NotSpooled(self.missing)
        self._spool.keep_stream(
            description, body, url=self._url, key=self._key, reason=reason, producer=producer
        )

    def close(self) -> None:
        """Remove the copy, unless the spool has it."""
        self._buffer.close()
