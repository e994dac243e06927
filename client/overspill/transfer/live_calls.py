"""The calls about live captures: producing one, following it, and waiting for what it says."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from msgspec import structs

from overspill import wire
from overspill.execution import threads
from overspill.transfer import request
from overspill.transfer.caller import Caller, decode
from overspill.transfer.follow import Following
from overspill.transfer.request import Body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.live.live_capture import LiveCapture
    from overspill.live.ports import Description, StreamSpool
    from overspill.redaction.redactor import Redactor
    from overspill.transfer.transport import Transport

_TEXT_TYPE: Final = "text/plain; charset=utf-8"
_WORTH_A_THREAD: Final = 128 * 1024
"""Bytes whose compression takes longer than handing them to another thread."""


class LiveCalls(Caller):
    """Produces live captures, follows them, and waits for lines of theirs."""

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
    ) -> LiveCapture:
        """Return an output that is stored as it is written, for an `async with` block.

        Its `id` is known at once, and others read it while it grows. `redactor` masks secrets before anything
        leaves this machine, as that of a `Policy` does. If the service takes nothing for `patience` seconds
        (60), writing raises; with a `spool` the whole stream is kept there instead, and uploaded later.
        Raises `ValueError` for a wrong label's name.
        """
        from overspill.live.live_capture import PATIENCE_SECONDS, LiveCapture  # noqa: PLC0415  (loaded when needed)
        from overspill.live.ports import Description  # noqa: PLC0415  (as above)

        where = self.session if session is None else session
        nonce = hashlib.sha256(secrets.token_bytes(32)).digest()
        description = Description(
            id=wire.capture_id(where, call_id, nonce),
            session=where,
            call_id=call_id,
            tool=tool,
            content_type=content_type or _TEXT_TYPE,
            ttl=ttl,
            labels=labels or {},
        )
        return LiveCapture(
            _LiveService(self, description, compress=self._compress and not self.address.is_near),
            description,
            redactor=redactor,
            spool=None if spool is None else (spool, self.address.url, self.address.key),
            patience=PATIENCE_SECONDS if patience is None else patience,
        )

    async def live_status(self, ref: str, *, session: str | None = None) -> wire.LiveStatus:
        """Return how far a live capture is."""
        query = self._narrowed(ref, session)
        return await self._ask(request.about("GET", wire.Path.LIVE, ref, query), wire.LiveStatus)

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
        narrowed = self._narrowed(ref, session)
        query = wire.FollowQuery(
            session=narrowed.session, any_session=narrowed.any_session, offset=offset, lines=lines
        )
        return Following(self._transport, request.about("GET", wire.Path.FOLLOW, ref, query))

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
        answer before.
        """
        narrowed = self._narrowed(ref, session)
        query = wire.WaitQuery(
            session=narrowed.session,
            any_session=narrowed.any_session,
            pattern=pattern,
            fixed=fixed,
            ignore_case=ignore_case,
            lines=lines,
            timeout=timeout,
            cursor=cursor,
            ansi=ansi,
            max_bytes=max_bytes,
        )
        asked = structs.replace(request.about("GET", wire.Path.WAIT, ref, query), answer_seconds=timeout)
        return await self._ask(asked, wire.Waited)


class _LiveService:
    """The calls about one live capture of this producer."""

    def __init__(self, caller: Caller, description: Description, *, compress: bool) -> None:
        self._caller, self._compress = caller, compress
        self._id = description.id
        self._producer = {wire.Header.PRODUCER: secrets.token_hex(16)}
        self._metadata = request.metadata(
            description.session,
            call_id=description.call_id,
            tool=description.tool,
            status="",
            labels=description.labels,
            ttl=description.ttl,
            content_type=description.content_type,
        )

    async def begin(self) -> wire.LiveStatus:
        asked = request.about("PUT", wire.Path.LIVE, self._id)
        asked = structs.replace(asked, headers={**self._metadata, **self._producer}, body=Body.of(b""))
        return decode(await (await self._transport()).call(asked), wire.LiveStatus)

    async def append(self, offset: int, data: bytes) -> wire.LiveStatus:
        transport = await self._transport()
        from overspill.wire.checksums import encode_crc32c  # noqa: PLC0415  (loads a library)

        headers = {
            **self._producer,
            wire.Header.UPLOAD_OFFSET: str(offset),
            wire.Header.CONTENT_DIGEST: encode_crc32c(data),
            "Content-Type": "application/octet-stream",
        }
        asked = request.about("POST", wire.Path.APPEND, self._id)
        asked = structs.replace(asked, headers=headers, body=await self._body(data))
        return decode(await transport.call(asked), wire.LiveStatus)

    async def complete(self, completion: wire.Completion) -> wire.Entry:
        asked = request.with_json(request.about("POST", wire.Path.COMPLETE, self._id), completion)
        asked = structs.replace(asked, headers={**asked.headers, **self._producer})
        return decode(await (await self._transport()).call(asked), wire.Entry)

    async def _transport(self) -> Transport:
        return await self._caller._transport()  # noqa: SLF001  (this client's own)

    async def _body(self, data: bytes) -> Body:
        if not self._compress:
            return _in_pieces(Body.of(data))
        from overspill.transfer.compression import compress_frame  # noqa: PLC0415  (zstd is loaded when it is needed)

        frame = (
            await threads.run(compress_frame, data) if len(data) > _WORTH_A_THREAD else compress_frame(data)
        )
        return _in_pieces(Body.of(data) if frame is None else Body.of(frame, "zstd"))


def _in_pieces(body: Body) -> Body:
    """Return a body that is sent piece by piece: a long one at once would block the event loop."""
    return structs.replace(body, on_sent=lambda _: None)
