"""Standard output and standard error: UTF-8 whatever the locale, and a failure to write is an error.

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
    """Standard output. Raises `OSError` where it is closed."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    return sys.stdout.buffer


def write(data: bytes) -> None:
    """Bytes to standard output. Raises `OSError`."""
    stream().write(data)


def content(pieces: Iterable[bytes], *, raw: bool) -> None:
    """Captured bytes to standard output, on a terminal harmless unless `raw`. Raises `OSError`."""
    shown = PrintableDecoder() if is_terminal() and not raw else None
    for piece in pieces:
        write(shown.feed(piece).encode() if shown else piece)
    if shown:
        write(shown.feed(b"", last=True).encode())


def text(value: str, *, raw: bool = False) -> None:
    """Captured text to standard output, harmless unless `raw`. Raises `OSError`."""
    write((value if raw else printable(value)).encode("utf-8", "backslashreplace"))


def line(value: str) -> None:
    """One line of text that this program has made. Raises `OSError`."""
    write(f"{value}\n".encode("utf-8", "backslashreplace"))


def flush() -> None:
    """Raises `OSError` where what was written cannot be delivered."""
    if sys.stdout is not None:
        sys.stdout.flush()


def say(message: str) -> None:
    """One line on standard error, behind what standard output has so far; nobody listening is no error."""
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
    """Whether another program reads standard output, and may write to the terminal while this one does."""
    if sys.stdout is None:
        return False
    mode = os.fstat(sys.stdout.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def into(path: str | None) -> Iterator[None]:
    """Within the block, standard output is a file, which appears once it is whole. Raises `OSError`.

    None and `-` change nothing. What is no plain file, as a named pipe, is written to directly, and so is the
    file that standard output or standard error already goes to.
    """
    if path in (None, "-"):
        yield
        return
    given = Path(path or "")
    opened = _descriptor_of(given)
    opening: AbstractContextManager[TextIO]
    if opened is not None or (given.exists() and not given.is_file()):
        opening = open(given if opened is None else os.dup(opened), "w", encoding="utf-8")  # noqa: PTH123, SIM115
    else:
        opening = _whole(given.resolve())
    with opening as file, redirect_stdout(file):
        yield


def _descriptor_of(path: Path) -> int | None:
    """Which of standard output and error is this very file, as `/dev/stdout` is; None if neither is."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed, or there is no such file
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
    return None


@contextmanager
def _whole(target: Path) -> Iterator[TextIO]:
    """A file that appears once the block has ended well; it keeps the mode of the one that it replaces."""
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("x", encoding="utf-8") as file:
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def abandon() -> None:
    """Let what is still buffered go nowhere: nobody reads it any more, or it cannot be written."""
    if sys.stdout is None:
        return
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
