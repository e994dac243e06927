"""The command line `overspill-service`. A command is imported once its arguments are right."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from overspill_service.arguments import fail, parser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main(arguments: Sequence[str] | None = None, imported: Callable[[], None] = lambda: None) -> int:
    """Run one command. Return the exit code: 0 done, 1 failed, 2 wrong usage or settings.

    `imported` is called before the command begins. It is not called for help.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            options = vars(parser().parse_args(words))
            from overspill_service.dispatch import run_command  # noqa: PLC0415  (who asks for help waits less)

            imported()
            return run_command(options, words)
        finally:
            _flush_output()
    except OSError as error:  # of an import, or of standard output: all others have been answered
        return fail(f"{error.filename or 'standard output'}: {error.strerror}", 1)


def _flush_output() -> None:
    """Write out what was printed. Raises `OSError`; at its end, the interpreter does not try once more."""
    if sys.stdout is None:  # it was closed from the beginning
        return
    try:
        sys.stdout.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise
