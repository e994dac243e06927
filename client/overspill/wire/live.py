"""Live captures: how a producer appends to them, and how readers follow them and wait.

The field names `Upload-Offset` and `Upload-Complete` are those of draft-ietf-httpbis-resumable-upload-09.
Appends carry their CRC32C as `Content-Digest: crc32c=:BASE64:` (RFC 9530).
"""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003  (msgspec resolves annotations at run time)
from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from overspill.wire.captures import Gap, State  # noqa: TC001  (msgspec resolves annotations at run time)
from overspill.wire.identity import END, MAX_VALUE
from overspill.wire.queries import Count, RefQuery
from overspill.wire.reads import Match  # noqa: TC001  (as above)

MAX_APPEND: Final = 8 * 2**20
"""Bytes of content that one append may carry."""
MAX_UNSTORED: Final = 16 * 2**20
"""Bytes that the service accepts beyond the durable offset. A producer keeps no more than these."""
FOLLOW_TYPE: Final = "text/event-stream"
KEEP_ALIVE_SECONDS: Final = 15.0
"""A followed capture without news sends a comment so often, so that no proxy ends the connection."""
MAX_WAIT_SECONDS: Final = 600
EXIT_CODE_LABEL: Final = "overspill.exit_code"
TERMINAL_LABEL: Final = "overspill.terminal"
"""The label of a capture of a terminal: the terminal's name."""
COMMAND_LABEL: Final = "overspill.command"
"""The label of a capture of a process: the beginning of its command line."""

_LABEL: Final = "^[a-z0-9][a-z0-9_.-]{0,62}" + END

SIZE_LABEL: Final = "overspill.terminal_size"
"""The label of a capture of a terminal: columns and rows, as `80x24`."""
_COLUMNS: Final = re.compile(r"([1-9][0-9]{0,4})x[1-9][0-9]{0,4}", re.ASCII)


def terminal_columns(labels: Mapping[str, str]) -> int | None:
    """Return the columns of the terminal that has shown a capture: 0 if nobody knows, None if none has."""
    if TERMINAL_LABEL not in labels:
        return None
    size = _COLUMNS.fullmatch(labels.get(SIZE_LABEL, ""))
    return 0 if size is None else int(size[1])


Offset = Annotated[int, Meta(ge=0, le=2**53)]
ExitCode = Annotated[int, Meta(ge=-(2**31), lt=2**32)]
"""That of a process: Windows has 32 bits, with or without a sign."""


class LiveStatus(Struct, frozen=True, kw_only=True):
    """The progress of a live capture. Answers appends, and `GET …/live`."""

    id: str
    state: State
    accepted: int
    """Bytes that the service has taken: the offset of the next append."""
    durable: int
    """Bytes that are in the object store. A producer keeps what comes after them, and sends it again."""
    gap: Gap | None = None
    """The bytes missing at the end of a capture whose producer vanished, if any are known to be."""


class Completion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The end of a live capture, as its producer reports it."""

    offset: Offset
    """The content's size. The service must have accepted all of it."""
    state: Literal["complete", "partial"] = "complete"
    """`partial`: the producer gives up before the end."""
    status: Annotated[str, Meta(max_length=MAX_VALUE)] | None = None
    exit_code: ExitCode | None = None
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}" + END)] | None = None
    """The digest of the whole content, for the service to compare."""
    labels: dict[Annotated[str, Meta(pattern=_LABEL)], Annotated[str, Meta(max_length=MAX_VALUE)]] = {}
    """Labels that are known at the end only. They join those of the beginning."""


class FollowQuery(RefQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The start of following: byte `offset`, or the last `lines` lines. By default, the beginning.

    A `Last-Event-ID` field takes precedence over both. Browsers and clients send it when they connect again.
    """

    offset: Offset | None = None
    lines: Annotated[int, Meta(ge=0, le=1000)] | None = None


class FollowedOutput(Struct, frozen=True, kw_only=True):
    """The data of an `output` event: content as it came. The event's id is `next_offset`.

    Bytes that are not UTF-8 are replaced by U+FFFD; ANSI escape sequences stay.
    """

    offset: int
    next_offset: int
    content: str


class FollowedEnd(Struct, frozen=True, kw_only=True):
    """The data of the last event, `end`."""

    state: State
    size: int
    status: str = ""
    exit_code: int | None = None
    gap: Gap | None = None
    """The bytes missing at its end, if any are known to be."""


class Mark(Struct, frozen=True, kw_only=True):
    """The bytes from `offset` on came at `time` or later."""

    time: datetime
    offset: int


class Timeline(Struct, frozen=True, kw_only=True):
    """The times at which the bytes of a capture came.

    The marks are a quarter of a second apart, or 1/500 of the capture's age. A capture that was stored at
    once has none.
    """

    id: str
    state: State
    size: int
    marks: list[Mark]


class WaitQuery(RefQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ends the wait: a line that matches `pattern`, `lines` new lines, the end, `timeout` seconds."""

    pattern: str | None = None
    fixed: bool = False
    ignore_case: bool = False
    lines: Count | None = None
    timeout: Annotated[float, Meta(ge=0, le=MAX_WAIT_SECONDS)] = 30
    cursor: Offset = 0
    """The byte after the last line that the reader has seen: `cursor` of its last answer. 0: nothing yet."""
    ansi: bool = False
    """Keep ANSI escape sequences."""
    max_bytes: Annotated[int, Meta(ge=256, le=65536)] | None = None
    """Bytes of text that the answer has at most, if that is less than the service's own cap."""


class Waited(Struct, frozen=True, kw_only=True):
    """The answer of a wait: why it ended, and the new lines since the reader's cursor."""

    reason: Literal["pattern", "lines", "ended", "timeout"]
    state: State
    content: str
    """The new lines. If they are too many, the last ones, or those from the first match on."""
    start_line: int
    end_line: int
    total_lines: int
    total_bytes: int
    """As of this answer, while the capture is live."""
    matches: list[Match] = []
    skipped_lines: int = 0
    """New lines that are not in `content`, or not whole, before what is: `lines` reads them."""
    cursor: int
    """The value to send as `cursor` next time. While the capture is live, a character or an escape sequence
    that has come in part lies behind it, and comes with the next answer."""
    approx_tokens: int
    advice: str = ""
    """Advice what to do next, if waiting again in the same way would not help."""
    status: str = ""
    exit_code: int | None = None
    gap: Gap | None = None
    """The same as `FollowedEnd.gap`."""
