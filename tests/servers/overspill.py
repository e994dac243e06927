"""The real service as a process of its own, on its embedded back ends unless settings name others.

own_service.kill()                  # kill -9, workers included
own_service.start()                 # the same data, the same address
own_service.start(max_captures=3)   # with another setting from now on
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Final

import pytest

from tests.servers.keeper import keep
from tests.servers.launcher import Forked, Launcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

HOST: Final = "127.0.0.1"
READY_SECONDS: Final = 60
STOP_SECONDS: Final = 40
ANNOUNCEMENT: Final = "overspill-service listens on "
_LAUNCHER: Final = Launcher(
    *("overspill_service", "uvloop", "encodings.idna"),
    *("tests.servers.botocore_models", "tests.servers.warm_service"),
)


class ServiceProcess:
    """One service with its data in `directory`. Settings are those of `serve`, with underscores.

    Nothing of `OVERSPILL_*` in the environment reaches it.
    """

    program: Sequence[str] = ("-m", "overspill_service")
    """What Python runs."""

    def __init__(self, directory: Path, **settings: object) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.data = directory / "data"
        self.log = directory / "service.log"
        self.url = ""
        self.variables = {"OVERSPILL_KEY_FILE": str(directory / "local-key")}
        """Of its environment: the key file of the person who runs the tests stays as it is."""
        self._settings: dict[str, object] = {
            "listen": f"{HOST}:0",
            "data": self.data,
            "anonymous": True,
            **settings,
        }
        self._process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the service does not run"
        return self._process.pid

    def start(self, **settings: object) -> None:
        """Start, and return once it listens. Raises `RuntimeError` with its log where it does not."""
        assert self._process is None, "the service runs already"
        self._settings |= settings
        announcements, theirs = os.pipe()
        with self.log.open("ab") as log, os.fdopen(theirs) as stdout:
            self._process = self._launch(["serve", *self._flags()], stdout, log)
        self._announcements = os.fdopen(announcements)
        self.url = self._announced_url()
        self._settings["listen"] = self.url.partition("://")[2]

    def stop(self) -> int:
        """SIGTERM; the exit code once it has ended. Nothing happens where it does not run."""
        if self._process is None:
            return 0
        self._process.terminate()
        try:
            return self._ended(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL to the service and all its workers."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._ended(STOP_SECONDS)

    def restart(self, **settings: object) -> None:
        """Stop and start at the same address, on the same data."""
        self.stop()
        self.start(**settings)

    def logged(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def _launch(
        self, words: list[str], stdout: IO[str], stderr: IO[bytes]
    ) -> subprocess.Popen[bytes] | Forked:
        process = subprocess.Popen(
            [sys.executable, *self.program, *words],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=clean_environment(**self.variables),
            start_new_session=True,
        )
        keep(process.pid)
        return process

    def _flags(self) -> list[str]:
        flags: list[str] = []
        for name, value in self._settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            flags += ["--" + name.replace("_", "-"), text]
        return flags

    def _announced_url(self) -> str:
        readable, _, _ = select.select([self._announcements], [], [], READY_SECONDS)
        line = self._announcements.readline() if readable else ""
        if not line.startswith(ANNOUNCEMENT):
            self.kill()
            raise RuntimeError(f"the service does not listen: {self.logged()}")
        return line.removeprefix(ANNOUNCEMENT).strip()

    def _ended(self, seconds: float) -> int:
        process = self._process
        assert process is not None
        code = process.wait(seconds)
        self._announcements.close()
        self._process = None
        return code


class ForkedService(ServiceProcess):
    """A service that forks from a process that has imported it, for tests that measure no memory of it.

    With another `program` it starts as any service.
    """

    launcher: Launcher = _LAUNCHER

    def _launch(
        self, words: list[str], stdout: IO[str], stderr: IO[bytes]
    ) -> subprocess.Popen[bytes] | Forked:
        if self.program != ServiceProcess.program:
            return super()._launch(words, stdout, stderr)
        streams = [os.open(os.devnull, os.O_RDONLY), os.dup(stdout.fileno()), os.dup(stderr.fileno())]
        return self.launcher.start(words, clean_environment(**self.variables), streams, own_session=True)


def service_command(*words: object, seconds: float = READY_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run `overspill-service` to its end. Raises `subprocess.TimeoutExpired` after `seconds`."""
    given = [str(word) for word in words]
    done = _LAUNCHER.run(given, clean_environment(), stdin=b"", seconds=seconds)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def clean_environment(**variables: str) -> dict[str, str]:
    """The environment without anything of Overspill, but for `variables` and the secret of notices."""
    own = "OVERSPILL_NOTICE_KEY"
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("OVERSPILL_") or name == own
    }
    return kept | variables


@contextmanager
def running(service: ServiceProcess) -> Iterator[ServiceProcess]:
    """`service` from its start to its stop."""
    service.start()
    try:
        yield service
    finally:
        service.stop()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service shared by all tests: never stop it (that is for `own_service`), use sessions of your own."""
    with running(ForkedService(tmp_path_factory.mktemp("overspill"))) as shared:
        yield shared


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service of the test's own, which it may stop, kill, restart and start with other settings."""
    with running(ForkedService(tmp_path / "overspill")) as own:
        yield own
