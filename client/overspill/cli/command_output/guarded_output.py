"""Runs a command and guards its output: a short one is printed; a long one is stored, and a notice printed.

The guard decides, as in an agent. On a terminal the output is shown as it comes, and then where it is stored.
"""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.agent_tools.live_upload import PATIENCE_SECONDS, LiveUpload
from overspill.agent_tools.masked_recording import MaskedRecording
from overspill.agent_tools.recording import Recording
from overspill.cli import output
from overspill.cli.command_output.child_process import run_command
from overspill.cli.command_output.command_call import CommandCall
from overspill.cli.command_output.live_output import LiveOutput
from overspill.cli.command_output.person_terminal import is_on_terminal, terminal_size
from overspill.cli.command_output.slow_output import SlowOutput
from overspill.cli.command_output.stoppable_end import stoppable_end
from overspill.cli.command_output.terminal_process import run_on_terminal
from overspill.cli.exit_codes import usage_errors
from overspill.guard.call_context import minted
from overspill.guard.hosts import fitting_chars
from overspill.live.labels import LABEL_BYTES, command_label
from overspill.spools import location
from overspill.text.limits import Limits
from overspill.transfer.caller import load_transport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overspill.cli.invocation import Invocation
    from overspill.guard.policy import Policy
    from overspill.live.sync_capture import SyncLiveCapture
    from overspill.transfer.sync import SyncClient

__all__ = ["CommandCall", "minted", "run", "with_limits"]

_LOADED_AFTER_SECONDS: Final = 1.0
_NEEDED_AT_END: Final = (
    "overspill.cli.command_output.finished_output",
    "overspill.live.sync_capture",
    "overspill.wire.checksums",
)


def with_limits(policy: Policy, tool: str, *, max_bytes: int | None, max_lines: int | None) -> Policy:
    """Return the policy with limits for this tool in bytes and lines alone: these, or those of the policy."""
    usual = policy.limits(tool)
    limits = Limits(
        fitting_chars(usual) if max_bytes is None else max_bytes,
        usual.max_lines if max_lines is None else max_lines,
    )
    return policy.merged({tool: limits})


def run(
    invocation: Invocation,
    words: Sequence[str],
    call: CommandCall,
    policy: Policy,
    *,
    live: bool | None,
    notice: bool = False,
    is_for_agent: bool = False,
) -> int:
    """Run the command `words`, print its output or a notice, and return the command's exit code.

    With `notice` an output that was shown is followed by its notice. An agent is shown the output of a
    command that takes long: see `SlowOutput`. Raises `ProgramNotStarted`, and `CommandFailure`: before
    anything runs if a setting is wrong, and after a signal that came while the output was stored.
    """
    with invocation.client() as client, Recording() as recording, closing(MaskedRecording(recording)) as copy:
        _check_settings()
        shown = _shown(invocation, live=live)
        new_capture = _live_capture(client, words, call, policy, copy, shown)
        upload = LiveUpload(recording, new_capture, after_bytes=policy.limits(call.tool).max_bytes)
        slow = _slow_output(invocation, call, policy, is_wanted=is_for_agent and shown is None)
        with upload, stoppable_end(upload) as end:
            with _end_loaded(), slow:
                code = _executed(words, _all(upload.take, slow.take), shown)
            is_seen = shown is not None and shown.is_standard_output
            try:  # while the rest is sent
                from overspill.cli.command_output import finished_output as at_end  # noqa: PLC0415
            except ImportError as error:
                _print_unstored(invocation, recording, error, None if is_seen else slow.shown_bytes)
                return code
            ended = at_end.FinishedOutput(invocation, recording, slow, is_seen=is_seen, notice=notice)
            ended.warm_up()
            call = replace(call, status=f"exit {code}")
            stored = end.upload_ended(status=call.status, exit_code=code)
            guard = at_end.CommandGuard(client, policy, session=call.session)
            ended.finish(guard, call, upload.stored_as, at_end.masked_output(copy, upload, stored), end)
    return code


@contextmanager
def _end_loaded() -> Iterator[None]:
    """Load what is needed at the end once the block has run for a second.

    A command may replace the files of this package: `pip install` does.
    """
    loading = threading.Timer(_LOADED_AFTER_SECONDS, _load_end)
    loading.daemon = True
    with suppress(RuntimeError):  # no thread can be started
        loading.start()
    try:
        yield
    finally:
        loading.cancel()


def _load_end() -> None:
    with suppress(ImportError):  # it is replaced already: who needs it says so
        for name in _NEEDED_AT_END:
            import_module(name)
        load_transport()


def _print_unstored(
    invocation: Invocation, recording: Recording, error: ImportError, seen: int | None
) -> None:
    """Print everything after the `seen` bytes, because nothing else can be loaded. Raises `OSError`."""
    if seen is not None:
        output.content(recording.pieces(seen), raw=invocation.raw)
    output.say(f"the output could NOT be stored: a part of Overspill is gone or was replaced: {error}")


def _shown(invocation: Invocation, *, live: bool | None) -> LiveOutput | None:
    """Return the stream that shows the output as it comes; unchanged if the command has its own terminal."""
    is_own = live is not False and is_on_terminal()
    return LiveOutput.where_wanted(wanted=live, raw=invocation.raw or is_own)


def _slow_output(invocation: Invocation, call: CommandCall, policy: Policy, *, is_wanted: bool) -> SlowOutput:
    session = ("--session", call.session) if call.session else ()
    reader = invocation.command("tail", "-n", "200", *session, f"call:{call.call_id}")
    goes_on = f"[overspill] The command runs on, and more is shown when it ends. Until then: {reader}"
    return SlowOutput(policy.limits(call.tool) if is_wanted else Limits(0, 0), goes_on)


def _executed(words: Sequence[str], take: Callable[[bytes], None], shown: LiveOutput | None) -> int:
    """Run the command, and show what it prints. Return its exit code. Raises `ProgramNotStarted`."""
    if shown is None:
        return run_command(words, take)
    if _gives_terminal(shown):
        code = run_on_terminal(words, take, show=shown.show)
    else:
        code = run_command(words, _all(take, shown.show))
    shown.end()
    return code


def _gives_terminal(shown: LiveOutput | None) -> bool:
    """Return whether the command has a terminal of its own."""
    return shown is not None and shown.is_standard_output and is_on_terminal()


def _live_capture(
    client: SyncClient,
    words: Sequence[str],
    call: CommandCall,
    policy: Policy,
    copy: MaskedRecording,
    shown: LiveOutput | None,
) -> Callable[[], SyncLiveCapture]:
    redactor = policy.redactor()
    terminal = {wire.TERMINAL_LABEL: wire.fit(call.tool, LABEL_BYTES)}
    if _gives_terminal(shown):
        terminal[wire.SIZE_LABEL] = terminal_size()
    return partial(
        client.live,
        tool=call.tool,
        call_id=call.call_id,
        session=call.session,
        ttl=policy.ttl,
        labels=terminal | command_label(words, redactor),
        redactor=redactor,
        patience=PATIENCE_SECONDS,
        copy=copy,
    )


def _check_settings() -> None:
    """Raise `CommandFailure` if a variable that the guard will read has a wrong value."""
    with usage_errors(ValueError):
        location.waiting_bytes()


def _all(*takers: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        for each in takers:
            each(data)

    return take
