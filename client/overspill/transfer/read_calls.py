"""The calls that read captures: their bytes, and the bounded readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from overspill import wire
from overspill.transfer.argument_checks import checked_text
from overspill.transfer.caller import Caller
from overspill.transfer.download import ContentStream

if TYPE_CHECKING:
    import os
    from datetime import datetime


class ReadCalls(Caller):
    """Reads the bytes of captures, their lines, and what matches in them."""

    def stream(
        self,
        ref: str,
        range: wire.ByteRange | None = None,  # noqa: A002  (the field's own name)
        *,
        session: str | None = None,
    ) -> ContentStream:
        """Return the bytes of a capture or of a range of it, in pieces of at most a few MiB.

        The length is verified, and the digest of a whole capture; a transfer that breaks off is resumed.
        Iterating raises `ProtocolError` for wrong bytes, and `RangeNotSatisfiable` if the range has none.
        """
        if range is not None and not isinstance(range, wire.ByteRange):
            raise TypeError(f"a range is a ByteRange, such as ByteRange(0, 99), not {type(range).__name__}")
        prepared = self._capture_request("GET", wire.Path.CONTENT, ref, session)
        return ContentStream(self._transport, prepared, range)

    async def content(
        self,
        ref: str,
        range: wire.ByteRange | None = None,  # noqa: A002  (the field's own name)
        *,
        session: str | None = None,
    ) -> bytes:
        """Return the bytes of a capture or of a range of it. Raises as `stream` does."""
        async with self.stream(ref, range, session=session) as pieces:
            return b"".join([piece async for piece in pieces])

    async def download(self, ref: str, path: str | os.PathLike[str], *, session: str | None = None) -> int:
        """Write a capture to a file, and return its size in bytes. The file appears once it is verified.

        Raises as `stream` does, and `OSError` if the file cannot be written.
        """
        from overspill.transfer.save import save  # noqa: PLC0415  (loaded when it is needed)

        async with self.stream(ref, session=session) as pieces:
            return await save(pieces, path)

    async def head(
        self,
        ref: str,
        lines: int = 50,
        *,
        ansi: bool = False,
        max_bytes: int | None = None,
        since: datetime | None = None,
        session: str | None = None,
    ) -> wire.Text:
        """Return the first lines. `ansi` keeps terminal escapes. The text has at most `max_bytes` bytes.

        `since` reads only lines that came after that time.
        """
        query = wire.HeadQuery(lines=lines, ansi=ansi, max_bytes=max_bytes, since=since)
        return await self._read(wire.Path.HEAD, ref, query, session)

    async def tail(
        self,
        ref: str,
        lines: int = 50,
        *,
        ansi: bool = False,
        max_bytes: int | None = None,
        since: datetime | None = None,
        session: str | None = None,
    ) -> wire.Text:
        """Return the last lines. The parameters are those of `head`."""
        query = wire.TailQuery(lines=lines, ansi=ansi, max_bytes=max_bytes, since=since)
        return await self._read(wire.Path.TAIL, ref, query, session)

    async def lines(  # noqa: PLR0913  (one for each query parameter)
        self,
        ref: str,
        start: int = 1,
        end: int | None = None,
        *,
        offset: int = 0,
        ansi: bool = False,
        max_bytes: int | None = None,
        since: datetime | None = None,
        session: str | None = None,
    ) -> wire.Text:
        """Return lines `start` to `end`, counted from 1 and inclusive. `offset` skips bytes of the first."""
        query = wire.LinesQuery(
            start=start, end=end, offset=offset, ansi=ansi, max_bytes=max_bytes, since=since
        )
        return await self._read(wire.Path.LINES, ref, query, session)

    async def grep(  # noqa: PLR0913  (one for each query parameter)
        self,
        ref: str,
        pattern: str,
        *,
        fixed: bool = False,
        ignore_case: bool = False,
        invert: bool = False,
        context: int = 0,
        before: int | None = None,
        after: int | None = None,
        max_matches: int = 50,
        from_end: bool = False,
        count: bool = False,
        cursor: str | None = None,
        ansi: bool = False,
        max_bytes: int | None = None,
        since: datetime | None = None,
        session: str | None = None,
    ) -> wire.Text:
        """Return lines that match an RE2 `pattern`, each with `context` lines around it, or `before`/`after`.

        `fixed` takes plain text; `invert` finds the lines that do not match; `count` only counts. At most
        `max_matches` lines are found, the last ones with `from_end`; `cursor` goes on where `next` says.
        """
        query = wire.GrepQuery(
            pattern=checked_text("pattern", pattern),
            fixed=fixed,
            ignore_case=ignore_case,
            invert=invert,
            context=context,
            before=before,
            after=after,
            max_matches=max_matches,
            from_end=from_end,
            count=count,
            cursor=cursor,
        )
        bounded = msgspec.structs.replace(query, ansi=ansi, max_bytes=max_bytes, since=since)
        return await self._read(wire.Path.GREP, ref, bounded, session)

    async def summary(self, ref: str, *, session: str | None = None) -> wire.Summary:
        """Return figures, first and last lines, repeated lines, errors and warnings, the shape of JSON."""
        return await self._call_capture("GET", wire.Path.SUMMARY, ref, session, wire.Summary)

    async def _read(self, path: str, ref: str, query: wire.ReadQuery, session: str | None) -> wire.Text:
        return await self._call(self._capture_request("GET", path, ref, session, query), wire.Text)
