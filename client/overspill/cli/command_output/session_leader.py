"""The process between `overspill run` and a command on a terminal: the leader of that terminal's session.

    overspill run ──▶ leader ──▶ command, the terminal's foreground
         ◀── a pipe: `STOPPED`, and its end once the command has ended

The command is not the leader itself, for two reasons. Ctrl-Z stops a process group only if a process of the
same session, but of another group, is its parent. And when a leader ends, the system hangs up what it leaves
in the background.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import termios
from contextlib import suppress
from typing import Final, NoReturn

from overspill.cli.command_output.signal_relay import signals_relayed
from overspill.execution.child_programs import shell_exit_code

STOPPED: Final = b"s"
_TERMINAL: Final = 0
_MAX_DESCRIPTORS: Final = 4096
"""Descriptors are below this number, if the system does not list them."""
_READ_BYTES: Final = 512
_IGNORED: Final = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
"""Signals that would stop the leader too."""


def start_command(news: int) -> None:
    """Make standard input the terminal of this new session, and go on as the command in a child.

    This process stays as the session's leader, writes to `news`, and never returns. If no child can be made,
    it returns and becomes the command itself.
    """
    fcntl.ioctl(_TERMINAL, termios.TIOCSCTTY, 0)
    with suppress(OSError):
        child = os.fork()
        if child:
            _lead(child, news)
        _take_foreground()


def _take_foreground() -> None:
    """Make this process a group of its own, which gets the terminal's keys."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    os.setpgid(0, 0)
    os.tcsetpgrp(_TERMINAL, os.getpid())
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _lead(child: int, news: int) -> NoReturn:
    """Wait for the command, and exit with its code. Nothing of the process before is kept open."""
    code = 1
    try:
        command = _Command(child)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCONT, lambda *_: command.go_on())
        with signals_relayed() as relay:
            relay.connect(command)
            _close_all_but(_TERMINAL, news)
            code = command.wait(news)
    finally:
        os._exit(code)


def _close_all_but(*exceptions: int) -> None:
    """Close all open descriptors.

    The limit on files may be a billion, so not every number below it is tried.
    """
    try:
        names = os.listdir("/dev/fd")  # noqa: PTH208  (names are all that is wanted)
    except OSError:
        names = [str(number) for number in range(_MAX_DESCRIPTORS)]
    for descriptor in set(map(int, names)).difference(exceptions):
        with suppress(OSError):
            os.close(descriptor)


class _Command:
    """The command, a child of this process and the leader of its own group."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._is_hung_up = self._is_stopped = False

    def send_signal(self, number: int) -> None:
        self._is_hung_up |= number == signal.SIGHUP
        with suppress(OSError):
            os.kill(self.pid, number)

    def go_on(self) -> None:
        """Continue the whole stopped group, in the foreground again."""
        if not self._is_stopped:
            return
        self._is_stopped = False
        with suppress(OSError):
            os.tcsetpgrp(_TERMINAL, self.pid)
            os.killpg(self.pid, signal.SIGCONT)

    def wait(self, news: int) -> int:
        """Return the exit code, 128 + n for signal n.

        Hang up processes left behind only if the command was hung up.
        """
        woken = _woken_by_signals()
        while True:
            is_changed, status = os.waitpid(self.pid, os.WUNTRACED | os.WNOHANG)
            if not is_changed:
                select.select([woken], [], [])
                os.read(woken, _READ_BYTES)
                continue
            if not os.WIFSTOPPED(status):
                break
            self._is_stopped = True
            with suppress(OSError):
                os.write(news, STOPPED)
        if not self._is_hung_up:
            with suppress(OSError):
                os.tcsetpgrp(_TERMINAL, os.getpgrp())
        return shell_exit_code(os.waitstatus_to_exitcode(status))


def _woken_by_signals() -> int:
    """Return a descriptor that has bytes after each signal, the end or stop of a child among them.

    Python calls handlers between two of its instructions. In a wait of the system, a signal that came just
    before would be handled only when that wait ends.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])  # whoever started this may have blocked it
    return woken
