"""A person's shell as a named terminal, whose output is stored as it comes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from overspill import wire
from overspill.agent_tools.live_upload import LiveUpload
from overspill.agent_tools.recording import Recording
from overspill.agent_tools.terminal_output import TERMINAL_VARIABLE
from overspill.cli import output
from overspill.cli.command_output.live_output import LiveOutput
from overspill.cli.command_output.person_terminal import is_on_terminal, terminal_size
from overspill.cli.command_output.shell_integration import integrated
from overspill.cli.command_output.terminal_process import run_on_terminal
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.live_end import ended_by_signals, note_if_slow
from overspill.spools.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.cli.invocation import Invocation
    from overspill.live.sync_capture import SyncLiveCapture


def run_shell(invocation: Invocation, shell: str, *, name: str, session: str | None, ttl: int | None) -> int:
    """Run the shell until it ends, and return its exit code. Raises `CommandFailure` without a terminal."""
    if not is_on_terminal():
        raise CommandFailure("a shell needs a terminal: run commands with `overspill run`", ExitCode.USAGE)
    spool = Spool.default()
    with invocation.client() as client, Recording() as recording:
        labels = {
            wire.TERMINAL_LABEL: name,
            wire.COMMAND_LABEL: shell,
            wire.SIZE_LABEL: terminal_size(),
        }
        redactor = invocation.policy().redactor()
        capture = client.live(
            tool="shell", session=session, ttl=ttl, labels=labels, redactor=redactor, spool=spool
        )
        output.say(f"this terminal is {name!r}; others read it with `{_reader(invocation, capture.id)}`")
        with LiveUpload(recording, lambda: capture, after_bytes=0) as upload:
            code = _run(shell, upload.take, capture.id)
            with (
                ended_by_signals(capture, upload.leave) as signals,
                note_if_slow(signals, has_spool=spool is not None),
                signals.deliverable(),
            ):
                upload.ended(status=f"exit {code}", exit_code=code)
        output.say(_outcome(capture, upload.failure))
    return code


def _run(shell: str, take: Callable[[bytes], None], handle: str) -> int:
    screen = LiveOutput(output.stream(), is_terminal=True, raw=True)
    with integrated(shell, dict(os.environ)) as (words, variables):
        own = {**variables, TERMINAL_VARIABLE: handle}
        return run_on_terminal(words, take, show=screen.show, variables=own)


def _reader(invocation: Invocation, handle: str) -> str:
    return invocation.command("tail", "-f", handle)


def _outcome(capture: SyncLiveCapture, failure: str) -> str:
    if capture.spooled:
        return f"{capture.id} is on this machine only, until it is uploaded: {capture.spooled}"
    if capture.entry is None:
        return "what this terminal showed could NOT be stored" + (failure and f": {failure}")
    return f"this terminal is stored as {capture.id}"
