"""Writes a download to a file that appears only once it is whole."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from overspill.execution.threads import run_blocking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def save(pieces: AsyncIterator[bytes], path: str | os.PathLike[str]) -> int:
    """Write `pieces` to a file beside `path`, then move it there. Return its bytes. Raises `OSError`."""
    directory, name = os.path.split(os.path.abspath(path))  # noqa: ASYNC240, PTH100  (no I/O)
    try:
        descriptor, partial = await run_blocking(tempfile.mkstemp, ".part", f".{name}.", directory)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    written = 0
    try:
        with open(descriptor, "wb") as file:  # noqa: ASYNC230, PTH123  (it is open; writing goes to threads)
            async for piece in pieces:
                written += await run_blocking(file.write, piece)
        await run_blocking(os.replace, partial, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)  # noqa: PTH108
        raise
    return written
