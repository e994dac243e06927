"""One output that waits for a slot, and is stored once it has one.

While it waits it has no coroutine and no task, but only this object and its place in the queue.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

from overspill.delivery import state_log
from overspill.delivery.slots import Overfull, slots_of
from overspill.delivery.upload import Failure
from overspill.execution.submissions import Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

    from overspill.delivery.slots import Slots, Waiter
    from overspill.execution.fair_queue import Queued

R = TypeVar("R")


class GuardSlots:
    """The slots that the outputs of one guard wait for: those of its service, and those of its spool.

    `service` is a URL and `folder` the spool's; None if the guard has none.
    """

    def __init__(self, service: str | None, folder: str | None, max_waiting: int) -> None:
        self._service, self._folder, self._max_waiting = service, folder, max_waiting
        self.overfull: int = 0
        """How many outputs got no slot: too many bytes waited already, or they had waited too long."""

    @property
    def is_patient(self) -> bool:
        """Whether an output waits for the service without a limit, because nothing else can keep it."""
        return self._folder is None

    def of_service(self) -> Slots | None:
        """Return the slots of the service, if there is one, for the loop thread."""
        return None if self._service is None else slots_of(self._service, self._max_waiting)

    def of_spool(self) -> Slots | None:
        """Return the slots of the spool, if there is one, for the loop thread.

        Any number may wait for a disk: it takes them soon, and nothing else could keep them.
        """
        return None if self._folder is None else slots_of(self._folder, sys.maxsize)

    def note_overfull(self, reason: str) -> Failure:
        """Note that the service has no slot for an output. Return why it is not asked."""
        self.overfull += 1
        state_log.note_overfull(reason)
        return Failure(reason, is_overfull=True)


class SlotWait(Submission[R]):
    """An output of `size` bytes, of the session `flow`, that waits for a slot of its service.

    If it cannot wait for that, or has waited too long, it waits for a slot of the spool. Once it has a slot,
    `store` returns the coroutine that stores it. `store` gets the reason if the service had no slot.
    """

    __slots__ = ("_failure", "_flow", "_queued", "_release", "_size", "_slots", "_source", "_store")

    def __init__(
        self,
        source: GuardSlots,
        flow: Hashable,
        size: int,
        store: Callable[[Failure | None], Coroutine[Any, Any, R]],
    ) -> None:
        super().__init__()
        self._source, self._flow, self._size, self._store = source, flow, size, store
        self._failure: Failure | None = None
        self._slots: Slots | None = None
        self._queued: Queued[Waiter] | None = None
        self._release: Callable[[], None] | None = None

    def begin(self) -> None:
        """Ask for a slot: of the service, if there is one."""
        self.hold()
        service = self._source.of_service()
        if service is None:
            self._ask_spool()
            return
        try:
            self._ask(service, is_patient=self._source.is_patient)
        except Overfull as error:
            self._turn_to_spool(str(error))

    def granted(self, release: Callable[[], None]) -> bool:
        """Store the output. Return False if nobody waits for it now, or if storing cannot begin."""
        if self.reply.is_cancelled or not self.attempt(self._begin_to_store):
            return False
        self._release = release
        return True

    def refused(self, reason: str) -> None:
        """Wait for the spool instead."""
        self.attempt(self._turn_to_spool, reason)

    def ended(self) -> None:
        """Leave the queue, and give the slot back."""
        if self._slots is not None and self._queued is not None:
            self._slots.leave(self._queued)
        if self._release is not None:
            self._release()

    def _turn_to_spool(self, reason: str) -> None:
        self._failure = self._source.note_overfull(reason)
        self._ask_spool()

    def _ask_spool(self) -> None:
        spool = self._source.of_spool()
        if spool is None:
            self._begin_to_store()
        else:
            self._ask(spool, is_patient=True)

    def _ask(self, slots: Slots, *, is_patient: bool) -> None:
        self._slots = slots
        self._queued = slots.ask(self, self._flow, self._size, is_patient=is_patient)

    def _begin_to_store(self) -> None:
        self.run(self._store(self._failure))
