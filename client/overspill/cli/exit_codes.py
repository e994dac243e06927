"""Exit codes, and one line on standard error for each failure: what went wrong and what to do next."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

import click

from overspill import errors
from overspill.cli import output
from overspill.cli.flag_names import with_flag_names
from overspill.errors.client_errors import NotSpooled
from overspill.execution.threads import is_lack_of_threads

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


_CODES: tuple[tuple[type[errors.OverspillError], ExitCode], ...] = (
    (errors.RangeNotSatisfiable, ExitCode.USAGE),
    (errors.BadRequest, ExitCode.USAGE),
    (errors.Absent, ExitCode.ABSENT),
    (errors.Denied, ExitCode.REFUSED),
    (errors.Refused, ExitCode.REFUSED),
    (errors.Unavailable, ExitCode.UNAVAILABLE),
    (errors.Unreachable, ExitCode.UNAVAILABLE),
)

_HINTS: tuple[tuple[type[errors.OverspillError], str], ...] = (
    (errors.Unreachable, "start one with `overspill-service serve`, or say where it is with OVERSPILL_URL"),
    (errors.Unauthorized, "give a key with OVERSPILL_KEY"),
)


_NO_THREAD = "no thread can be started: raise the limit on processes (ulimit -u) or on memory (ulimit -v)"


class _WarningPrinter(logging.Handler):
    """Prints warnings of the client on standard error, in the form of a command's own messages."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "overspill.state":  # `run` says itself what became of its one output
            output.say(record.getMessage())


@contextmanager
def failures_reported() -> Iterator[None]:
    """Within the block, an expected failure becomes a line on standard error and an exit code."""
    logging.getLogger("overspill").addHandler(_WarningPrinter(logging.WARNING))
    try:
        try:
            yield
            output.flush()
        except click.exceptions.Exit:
            output.flush()
            raise
    except CommandFailure as failure:
        _stop(failure.code, str(failure))
    except (errors.OverspillError, NotSpooled) as error:
        _stop(code_of(error), message_of(error))
    except (KeyboardInterrupt, click.Abort):
        _stop(ExitCode.INTERRUPTED, "interrupted")
    except BrokenPipeError:
        output.abandon()
        raise click.exceptions.Exit(ExitCode.BROKEN_PIPE) from None
    except OSError as error:
        raise click.exceptions.Exit(reported(error)) from None
    except MemoryError:
        _stop(ExitCode.FAILED, "this process has no memory left: raise its limit (ulimit -v)")
    except RuntimeError as error:
        if not is_lack_of_threads(error):
            raise
        _stop(ExitCode.FAILED, _NO_THREAD)


@contextmanager
def usage_errors(*kinds: type[Exception], before: str = "") -> Iterator[None]:
    """Raise `CommandFailure` for errors of these kinds in the block: settings are wrong."""
    try:
        yield
    except kinds as error:
        said = os_error_text(error) if isinstance(error, OSError) else str(error)
        raise CommandFailure(f"{before}{said}", ExitCode.USAGE) from error


def require_yes(question: str, what: str, *, otherwise: str) -> None:
    """Ask the person at the terminal. Raises `CommandFailure`, which says `otherwise`, unless they say yes.

    Where nobody can be asked it is raised too: `what` then needs --yes.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise CommandFailure(f"{what} needs --yes if nobody can be asked", ExitCode.USAGE)
    if not click.confirm(question, err=True):
        raise CommandFailure(otherwise, ExitCode.NO)


def code_of(error: errors.OverspillError | NotSpooled) -> ExitCode:
    """Return the exit code of a client's error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def message_of(error: errors.OverspillError | NotSpooled) -> str:
    """Return what went wrong and what to do next."""
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
    if isinstance(error, errors.Unreachable) and error.is_untrusted:
        hint = "name the file of its authority in SSL_CERT_FILE"
    text = _problem_text(error) if isinstance(error, errors.ProblemError) else str(error)
    return f"{text}; {hint}" if hint else text


def _problem_text(error: errors.ProblemError) -> str:
    """Return what the service said, with the names of flags.

    The request id is for the operator's logs. Wrong arguments need no operator, so they have none.
    """
    if isinstance(error, (errors.BadRequest, errors.RangeNotSatisfiable)):
        return with_flag_names(error.detail or error.title)
    request = f", request {error.instance}" if error.instance else ""
    return f"{with_flag_names(error.detail or error.title)} ({error.code or 'no code'}{request})"


def os_error_text(error: OSError) -> str:
    """Return what the system says, behind the name of the file."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def reported(error: OSError) -> ExitCode:
    """Say what the system refused, and drop what is left to print. Return the exit code."""
    output.abandon()
    output.say(os_error_text(error))
    return ExitCode.FAILED


def _stop(code: int, message: str) -> None:
    output.say(message)
    raise click.exceptions.Exit(code) from None
