"""Finds where to read a capture: on this machine while it waits in the spool, else in the service.

The service does not have a spooled capture yet, and may not answer at all.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from overspill import wire
from overspill.errors import NotFound, OverspillError, ProtocolError, Unavailable, Unreachable, error_of
from overspill.errors.client_errors import NotSpooled
from overspill.execution.threads import run_blocking
from overspill.spools.capture import LocalCapture, entry_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from overspill.spools.partition import Partition
    from overspill.transfer.client import Client
    from overspill.transfer.sync import SyncClient

    SyncSource: TypeAlias = SyncClient | LocalCapture
    AsyncSource: TypeAlias = Client | LocalCapture

_NOT_HERE: Final = "this capture does not wait on this machine"
_MISSING: Final = (NotFound, Unreachable, ProtocolError, Unavailable)
"""Errors after which it helps to say that a capture waited here once."""


class Holder:
    """Looks into a partition of the spool first, then asks a client. Either may be missing.

    If both know a capture for a `call:` reference, it takes the newer one.
    """

    def __init__(self, partition: Partition | None, *, session: str = "") -> None:
        """`session` is the session of `call:` references that name none."""
        self._partition, self._session = partition, session

    def entries(self, **filters: str | None) -> list[wire.Entry]:
        """Return what waits here with these values, newest first. Raises `NotSpooled` and `OSError`."""
        values = {name: wire.fit(value) for name, value in filters.items() if value is not None}
        spooled = [] if self._partition is None else self._partition.entries()
        found = (entry_of(each, "") for each in reversed(spooled))
        return [entry for entry in found if all(getattr(entry, name) == values[name] for name in values)]

    @contextmanager
    def source(self, client: SyncClient | None, ref: str, session: str | None = None) -> Iterator[SyncSource]:
        """Give the block what to read `ref` from. `client=None` reads on this machine only.

        Raises what reading raises, and `NotFound` with the reason if the capture was dropped from the spool.
        """
        local = self.local(ref, session)
        if local is not None:
            with local:
                if client is None or not _is_newer_there(client, local, ref, session):
                    yield local
                    return
        try:
            if client is None:
                raise _absent(_NOT_HERE)
            yield client
        except _MISSING as error:
            raise self._explained(error, ref, session) from None

    @asynccontextmanager
    async def source_async(
        self, client: Client | None, ref: str, session: str | None
    ) -> AsyncIterator[AsyncSource]:
        """Do the same as `source`, for asynchronous code, which has to read a `LocalCapture` in a thread."""
        local = await run_blocking(self.local, ref, session)
        if local is not None:
            with local:
                if client is None or not await _is_newer_there_async(client, local, ref, session):
                    yield local
                    return
        try:
            if client is None:
                raise _absent(_NOT_HERE)
            yield client
        except _MISSING as error:
            raise await run_blocking(self._explained, error, ref, session) from None

    def local(self, ref: str, session: str | None = None) -> LocalCapture | None:
        """Return the capture if it waits on this machine, else None. The caller closes it.

        Raises `InvalidId` for a `call:` reference with an empty id.
        """
        if self._partition is None:
            return None
        try:
            entry = self._partition.find(ref, self._narrow(session))
            return None if entry is None else LocalCapture(entry, self._partition.open(entry))
        except (NotSpooled, OSError):
            return None

    def _explained(self, error: OverspillError, ref: str, session: str | None) -> OverspillError:
        """Return `error`, or why the capture was dropped from the spool, if it was."""
        try:
            dropped = None if self._partition is None else self._partition.dropped(ref, self._narrow(session))
        except (NotSpooled, OSError):
            return error
        if dropped is None:
            return error
        return _absent(
            f"{dropped.id} was dropped from the local spool before it could be uploaded, because "
            f"{dropped.reason}. Its content is gone"
        )

    def _narrow(self, session: str | None) -> str | None:
        """Return the session to look in, None for all: as a client does, `""` looks in all of them."""
        return self._session if session is None else session or None


def _is_newer_there(client: SyncClient, local: LocalCapture, ref: str, session: str | None) -> bool:
    """Return whether the service knows a later capture of the call that `ref` names."""
    if not ref.startswith(wire.CALL_PREFIX):
        return False
    try:
        return client.get(ref, session=session).created > local.spooled.created
    except OverspillError:
        return False


async def _is_newer_there_async(client: Client, local: LocalCapture, ref: str, session: str | None) -> bool:
    if not ref.startswith(wire.CALL_PREFIX):
        return False
    try:
        return (await client.get(ref, session=session)).created > local.spooled.created
    except OverspillError:
        return False


def _absent(detail: str) -> OverspillError:
    return error_of(wire.Code.NOT_FOUND, detail)
