"""The process that forks for a launcher: it has imported all modules of a package, and maybe others.

    python -m tests.servers.forking LISTENER PACKAGE MODULE…

Standard input is the launcher's connection, `LISTENER` the descriptor of the socket that stubs connect to.
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
import types
import warnings
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from tests.servers.keeper import end

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

STREAMS: Final = 3
REQUEST_BYTES: Final = 1 << 20
_MAX_DESCRIPTORS: Final = 1024
_NOT_FLUSHED: Final = 120
"""The exit code of a Python that could not write the last of its output."""


class _Program(NamedTuple):
    """What a process runs: the package, or else code, and the words of its command line."""

    words: Sequence[str]
    code: str | None = None
    warnings_end_it: bool = False


def _serve(connection: socket.socket, listener: socket.socket) -> _Program | None:
    """Fork for each request. Return in each child what it runs, here None at the end.

    The end is that of the launcher's process. What still runs is killed.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    statuses: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([connection.fileno(), listener.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, REQUEST_BYTES)
            _report(statuses)
        if listener.fileno() in ready:
            asked, _ = listener.accept()
        elif connection.fileno() in ready:
            asked = connection
        else:
            continue
        data, descriptors, _, _ = socket.recv_fds(asked, REQUEST_BYTES, STREAMS + 1)
        if not data:
            if asked is connection:
                _end_all(statuses)
                return None
            asked.close()
            continue
        pid = os.fork()
        if pid == 0:
            for known in (connection, listener, asked):
                known.detach()
            return _become(json.loads(data), descriptors)
        asked.send(str(pid).encode())
        # The answer to a stub is the exit code on its connection.
        statuses[pid] = descriptors.pop() if asked is connection else asked.detach()
        for each in descriptors:
            os.close(each)


def _end_all(pids: Iterable[int]) -> None:
    for pid in pids:
        end(pid)


def _report(statuses: dict[int, int]) -> None:
    """Write the exit codes of all processes that have ended."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = statuses.pop(ended[0])
            with suppress(BrokenPipeError):  # of a stub that was killed
                os.write(status, str(os.waitstatus_to_exitcode(ended[1])).encode())
            os.close(status)


def _become(request: dict[str, Any], descriptors: list[int]) -> _Program:
    """Take over the streams, environment and folder of the request. Return what it runs."""
    if request.get("own_session", True):
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which `nohup` has ignored
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors[:STREAMS]):
        os.dup2(descriptor, number)
    os.closerange(STREAMS, _MAX_DESCRIPTORS)
    if request.get("on_terminal"):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    return _Program(request["words"], request.get("code"), request.get("warnings_end_it", False))


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
        first = STREAMS
        for each in (*sorted(kept), _MAX_DESCRIPTORS):  # one that is closed tells the parent of the `exec`
            os.closerange(first, each)
            first = each + 1
        os.environ.clear()
        os.environ.update(environment)
        gc.enable()
        os._exit(_run_to_its_end(self.package, _Program(words)))


def _run_to_its_end(package: str, program: _Program) -> int:
    """Run a program, and then what an interpreter runs at its end. Return the exit code.

    What an interpreter does after that is left out: it copies all pages that it has of its parent.
    """
    code: object = 0
    try:
        _run(package, program)
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


def _run(package: str, program: _Program) -> None:
    if program.warnings_end_it:
        warnings.simplefilter("error")
    if program.code is None:
        sys.argv = [package, *program.words]
        runpy.run_module(package, run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *program.words]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(program.code, "<string>", "exec", dont_inherit=True), vars(main))


def _main(listener: int, package: str, *others: str) -> None:
    for name in others:
        importlib.import_module(name)
    path = getattr(importlib.import_module(package), "__path__", [])
    for module in pkgutil.walk_packages(path, f"{package}."):
        if not (
            module.name.endswith(".__main__") or ".integrations." in module.name
        ):  # these need frameworks
            importlib.import_module(module.name)
    sys.modules.pop(f"{package}.__main__", None)  # one of the others may use it: `runpy` would warn of it
    gc.freeze()
    program = _serve(socket.socket(fileno=sys.stdin.fileno()), socket.socket(fileno=listener))
    if program is not None:
        _Forking.package = package
        subprocess.Popen = _Forking  # type: ignore[assignment,misc]
        os._exit(_run_to_its_end(package, program))


if __name__ == "__main__":
    _main(int(sys.argv[1]), *sys.argv[2:])
