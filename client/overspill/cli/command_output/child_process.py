"""Runs a command as a child process: passes on its output and its signals, and returns its exit code."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from overspill.agent_tools.child_output import drain
from overspill.cli.command_output.signal_relay import FROM_TERMINAL, signals_relayed
from overspill.execution.child_programs import ProgramNotStarted, child_environment, shell_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PIPE_BYTES: Final = 1024 * 1024


def run_command(words: Sequence[str], take: Callable[[bytes], None]) -> int:
    """Run `words` and return the exit code, 128 + n for signal n. The command inherits all open files.

    `take` gets what the command prints on either output, in the order of writing; it must not raise. Signals
    to this process go on to the command, which decides about them. Ignored signals stay ignored, as in a
    shell. Raises `ProgramNotStarted`.
    """
    reader, writer = _wide_pipe()
    try:
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # the system would keep no exit code for us
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with signals_relayed(_is_from_terminal) as relay:
            try:
                child = subprocess.Popen(  # noqa: S603  (as asked)
                    words, stdout=writer, stderr=writer, close_fds=False, env=child_environment()
                )
            except OSError as error:
                raise ProgramNotStarted(words[0], error) from error
            finally:
                os.close(writer)
            relay.connect(child)
            code = drain(child, reader, take)
    finally:
        os.close(reader)
    return shell_exit_code(code)


def _wide_pipe() -> tuple[int, int]:
    """Return a pipe with room for `_PIPE_BYTES`, if the system gives it: then both sides pause less often."""
    reader, writer = os.pipe()
    with suppress(AttributeError, OSError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return reader, writer


def _is_from_terminal(number: int) -> bool:
    """Return whether the terminal has sent this signal to the child as well: both are in its foreground."""
    if number not in FROM_TERMINAL:
        return False
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
