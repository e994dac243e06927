"""Runs a shell command for an agent. Its output is kept as it comes, in constant memory, and then guarded."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Struct

from overspill.agent_tools.arguments import argument, request_of, schema_of
from overspill.agent_tools.child_output import leave, read_until_end
from overspill.agent_tools.error_answers import InvalidArguments
from overspill.agent_tools.guarded_recording import guarded_answer
from overspill.agent_tools.live_command import command_upload
from overspill.agent_tools.recording import Recording
from overspill.execution.child_programs import child_environment, shell_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from overspill.agent_tools.agent_tool import Answer, Arguments
    from overspill.guard.guard import Guard

NAME: Final = "run_command"
DESCRIPTION: Final = """\
Run a shell command, and return its exit_code and its output (standard output and standard error together).

A long output is stored whole; output then is a notice with a preview, and overspill.capture is the handle
with which inspect_output reads the rest. If timed_out, the command and its children were ended. The command
has no standard input. On failure, error says what is wrong and what to do."""
SECONDS: Final = 120
MAX_SECONDS: Final = 3600
_GRACE_SECONDS: Final = 2.0
"""Seconds that a command may take to end when it is told to, before it is killed."""


class RunRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of one call."""

    command: Annotated[str, argument("What the shell runs.")]
    directory: Annotated[str, argument("Where it runs, relative to the usual directory.")] = "."
    timeout_seconds: Annotated[
        int, argument("End it after this many seconds.", minimum=1, maximum=MAX_SECONDS)
    ] = SECONDS

    @classmethod
    def of(cls, arguments: Arguments) -> RunRequest:
        """Read the request from a model's arguments, leniently. Raises `InvalidArguments`."""
        request = request_of(cls, arguments, NAME)
        if not request.command.strip() or "\0" in request.command + request.directory:
            raise InvalidArguments("the command must have text, and no NUL characters")
        seconds = min(max(request.timeout_seconds, 1), MAX_SECONDS)
        return msgspec.structs.replace(request, timeout_seconds=seconds)


RUN_COMMAND_SCHEMA: Final = schema_of(RunRequest)


class CommandRun:
    """One run of a command. `stop`, from any thread, ends the command and its children."""

    def __init__(
        self, guard: Guard, directory: Path, environment: Mapping[str, str] | None, shell: str
    ) -> None:
        self._guard, self._directory, self._environment, self._shell = guard, directory, environment, shell
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def answer(self, arguments: Arguments, session: str | None) -> Answer:
        """Run the command; return its answer. Raises `InvalidArguments`, and `OSError`."""
        request = RunRequest.of(arguments)
        with Recording() as recording:
            with command_upload(
                self._guard, recording, tool=NAME, command=request.command, session=session
            ) as upload:
                code, is_timed_out = self._run(request, upload.take)
                status = "timed out" if is_timed_out else f"exit {code}"
                shown = shell_exit_code(code)
                upload.ended(status=status, exit_code=shown)
            return {
                "exit_code": shown,
                "timed_out": is_timed_out,
                **guarded_answer(self._guard, recording, NAME, status, session, upload.stored_as),
            }

    def stop(self) -> None:
        """End the command, or do not begin it."""
        with self._lock:
            self._is_stopped = True
            if self._child is not None:
                _signal_group(self._child, signal.SIGKILL)

    def _run(self, request: RunRequest, take: Callable[[bytes], None]) -> tuple[int, bool]:
        """Return the exit code and whether the time was over. Raises `InvalidArguments`."""
        reader, writer = os.pipe()
        try:
            child = self._started(request, writer)
            until = time.monotonic() + request.timeout_seconds
            with child:
                is_over = not (
                    read_until_end(child, reader, take, request.timeout_seconds)
                    and _has_ended(child, until - time.monotonic())
                )
                if is_over:
                    _end(child, reader, take)
                leave(reader, take)
                return child.wait(), is_over
        finally:
            os.close(reader)

    def _started(self, request: RunRequest, writer: int) -> subprocess.Popen[bytes]:
        try:
            with self._lock:
                if self._is_stopped:
                    raise InvalidArguments("the call was cancelled before the command began")
                self._child = subprocess.Popen(  # noqa: S603  (what the agent asks for)
                    [self._shell, "-c", request.command],
                    cwd=self._directory / request.directory,
                    env=child_environment() if self._environment is None else self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=writer,
                    stderr=writer,
                    start_new_session=True,
                )
                return self._child
        except OSError as error:
            text = f"the command cannot be run in {request.directory!r}: {error.strerror or error}"
            raise InvalidArguments(text) from error
        finally:
            os.close(writer)


def _has_ended(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a command that has closed its output. Return whether it ended in time."""
    try:
        child.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(child: subprocess.Popen[bytes], reader: int, take: Callable[[bytes], None]) -> None:
    """Tell the command and its children to end, read what they still print, and kill what is left."""
    _signal_group(child, signal.SIGTERM)
    read_until_end(child, reader, take, _GRACE_SECONDS)
    _signal_group(child, signal.SIGKILL)


def _signal_group(child: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
