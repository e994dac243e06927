"""Server-sent events, as the HTML standard defines their stream (section 9.2.6). No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from overspill.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_EVENT: Final = 16 * 1024 * 1024
"""Bytes of one event. The service's are far shorter."""


class ServerSentEvent(Struct, frozen=True):
    """One event: its name, its id, and its data."""

    name: str
    id: str
    data: bytes


class EventParser:
    """Parses a stream that comes in arbitrary pieces. Lines end with a line feed, or with CR and LF."""

    def __init__(self) -> None:
        self._pending = b""
        self._name, self._id = "", ""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that `piece` completes. Raises `ProtocolError`."""
        *lines, self._pending = (self._pending + piece).split(b"\n")
        if len(self._pending) > MAX_EVENT:
            raise ProtocolError(f"an event of more than {MAX_EVENT} bytes came; is this the service?")
        for line in lines:
            if event := self._take(line.removesuffix(b"\r")):
                yield event

    def _take(self, line: bytes) -> ServerSentEvent | None:
        if not line:
            return self._finished()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"event":
                self._name = value.decode("utf-8", "replace")
            case b"id":
                self._id = value.decode("utf-8", "replace")
            case b"data":
                self._data.append(value)
            case _:  # a comment, or what a later version adds
                pass
        return None

    def _finished(self) -> ServerSentEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return ServerSentEvent(name or "message", self._id, b"\n".join(data)) if data else None
