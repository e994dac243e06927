"""Who holds a capture: this machine as long as it waits in the spool, else the service.

A spooled capture is read where it is: the service does not have it yet, and may not be there to be asked.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeAlias

from overspill import wire
from overspill.errors import NotFound, OverspillError, ProtocolError, Unavailable, Unreachable, error_of
from overspill.execution.threads import run_blocking
from overspill.spools.capture import LocalCapture
from overspill.spools.own_directory import NotSpooled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from overspill.spools.spool import Partition
    from overspill.transfer.client import Client
    from overspill.transfer.sync import SyncClient

    SyncSource: TypeAlias = SyncClient | LocalCapture
    AsyncSource: TypeAlias = Client | LocalCapture

_MISSING = (NotFound, Unreachable, ProtocolError, Unavailable)
"""After which it is worth saying that a capture waited here once."""


class Holder:
    """Looks on one partition before it leaves a read to a client. Either may be missing.

    Where both know a `call:` reference the newer capture is taken.
    """

    def __init__(self, partition: Partition | None, *, session: str = "") -> None:
        """`session` is that of `call:` references which bring none."""
        self._partition, self._session = partition, session

    @contextmanager
    def source(self, client: SyncClient | None, ref: str, session: str | None = None) -> Iterator[SyncSource]:
        """What to read `ref` from. Raises within the block what reading raises, or that it was dropped."""
        local = self.local(ref, session)
        if local is not None:
            with local:
                if client is None or not _is_newer_there(client, local, ref, session):
                    yield local
                    return
        try:
            if client is None:
                raise _absent("this capture does not wait on this machine")
            yield client
        except _MISSING as error:
            raise self._explained(error, ref, session) from None

    @asynccontextmanager
    async def source_async(self, client: Client, ref: str, session: str | None) -> AsyncIterator[AsyncSource]:
        """As `source`; a `LocalCapture` is to be read in a thread."""
        local = await run_blocking(self.local, ref, session)
        if local is not None:
            with local:
                if not await _is_newer_there_async(client, local, ref, session):
                    yield local
                    return
        try:
            yield client
        except _MISSING as error:
            raise await run_blocking(self._explained, error, ref, session) from None

    def local(self, ref: str, session: str | None = None) -> LocalCapture | None:
        """The capture where it waits on this machine, to be closed; None if it does not."""
        if self._partition is None:
            return None
        try:
            entry = self._partition.find(ref, self._narrow(session))
            return None if entry is None else LocalCapture(entry, self._partition.open(entry))
        except (NotSpooled, OSError):
            return None

    def _explained(self, error: OverspillError, ref: str, session: str | None) -> OverspillError:
        """`error`, or that the capture waited here and had to go, if it did."""
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

    def _narrow(self, session: str | None) -> str:
        return self._session if session is None else session


def _is_newer_there(client: SyncClient, local: LocalCapture, ref: str, session: str | None) -> bool:
    """Whether the service knows a later capture of the call that `ref` names."""
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
