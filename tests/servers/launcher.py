"""Run a package as processes that need no start-up: they fork from one that has imported all its modules.

overspill = Launcher("overspill", "typer")   # and other modules that are imported beforehand
done = overspill.run(["ls"], environment, stdin=b"", seconds=60)

Each process has its own memory, descriptors and session, as `python -m overspill ls` has, and it ends as one
does: its threads are waited for, what it left to do at its end is done, its output is written. So do those of
the same package that it starts: see `_Forking`. Start a Python of its own for a test that measures memory, or
that is about the start or the very end of an interpreter.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_AT_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "SSL_", "TZ")
"""What variables begin with that a Python heeds only when it starts."""
_STREAMS: Final = 3
_REQUEST_BYTES: Final = 1 << 20
_MOST_DESCRIPTORS: Final = 1024
_NOT_FLUSHED: Final = 120
"""The exit code of a Python that could not write the last of its output."""


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

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], *, stdin: bytes, seconds: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the package to its end, its three streams being pipes.

        Raises `subprocess.TimeoutExpired` after `seconds`; the process is then killed.
        """
        command = [sys.executable, "-m", self._package, *words]
        if _at_start(environment) != _at_start(self._environment):
            return subprocess.run(
                command, input=stdin, capture_output=True, env=environment, timeout=seconds, check=False
            )
        (stdin_read, stdin_write), *outputs = [os.pipe() for _ in range(_STREAMS)]
        process = self.start(words, environment, [stdin_read, *[write for _, write in outputs]])
        with ThreadPoolExecutor(_STREAMS) as pool:
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
        self, words: Sequence[str], environment: Mapping[str, str], *, seconds: float
    ) -> Iterator[Piped]:
        """A process to speak with, in a session of its own; what still runs is killed with the block."""
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = (os.pipe() for _ in range(_STREAMS))
        process = self.start(words, environment, [stdin, stdout, stderr], own_session=True)
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
        request = {
            "words": list(words),
            "environment": dict(environment),
            "folder": str(Path.cwd()),
            "own_session": own_session or on_terminal,
            "on_terminal": on_terminal,
        }
        status, theirs = os.pipe()
        with self._lock:
            if self._connection is None:
                self._connection = self._started()
            socket.send_fds(self._connection, [json.dumps(request).encode()], [*streams, theirs])
            pid = int(self._connection.recv(_REQUEST_BYTES))
        for each in (*streams, theirs):
            os.close(each)
        return Forked(pid, status)

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.servers.launcher", self._package, *self._others],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),  # no file, as pipes are none
                env=self._environment,
                cwd=Path(__file__).parents[2],
                start_new_session=True,
            )
        atexit.register(self._end, self._process, ours)
        return ours

    @staticmethod
    def _end(process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        connection.close()
        process.wait()


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


def _write_all(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError), os.fdopen(descriptor, "wb", 0) as pipe:
        pipe.write(data)


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as pipe:
        return pipe.read()


def _serve(descriptor: int) -> list[str] | None:
    """Fork for each request. Return in each child the words of its command line, here None at the end."""
    connection = socket.socket(fileno=descriptor)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    statuses: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([descriptor, woken], [], [])
        if woken in ready:
            os.read(woken, _REQUEST_BYTES)
            _report(statuses)
        if descriptor in ready:
            data, descriptors, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, _STREAMS + 1)
            if not data:
                return None
            pid = os.fork()
            if pid == 0:
                connection.detach()
                return _become(json.loads(data), descriptors)
            statuses[pid] = descriptors.pop()
            for each in descriptors:
                os.close(each)
            connection.send(str(pid).encode())


def _report(statuses: dict[int, int]) -> None:
    """Write the exit codes of all processes that have ended."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = statuses.pop(ended[0])
            os.write(status, str(os.waitstatus_to_exitcode(ended[1])).encode())
            os.close(status)


def _become(request: dict[str, Any], descriptors: list[int]) -> list[str]:
    """Take over the streams, environment and folder of the request; its words."""
    if request["own_session"]:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which `nohup` has ignored
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors[:_STREAMS]):
        os.dup2(descriptor, number)
    os.closerange(_STREAMS, _MOST_DESCRIPTORS)
    if request["on_terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    words: list[str] = request["words"]
    return words


class _Forking(subprocess.Popen[Any]):
    """`Popen` in a forked process: what would start its package in another Python goes on in its fork."""

    package: ClassVar[str]

    def __init__(self, args: Sequence[str], **options: Any) -> None:
        if list(args[:3]) == [sys.executable, "-m", self.package]:
            options["preexec_fn"] = partial(self._go_on, args[3:], options["env"], options["pass_fds"])
        super().__init__(args, **options)

    def _go_on(self, words: Sequence[str], environment: Mapping[str, str], kept: Sequence[int]) -> None:
        """Be, in the child, the process that `exec` would make of it; never return."""
        for number in {each for each in signal.valid_signals() if callable(signal.getsignal(each))}:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        asyncio._set_running_loop(None)
        first = _STREAMS
        for each in (*sorted(kept), _MOST_DESCRIPTORS):  # one that is closed tells the parent of the `exec`
            os.closerange(first, each)
            first = each + 1
        os.environ.clear()
        os.environ.update(environment)
        gc.enable()
        os._exit(_run_to_its_end(self.package, words))


def _run_to_its_end(package: str, words: Sequence[str]) -> int:
    """Run a package, and then what an interpreter runs at its end. Return the exit code.

    What an interpreter does after that is left out: it copies all pages that it has of its parent.
    """
    sys.argv = [package, *words]
    code: object = 0
    try:
        runpy.run_module(package, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001  (as the interpreter does)
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # what warns or writes when it is deleted
    try:
        sys.stdout.flush()
    except OSError as error:
        print(f"Exception ignored in: {sys.stdout!r}\n{error!r}", file=sys.stderr)
        code = _NOT_FLUSHED
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


def _main(package: str, *others: str) -> None:
    for name in others:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not (
            module.name.endswith(".__main__") or ".integrations." in module.name
        ):  # these need frameworks
            importlib.import_module(module.name)
    gc.freeze()
    words = _serve(sys.stdin.fileno())
    if words is not None:
        _Forking.package = package
        subprocess.Popen = _Forking  # type: ignore[assignment,misc]
        os._exit(_run_to_its_end(package, words))


if __name__ == "__main__":
    _main(*sys.argv[1:])
