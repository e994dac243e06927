"""What the destinations of an output have in common: the port, and why one of them failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from overspill.errors import OverspillError, ProblemError
from overspill.execution.threads import is_lack_of_threads

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable

    from overspill.previews.notice_facts import StoreResult
    from overspill.spools.entries import Spooled
    from overspill.spools.order import UploadLock
    from overspill.spools.partition import Partition
    from overspill.spools.store_request import StoreRequest


class UploadUnderWay(Protocol):
    """An upload that goes on after its agent has been told that it takes too long."""

    settled: Future[StoreResult | Failure]

    def finish_for(
        self, partition: Partition, entry: Spooled, lock: UploadLock, on_failed: Callable[[], None]
    ) -> None:
        """Remove the spooled copy once the upload has succeeded, and let nobody else upload it meanwhile.

        Call `on_failed` if it has failed, so that the copy is uploaded later.
        """


class Failure(NamedTuple):
    """Why a destination does not have an output.

    `is_final`: the service will never take the output. `is_refused`: it takes the output only after somebody
    has changed a key or a limit. `is_doubtful`: it may have stored the output without saying so. `upload`
    still goes on, if it is not None. `is_overfull`: the service was not asked, because too many bytes were
    waiting for it, or the output had waited too long.
    """

    why: str
    is_final: bool = False
    is_doubtful: bool = False
    is_refused: bool = False
    upload: UploadUnderWay | None = None
    is_overfull: bool = False


class Destination(Protocol):
    """Where an output can be stored. Its methods run in the loop thread, and do not block it."""

    async def put(self, request: StoreRequest, before: Failure | None) -> StoreResult | Failure:
        """Store the output. `before` says why the destination before this one failed. May raise anything."""


def reason(error: BaseException) -> str:
    """Say what went wrong, for a notice: the service's own words, or the error's type and text."""
    if isinstance(error, ProblemError):
        return f"the service refused: {error}"
    if isinstance(error, OverspillError):
        return str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        return "this process has no memory left for it"
    if isinstance(error, RuntimeError) and is_lack_of_threads(error):
        return "this process can start no more threads"
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  (a tool's own exception, which cannot even say what it is)
        return type(error).__name__
