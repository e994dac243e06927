"""Run a package as processes that need no start-up: they fork from one that has imported all its modules.

overspill = Launcher("overspill", "click")   # and other modules that are imported beforehand
done = overspill.run(["ls"], environment, stdin=b"", seconds=60)
done = overspill.run_code("import sys, overspill; print(sys.argv)", ["one", "two"], environment, seconds=60)

Each process has its own memory, descriptors and session, as `python -m overspill ls` has, and it ends as one
does: its threads are waited for, what it left to do at its end is done, its output is written. So do those of
the same package that it starts, and those that others start with a `command`. Start a Python of its own for a
test that measures memory, or that is about what is imported, or the start or the very end of an interpreter.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from tests.servers.forking import REQUEST_BYTES, STREAMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_AT_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "SSL_", "TZ")
"""What variables begin with that a Python heeds only when it starts."""


class Forked:
    """A process that was forked: what `subprocess.Popen` has of it."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self._code: int | None = None

    def wait(self, seconds: float) -> int:
        """The exit code, negative for a signal. Raises `subprocess.TimeoutExpired` after `seconds`."""
        if self._code is None:
            if not select.select([self._status], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", seconds)
            self._code = int(_read_all(self._status))
        return self._code

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Piped(NamedTuple):
    """A process that was forked, and our ends of its streams."""

    process: Forked
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]


class Launcher:
    """Owns the process that forks. It is started on first use, and ends when this process does."""

    def __init__(self, package: str, *others: str) -> None:
        self._package, self._others = package, others
        self._environment = dict(os.environ)
        self._connection: socket.socket | None = None
        self._lock = threading.Lock()
        self._address = ""

    def command(self, *words: str) -> list[str]:
        """What others start: a small process that has the package forked on its streams, and ends as it does.

        SIGKILL ends that small process alone.
        """
        with self._lock:
            self._connected()
        return [sys.executable, "-I", "-S", str(Path(__file__).with_name("stub.py")), self._address, *words]

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], *, stdin: bytes, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the package to its end, its three streams being pipes.

        Raises `subprocess.TimeoutExpired` after `seconds`; the process is then killed.
        """
        command = [sys.executable, "-m", self._package, *words]
        return self._ended(command, {"words": list(words)}, environment, stdin=stdin, seconds=seconds)

    def run_code(
        self,
        code: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        seconds: float,
        warnings_end_it: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run code to its end, as `python -c` does, the modules of the package being imported already.

        Raises `subprocess.TimeoutExpired` after `seconds`; the process is then killed.
        """
        command = [sys.executable, *(["-W", "error"] if warnings_end_it else []), "-c", code, *words]
        program = {"words": list(words), "code": code, "warnings_end_it": warnings_end_it}
        done = self._ended(command, program, environment, stdin=b"", seconds=seconds)
        out, err = done.stdout.decode(), done.stderr.decode()
        return subprocess.CompletedProcess(command, done.returncode, out, err)

    def _ended(
        self,
        command: Sequence[str],
        program: Mapping[str, object],
        environment: Mapping[str, str],
        *,
        stdin: bytes,
        seconds: float,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `program` forked; `command`, the same, where a variable counts from the start of a Python."""
        if _at_start(environment) != _at_start(self._environment):
            return subprocess.run(
                command, input=stdin, capture_output=True, env=environment, timeout=seconds, check=False
            )
        (stdin_read, stdin_write), *outputs = [os.pipe() for _ in range(STREAMS)]
        process = self._fork(program, environment, [stdin_read, *[write for _, write in outputs]])
        with ThreadPoolExecutor(STREAMS) as pool:
            pool.submit(_write_all, stdin_write, stdin)
            out, err = (pool.submit(_read_all, read) for read, _ in outputs)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            return subprocess.CompletedProcess(command, code, out.result(), err.result())

    @contextmanager
    def piped(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        seconds: float,
        code: str | None = None,
        warnings_end_it: bool = False,
    ) -> Iterator[Piped]:
        """A process to speak with, in a session of its own; what still runs is killed with the block.

        It runs the package, or else `code`.
        """
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = (os.pipe() for _ in range(STREAMS))
        program = {"words": list(words), "code": code, "warnings_end_it": warnings_end_it}
        process = self._fork({**program, "own_session": True}, environment, [stdin, stdout, stderr])
        with (
            os.fdopen(to_stdin, "wb") as our_stdin,
            os.fdopen(from_stdout, "rb") as our_stdout,
            os.fdopen(from_stderr, "rb") as our_stderr,
        ):
            try:
                yield Piped(process, our_stdin, our_stdout, our_stderr)
            finally:
                process.kill()
                process.wait(seconds)

    def start(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        *,
        own_session: bool = False,
        on_terminal: bool = False,
    ) -> Forked:
        """Fork a process. It gets `streams`, the descriptors of its three, which are closed here.

        With `on_terminal` its input is the terminal of its session, whose keys become signals.
        """
        program = {
            "words": list(words),
            "own_session": own_session or on_terminal,
            "on_terminal": on_terminal,
        }
        return self._fork(program, environment, streams)

    def _fork(
        self, program: Mapping[str, object], environment: Mapping[str, str], streams: Sequence[int]
    ) -> Forked:
        request = {
            "own_session": False,
            **program,
            "environment": dict(environment),
            "folder": str(Path.cwd()),
        }
        status, theirs = os.pipe()
        with self._lock:
            connection = self._connected()
            socket.send_fds(connection, [json.dumps(request).encode()], [*streams, theirs])
            pid = int(connection.recv(REQUEST_BYTES))
        for each in (*streams, theirs):
            os.close(each)
        return Forked(pid, status)

    def _connected(self) -> socket.socket:
        if self._connection is None:
            self._connection = self._started()
        return self._connection

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = tempfile.TemporaryDirectory(prefix="launcher-")
        self._address = f"{folder.name}/socket"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(self._address)
        listener.listen()
        with theirs, listener:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.servers.forking"),
                    *(str(listener.fileno()), self._package, *self._others),
                ],
                stdin=theirs.fileno(),
                pass_fds=[listener.fileno()],
                stdout=theirs.fileno(),  # no file, as pipes are none
                env=self._environment,
                cwd=Path(__file__).parents[2],
                start_new_session=True,
            )
        atexit.register(self._end, self._process, ours, folder)
        return ours

    @staticmethod
    def _end(
        process: subprocess.Popen[bytes],
        connection: socket.socket,
        folder: tempfile.TemporaryDirectory[str],
    ) -> None:
        connection.close()
        process.wait()
        folder.cleanup()


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


def _write_all(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(descriptor, "wb", 0) as pipe:
        pipe.write(data)


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()
