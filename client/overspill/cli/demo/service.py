"""The demo's own service: a child process on a free port, which ends with the demo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.signal_handlers import handled
from overspill.execution.child_programs import shell_exit_code
from overspill.wire import Path as Route

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 15.0
_ANNOUNCEMENT: Final = "overspill-service listens on "
_OPERATIONS: Final = "overspill_backend_operations_total{"
_STORING_AND_READING: Final = ('operation="put"', 'operation="read"')


class DemoService:
    """A running service: its URL, and the number of requests to its object store."""

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        self._process = process

    def store_requests(self) -> int:
        """Return how many puts and reads its object store has had so far, by the service's own metrics."""
        directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with directly.open(self.url + Route.METRICS, timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        counted = (line for line in lines if line.startswith(_OPERATIONS) and 'backend="store"' in line)
        return sum(
            int(float(line.rpartition(" ")[2]))
            for line in counted
            if any(operation in line for operation in _STORING_AND_READING)
        )

    def wait(self) -> None:
        """Wait until the service ends."""
        self._process.wait()


@contextmanager
def running(data: Path) -> Iterator[DemoService]:
    """Run a service on the folder `data` until the block ends. Raises `CommandFailure` if it cannot start."""
    if find_spec("overspill_service") is None:
        raise CommandFailure(
            "the demo starts a service, which is not installed; from a checkout: pip install ./service",
            ExitCode.USAGE,
        )
    with _ending_on_signals(), (data / "service.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  (our own service)
            [
                *(sys.executable, "-m", "overspill_service", "serve"),
                *("--listen", "127.0.0.1:0", "--data", str(data), "--log-level", "warning"),
                *("--metrics-from", "127.0.0.1"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("OVERSPILL_")},
        )
        try:
            yield DemoService(_announced(process, data), process)
        finally:
            _stop(process)


def _announced(process: subprocess.Popen[str], data: Path) -> str:
    assert process.stdout is not None
    alarm = threading.Timer(_START_SECONDS, process.kill)
    alarm.start()
    line = process.stdout.readline()
    alarm.cancel()
    if not line.startswith(_ANNOUNCEMENT):
        log = (data / "service.log").read_text(encoding="utf-8", errors="replace").strip()
        raise CommandFailure(f"the service did not start: {log[-500:] or 'it said nothing'}", ExitCode.FAILED)
    return line.removeprefix(_ANNOUNCEMENT).strip()


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Within the block, a signal to terminate raises `SystemExit`, so that the service is stopped too."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(shell_exit_code(-number))

    with handled(dict.fromkeys((signal.SIGTERM, signal.SIGHUP), end)):
        yield
