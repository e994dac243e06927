"""Standard output and standard error: always UTF-8, and a failure to write is an error.

Python's own streams would turn a full disk or a closed pipe into a traceback at exit.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from overspill.cli.printable import PrintableDecoder, printable, printable_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from typing import BinaryIO, TextIO


def stream() -> BinaryIO:
    """Return standard output. Raises `OSError` if it is closed."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    return sys.stdout.buffer


def write(data: bytes) -> None:
    """Write bytes to standard output. Raises `OSError`."""
    with _named_failures():
        stream().write(data)


def content(pieces: Iterable[bytes], *, raw: bool) -> None:
    """Write captured bytes to standard output, printable on a terminal unless `raw`. Raises `OSError`."""
    shown = PrintableDecoder() if is_terminal() and not raw else None
    for piece in pieces:
        write(shown.feed(piece).encode() if shown else piece)
    if shown:
        write(shown.feed(b"", last=True).encode())


def text(value: str, *, raw: bool = False) -> None:
    """Write captured text to standard output, made printable unless `raw`. Raises `OSError`."""
    write((value if raw else printable(value)).encode("utf-8", "backslashreplace"))


def line(value: str) -> None:
    """Write one line that this program has made. Raises `OSError`."""
    write(f"{value}\n".encode("utf-8", "backslashreplace"))


def flush() -> None:
    """Flush standard output. Raises `OSError` if what was written cannot be delivered."""
    if sys.stdout is not None:
        with _named_failures():
            sys.stdout.flush()


@contextmanager
def _named_failures() -> Iterator[None]:
    """Within the block, an error that names no file names standard output, or the file in its place."""
    try:
        yield
    except OSError as error:
        if error.filename or sys.stdout is None:
            raise
        name = sys.stdout.name
        shown = "standard output" if name in ("<stdout>", 1) else str(name)
        raise OSError(error.errno, error.strerror, shown) from error


def say(message: str) -> None:
    """Write one line to standard error, after flushing standard output. A closed stream is not an error."""
    with suppress(OSError, ValueError):
        flush()  # what fails here is kept, and fails again at the end
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(f"overspill: {printable_line(message)}\n")
            sys.stderr.flush()


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def is_pipe() -> bool:
    """Return whether another program reads standard output. It may write to the terminal at any time."""
    if sys.stdout is None:
        return False
    mode = os.fstat(sys.stdout.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def into(path: str | None) -> Iterator[None]:
    """Within the block, write standard output to a file, which appears once it is whole. Raises `OSError`.

    None and `-` change nothing. A named pipe or a device is written to directly, and so is the file that
    standard output or standard error already goes to.
    """
    if path in (None, "-"):
        yield
        return
    target = Path(path or "")
    opened = _descriptor_of(target)
    opening: AbstractContextManager[TextIO]
    if opened is not None or (target.exists() and not target.is_file()):
        opening = open(target if opened is None else os.dup(opened), "w", encoding="utf-8")  # noqa: PTH123, SIM115
    else:
        opening = _whole_file(target.resolve())
    with opening as file, redirect_stdout(file):
        yield


def _descriptor_of(path: Path) -> int | None:
    """Return 1 or 2 if standard output or error is this very file, as `/dev/stdout` is. None otherwise."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed, or there is no such file
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
    return None


@contextmanager
def _whole_file(target: Path) -> Iterator[TextIO]:
    """Open a file that appears once the block has ended well. It keeps the mode of the file it replaces."""
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        file = part.open("x", encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error
    try:
        with file:
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def abandon() -> None:
    """Drop buffered output: nobody reads it now, or it cannot be written."""
    if sys.stdout is None:
        return
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
