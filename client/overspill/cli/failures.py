"""The failure of a command, as one line on standard error and an exit code.

The line says what went wrong and what to do next.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from overspill import errors
from overspill.cli import output
from overspill.cli.exit_codes import CommandFailure, ExitCode, reported
from overspill.cli.flag_names import with_flag_names
from overspill.errors.client_errors import NotSpooled
from overspill.execution.threads import is_lack_of_threads

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def _stop(code: int, message: str) -> None:
    output.say(message)
    raise click.exceptions.Exit(code) from None
