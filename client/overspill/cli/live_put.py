"""Stores standard input as it comes, for `put --live`: tmux's pipe-pane, a recorder, and any pipe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.cli import output
from overspill.cli.asciicast.reader import CastReader
from overspill.cli.exit_codes import CommandFailure, ExitCode
from overspill.cli.live_end import ended_by_signals, note_if_slow
from overspill.live.labels import LABEL_BYTES
from overspill.spools.spool import Spool

if TYPE_CHECKING:
    from overspill.cli.invocation import Invocation
    from overspill.cli.stop_signals import StopSignals
    from overspill.live.ports import Description
    from overspill.live.sync_capture import SyncLiveCapture
    from overspill.redaction.redactor import Redactor

_READ_BYTES: Final = 256 * 1024
_KNOWN_AT_ONCE: Final = ("session", "tool", "call_id", "ttl", "content_type")
"""The fields of a description that are sent when the capture begins."""
_RECORDING: Final = "recording"
"""The name of a recorded terminal that has no title."""


def put_live(
    invocation: Invocation,
    description: Description,
    terminal: str,
    *,
    is_recording: bool = False,
    is_exact: bool = False,
) -> None:
    """Print the handle at once, and store what comes until the input ends. Raises what storing raises.

    A signal ends it before: what has come is stored as a partial capture. Raises `CommandFailure` then.
    Secrets are masked as the policy says, unless `is_exact`. With the name of a `terminal` it is listed as
    one. Of an asciicast recording what the terminal showed is stored; raises `CommandFailure` at the end if
    it is none, with all of it stored.
    """
    if sys.stdin is None:
        raise OSError("standard input is closed")
    cast = CastReader() if is_recording else None
    redactor = None if is_exact else invocation.policy().redactor()
    first = b"" if cast is None else _read_header(cast)
    own = {wire.TERMINAL_LABEL: terminal} if terminal else {}
    spool = Spool.default()
    labels = {**({} if cast is None else _labels(cast, redactor)), **description.labels, **own}
    metadata = {name: getattr(description, name) for name in _KNOWN_AT_ONCE}
    with (
        invocation.client() as client,
        client.live(**metadata, labels=labels, redactor=redactor, spool=spool) as out,
    ):
        output.line(out.id)
        output.flush()
        with ended_by_signals(out, out.close) as signals:
            out.write(first)
            _copy(out, cast, signals)
            with note_if_slow(signals, has_spool=spool is not None), signals.deliverable():
                _end(out, cast, signals, description.status)
    _say_where(out, cast)


def _read_header(cast: CastReader) -> bytes:
    """Read up to the header. Return what the terminal showed by it."""
    shown = b""
    while not cast.has_begun and (data := os.read(sys.stdin.fileno(), _READ_BYTES)):
        shown += cast.feed(data)
    return shown


def _copy(out: SyncLiveCapture, cast: CastReader | None, signals: StopSignals) -> None:
    """Store what comes, after a signal only what is there already."""
    descriptor, is_last = sys.stdin.fileno(), False
    while not is_last and signals.wait_for_input(descriptor):
        is_last = signals.number is not None
        data = os.read(descriptor, _READ_BYTES)
        if not data:
            break
        out.write(data if cast is None else cast.feed(data))
    if cast is not None:
        out.write(cast.finish())


def _end(out: SyncLiveCapture, cast: CastReader | None, signals: StopSignals, status: str) -> None:
    if signals.number is not None:
        out.abort(f"ended by {signals.name}")
    else:
        out.complete(status=status or None, exit_code=None if cast is None else cast.exit_code)


def _say_where(out: SyncLiveCapture, cast: CastReader | None) -> None:
    """Say what is not as asked for. Raises `CommandFailure` if the input was no recording."""
    if out.spooled:
        output.say(f"{out.id} is on this machine only, until it is uploaded: {out.spooled}")
    if cast is not None and cast.problem:
        message = f"this is not an asciicast recording: {cast.problem}"
        raise CommandFailure(f"{message}. From there on {out.id} has what came as it was", ExitCode.FAILED)


def _labels(cast: CastReader, redactor: Redactor | None) -> dict[str, str]:
    """Return what a recording says of its terminal, without secrets."""
    if cast.header is None:
        return {}
    cast_labels = {
        wire.TERMINAL_LABEL: cast.header.title or _RECORDING,
        wire.COMMAND_LABEL: cast.header.command or "",
        wire.SIZE_LABEL: cast.header.size,
    }
    masked = (
        cast_labels
        if redactor is None
        else {name: redactor.redact(text).text for name, text in cast_labels.items()}
    )
    return {name: wire.fit(text, LABEL_BYTES) for name, text in masked.items() if text}
