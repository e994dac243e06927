"""The real command line as a process, with pipes or on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import queue
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.servers.launcher import Launcher
from tests.servers.overspill import clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.servers.launcher import Forked, Piped

SECONDS: Final = 120
OVERSPILL: Final = Launcher("overspill", "click", "tests.client.warm_commands")
_OF_TERMINALS: Final = {"COLUMNS", "LINES", "NO_COLOR", "TERM"}
"""Variables that say what a terminal is like: the tests have terminals of their own."""
CAPTURE_ID: Final = re.compile(r"cap_[a-z2-7]{20}")


class Result(NamedTuple):
    code: int
    data: bytes
    err: str

    @property
    def out(self) -> str:
        return self.data.decode()

    @property
    def capture(self) -> str:
        """The first capture id on standard output."""
        match = CAPTURE_ID.search(self.out)
        assert match is not None, self
        return match.group()


_MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


class Shell:
    """Runs `overspill` against one service."""

    def __init__(self, url: str, **variables: str) -> None:
        plain = {name: value for name, value in clean_environment().items() if name not in _OF_TERMINALS}
        self.environment = {**plain, "OVERSPILL_URL": url, **variables}

    def __call__(self, *words: str, stdin: bytes = b"") -> Result:
        done = OVERSPILL.run(words, self.environment, stdin=stdin, seconds=SECONDS)
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def put(self, content: bytes, *words: str) -> str:
        """Store `content`; its capture id."""
        return self("put", "-", *words, stdin=content).out.strip()

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """A process with its own session, so that a terminal around the tests plays no part."""
        with interruptible():
            return subprocess.Popen(command(*words), env=self.environment, start_new_session=True, **options)

    def peak_kib(self, *words: str, stdout: Any) -> int:
        """Run to the end; the most memory that the process had.

        A small process starts it: one that is started from here begins with the peak of the tests themselves.
        """
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, *command(*words)],
            env=self.environment,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=True,
            timeout=SECONDS,
        )
        return int(done.stderr.splitlines()[-1])

    def script(self, text: str, *, forked: bool = False) -> Result:
        """Run a script in bash, with `overspill` as a command.

        If `forked`, it starts sooner, and has nothing of the script but its streams, variables and folder.
        """
        words = OVERSPILL.command() if forked else command()
        function = f'overspill() {{ {shlex.join(words)} "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-c", function + text],
            capture_output=True,
            env=self.environment,
            timeout=SECONDS,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def terminal(
        self, *words: str, columns: int = 80, stdout: int | None = None, **variables: str
    ) -> Terminal:
        """Start a command on a terminal; with `stdout` its output goes there and not to the terminal."""
        environment = {"TERM": "xterm-256color", **self.environment, **variables}
        start = partial(OVERSPILL.start, words, environment, on_terminal=True)
        return Terminal(start, columns=columns, stdout=stdout)

    def script_on_terminal(self, text: str) -> Terminal:
        return Terminal(partial(_on_terminal, ["/bin/sh", "-c", text], self.environment))


_ON_TERMINAL: Final = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes standard input the terminal of its session, whose keys become signals."""


def _on_terminal(
    command: list[str], environment: dict[str, str], streams: list[int]
) -> subprocess.Popen[bytes]:
    with interruptible():
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", _ON_TERMINAL, *command],
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            env=environment,
            start_new_session=True,
        )
    for each in streams:
        os.close(each)
    return process


class Terminal:
    """A process whose input, output and errors are a terminal. Nothing here waits longer than `SECONDS`."""

    def __init__(
        self,
        start: Callable[[list[int]], subprocess.Popen[bytes] | Forked],
        *,
        columns: int = 80,
        stdout: int | None = None,
    ) -> None:
        """`start` is given the descriptors of the three streams, which it closes."""
        self._descriptor, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        streams = [os.dup(each) for each in (end, end if stdout is None else stdout, end)]
        self._process = start(streams)
        os.close(end)
        self.shown = b""
        self._until = time.monotonic() + SECONDS

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size, which its processes are told by a signal."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def wait_for_stop(self) -> None:
        """Until a signal has stopped the process, as Ctrl-Z does. Raises `TimeoutError`."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        while stat.read_text().rpartition(") ")[2][0] != "T":
            if time.monotonic() > self._until:
                raise TimeoutError("it still runs")
            time.sleep(0.01)

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def wait_for(self, text: bytes, *, after: int = 0) -> None:
        """Until `text` is shown, behind the first `after` bytes, or the process has ended."""
        while text not in self.shown[after:] and self._read():
            pass

    def ended(self) -> int:
        """The exit code, once the process has ended."""
        while self._read():
            pass
        os.close(self._descriptor)
        return self._process.wait(SECONDS)

    def _read(self) -> bool:
        data = b""
        readable, _, _ = select.select([self._descriptor], [], [], max(0.0, self._until - time.monotonic()))
        if not readable:
            self._process.kill()
            raise TimeoutError(f"still running after {SECONDS} s; it showed {self.shown!r}")
        with suppress(OSError):  # Linux reports the end of a terminal as an error
            data = os.read(self._descriptor, 65536)
        self.shown += data
        return bool(data)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block, processes begin with interrupts as at a prompt, which a background job has not."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def written_to(fifo: Path) -> str:
    """All that is written to a named pipe. Raises `TimeoutError` where nobody writes."""
    found = queue.Queue[str]()
    threading.Thread(target=lambda: found.put(fifo.read_text()), daemon=True).start()
    try:
        return found.get(timeout=SECONDS)
    except queue.Empty:
        raise TimeoutError(f"nobody wrote to {fifo}") from None


def run_code(
    code: str,
    *words: object,
    environment: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
    warnings_end_it: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program as `python -c` does, but in a fork of a process that has imported all of `overspill`."""
    return OVERSPILL.run_code(
        code,
        [str(word) for word in words],
        os.environ if environment is None else environment,
        seconds=seconds,
        warnings_end_it=warnings_end_it,
    )


def printed_by(code: str, *words: object, environment: Mapping[str, str] | None = None) -> str:
    """What a program prints that ends well."""
    done = run_code(code, *words, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def running_code(code: str, *words: object) -> AbstractContextManager[Piped]:
    """A program to speak with; it is killed with the block, if it still runs."""
    return OVERSPILL.piped([str(word) for word in words], os.environ, seconds=SECONDS, code=code)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "overspill", *words]
