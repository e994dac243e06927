"""A capture on this machine's disk, with the read methods of a client and the service's own answers.

The methods take a reference and a session like a client's, and ignore them: this is one capture already.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from overspill import wire
from overspill.errors import error_of
from overspill.reading import content_kind
from overspill.reading import lines as by_number
from overspill.reading.chunks import DEFAULT_CAPS, Extent
from overspill.reading.errors import InvalidQuery
from overspill.reading.grep import Search
from overspill.reading.summary import Summarizer
from overspill.spools.file_chunks import FileChunks
from overspill.transfer.request import encode_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgspec import Struct

    from overspill.reading.chunks import Caps
    from overspill.spools.entries import Spooled
    from overspill.spools.file_chunks import Read

Q = TypeVar("Q", bound=wire.ReadQuery)

READ_SECONDS: Final = 5.0
"""Seconds after which a search or a summary stops. The answer of a search says how to continue."""
_NO_TIMES: Final = (
    "`since` cannot be answered: the capture waits on this machine, which does not know when its lines came. "
    "Leave it out, or upload the capture first"
)
_POSITIONS: Final = frozenset({"lines", "start", "end", "offset", "cursor"})
"""Parameters that say where a read begins and ends."""


class LocalCapture:
    """A capture whose content is `file`. Use it in a `with` block, which closes the file.

    Methods raise the `ProblemError` that the service would answer with, and `OSError`.
    """

    def __init__(self, spooled: Spooled, file: IO[bytes]) -> None:
        self.spooled = spooled
        self._file = file
        columns = wire.terminal_columns(spooled.labels)
        self._chunks = FileChunks(file, Extent(spooled.size, spooled.lines, columns))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def get(self, _ref: str = "", *, session: str | None = None) -> wire.Entry:  # noqa: ARG002
        """Return the entry of the capture. Raises `OSError`."""
        return entry_of(self.spooled, self._content_kind())

    def _content_kind(self) -> str:
        return content_kind.detect(
            self._chunks.bytes_at(0, content_kind.HEAD_BYTES), self.spooled.content_type
        )

    def content(
        self,
        _ref: str = "",
        range: wire.ByteRange | None = None,  # noqa: A002
        *,
        session: str | None = None,  # noqa: ARG002
    ) -> bytes:
        """Return all bytes of the capture, or those of `range`. Raises `OSError`."""
        with self.stream(range=range) as pieces:
            return b"".join(pieces)

    @contextmanager
    def stream(
        self,
        _ref: str = "",
        range: wire.ByteRange | None = None,  # noqa: A002
        *,
        session: str | None = None,  # noqa: ARG002
    ) -> Iterator[Iterator[bytes]]:
        """Give the block the bytes in pieces. Reading all of them verifies the digest (`CaptureDamaged`)."""
        yield self._all() if range is None else self._range_pieces(range)

    def _all(self) -> Iterator[bytes]:
        state = hashlib.sha256()
        for piece in self._chunks.pieces(0, self.spooled.size):
            state.update(piece)
            yield piece
        if state.hexdigest() != self.spooled.sha256:
            raise error_of(
                wire.Code.CAPTURE_DAMAGED, "the bytes on this machine's disk are not those that were captured"
            )

    def _range_pieces(self, byte_range: wire.ByteRange) -> Iterator[bytes]:
        part = byte_range.resolve(self.spooled.size)
        if part is None:
            detail = f"no byte of the range exists: the capture has {self.spooled.size} bytes"
            raise error_of(wire.Code.RANGE_NOT_SATISFIABLE, detail)
        return self._chunks.pieces(part.start, part.stop)

    # The `options` of the bounded readers are the parameters that a client's methods of the same names take.

    def head(self, _ref: str = "", lines: int = 50, **options: Any) -> wire.Text:
        """Return the first `lines` lines. Raises `OSError`."""
        query = _query(wire.HeadQuery, lines=lines, **options)
        return self._answer(query, partial(by_number.head, lines))

    def tail(self, _ref: str = "", lines: int = 50, **options: Any) -> wire.Text:
        """Return the last `lines` lines. Raises `OSError`."""
        query = _query(wire.TailQuery, lines=lines, **options)
        return self._answer(query, partial(by_number.tail, lines))

    def lines(self, _ref: str = "", start: int = 1, end: int | None = None, **options: Any) -> wire.Text:
        """Return the lines `start` to `end`, counted from 1, both included. Raises `OSError`."""
        query = _query(wire.LinesQuery, start=start, end=end, **options)
        return self._answer(query, partial(by_number.between, start, end, offset=query.offset))

    def grep(self, _ref: str, pattern: str, **options: Any) -> wire.Text:
        """Return the lines that match. Raises `OSError`."""
        query = _query(wire.GrepQuery, pattern=pattern, **options)
        with _problems():
            search = Search(query, self._chunks.extent, caps=_caps(query), expired=_deadline())
            return _with_whole_query(self._chunks.search(search), query)

    def summary(self, _ref: str = "", *, session: str | None = None) -> wire.Summary:  # noqa: ARG002
        """Return a summary of the capture, within the time that a summary may take. Raises `OSError`."""
        summarizer = Summarizer(
            self._chunks.extent,
            content_type=self.spooled.content_type,
            kind=self._content_kind(),
            expired=_deadline(),
        )
        return self._chunks.inspect(summarizer)

    def timeline(self, _ref: str = "", *, session: str | None = None) -> wire.Timeline:  # noqa: ARG002
        """Return a timeline without marks: captures on this machine have none."""
        entry = self.get()
        return wire.Timeline(id=entry.id, state=entry.state, size=entry.size, marks=[])

    def readers(self, _ref: str = "") -> wire.Readers:
        """Return no readers: the spool does not note who reads."""
        return wire.Readers(readers=[])

    def _answer(self, query: wire.ReadQuery, begin: Callable[..., Read[wire.Text]]) -> wire.Text:
        with _problems():
            read = begin(self._chunks.extent, caps=_caps(query), ansi=query.ansi)
            return _with_whole_query(self._chunks.inspect(read), query)


def entry_of(spooled: Spooled, kind: str) -> wire.Entry:
    """Return the entry that the service would have for a spooled capture."""
    return wire.Entry(
        id=spooled.id,
        state=wire.State.COMPLETE,
        size=spooled.size,
        stored_size=spooled.size,
        lines=spooled.lines,
        sha256=spooled.sha256,
        content_type=spooled.content_type,
        kind=kind,
        tool=spooled.tool,
        session=spooled.session,
        call_id=spooled.call_id,
        status=spooled.status,
        labels=spooled.labels,
        created=spooled.created,
        expires=spooled.expires,
    )


def _with_whole_query(text: wire.Text, query: Struct) -> wire.Text:
    """Return the answer with the whole query that continues: what was asked for, with a new beginning."""
    if text.next is None:
        return text
    unchanged = {name: value for name, value in encode_query(query).items() if name not in _POSITIONS}
    return msgspec.structs.replace(text, next=unchanged | text.next)


def _query(query_type: type[Q], *, session: str | None = None, **parameters: Any) -> Q:  # noqa: ARG001
    """Return a query within the bounds that hold on the wire. Raises `InvalidParameter`.

    That is also raised for `since`, because only the service knows when the lines came.
    """
    query = query_type(**parameters)
    if query.since is not None:
        raise error_of(wire.Code.INVALID_PARAMETER, _NO_TIMES)
    try:
        return msgspec.convert(msgspec.to_builtins(query), query_type)
    except msgspec.ValidationError as error:
        raise error_of(wire.Code.INVALID_PARAMETER, f"{error}".replace("`$.", "`")) from None


@contextmanager
def _problems() -> Iterator[None]:
    """Raise the problem that the service would answer with, if a query is wrong."""
    try:
        yield
    except InvalidQuery as error:
        raise error_of(error.code, str(error)) from None


def _caps(query: wire.ReadQuery) -> Caps:
    return DEFAULT_CAPS.within(query.max_bytes)


def _deadline() -> Callable[[], bool]:
    until = time.monotonic() + READ_SECONDS
    return lambda: time.monotonic() > until
