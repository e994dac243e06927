r"""Writes a capture as an asciicast recording of version 3, with the times at which its bytes came.

A terminal begins a new line at the left only after `\r\n`, so a `\n` of the capture gets its `\r`.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overspill import wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVENT_BYTES: Final = 64 * 1024
"""The most bytes of the capture in one event."""
_USUAL_SIZE: Final = "80x24"
_SIZE: Final = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})", re.ASCII)
_LONE_NEWLINE: Final = re.compile(r"(?<!\r)\n")


def recording(entry: wire.Entry, marks: list[wire.Mark], pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of the recording of a capture, whose content comes in any pieces."""
    yield _line(_header(entry, marks))
    text, waited = _Text(), 0.0
    for interval, data, is_last in _events(marks, pieces):
        waited += interval
        if shown := text.shown(data, is_last=is_last):
            yield _line([round(waited, 3), "o", shown])
            waited = 0.0
    if code := entry.labels.get(wire.EXIT_CODE_LABEL):
        yield _line([round(waited, 3), "x", code])


def _header(entry: wire.Entry, marks: list[wire.Mark]) -> dict[str, Any]:
    size = _SIZE.fullmatch(entry.labels.get(wire.SIZE_LABEL, "")) or _SIZE.fullmatch(_USUAL_SIZE)
    assert size is not None
    began = marks[0].time if marks else entry.created
    header = {
        "title": entry.labels.get(wire.TERMINAL_LABEL),
        "command": entry.labels.get(wire.COMMAND_LABEL),
    }
    return {
        "version": 3,
        "term": {"cols": int(size[1]), "rows": int(size[2])},
        "timestamp": int(began.timestamp()),
        **{name: value for name, value in header.items() if value},
    }


def _events(marks: list[wire.Mark], pieces: Iterable[bytes]) -> Iterator[tuple[float, bytes, bool]]:
    """Yield the seconds before each piece of the content, the piece, and whether it is the last one."""
    coming, offset = list(reversed(marks)), 0
    time = marks[0].time if marks else None
    for piece in pieces:
        start = 0
        while start < len(piece):
            interval = 0.0
            while coming and coming[-1].offset <= offset:
                mark = coming.pop()
                assert time is not None
                interval, time = interval + (mark.time - time).total_seconds(), mark.time
            limit = min(EVENT_BYTES, coming[-1].offset - offset if coming else EVENT_BYTES)
            data = piece[start : start + limit]
            yield interval, data, False
            start, offset = start + len(data), offset + len(data)
    yield 0.0, b"", True


class _Text:
    """Turns bytes into the text of events: whole characters, and line ends as a terminal needs them."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._last = ""

    def shown(self, data: bytes, *, is_last: bool) -> str:
        text = self._decoder.decode(data, is_last)
        if not text:
            return ""
        shown = _LONE_NEWLINE.sub("\r\n", self._last + text)[len(self._last) :]
        self._last = text[-1] if text[-1] == "\r" else ""
        return shown


def _line(value: object) -> bytes:
    return msgspec.json.encode(value) + b"\n"
