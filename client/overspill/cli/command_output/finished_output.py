"""The text that is printed when a command has ended: a short output itself, or the notice of a long one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.cli import output
from overspill.execution.waiting import run_sync
from overspill.guard.call_context import calling
from overspill.guard.executors import SYNC
from overspill.guard.guard import Guard
from overspill.previews import notice
from overspill.previews.preview import preview
from overspill.shapes.chunk_stream import stream_shape
from overspill.shapes.stream_shapes import StreamShape
from overspill.text import quantities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.agent_tools.live_upload import LiveUpload
    from overspill.agent_tools.masked_recording import MaskedRecording
    from overspill.agent_tools.recording import Recording
    from overspill.cli.command_output.command_call import CommandCall
    from overspill.cli.command_output.slow_output import SlowOutput
    from overspill.cli.command_output.stoppable_end import StoppableEnd
    from overspill.cli.invocation import Invocation
    from overspill.guard.band import DestinationName
    from overspill.guard.guarded import Guarded
    from overspill.live.ports import Beginning
    from overspill.previews.notice_facts import Notice
    from overspill.text.limits import Limits

_SPOOL: Final[tuple[DestinationName, ...]] = ("spool",)
_DISK_NEARLY_FULL: Final = "the disk for temporary files is nearly full"
_WARM_UP_BYTES: Final = 64 * 1024
"""Bytes of the output for a preview that nobody sees."""
_WARM_UP_PREVIEW_BYTES: Final = 2048


class CommandGuard(Guard):
    """A guard for one output. It uploads nothing unasked: the command does that, and says so."""

    _uploads_unasked = False

    def process_stream(self, stream: StreamShape, call: CommandCall) -> Guarded:
        """Guard a stream that is too long, was read to its end, and has no secrets any more."""
        intake = self._pipeline.intake
        captured = intake.output(SYNC, stream, call.tool, call_id=call.call_id, status=call.status)
        return run_sync(self._pipeline.replaced(captured, stream))

    def without_service(self) -> CommandGuard:
        """Return a guard like this one that keeps outputs in the spool alone; this one if there is none."""
        if self._storage.partition is None:
            return self
        bands = tuple(
            replace(band, destinations=_SPOOL if "spool" in band.destinations else ())
            for band in self.policy.bands
        )
        return CommandGuard(self.client, replace(self.policy, bands=bands), session=self.session)


class FinishedOutput:
    """An output whose command has ended.

    `is_seen`: standard output has shown it already. `slow` has shown the beginning of it.
    """

    def __init__(
        self,
        invocation: Invocation,
        recording: Recording,
        slow: SlowOutput,
        *,
        is_seen: bool,
        notice: bool,
    ) -> None:
        self._invocation, self._recording, self._is_seen = invocation, recording, is_seen
        self._slow = slow
        self._has_notice = notice or not is_seen
        self._masked: StreamShape | None = None

    def warm_up(self) -> None:
        """Make a preview of the beginning of a long output, which nobody sees.

        It compiles patterns that the notice needs. Call this while the end of the output is sent: the
        notice then comes a tenth of a second earlier.
        """
        if not self._recording.is_short:
            with suppress(OSError):  # a file that cannot be read: `finish` says so
                beginning = self._recording.read(0, _WARM_UP_BYTES).decode("utf-8", "replace")
                preview(beginning, _WARM_UP_PREVIEW_BYTES)

    def finish(
        self,
        guard: CommandGuard,
        call: CommandCall,
        stored_as: str | Beginning,
        masked: StreamShape | None,
        end: StoppableEnd,
    ) -> None:
        """Print the output, or store it and print its notice. Raises `OSError`, and `CommandFailure`.

        `stored_as` is the part that the service already has. `masked` is all of it without its secrets, if a
        copy was made while it came. Signals end the storing, as `end` says.
        """
        self._masked = None if self._recording.is_short else masked
        self._make_room()
        if self._recording.missing:
            output.say(f"the middle of the output is missing from what is kept: {self._recording.missing}")
        if not self._recording.is_short and self._is_within(guard.policy.limits(call.tool)):
            end.is_printed()
            self._print()
            end.raise_if_stopped()
            return
        with calling(call.call_id, capture=stored_as):
            guarded = end.stored(
                lambda: self._guarded(guard, call), lambda: self._guarded(guard.without_service(), call)
            )
        end.is_printed()
        if guarded.outcome is wire.Outcome.CAPTURED:
            guard.close()  # the end of the process would cut off what it does in the background
        if guarded.notice is None:
            self._print()
        else:
            self._print_notice(guarded)
        end.raise_if_stopped()

    def _make_room(self) -> None:
        """Drop the middle of the recording if a copy of it, which the guard makes, has no room."""
        is_copied = self._masked is not None or not self._recording.is_filed
        if not is_copied and not self._recording.has_room_for_a_copy():
            self._recording.give_up_middle(_DISK_NEARLY_FULL)

    def _guarded(self, guard: CommandGuard, call: CommandCall) -> Guarded:
        if self._masked is not None:
            return guard.process_stream(self._masked, call)
        return guard.process_sync(
            self._recording.content("surrogateescape"),
            tool=call.tool,
            call_id=call.call_id,
            status=call.status,
        )

    def _is_within(self, limits: Limits) -> bool:
        is_short = self._recording.size <= limits.max_bytes
        return is_short and _lines(self._recording.pieces()) <= limits.max_lines

    def _print(self) -> None:
        if self._is_seen:
            return
        output.content(self._recording.pieces(self._slow.shown_bytes), raw=self._invocation.raw)

    def _complete_notice(self, shown: Notice | None) -> Notice | None:
        """Return the notice. It says so if the middle is missing from what is stored."""
        if shown is None or not self._recording.missing:
            return shown
        return notice.without_middle(shown, self._recording.gap, self._recording.missing)

    def _print_notice(self, guarded: Guarded) -> None:
        if self._has_notice:
            self._slow.end_line()
            output.line(str(self._complete_notice(guarded.notice)))
        if guarded.outcome is wire.Outcome.TRUNCATED:
            event = "is too long for a conversation" if self._is_seen else "was cut"
            output.say(f"the output {event} and could NOT be stored: {guarded.reason}")
            return
        if guarded.outcome is wire.Outcome.SPOOLED:
            reason = f": {guarded.reason}" if guarded.reason else ""
            output.say(f"the output is on this machine only, until it is uploaded{reason}")
        if not self._has_notice:
            counts = (guarded.bytes_before, "byte"), (guarded.lines or 0, "line")
            size = ", ".join(quantities.plural(*count) for count in counts)
            words = self._invocation.command("grep", str(guarded.capture), "PATTERN")
            extent = "without its middle" if self._recording.missing else "whole"
            output.say(f"the output has {size}; it is stored {extent}, search it with: {words}")


def masked_output(copy: MaskedRecording, upload: LiveUpload, stored: wire.Entry | None) -> StreamShape | None:
    """Return all of the output without its secrets, if the upload has copied that; else free the disk."""
    if upload.masked is None:
        copy.close()
        return None
    body = copy.finish(stored)
    if body is None:
        return None
    if stored is None:
        return stream_shape(body, upload.masked)
    return StreamShape(body, stored.content_type, is_bytes=True, masked=upload.masked)


def _lines(pieces: Iterator[bytes]) -> int:
    newlines, piece = 0, b"\n"
    for piece in pieces:
        newlines += piece.count(b"\n")
    return newlines + (not piece.endswith(b"\n"))
