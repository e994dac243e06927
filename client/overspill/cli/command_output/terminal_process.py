"""Runs a command on a terminal of its own, between the person's terminal and the command.

    keys ──▶ person's terminal (raw) ──▶ pseudo-terminal ──▶ command
    screen ◀──────────────┬──────────── pseudo-terminal ◀── command
                          └──▶ `take`

The keys of signals, as Ctrl-C, go to the command's own terminal, which sends the signal to the right process.
If Ctrl-Z has stopped the command, this process stops too, and so the person's shell goes on.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from overspill.cli.command_output.person_terminal import shared
from overspill.cli.command_output.session_leader import STOPPED, start_command
from overspill.cli.command_output.signal_relay import signals_relayed
from overspill.execution.child_programs import ProgramNotStarted, child_environment, shell_exit_code
from overspill.execution.left_output import drop_rest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from overspill.cli.command_output.person_terminal import PersonTerminal

_READ_BYTES: Final = 64 * 1024
_POLL_SECONDS: Final = 0.1
"""Seconds between two checks whether the command has ended, and who is in the foreground."""
_LAST_SECONDS: Final = 0.02
"""How long the terminal is read after the command's end, if a process that it left behind holds it open."""
_LAST_BYTES: Final = 128 * 1024
"""The most bytes that are read then, because processes left behind may write without end."""


def run_on_terminal(
    words: Sequence[str],
    take: Callable[[bytes], None],
    *,
    show: Callable[[bytes], None],
    variables: Mapping[str, str] | None = None,
) -> int:
    r"""Run `words` on a new terminal and return the exit code, 128 + n for signal n.

    `show` gets all that comes from that terminal. `take` gets it as the command wrote it: with `\n` where
    the terminal made `\r\n` of it. Neither may raise. Raises `ProgramNotStarted`.
    """
    ours, theirs = os.openpty()
    with _closing(ours), shared(ours) as person, signals_relayed() as signals:
        news, writer = os.pipe()
        with _closing(news):
            try:
                person.copy_settings(theirs)
                child = _started(words, theirs, writer, {**child_environment(), **(variables or {})})
            except OSError as error:
                raise ProgramNotStarted(words[0], error) from error
            finally:
                os.close(theirs)
                os.close(writer)
            signals.connect(child)
            _Relay(child, ours, news, person, take, show).run()
        drop_rest(ours)
    return shell_exit_code(child.wait())


def _started(
    words: Sequence[str], terminal: int, news: int, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start the command below a leader of its session, which ends when it does. Raises `OSError`."""
    return subprocess.Popen(  # noqa: S603  (as asked)
        words,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        close_fds=True,
        start_new_session=True,
        preexec_fn=partial(start_command, news),  # noqa: PLW1509  (no threads hold locks that it needs)
        env=environment,
    )


class _Relay:
    """Carries bytes between the two terminals until the command has ended."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        terminal: int,
        news: int,
        person: PersonTerminal,
        take: Callable[[bytes], None],
        show: Callable[[bytes], None],
    ) -> None:
        self._child, self._terminal, self._person = child, terminal, person
        self._take, self._show = LineEnds(take), show
        self._keys: int | None = sys.stdin.fileno()
        self._news: int | None = news
        self._unsent = b""

    def run(self) -> None:
        self._person.take()  # also before what a command printed that has ended by now
        while self._child.poll() is None:
            self._pump()
        left = _LAST_BYTES
        while left > 0 and select.select([self._terminal], [], [], _LAST_SECONDS)[0]:
            data = self._read_screen()
            if not data:
                break
            left -= len(data)
        self._take.end()

    def _pump(self) -> None:
        """Carry the bytes that are there."""
        keys = self._keys if self._person.take() else None
        reading = [each for each in (self._terminal, self._news, keys) if each is not None]
        writing = [self._terminal] if self._unsent else []
        ready, sendable, _ = select.select(reading, writing, [], _POLL_SECONDS)
        if keys in ready:
            self._read_keys()
        if sendable:
            self._send_keys()
        if self._terminal in ready and not self._read_screen():  # it closed its terminal and runs on
            time.sleep(_POLL_SECONDS)
        if self._news in ready:
            self._read_news()

    def _read_screen(self) -> bytes:
        try:
            data = os.read(self._terminal, _READ_BYTES)
        except OSError:  # Linux reports the end of a terminal as an error
            data = b""
        if data:
            self._show(data)
            self._take.feed(data)
        return data

    def _read_news(self) -> None:
        assert self._news is not None
        news = os.read(self._news, _READ_BYTES)
        if not news:  # the leader has ended, or there is none
            self._news = None
        elif STOPPED in news:
            self._person.stop()
            self._child.send_signal(signal.SIGCONT)

    def _read_keys(self) -> None:
        assert self._keys is not None
        try:
            data = os.read(self._keys, _READ_BYTES)
        except OSError:
            data = b""
        if not data:  # the person's terminal is gone
            self._keys = None
            self._child.send_signal(signal.SIGHUP)
        self._unsent += data

    def _send_keys(self) -> None:
        with suppress(BlockingIOError):
            sent = os.write(self._terminal, self._unsent[:1024])
            self._unsent = self._unsent[sent:]


class LineEnds:
    r"""Gives on what came from a terminal with `\n` for each `\r\n`, in whatever pieces it comes."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._held = b""

    def feed(self, data: bytes) -> None:
        r"""Take a piece. A `\r` at its end waits for what follows it."""
        data = self._held + data
        self._held = b"\r" if data.endswith(b"\r") else b""
        if data := data.removesuffix(self._held).replace(b"\r\n", b"\n"):
            self._take(data)

    def end(self) -> None:
        """Pass on the bytes that wait."""
        if self._held:
            self._take(self._held)


@contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)
