"""The real command line as a process, with pipes or on a terminal of its own."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from typing import Any, Final, NamedTuple

from tests.servers.overspill import clean_environment

SECONDS: Final = 120
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
        self.environment = clean_environment(OVERSPILL_URL=url, **variables)

    def __call__(self, *words: str, stdin: bytes = b"") -> Result:
        done = subprocess.run(
            command(*words),
            input=stdin,
            capture_output=True,
            env=self.environment,
            timeout=SECONDS,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def put(self, content: bytes, *words: str) -> str:
        """Store `content`; its capture id."""
        return self("put", "-", *words, stdin=content).out.strip()

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """A process with its own session, so that a terminal around the tests plays no part."""
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

    def script(self, text: str) -> Result:
        """Run a script in bash, with `overspill` as a command."""
        function = f'overspill() {{ "{sys.executable}" -m overspill "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-c", function + text],
            capture_output=True,
            env=self.environment,
            timeout=SECONDS,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def terminal(self, *words: str) -> Terminal:
        return Terminal(command(*words), self.environment)


class Terminal:
    """A process whose input, output and errors are a terminal."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:
            os.execve(words[0], words, environment)
        self.shown = b""

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def wait_for(self, text: bytes) -> None:
        """Until `text` is shown, or the process has ended."""
        while text not in self.shown and self._read():
            pass

    def ended(self) -> int:
        """The exit code, once the process has ended."""
        while self._read():
            pass
        os.close(self._descriptor)
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        data = b""
        with suppress(OSError):  # Linux reports the end of a terminal as an error
            data = os.read(self._descriptor, 65536)
        self.shown += data
        return bool(data)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "overspill", *words]
