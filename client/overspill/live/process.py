"""Captures the output of a subprocess: standard output and error through one pipe, in constant memory."""

from __future__ import annotations

import asyncio
import codecs
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill.execution import threads
from overspill.execution.child_programs import child_environment
from overspill.execution.left_output import drop_rest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from overspill.live.live_capture import LiveCapture

_READ_BYTES: Final = 64 * 1024
_LEFT_BEHIND_SECONDS: Final = 0.5
"""Seconds after the command's end for which the output of its background processes is still taken."""
_MARKS: Final = {  # the longer ones first: that of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNMARKED: Final = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
"""The meaning of these encodings without a mark, as in browsers.

Python's incremental decoders need the mark.
"""
_ENDING_SECONDS: Final = 5.0
"""Seconds that a cancelled command has to end before it is killed."""


async def capture_process(
    out: LiveCapture,
    words: Sequence[str],
    *,
    encoding: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a command, write what it prints to `out` as it comes, and return its exit code (-n for signal n).

    Standard output and standard error stay in the order of writing. Bytes are stored as they are, but for
    UTF-16 and UTF-32 with a byte order mark, which become UTF-8. `encoding` names another encoding to decode
    from, as "cp1252": none is guessed. `env` is the whole environment, by default this one without
    Overspill's keys. The capture gets the exit code. A command that prints faster than the service takes it
    waits. What it leaves in the background lives on, and half a second after its end nobody keeps what that
    prints.

    Raises `OSError` if the command cannot be started, `TypeError` and `ValueError` for words that are none,
    `LookupError` for an encoding that there is not, `UnicodeError` for "utf-16" or "utf-32" without a mark,
    and what writing raises. Cancelling it ends the command.
    """
    _check_words(words)
    transcoder = _Transcoder(encoding)
    reader, writer = os.pipe()
    stream = asyncio.StreamReader(limit=_READ_BYTES)
    pipe = await _connected(stream, reader)
    try:
        process = await _started(words, writer, cwd, env)
        code = await _copied(process, stream, out, transcoder)
        if not pipe.is_closing():
            pipe.pause_reading()  # the loop must not read from what will block
            await _leave(reader)
    finally:
        pipe.close()
    if rest := transcoder.feed(b"", is_last=True):
        await out.write(rest)
    out.ends_with(status=f"exit {code}", exit_code=code)
    return code


def _check_words(words: Sequence[str]) -> None:
    """Raise `TypeError` for a command line in one text, and `ValueError` if there is no word."""
    if isinstance(words, (str, bytes)):
        raise TypeError(
            'words must be a list of the command\'s words, such as ["make", "test"], not a single text'
        )
    if not words:
        raise ValueError("words must have a command")


async def _connected(stream: asyncio.StreamReader, descriptor: int) -> asyncio.ReadTransport:
    """Connect a pipe to `stream`. asyncio's own pipe for a subprocess would be read until all writers end."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", buffering=0)
    )
    return transport


async def _started(
    words: Sequence[str],
    writer: int,
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
) -> asyncio.subprocess.Process:
    """Start the command with both outputs on `writer`, and close that here. Raises `OSError`."""
    try:
        return await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            cwd=cwd,
            env=child_environment() if env is None else env,
        )
    finally:
        os.close(writer)


async def _copied(
    process: asyncio.subprocess.Process,
    stream: asyncio.StreamReader,
    out: LiveCapture,
    transcoder: _Transcoder,
) -> int:
    """Write what the command prints to `out` until it has ended, and return its exit code."""
    copying = asyncio.create_task(_copy(stream, out, transcoder))
    try:
        ending = asyncio.create_task(process.wait())
        await asyncio.wait((copying, ending), return_when=asyncio.FIRST_COMPLETED)
        if copying.done():
            copying.result()
        code = await ending
        await asyncio.wait((copying,), timeout=_LEFT_BEHIND_SECONDS)
    finally:
        await _end(process, copying)
    return code


async def _copy(stream: asyncio.StreamReader, out: LiveCapture, transcoder: _Transcoder) -> None:
    while data := await stream.read(_READ_BYTES):
        if text := transcoder.feed(data):
            await out.write(text)


async def _leave(reader: int) -> None:
    """Let background processes write on. Starting a process takes time, so a thread does it."""
    duplicate = os.dup(reader)

    def leave() -> None:
        with os.fdopen(duplicate, "rb", buffering=0):
            drop_rest(duplicate)

    await threads.run_blocking(leave)


async def _end(process: asyncio.subprocess.Process, copying: asyncio.Task[None]) -> None:
    """End the command if it still runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_ENDING_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
    was_copied = copying.done()
    copying.cancel()
    if not was_copied:
        with suppress(asyncio.CancelledError):
            await copying
    elif not copying.cancelled():
        copying.result()


def _decoder_of(encoding: str) -> codecs.IncrementalDecoder:
    """Return a decoder of text. Raises `LookupError`."""
    try:
        b"\xff?".decode(encoding, "replace")
    except UnicodeError as error:
        raise LookupError(f"{encoding!r} cannot decode every sequence of bytes: {error}") from error
    return codecs.getincrementaldecoder(encoding)("replace")


class _Transcoder:
    """Turns a command's bytes into UTF-8 if their encoding is named or they begin with a byte order mark."""

    def __init__(self, encoding: str | None) -> None:
        self._begin = b""
        self._decoder = None if encoding is None else _decoder_of(encoding)
        name = None if encoding is None else codecs.lookup(encoding).name
        self._marks = {mark: other for mark, other in _MARKS.items() if name in {None, other}}
        self._is_known = not self._marks
        if name in _UNMARKED:
            self._decoder = _decoder_of(_UNMARKED[name])

    def feed(self, data: bytes, *, is_last: bool = False) -> bytes:
        """Return the bytes to store. The first bytes are held back as long as they may be part of a mark."""
        if not self._is_known:
            data = self._begin + data
            if not is_last and any(mark.startswith(data) for mark in self._marks):
                self._begin = data
                return b""
            self._begin, self._is_known = b"", True
            encoding = next((name for mark, name in self._marks.items() if data.startswith(mark)), None)
            if encoding is not None:
                self._decoder = _decoder_of(encoding)
        if self._decoder is None:
            return data
        return self._decoder.decode(data, is_last).encode("utf-8", "surrogatepass")
