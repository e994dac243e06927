"""The asynchronous client: one method for each thing the service does.

aiohttp and zstd take a quarter of a second to import. The first request loads them, in a thread. So an agent
whose outputs all stay short never pays for them.
"""

from __future__ import annotations

import functools
import importlib
import os
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from overspill import wire
from overspill.errors import ClientClosed, ProblemError, ProtocolError, Unreachable
from overspill.execution import threads
from overspill.transfer import request
from overspill.transfer.address import Address, checked_key, checked_url
from overspill.transfer.download import Stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from datetime import datetime
    from types import TracebackType

    from overspill.transfer.request import Request
    from overspill.transfer.source import Source
    from overspill.transfer.transport import Transport

T = TypeVar("T")

TIMEOUT: Final = 30.0
CLOSED: Final = "this client was closed: call it inside its `with` block, enter it once more, or make another"
CONNECT_TIMEOUT: Final = 5.0
RETRIES: Final = 3
_TEXT_TYPE: Final = "text/plain; charset=utf-8"


def call(call_id: str) -> str:
    """Return the reference to the newest capture of a tool call: `call:` and the call's id."""
    return wire.CALL_PREFIX + wire.fit(call_id)


class Client:
    """Overspill for asyncio code: `async with Client() as client`.

    `url`, `key` and `session` default to `OVERSPILL_URL`, `OVERSPILL_KEY` and `OVERSPILL_SESSION`. Captures
    are put into `session`, and a `call:` reference is looked up in it; without a session, among captures that
    have none. A method's own `session` replaces it; `""` looks in all sessions, if the key may.

    `timeout` is how many seconds a call may last, retries included; an upload or a download may last that
    long without progress. `connect_timeout` is how many of them connecting may take. `retries` is how often
    a failed request is sent again. `compress=False` sends content as it is.

    A `ref` is a capture id or `call(tool-call id)`. Every method raises `Unreachable`, `ProtocolError` or the
    `ProblemError` that the service answered with, and `ClientClosed` after `aclose`. A client belongs to the
    event loop that first uses it. Raises `ValueError` for a malformed URL or key.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        session: str | None = None,
        timeout: float = TIMEOUT,
        connect_timeout: float = CONNECT_TIMEOUT,
        retries: int = RETRIES,
        compress: bool = True,
    ) -> None:
        self.address: Address = Address(
            url=checked_url(url),
            key=checked_key(key),
            timeout=timeout,
            connect_timeout=connect_timeout,
            retries=retries,
        )
        self.session: str = os.environ.get("OVERSPILL_SESSION", "") if session is None else session
        self._compress = compress
        self._opened: Transport | None = None
        self._is_closed = False

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword parameters that make a client like this one, besides the URL and the key."""
        address = self.address
        return {
            "session": self.session,
            "timeout": address.timeout,
            "connect_timeout": address.connect_timeout,
            "retries": address.retries,
            "compress": self._compress,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a client like this one, with its key, and connections of its own."""
        return functools.partial(type(self), **self.settings), (self.address.url, self.address.key)

    def __repr__(self) -> str:
        return f"Client({self.address!r}, session={self.session!r})"

    async def __aenter__(self) -> Self:
        self._is_closed = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. Calls raise `ClientClosed` from then on; `async with` opens it again."""
        self._is_closed = True
        transport, self._opened = self._opened, None
        if transport is not None:
            await transport.close()

    # --- captures ---------------------------------------------------------------------------------

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
        `IdConflict` if the id holds other content, `TypeError` if `content` has no bytes, `ValueError` for a
        wrong label's name, and the `OSError` of a file.
        """
        transport = await self._transport()
        from overspill.transfer import source, upload  # noqa: PLC0415  (loaded by `_transport`, in a thread)

        where = self.session if session is None else session
        known_type = content_type or (_TEXT_TYPE if isinstance(content, str) else "")
        headers = request.metadata(
            where, call_id=call_id, tool=tool, status=status, labels=labels, ttl=ttl, content_type=known_type
        )
        async with source.opened(content, sha256) as known:
            name = id or wire.capture_id(where, call_id, known.sha256)
            body = await upload.body_for(known, compress=self._compress, is_near=self.address.is_near)
            sent = request.upload(name, headers, known.sha256, body, on_sent=progress)
            return _decode(await transport.call(sent), wire.Entry)

    async def get(self, ref: str, *, session: str | None = None) -> wire.Entry:
        """Return what is known of a capture, without its content."""
        query = self._narrowed(ref, session)
        return await self._ask(request.about("GET", wire.Path.CAPTURE, ref, query), wire.Entry)

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
    ) -> wire.Listing:
        """Return a page of at most `limit` captures, newest first. Each filter that is given narrows it.

        Without `session` it has captures of all sessions. `cursor` is that of the page before.
        """
        query = wire.ListQuery(
            session=_fit(session),
            call_id=_fit(call_id),
            tool=_fit(tool),
            state=state,
            since=since,
            until=until,
            cursor=cursor,
            limit=limit,
        )
        asked = request.Request(method="GET", path=wire.Path.CAPTURES, query=request.encode_query(query))
        return await self._ask(asked, wire.Listing)

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
        """Yield all captures that `list` would give. `page` is how many are asked for at once."""
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
        query = self._narrowed(ref, session)
        asked = request.about("PATCH", wire.Path.CAPTURE, ref, query)
        return await self._ask(request.with_json(asked, wire.Amendment(ttl=ttl)), wire.Entry)

    async def delete(self, ref: str, *, session: str | None = None) -> wire.Removed:
        """Remove a capture, and say how many were removed: 0 if it was removed before. Raises `Held`.

        The receipt says what remains of it, and until when.
        """
        if ref.startswith(wire.CALL_PREFIX):  # repeated, it would remove the next older capture as well
            ref = (await self.get(ref, session=session)).id
        query = self._narrowed(ref, session)
        return await self._ask(request.about("DELETE", wire.Path.CAPTURE, ref, query), wire.Removed)

    async def hold(self, ref: str, *, session: str | None = None) -> wire.Entry:
        """Put a capture on hold: it neither expires nor can it be deleted. Needs the scope admin."""
        query = self._narrowed(ref, session)
        return await self._ask(request.about("PUT", wire.Path.HOLD, ref, query), wire.Entry)

    async def release(self, ref: str, *, session: str | None = None) -> wire.Entry:
        """End a capture's hold. It lives on for the tenant's default TTL. Needs the scope admin."""
        query = self._narrowed(ref, session)
        return await self._ask(request.about("DELETE", wire.Path.HOLD, ref, query), wire.Entry)

    async def hold_session(self, session: str) -> wire.Held:
        """Put every capture of a session on hold. Those that are stored later are not.

        Raises `InvalidParameter` if its name is empty.
        """
        return await self._ask(request.of_session("PUT", wire.Path.SESSION_HOLD, session), wire.Held)

    async def release_session(self, session: str) -> wire.Held:
        """End the hold of every capture of a session. Raises `InvalidParameter` if its name is empty."""
        return await self._ask(request.of_session("DELETE", wire.Path.SESSION_HOLD, session), wire.Held)

    async def erase_tenant(self, tenant: str) -> wire.Removed:
        """Remove every capture of the key's tenant, except those on hold. `tenant` confirms it.

        Needs the scope admin. The receipt says what remains, and until when.
        """
        query = request.encode_query(wire.TenantQuery(tenant=tenant))
        asked = request.Request(method="DELETE", path=wire.Path.CAPTURES, query=query)
        return await self._ask(asked, wire.Removed)

    async def delete_session(self, session: str) -> wire.Removed:
        """Remove every capture of a session, except those on hold. The receipt says what remains, till when.

        Raises `InvalidParameter` if its name is empty.
        """
        return await self._ask(request.of_session("DELETE", wire.Path.SESSION, session), wire.Removed)

    # --- bytes ------------------------------------------------------------------------------------

    def stream(
        self,
        ref: str,
        range: wire.ByteRange | None = None,  # noqa: A002  (the field's own name)
        *,
        session: str | None = None,
    ) -> Stream:
        """Return the bytes of a capture or of a range of it, in pieces of at most a few MiB.

        The length is verified, and the digest of a whole capture; a transfer that breaks off is resumed.
        Iterating raises `ProtocolError` for wrong bytes, and `RangeNotSatisfiable` if the range has none.
        """
        query = self._narrowed(ref, session)
        return Stream(self._transport, request.about("GET", wire.Path.CONTENT, ref, query), range)

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

    # --- bounded reads ----------------------------------------------------------------------------

    async def head(
        self,
        ref: str,
        lines: int = 50,
        *,
        ansi: bool = False,
        max_bytes: int | None = None,
        session: str | None = None,
    ) -> wire.Text:
        """Return the first lines. `ansi` keeps terminal escapes. The text has at most `max_bytes` bytes."""
        query = wire.HeadQuery(lines=lines, ansi=ansi, max_bytes=max_bytes)
        return await self._read(wire.Path.HEAD, ref, query, session)

    async def tail(
        self,
        ref: str,
        lines: int = 50,
        *,
        ansi: bool = False,
        max_bytes: int | None = None,
        session: str | None = None,
    ) -> wire.Text:
        """Return the last lines. The parameters are those of `head`."""
        query = wire.TailQuery(lines=lines, ansi=ansi, max_bytes=max_bytes)
        return await self._read(wire.Path.TAIL, ref, query, session)

    async def lines(
        self,
        ref: str,
        start: int = 1,
        end: int | None = None,
        *,
        offset: int = 0,
        ansi: bool = False,
        max_bytes: int | None = None,
        session: str | None = None,
    ) -> wire.Text:
        """Return lines `start` to `end`, counted from 1 and inclusive. `offset` skips bytes of the first."""
        query = wire.LinesQuery(start=start, end=end, offset=offset, ansi=ansi, max_bytes=max_bytes)
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
        session: str | None = None,
    ) -> wire.Text:
        """Return lines that match an RE2 `pattern`, each with `context` lines around it, or `before`/`after`.

        `fixed` takes plain text; `invert` finds the lines that do not match; `count` only counts. At most
        `max_matches` lines are found, the last ones with `from_end`; `cursor` goes on where `next` says.
        """
        query = wire.GrepQuery(
            pattern=pattern,
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
            ansi=ansi,
            max_bytes=max_bytes,
        )
        return await self._read(wire.Path.GREP, ref, query, session)

    async def summary(self, ref: str, *, session: str | None = None) -> wire.Summary:
        """Return figures, first and last lines, repeated lines, errors and warnings, the shape of JSON."""
        query = self._narrowed(ref, session)
        return await self._ask(request.about("GET", wire.Path.SUMMARY, ref, query), wire.Summary)

    # --- the tenant and the service ---------------------------------------------------------------

    async def observe(self, observations: wire.Observations) -> wire.Accepted:
        """Report counts of tool outputs. A batch that is sent twice counts once."""
        asked = request.Request(method="POST", path=wire.Path.OBSERVATIONS)
        return await self._ask(request.with_json(asked, observations), wire.Accepted)

    async def usage(self) -> wire.Usage:
        """Return what the tenant has stored, in captures and bytes, and its limits."""
        return await self._ask(request.Request(method="GET", path=wire.Path.USAGE), wire.Usage)

    async def stats(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        step: int | None = None,
        total: bool = False,
    ) -> wire.Stats:
        """Return what happened to the tenant's outputs and captures over time: sums by tool and outcome.

        A row is of one bucket of `step` seconds: 60, 900 or 86400, kept for 3 hours, 7 and 400 days.
        Buckets that begin in `since <= start < until` are summed up: without `since` an hour before
        `until`, without `until` now, without `step` the shortest that is kept long enough. With `total`, a
        row is the sum of all buckets. Times without a zone are UTC. `figures` are counts, bytes or tokens
        by the name of the metric. Raises `InvalidParameter` for another step, `since` after `until`, or too
        many rows.
        """
        return await self._stats(wire.Path.STATS, since, until, step, total=total)

    async def fleet_stats(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        step: int | None = None,
        total: bool = False,
    ) -> wire.Stats:
        """Return the same sums for all tenants, by tenant and outcome: `tool` is empty in every row.

        The key needs the scope `fleet`; without it this raises `Forbidden`. Otherwise as `stats`.
        """
        return await self._stats(wire.Path.FLEET_STATS, since, until, step, total=total)

    async def _stats(
        self, path: str, since: datetime | None, until: datetime | None, step: int | None, *, total: bool
    ) -> wire.Stats:
        query = request.encode_query(wire.StatsQuery(since=since, until=until, step=step, total=total))
        return await self._ask(request.Request(method="GET", path=path, query=query), wire.Stats)

    async def experiments(
        self, *, since: datetime | None = None, until: datetime | None = None
    ) -> wire.Experiments:
        """Return the sums of experiments: those of guards with a holdout, by arm and group of sessions.

        They count from `since`, by default for 30 days before `until`, which is now by default. Give both
        to `overspill.compare_arms`. Times without a zone are refused: `BadRequest`.
        """
        query = wire.ExperimentsQuery(since=since, until=until)
        asked = request.Request(method="GET", path=wire.Path.EXPERIMENTS, query=request.encode_query(query))
        return await self._ask(asked, wire.Experiments)

    async def sweep(self) -> wire.Removed:
        """Remove expired captures now, and say how many. It is never retried, so the count is exact."""
        asked = request.Request(method="POST", path=wire.Path.SWEEP, repeatable=False)
        return await self._ask(asked, wire.Removed)

    async def page_link(self, ref: str = "") -> str:
        """Return a link that opens the web page, of a capture if one is given, signed in with this key.

        It works once, for two minutes. Whoever has it may do what the key may.
        """
        asked = request.Request(method="POST", path=wire.Path.PAGE_CODE, repeatable=False)
        made = await self._ask(asked, wire.SignInCode)
        view = f"/captures/{wire.encode_path(ref)}" if ref else "/"
        fragment = f"code={made.code}&to={view}" if made.code else view
        return f"{self.address.url}/#{fragment}"

    async def healthy(self) -> bool:
        """Return whether the service's process answers."""
        return await self._is_fine(wire.Path.HEALTHZ)

    async def ready(self) -> bool:
        """Return whether the service can take requests: its object store and catalog answer too."""
        return await self._is_fine(wire.Path.READYZ)

    async def _is_fine(self, path: str) -> bool:
        transport = await self._transport()
        try:
            await transport.call(request.Request(method="GET", path=path, repeatable=False))
        except (Unreachable, ProblemError):
            return False
        return True

    async def _read(self, path: str, ref: str, query: wire.ReadQuery, session: str | None) -> wire.Text:
        narrowed = self._narrowed(ref, session)
        asked = msgspec.structs.replace(query, session=narrowed.session, any_session=narrowed.any_session)
        return await self._ask(request.about("GET", path, ref, asked), wire.Text)

    async def _ask(self, asked: Request, kind: type[T]) -> T:
        transport = await self._transport()
        return _decode(await transport.call(asked), kind)

    async def _transport(self) -> Transport:
        if self._is_closed:
            raise ClientClosed(CLOSED)
        if self._opened is None:
            module = await threads.run_blocking(load_transport)
            self._opened = self._opened or module(self.address)
        return self._opened

    def _narrowed(self, ref: str, session: str | None) -> wire.RefQuery:
        """Return where a reference is looked up. Only a `call:` reference takes the client's own session."""
        is_call = ref.startswith(wire.CALL_PREFIX)
        if session is None and is_call:
            return wire.RefQuery(session=_fit(self.session or None))
        return wire.RefQuery(session=_fit(session or None), any_session=is_call and session == "")


def load_transport() -> type[Transport]:
    """Import what a request needs. It takes a quarter of a second the first time."""
    importlib.import_module("overspill.transfer.upload")
    kind: type[Transport] = importlib.import_module("overspill.transfer.transport").Transport
    return kind


def _fit(value: str | None) -> str | None:
    return None if value is None else wire.fit(value)


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"the answer is not what Overspill answers: {error}") from error
