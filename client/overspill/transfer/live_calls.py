"""The calls about live captures: produce one, follow it, and wait for something in it."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import structs

from overspill import wire
from overspill.errors import Absent, NotLive, OtherProducer, OverspillError, WrongOffset
from overspill.transfer import request
from overspill.transfer.argument_checks import check_duration, check_seconds, checked_text
from overspill.transfer.caller import Caller, T
from overspill.transfer.follow import Following
from overspill.transfer.outage import Outage
from overspill.transfer.request import Body, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from overspill.live.live_capture import LiveCapture
    from overspill.live.ports import Description, LiveService, StreamCopy, StreamSpool
    from overspill.live.spool_copy import SpoolCopy
    from overspill.redaction.redactor import Redactor

_SILENT_SECONDS: Final = 5.0
"""The least time that a request of a producer may have no progress, however little patience that has."""


class LiveCalls(Caller):
    """Produces live captures, follows them, and waits for lines in them."""

    def live(  # noqa: PLR0913  (one keyword for each thing that is kept with a capture)
        self,
        *,
        call_id: str = "",
        session: str | None = None,
        tool: str = "",
        content_type: str | None = None,
        ttl: int | None = None,
        labels: Mapping[str, str] | None = None,
        redactor: Redactor | None = None,
        spool: StreamSpool | None = None,
        patience: float | None = None,
        copy: StreamCopy | None = None,
    ) -> LiveCapture:
        """Return an output that is stored as it is written, for an `async with` block.

        Its `id` is known at once, and others read it while it grows. `redactor` masks secrets before anything
        leaves this machine, as that of a `Policy` does. If the service takes nothing for `patience` seconds
        (60), writing raises; with a `spool` the whole stream is kept there instead, and uploaded later. With
        a `copy` writing goes on, and that has the whole. Raises `ValueError` for a wrong label's name or
        patience, and `TypeError` for texts and a spool that are none.
        """
        from overspill.live.live_capture import PATIENCE_SECONDS, LiveCapture  # noqa: PLC0415  (loaded when needed)
        from overspill.live.ports import Description  # noqa: PLC0415  (as above)

        where = self.session if session is None else session
        _check_parts(redactor, patience, spool)
        description = Description(
            session=checked_text("session", where),
            call_id=checked_text("call_id", call_id),
            id=new_id(where, call_id),
            tool=tool,
            content_type=content_type or request.TEXT_TYPE,
            ttl=ttl,
            labels=labels or {},
        )
        seconds = PATIENCE_SECONDS if patience is None else patience
        service = live_service(self, description, silent_seconds=max(seconds, _SILENT_SECONDS))
        spool_copy = self._copy_for(spool)
        return LiveCapture(
            service, description, redactor=redactor, spool=spool_copy, patience=seconds, copy=copy
        )

    def _copy_for(self, spool: StreamSpool | None) -> SpoolCopy | None:
        from overspill.live import spool_copy  # noqa: PLC0415  (as above)

        return None if spool is None else spool_copy.SpoolCopy(spool, self.address.url, self.address.key)

    async def live_status(self, ref: str, *, session: str | None = None) -> wire.LiveStatus:
        """Return the progress of a live capture."""
        return await self._call_capture("GET", wire.Path.LIVE, ref, session, wire.LiveStatus)

    async def timeline(self, ref: str, *, session: str | None = None) -> wire.Timeline:
        """Return when the bytes of a capture came."""
        return await self._call_capture("GET", wire.Path.TIMELINE, ref, session, wire.Timeline)

    def follow(
        self,
        ref: str,
        *,
        offset: int | None = None,
        lines: int | None = None,
        session: str | None = None,
    ) -> Following:
        """Iterate over a capture's output as it comes, until it ends.

        It begins at byte `offset`, or with the last `lines` lines, else at the beginning. A connection that
        breaks is made again, and goes on where it was. After the end, `end` says how it ended.
        """
        query = wire.FollowQuery(offset=offset, lines=lines)
        return Following(self._transport, self._capture_request("GET", wire.Path.FOLLOW, ref, session, query))

    async def wait(  # noqa: PLR0913  (one for each query parameter)
        self,
        ref: str,
        pattern: str | None = None,
        *,
        fixed: bool = False,
        ignore_case: bool = False,
        lines: int | None = None,
        timeout: float = 30,  # noqa: ASYNC109  (the service's, which answers then)
        cursor: int = 0,
        ansi: bool = False,
        max_bytes: int | None = None,
        session: str | None = None,
    ) -> wire.Waited:
        """Wait until a new line matches an RE2 `pattern`, `lines` new lines are there, or the capture ends.

        Returns after `timeout` seconds at most (600). New are the lines after `cursor`, which is that of the
        answer before. A service that goes away meanwhile is waited for, for a minute, but not longer than for
        an answer, if the client retries at all.
        """
        check_duration("timeout", timeout)
        query = wire.WaitQuery(
            pattern=None if pattern is None else checked_text("pattern", pattern),
            fixed=fixed,
            ignore_case=ignore_case,
            lines=lines,
            timeout=timeout,
            cursor=cursor,
            ansi=ansi,
            max_bytes=max_bytes,
        )
        return await self._waited(ref, session, query)

    async def _waited(self, ref: str, session: str | None, query: wire.WaitQuery) -> wire.Waited:
        """Ask. After an outage, ask once more with the rest of the time."""
        now = asyncio.get_running_loop().time
        until = now() + query.timeout
        outage = Outage(until + self.address.timeout)
        while True:
            left = structs.replace(query, timeout=max(0.0, min(query.timeout, until - now())))
            prepared = self._capture_request("GET", wire.Path.WAIT, ref, session, left)
            try:
                return await self._call(structs.replace(prepared, answer_seconds=left.timeout), wire.Waited)
            except OverspillError as error:
                if not self.address.retries:
                    raise
                await outage.pause_after(error, (await self._transport()).answered)


def _check_parts(redactor: Redactor | None, patience: float | None, spool: StreamSpool | None) -> None:
    """Check the redactor, the spool and the patience. Raises `ValueError` and `TypeError`."""
    if patience is not None:
        check_seconds("patience", patience)
    if redactor is not None and not hasattr(redactor, "stream"):
        raise TypeError(f"redactor must be one, as Policy().redactor() gives it, not {redactor!r}")
    if spool is not None and not hasattr(spool, "keep_stream"):
        raise TypeError(f"spool must be a Spool, not {spool!r}; a folder is Spool(folder)")


def new_id(session: str, call_id: str) -> str:
    """Return the id of an output whose content is not known yet: a random word stands in its place."""
    return wire.capture_id(session, call_id, hashlib.sha256(secrets.token_bytes(32)).digest())


def live_service(
    client: LiveCalls, description: Description, *, silent_seconds: float | None = None
) -> LiveService:
    """Return the calls of a live capture's only producer. Each ends after `silent_seconds` of silence."""
    return _LiveService(client, description, secrets.token_hex(16), silent_seconds=silent_seconds)


async def give_up(client: LiveCalls, id: str, producer: str) -> None:  # noqa: A002  (the field's own name)
    """End a live capture as partial, because its producer will not go on with it.

    Do nothing if it has ended, or is not there. If its end is only noted, wait until that is stored: the
    whole takes the place of an ended capture alone. Raises what the client raises.
    """
    from overspill.live.ports import Description  # noqa: PLC0415  (loaded when needed)

    service = _LiveService(client, Description(id=id, session=""), producer)
    with suppress(Absent, NotLive, OtherProducer):
        offset = 0
        for tries_left in (2, 1, 0):
            try:
                await service.complete(wire.Completion(offset=offset, state="partial"))
            except WrongOffset as error:  # it has bytes, or an append was under way
                if not tries_left:
                    raise
                offset = error.offset or 0
            else:
                return


class _LiveService:
    """The calls about one live capture of one producer."""

    def __init__(
        self,
        client: LiveCalls,
        description: Description,
        producer: str,
        *,
        silent_seconds: float | None = None,
    ) -> None:
        self.producer = producer
        self._silent_seconds = silent_seconds
        self._caller = client
        self._compress = client._compress and not client.address.is_local  # noqa: SLF001  (this module's own)
        self._id = description.id
        self._named = {wire.Header.PRODUCER: producer}
        self._metadata = request.metadata(
            description.session,
            call_id=description.call_id,
            tool=description.tool,
            status=description.status,
            labels=description.labels,
            ttl=description.ttl,
            content_type=description.content_type,
        )

    async def begin(self) -> wire.LiveStatus:
        prepared = request.of_capture("PUT", wire.Path.LIVE, self._id)
        prepared = structs.replace(prepared, headers={**self._metadata, **self._named}, body=Body.of(b""))
        return await self._call(prepared, wire.LiveStatus)

    async def append(
        self,
        offset: int,
        pieces: Sequence[bytes],
        *,
        is_last: bool = False,
        on_sent: Callable[[], object] | None = None,
    ) -> wire.LiveStatus:
        from overspill.wire.checksums import encode_crc32c  # noqa: PLC0415  (loads a library)

        headers = {
            **self._named,
            wire.Header.UPLOAD_OFFSET: str(offset),
            wire.Header.CONTENT_DIGEST: encode_crc32c(*pieces),
            "Content-Type": "application/octet-stream",
        }
        if is_last:
            headers[wire.Header.UPLOAD_COMPLETE] = "?1"
        prepared = request.of_capture("POST", wire.Path.APPEND, self._id)
        prepared = structs.replace(prepared, headers=headers, body=await self._body(pieces, on_sent))
        return await self._call(prepared, wire.LiveStatus)

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        prepared = request.with_json(request.of_capture("POST", wire.Path.COMPLETE, self._id), completion)
        prepared = structs.replace(prepared, headers={**prepared.headers, **self._named})
        return await self._call(prepared, wire.Entry)

    async def _call(self, prepared: Request, answer_type: type[T]) -> T:
        prepared = structs.replace(prepared, silent_seconds=self._silent_seconds)
        return await self._caller._call(prepared, answer_type)  # noqa: SLF001  (this module's own)

    async def _body(self, pieces: Sequence[bytes], on_sent: Callable[[], object] | None) -> Body:
        if not self._compress:
            return _watched(Body.of_parts(pieces), on_sent)
        from overspill.transfer.compression import in_memory_body  # noqa: PLC0415  (zstd is loaded when it is needed)

        return _watched(await in_memory_body(b"".join(pieces)), on_sent)


def _watched(body: Body, on_sent: Callable[[], object] | None) -> Body:
    """Return a body that is sent piece by piece: a long one at once would block the event loop.

    `on_sent` is called once all of it has gone out.
    """
    left = body.length or 0

    def note(count: int) -> None:
        nonlocal left
        left -= count
        if left <= 0 and on_sent is not None:
            on_sent()

    return structs.replace(body, on_sent=note)
