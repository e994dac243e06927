"""Contents of every kind that tool outputs come in, and objects made of them."""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from overspill_service.store_format.frames import FRAME_SIZE, Frame, FrameWriter
from overspill_service.store_format.index import Index, trailer

ENTRY: Final = b"\x81\xa2id\xa3cap"


@functools.cache
def log(size: int, seed: int = 0) -> bytes:
    """About `size` bytes of a service's log, always the same ones for a seed."""
    count = size // 75
    chances = struct.iter_unpack("<BQH", random.Random(seed).randbytes(11 * count))
    return "".join(
        f"2026-11-21T10:{n // 60 % 60:02d}:{n % 60:02d}Z INFO worker-{worker % 64} "
        f"request {request:016x} took {took % 900} ms\n"
        for n, (worker, request, took) in enumerate(chances)
    ).encode()


class _Contents(Mapping[str, bytes]):
    """Contents by name, each made when it is first asked for: every process of a run imports this module."""

    def __init__(self, makers: dict[str, Callable[[], bytes]]) -> None:
        self._makers = {name: functools.cache(make) for name, make in makers.items()}

    def __getitem__(self, name: str) -> bytes:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


CONTENTS: Final = _Contents(
    {
        "empty": lambda: b"",
        "one byte": lambda: b"x",
        "one newline": lambda: b"\n",
        "log": lambda: log(3 * FRAME_SIZE),
        "no final newline": lambda: log(FRAME_SIZE)[:-1],
        "one line of 5 MB": lambda: b"".join(b'{"n": %d}, ' % n for n in range(360_000)),
        "newlines only": lambda: b"\n" * (FRAME_SIZE + 7),
        "CRLF": lambda: log(FRAME_SIZE + 99).replace(b"\n", b"\r\n"),
        "CJK": lambda: "溢れた出力を保管する。\n一行ずつ読む、".encode() * 20_000,
        "CJK without newlines": lambda: "溢れた出力".encode() * 80_000,
        "emoji": lambda: "🧵👩‍👩‍👧‍👦 done ✅\n".encode() * 30_000,
        "emoji without newlines": lambda: b"x" + "🧵".encode() * 200_000,
        "invalid UTF-8": lambda: log(FRAME_SIZE) + b"\xff\xfe\x80" * 100_000 + b"\xf0\x9f",
        "NULs": lambda: bytes(2 * FRAME_SIZE) + b"end",
        "noise": lambda: random.Random(7).randbytes(2 * FRAME_SIZE + 1),
    }
)


def frames_of(content: bytes, step: int = 1 << 20) -> list[tuple[Frame, bytes]]:
    """The content's frames, written `step` bytes at a time."""
    writer = FrameWriter()
    frames = []
    for start in range(0, len(content), step):
        frames += writer.write(content[start : start + step])
    return frames + writer.finish()


def store(content: bytes, **fields: object) -> tuple[Index, bytes]:
    """A capture of one segment: its index and the whole object. `fields` replace the index's."""
    frames = frames_of(content)
    facts = {"upload": "abcdefghijklmnop", "number": 0, "last": True, "first_offset": 0, "first_newline": 0}
    index = Index(**{**facts, "frames": [frame for frame, _ in frames], "entry": ENTRY, **fields})  # type: ignore[arg-type]
    return index, b"".join(stored for _, stored in frames) + trailer(index)


def windowed(frame: bytes, size: int, window_log: int) -> bytes:
    """A frame whose header names its window, out of one of `size` bytes that does not (RFC 8878, 3.1.1.1)."""
    single, has_checksum = 1 << 5, 1 << 2
    assert frame[4] & (single | has_checksum) == single | has_checksum
    header = 5 + (1, 2, 4, 8)[frame[4] >> 6]
    described = bytes([2 << 6 | has_checksum, (window_log - 10) << 3]) + size.to_bytes(4, "little")
    return frame[:4] + described + frame[header:]
