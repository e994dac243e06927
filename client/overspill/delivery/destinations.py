"""What the places where a spill can be kept have in common: the port, and why one of them failed."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from overspill.errors import OverspillError, ProblemError
from overspill.execution.threads import is_lack_of_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.execution.waiting import Reply, Wait
    from overspill.previews.notice import Kept
    from overspill.spools.folder import Spooled
    from overspill.spools.spool import Shelf
    from overspill.transfer.store_request import StoreRequest

T = TypeVar("T")


class UploadUnderWay(Protocol):
    """An upload that goes on after its agent has been told that it takes too long."""

    settled: Reply[Kept | Failure]

    def finish_for(self, shelf: Shelf, entry: Spooled) -> None:
        """Remove the spooled copy once the upload has succeeded, and let nobody else upload it meanwhile."""


class Failure(NamedTuple):
    """Why a place does not have it.

    `is_final`: the service will never take it. `is_refused`: it will not by itself, as long as nobody
    changes a key or a limit. `is_doubtful`: it may have it, and did not say so. `upload` still goes on.
    """

    why: str
    is_final: bool = False
    is_doubtful: bool = False
    is_refused: bool = False
    upload: UploadUnderWay | None = None


class Place(Protocol):
    """Where an output can be stored: the service, or a folder of this machine."""

    async def put(self, wait: Wait, request: StoreRequest, before: Failure | None) -> Kept | Failure:
        """Store the output; `before` is why the place before this one failed. May raise anything."""


def reason(error: BaseException) -> str:
    """Say what went wrong: in the service's own words, else in the error's."""
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


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Do `work` in a daemon thread of its own: one that hangs holds up neither others nor the exit."""
    future: Future[T] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  (whoever waits for the future gets it)
            future.set_exception(error)

    threading.Thread(target=run, name="overspill-put", daemon=True).start()
    return future
