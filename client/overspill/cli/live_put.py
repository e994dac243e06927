"""Stores standard input as it comes, for `put --live`: tmux's pipe-pane, and any pipe."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.cli import output
from overspill.spools.spool import Spool

if TYPE_CHECKING:
    from overspill.cli.invocation import Invocation
    from overspill.cli.spool_fallback import CaptureMetadata

_READ_BYTES: Final = 256 * 1024


def put_live(invocation: Invocation, metadata: CaptureMetadata, terminal: str) -> None:
    """Print the handle at once, and store what comes until the input ends. Raises what storing raises.

    With the name of a `terminal` it is listed as one.
    """
    if sys.stdin is None:
        raise OSError("standard input is closed")
    labels = {**metadata.labels, wire.TERMINAL_LABEL: terminal} if terminal else metadata.labels
    with (
        invocation.client() as client,
        client.live(
            session=metadata.session,
            tool=metadata.tool,
            call_id=metadata.call_id,
            ttl=metadata.ttl,
            labels=labels,
            redactor=invocation.policy().redactor(),
            spool=Spool.default(),
            content_type=metadata.content_type,
        ) as out,
    ):
        output.line(out.id)
        output.flush()
        if metadata.status:
            out.ends_with(status=metadata.status)
        while data := os.read(sys.stdin.fileno(), _READ_BYTES):
            out.write(data)
    if out.spooled:
        output.say(f"{out.id} is on this machine only, until it is uploaded: {out.spooled}")
