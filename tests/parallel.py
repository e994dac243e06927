"""Runs the tests in several processes, which fork from this one when it has collected them.

    this process ── numbers of files, in a pipe that all workers read ──▶ worker 0, worker 1, …
         ◀── what each worker tells of its tests, in a pipe of its own ──

Collecting takes ten seconds of CPU, so it is done once. What launchers fork from is started once, too.
A worker runs whole files, and sets up what the tests of a file share. If a worker dies, the test that it was
in fails, and another runs the rest.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import threading
import traceback
import warnings
from collections import defaultdict
from dataclasses import dataclass
from multiprocessing import Pipe, connection
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest
from _pytest.capture import FDCapture

from tests.servers.launcher import Launcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WORKERS_A_CORE: Final = 3
"""So many that no core is idle while some of them wait. Each takes half a gigabyte, with its servers."""
MAX_WORKERS: Final = 8
_NUMBER_BYTES: Final = 4


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `-n`. pytest keeps short options to its plugins, and has another method for those."""
    group = parser.getgroup("parallel", "tests in several processes")
    group._addoption(
        "-n", dest="workers", type=_workers, default="auto", help="how many, or `auto`; 0: this one"
    )


def _workers(text: str) -> int:
    return min(MAX_WORKERS, WORKERS_A_CORE * (os.cpu_count() or 1)) if text == "auto" else int(text)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers. Return None if one process is enough: pytest then runs them in this one."""
    files: defaultdict[Path, list[pytest.Item]] = defaultdict(list)
    for item in session.items:
        files[item.path].append(item)
    option = session.config.option
    count = min(option.workers, len(files))
    if count <= 1 or option.collectonly or option.usepdb or session.testsfailed:
        return None
    Launcher.start_all()
    assert threading.active_count() == 1, "a fork has no thread but the one that forks"
    _Run(session, list(files.values())).run(count)
    return True


@dataclass
class _Worker:
    pid: int
    left: list[pytest.Item]
    """The tests that it has taken and not finished. It runs the first."""


class _Run:
    def __init__(self, session: pytest.Session, files: Sequence[list[pytest.Item]]) -> None:
        self._session, self._files = session, files
        self._numbers, writer = os.pipe()
        os.write(writer, b"".join(number.to_bytes(_NUMBER_BYTES) for number in range(len(files))))
        os.close(writer)
        self._workers: dict[Any, _Worker] = {}
        """Each by the end of the pipe that it tells through."""
        self._started = itertools.count()

    def run(self, count: int) -> None:
        """Return when all tests have run. Raises what ends a session early, as pytest's own loop does."""
        try:
            for _ in range(count):
                self._start([])
            while self._workers:
                for told in connection.wait(list(self._workers)):
                    self._receive(told)
                if self._session.shouldfail:
                    raise self._session.Failed(self._session.shouldfail)
                if self._session.shouldstop:
                    raise self._session.Interrupted(self._session.shouldstop)
        finally:
            self._stop()

    def _start(self, first: list[pytest.Item]) -> None:
        """Start a worker with the rest of a file that another has begun."""
        number = next(self._started)
        ours, theirs = Pipe(duplex=False)
        pid = os.fork()
        if pid == 0:
            for other in (ours, *self._workers):
                other.close()
            _work(self._session, number, self._taken(first, theirs), theirs)
        theirs.close()
        self._workers[ours] = _Worker(pid, first)

    def _taken(self, first: list[pytest.Item], told: connection.Connection) -> Iterator[pytest.Item]:
        """Yield the tests of one worker: it takes a file when it needs one."""
        yield from first
        while number := os.read(self._numbers, _NUMBER_BYTES):
            told.send(("taken", int.from_bytes(number)))
            yield from self._files[int.from_bytes(number)]

    def _receive(self, told: Any) -> None:
        """Do what a worker tells."""
        config, worker = self._session.config, self._workers[told]
        try:
            name, value = told.recv()
        except EOFError:
            self._end(told)
            return
        if name == "taken":
            worker.left += self._files[value]
        elif name == "report":
            report = config.hook.pytest_report_from_serializable(config=config, data=value)
            config.hook.pytest_runtest_logreport(report=report)
        elif name == "warning":
            config.hook.pytest_warning_recorded.call_historic(kwargs=_warning_read(value))
        else:
            item = worker.left.pop(0)
            config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _end(self, told: Any) -> None:
        """Forget a worker. If it died, report a failure of the test that it was in."""
        worker = self._workers.pop(told)
        told.close()
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if worker.left:
            died, *rest = worker.left
            why = f"its process ended: {code}"
            report = pytest.TestReport(died.nodeid, died.location, {}, "failed", why, "call")
            died.ihook.pytest_runtest_logreport(report=report)
            self._start(rest)

    def _stop(self) -> None:
        """End what still runs as Ctrl-C does, which ends its servers."""
        for worker in self._workers.values():
            os.kill(worker.pid, signal.SIGINT)
        for told, worker in self._workers.items():
            told.close()
            os.waitpid(worker.pid, 0)
        os.close(self._numbers)


def _work(
    session: pytest.Session, number: int, items: Iterator[pytest.Item], to_tell: connection.Connection
) -> NoReturn:
    """Run tests in this process, which was forked, until there are no more."""
    code = 1
    try:
        _become_worker(session.config, number)
        session.config.pluginmanager.register(_Teller(session.config, to_tell))
        for item, following in itertools.pairwise(itertools.chain(items, [None])):
            assert item is not None
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail or session.shouldstop:
                break
        code = 0
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except BaseException:  # noqa: BLE001  (what pytest calls an internal error)
        traceback.print_exc()
    finally:
        _leave(session, code)


def _leave(session: pytest.Session, code: int) -> NoReturn:
    """End this process, and before it what its tests shared."""
    try:
        session._setupstate.teardown_exact(None)
        atexit._run_exitfuncs()
    finally:
        os._exit(code)


def _become_worker(config: pytest.Config, number: int) -> None:
    """Let go of what the other process keeps: its terminal, its files of captured output, its folder."""
    atexit._clear()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job ignores
    capturing: Any = config.pluginmanager.getplugin("capturemanager")
    with Path(os.devnull).open("r+b") as nowhere:
        os.dup2(nowhere.fileno(), 0)
        os.dup2(nowhere.fileno(), 1)
        for captured in (capturing._global_capturing.out, capturing._global_capturing.err):
            if isinstance(captured, FDCapture):  # modules may have its file already: that becomes another
                with TemporaryFile() as own:
                    os.dup2(own.fileno(), captured.tmpfile.fileno())
        if isinstance(capturing._global_capturing.out, FDCapture):
            os.dup2(nowhere.fileno(), capturing._global_capturing.out.targetfd_save)
    folders: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.mktemp(f"worker-{number}", numbered=False)


class _Teller:
    """Tells the process that a worker forked from what happens to its tests."""

    def __init__(self, config: pytest.Config, to_tell: connection.Connection) -> None:
        self._config, self._to_tell = config, to_tell

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._to_tell.send(("report", data))

    def pytest_runtest_logfinish(self) -> None:
        self._to_tell.send(("finished", None))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        category, text = warning_message.category.__name__, str(warning_message.message)
        where = warning_message.filename, warning_message.lineno
        self._to_tell.send(("warning", (category, text, where, when, nodeid, location)))


def _warning_read(told: tuple[str, str, tuple[str, int], str, str, object]) -> dict[str, object]:
    """Return what the hook for a warning gets. Only the name of its class is told: not all can be sent."""
    category, text, where, when, nodeid, location = told
    message = warnings.WarningMessage(text, type(category, (Warning,), {}), *where)
    return {"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
