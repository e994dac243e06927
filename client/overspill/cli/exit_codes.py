"""Exit codes, and how a command ends with one."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

import click

from overspill.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExitCode(IntEnum):
    """The exit codes. The command line's page documents them."""

    OK = 0
    NO = 1
    """grep found nothing, rm was not confirmed, or an unexpected failure."""
    USAGE = 2
    """The arguments are wrong; also if the service says so."""
    ABSENT = 3
    """Not found, expired or deleted."""
    REFUSED = 4
    """The key, a limit or a conflict forbids it."""
    UNAVAILABLE = 5
    """The service cannot be reached, or cannot work now; trying again later may help."""
    FAILED = 6
    """A file cannot be read or written, bytes are damaged, or the service failed."""
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    """Nobody reads standard output any more. A shell reports SIGPIPE like this."""


class CommandFailure(Exception):
    """Ends the command with a message and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def usage_errors(*kinds: type[Exception], before: str = "") -> Iterator[None]:
    """Raise `CommandFailure` for errors of these kinds in the block: settings are wrong."""
    try:
        yield
    except kinds as error:
        text = os_error_text(error) if isinstance(error, OSError) else str(error)
        raise CommandFailure(f"{before}{text}", ExitCode.USAGE) from error


def require_yes(question: str, consequence: str, *, otherwise: str) -> None:
    """Ask the person at the terminal. Raises `CommandFailure`, which says `otherwise`, unless they say yes.

    It is also raised if standard input is no terminal: then `consequence` needs --yes.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandFailure(f"{consequence} needs --yes if standard input is not a terminal", ExitCode.USAGE)
    if not click.confirm(question, err=True):
        raise CommandFailure(otherwise, ExitCode.NO)


def os_error_text(error: OSError) -> str:
    """Return what the system says, behind the name of the file."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def reported(error: OSError) -> ExitCode:
    """Say what the system refused, and drop what is left to print. Return the exit code."""
    output.abandon()
    output.say(os_error_text(error))
    return ExitCode.FAILED
