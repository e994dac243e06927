"""The calls that store captures, find them, keep them longer and remove them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill import wire
from overspill.transfer import request
from overspill.transfer.caller import Caller, decode, fit_or_none

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from datetime import datetime

    from overspill.transfer.source import Source


class CaptureCalls(Caller):
    """Stores captures, lists them, and changes how long they live."""

    async def put(  # noqa: PLR0913  (one keyword for each thing that is kept with a capture)
        self,
        content: Source,
        *,
        call_id: str = "",
        session: str | None = None,
        tool: str = "",
        content_type: str | None = None,
        ttl: int | None = None,
        status: str = "",
        labels: Mapping[str, str] | None = None,
        id: str | None = None,  # noqa: A002  (the field's own name)
        sha256: bytes | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> wire.Entry:
        """Store `content`, and return its entry once it is durable. Repeating the call changes nothing.

        A `str` is stored as UTF-8; lone surrogates keep the bytes that they would have. A path or a seekable
        file is read twice; other iterables go through a temporary file. `ttl` is seconds from now; None takes
        the service's default. `id` is computed from session, call id and content if it is not given.
        `sha256` is the digest of the content, 32 bytes, if the caller has it already: the client does not
        compute it again. `progress` is called with the number of bytes of each piece that was sent.

        Raises `ContentChanged` if a file changes meanwhile, `DigestMismatch` if `sha256` is wrong,
        `IdConflict` if the id holds other content, `TypeError` if `content` has no bytes or a text is no
        `str`, `ValueError` for a wrong label's name, media type or digest, and the `OSError` of a file.
        """
        transport = await self._transport()
        from overspill.transfer import compression, source  # noqa: PLC0415  (loaded by `_transport`, in a thread)

        where = self.session if session is None else session
        known_type = content_type or (request.TEXT_TYPE if isinstance(content, str) else "")
        headers = request.metadata(
            where, call_id=call_id, tool=tool, status=status, labels=labels, ttl=ttl, content_type=known_type
        )
        async with source.opened(content, sha256) as hashed:
            name = id or wire.capture_id(where, call_id, hashed.sha256)
            body = await compression.body_for(hashed, compress=self._compress, is_local=self.address.is_local)
            sent = request.upload(name, headers, hashed.sha256, body, on_sent=progress)
            return decode(await transport.call(sent), wire.Entry)

    async def get(self, ref: str, *, session: str | None = None) -> wire.Entry:
        """Return what is known of a capture, without its content."""
        return await self._call_capture("GET", wire.Path.CAPTURE, ref, session, wire.Entry)

    async def readers(self, ref: str, *, session: str | None = None) -> wire.Readers:
        """Return who has read a capture, and when. Raises `Forbidden` if the key is of some sessions only."""
        return await self._call_capture("GET", wire.Path.READERS, ref, session, wire.Readers)

    async def list(  # noqa: PLR0913  (one keyword for each filter of the listing)
        self,
        *,
        session: str | None = None,
        call_id: str | None = None,
        tool: str | None = None,
        state: wire.State | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
        sort: wire.Sort = wire.Sort.NEWEST,
    ) -> wire.Listing:
        """Return a page of at most `limit` captures, newest first. Each filter that is given narrows it.

        Without `session` it has captures of all sessions. `cursor` is that of the page before. With
        `sort=Sort.SIZE` the page has the largest of all captures; it takes no filter and no cursor.
        Raises `InvalidParameter` if it gets one.
        """
        query = wire.ListQuery(
            session=fit_or_none(session),
            call_id=fit_or_none(call_id),
            tool=fit_or_none(tool),
            state=state,
            since=since,
            until=until,
            cursor=cursor,
            limit=limit,
            sort=sort,
        )
        prepared = request.Request(method="GET", path=wire.Path.CAPTURES, query=request.encode_query(query))
        return await self._call(prepared, wire.Listing)

    async def iterate(
        self,
        *,
        session: str | None = None,
        call_id: str | None = None,
        tool: str | None = None,
        state: wire.State | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        page: int = 100,
    ) -> AsyncGenerator[wire.Entry, None]:
        """Yield all captures that `list` would return. `page` is the number to ask for at once."""
        cursor: str | None = None
        while True:
            listing = await self.list(
                session=session,
                call_id=call_id,
                tool=tool,
                state=state,
                since=since,
                until=until,
                cursor=cursor,
                limit=page,
            )
            for entry in listing.captures:
                yield entry
            if (cursor := listing.cursor) is None:
                return

    async def set_ttl(self, ref: str, ttl: int, *, session: str | None = None) -> wire.Entry:
        """Let a capture live `ttl` seconds from now."""
        prepared = self._capture_request("PATCH", wire.Path.CAPTURE, ref, session)
        return await self._call(request.with_json(prepared, wire.Amendment(ttl=ttl)), wire.Entry)

    async def delete(self, ref: str, *, session: str | None = None) -> wire.Removed:
        """Remove a capture, and say how many were removed: 0 if it was removed before. Raises `Held`.

        The receipt says what remains of it, and until when.
        """
        if ref.startswith(wire.CALL_PREFIX):  # repeated, it would remove the next older capture as well
            ref = (await self.get(ref, session=session)).id
        return await self._call_capture("DELETE", wire.Path.CAPTURE, ref, session, wire.Removed)

    async def hold(self, ref: str, *, session: str | None = None) -> wire.Entry:
        """Put a capture on hold. It does not expire, and nobody can delete it. Needs the scope admin."""
        return await self._call_capture("PUT", wire.Path.HOLD, ref, session, wire.Entry)

    async def release(self, ref: str, *, session: str | None = None) -> wire.Entry:
        """End a capture's hold. It expires after the tenant's default TTL, counted from now.

        Needs the scope admin.
        """
        return await self._call_capture("DELETE", wire.Path.HOLD, ref, session, wire.Entry)

    async def hold_session(self, session: str) -> wire.HoldReceipt:
        """Put every capture of a session on hold. Captures stored later are not on hold.

        Raises `InvalidParameter` if its name is empty.
        """
        return await self._call(request.of_session("PUT", wire.Path.SESSION_HOLD, session), wire.HoldReceipt)

    async def release_session(self, session: str) -> wire.HoldReceipt:
        """End the hold of every capture of a session. Raises `InvalidParameter` if its name is empty."""
        return await self._call(
            request.of_session("DELETE", wire.Path.SESSION_HOLD, session), wire.HoldReceipt
        )

    async def erase_tenant(self, tenant: str) -> wire.Removed:
        """Remove every capture of the key's tenant, except those on hold. `tenant` confirms it.

        Needs the scope admin. The receipt says what remains, and until when.
        """
        query = request.encode_query(wire.TenantQuery(tenant=tenant))
        prepared = request.Request(method="DELETE", path=wire.Path.CAPTURES, query=query)
        return await self._call(prepared, wire.Removed)

    async def delete_session(self, session: str) -> wire.Removed:
        """Remove every capture of a session, except those on hold.

        The receipt says what remains, and until when. Raises `InvalidParameter` if its name is empty.
        """
        return await self._call(request.of_session("DELETE", wire.Path.SESSION, session), wire.Removed)
