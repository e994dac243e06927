"""Guards a command's output: prints it if it is short; stores it and prints a notice if it is long.

The guard decides, as in an agent. On a terminal the output is shown as it comes, and then where it is stored.
Output that is too long for memory reaches the guard in pieces.
"""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from overspill import wire
from overspill.agent_tools.recording import Recording
from overspill.cli import output
from overspill.cli.command_output.child_process import run_command
from overspill.cli.command_output.live_output import LiveOutput
from overspill.cli.command_output.live_upload import PATIENCE_SECONDS, LiveUpload
from overspill.cli.command_output.terminal_process import is_on_terminal, run_on_terminal
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.guard.call_context import calling
from overspill.guard.guard import Guard
from overspill.guard.hosts import fitting_chars
from overspill.previews import notice
from overspill.text import measure
from overspill.text.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overspill.cli.invocation import Invocation
    from overspill.guard.guarded import Guarded
    from overspill.guard.policy import Policy
    from overspill.live.sync_capture import SyncLiveCapture
    from overspill.previews.notice_facts import Notice
    from overspill.transfer.sync import SyncClient

_PLACEHOLDER = "CAPTURE"
_LABEL_BYTES = 256
_DISK_NEARLY_FULL = "the disk for temporary files is nearly full"


@dataclass(frozen=True, kw_only=True)
class CommandCall:
    """The tool, the call and the session that the output belongs to."""

    tool: str
    call_id: str
    session: str | None
    status: str = ""


def with_limits(policy: Policy, tool: str, *, max_bytes: int | None, max_lines: int | None) -> Policy:
    """Return the policy with limits for this tool in bytes and lines alone: these, or those of the policy."""
    usual = policy.limits(tool)
    limits = Limits(
        fitting_chars(usual) if max_bytes is None else max_bytes,
        usual.max_lines if max_lines is None else max_lines,
    )
    return policy.merged({tool: limits})


def minted_call_id() -> str:
    """Return a tool-call id for a command that was given none."""
    return f"call_{secrets.token_hex(12)}"


def run(
    invocation: Invocation,
    words: Sequence[str],
    origin: CommandCall,
    policy: Policy,
    *,
    live: bool | None,
    notice: bool = False,
) -> int:
    """Run the command `words`, print its output or a notice, and return the command's exit code.

    With `notice` an output that was shown is followed by its notice. Raises `CommandNotStarted`. Raises
    `CommandFailure` before anything runs if the options are wrong.
    """
    with invocation.client() as client, Recording() as recording:
        guard = _guard(client, replace(policy, reader=_reader(invocation)), origin.session)
        shown = _shown(invocation, live=live)
        is_seen = shown is not None and shown.is_standard_output
        after = policy.limits(origin.tool).max_bytes
        with LiveUpload(recording, _live_capture(client, words, origin, policy), after_bytes=after) as upload:
            code = _executed(words, _all(recording.take, upload.take), shown)
            if shown is not None:
                shown.end()
            stored = upload.ended(status=f"exit {code}", exit_code=code)
        ended = _FinishedOutput(invocation, recording, is_seen=is_seen, notice=notice)
        ended.finish(guard, replace(origin, status=f"exit {code}"), "" if stored is None else stored.id)
    return code


def _shown(invocation: Invocation, *, live: bool | None) -> LiveOutput | None:
    """Return where the output is shown as it comes: as it is, if the command has a terminal of its own."""
    is_own = live is not False and is_on_terminal()
    return LiveOutput.where_wanted(wanted=live, raw=invocation.raw or is_own)


def _executed(words: Sequence[str], take: Callable[[bytes], None], shown: LiveOutput | None) -> int:
    if shown is None:
        return run_command(words, take)
    if shown.is_standard_output and is_on_terminal():
        return run_on_terminal(words, take, show=shown.show)
    return run_command(words, _all(take, shown.show))


def _live_capture(
    client: SyncClient, words: Sequence[str], origin: CommandCall, policy: Policy
) -> Callable[[], SyncLiveCapture]:
    redactor = policy.redactor()
    command = shlex.join(words)
    if redactor is not None:
        command = redactor.redact(command).text
    labels = {
        wire.TERMINAL_LABEL: wire.fit(origin.tool, _LABEL_BYTES),
        wire.COMMAND_LABEL: wire.fit(command, _LABEL_BYTES),
    }
    return partial(
        client.live,
        tool=origin.tool,
        call_id=origin.call_id,
        session=origin.session,
        ttl=policy.ttl,
        labels=labels,
        redactor=redactor,
        patience=PATIENCE_SECONDS,
    )


def _guard(client: SyncClient, policy: Policy, session: str | None) -> Guard:
    """Return the guard. Raises `CommandFailure` if a setting in the environment is wrong."""
    try:
        return _CommandGuard(client, policy, session=session)
    except ValueError as error:
        raise CommandFailure(str(error), ExitCode.USAGE) from error


def _reader(invocation: Invocation) -> str:
    """Return the command that reads more of a capture, for an agent that has a terminal."""
    return invocation.command("head", "-n", "200", _PLACEHOLDER).replace(_PLACEHOLDER, "{id}")


def _all(*takers: Callable[[bytes], None]) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        for each in takers:
            each(data)

    return take


class _CommandGuard(Guard):
    """A guard for one output. It uploads nothing unasked: the command does that, and says so."""

    _uploads_unasked = False


class _FinishedOutput:
    """An output whose command has ended. `is_seen`: standard output has shown it already."""

    def __init__(self, invocation: Invocation, recording: Recording, *, is_seen: bool, notice: bool) -> None:
        self._invocation, self._recording, self._is_seen = invocation, recording, is_seen
        self._has_notice = notice or not is_seen

    def finish(self, guard: Guard, origin: CommandCall, capture: str) -> None:
        """Print the output, or store it and print its notice. Raises `OSError`.

        `capture` is the handle of the live capture that has all of it, if there is one.
        """
        if self._recording.is_filed and not self._recording.has_room_for_a_copy():
            self._recording.give_up_middle(_DISK_NEARLY_FULL)
        if self._recording.missing:
            output.say(f"the middle of the output is missing from what is kept: {self._recording.missing}")
        if not self._recording.is_short and self._is_within(guard.policy.limits(origin.tool)):
            self._print()
            return
        with calling(origin.call_id, capture=capture):
            guarded = guard.process_sync(
                self._result(), tool=origin.tool, call_id=origin.call_id, status=origin.status
            )
        if guarded.outcome is wire.Outcome.CAPTURED:
            guard.close()  # the end of the process would cut off what it does in the background
        if guarded.notice is None:
            self._print()
        else:
            self._print_notice(guarded)

    def _is_within(self, limits: Limits) -> bool:
        is_short = self._recording.size <= limits.max_bytes
        return is_short and _lines(self._recording.pieces()) <= limits.max_lines

    def _result(self) -> str | Iterator[bytes]:
        """Return a short output as a text. A longer one, as pieces, is longer than the policy allows."""
        if self._recording.is_short:
            return b"".join(self._recording.pieces()).decode("utf-8", "surrogateescape")
        return self._recording.pieces()

    def _print(self) -> None:
        if self._is_seen:
            return
        output.content(self._recording.pieces(), raw=self._invocation.raw)

    def _complete_notice(self, made: Notice | None) -> Notice | None:
        """Return the notice. It says so if the middle is missing from what is stored."""
        if made is None or not self._recording.missing:
            return made
        return notice.without_middle(made, self._recording.gap, self._recording.missing)

    def _print_notice(self, guarded: Guarded) -> None:
        if self._has_notice:
            output.line(str(self._complete_notice(guarded.notice)))
        if guarded.outcome is wire.Outcome.TRUNCATED:
            what = "is too long for a conversation" if self._is_seen else "was cut"
            output.say(f"the output {what} and could NOT be stored: {guarded.reason}")
            return
        if guarded.outcome is wire.Outcome.SPOOLED:
            output.say(f"the output is on this machine only, until it is uploaded: {guarded.reason}")
        if not self._has_notice:
            counts = (guarded.bytes_before, "byte"), (guarded.lines or 0, "line")
            size = ", ".join(measure.plural(*count) for count in counts)
            words = self._invocation.command("grep", str(guarded.capture), "PATTERN")
            extent = "without its middle" if self._recording.missing else "whole"
            output.say(f"the output has {size}; it is stored {extent}, search it with: {words}")


def _lines(pieces: Iterator[bytes]) -> int:
    newlines, piece = 0, b"\n"
    for piece in pieces:
        newlines += piece.count(b"\n")
    return newlines + (not piece.endswith(b"\n"))
