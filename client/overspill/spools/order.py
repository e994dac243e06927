"""One output for a spool: as its writer is asked to keep it, and as it is put into a folder."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from overspill.errors.client_errors import NotSpooled
from overspill.execution.waiting import Reply
from overspill.spools.folder import ENTRY
from overspill.spools.own_directory import disk_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.spools.draft import Draft
    from overspill.spools.entries import Spooled
    from overspill.spools.folder import Folder
    from overspill.spools.ledger import Ledger
    from overspill.spools.own_directory import LockedFile
    from overspill.spools.store_request import StoreRequest
    from overspill.text.body import FileBody


@dataclass(slots=True, eq=False)
class Order:
    """An output to write to the spool.

    `reason` says why the service does not have it, `refused` why the service will never have it, if so.
    `reply` gets the entry once it is durable. `on_kept` is called after that, in a thread for blocking work,
    with `locked`. It must not refer to the order: the output would stay in memory as long as the cycle.
    With `is_uploading` an upload of the output goes on: its content stays `locked` against flushes from the
    moment it can be found on the disk, unless it was in the spool before.
    """

    request: StoreRequest
    reason: str
    refused: str
    on_kept: Callable[[Spooled, LockedFile | None], None]
    is_uploading: bool = False
    locked: LockedFile | None = None
    reply: Reply[Spooled] = field(default_factory=Reply)
    _decision: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """Decide whether the output is kept. Return False if somebody else has decided.

        The first to do so is the attempt just before it publishes, or the waiter that gives up. So an output
        that was given up is never found on the disk afterwards, and one on the disk is never given up.
        """
        return self._decision.acquire(blocking=False)


def take(order: Order | None) -> None:
    """Take the order. Raises `NotSpooled` if the waiter has given up."""
    if order is not None and not order.take():
        raise NotSpooled("nobody waits for it any more")


class Addition:
    """One capture that is to be kept. `failure` says why it is not, or is None.

    It takes its `order`, if it has one, before anything can be found on the disk.
    """

    def __init__(
        self, folder: Folder, entry: Spooled, body: bytes | FileBody, order: Order | None = None
    ) -> None:
        self.folder = folder
        self.entry = entry
        self.body = body
        self.failure: NotSpooled | None = None
        self.draft: Draft | None = None
        self._data = msgspec.json.encode(entry)
        self.order = order

    @property
    def size(self) -> int:
        """The bytes of content and entry."""
        return self.entry.size + len(self._data)

    def begin(self) -> None:
        """Begin a draft. Call it under the spool's lock, if there is room. Raises `OSError`."""
        self.draft = self.folder.begin(len(self._data), self.entry.size)

    def write(self) -> None:
        """Fill the draft. Raises `NotSpooled` and `OSError`."""
        assert self.draft is not None
        self.draft.fill(self.folder.suffix, self.body, is_durable=False)
        self.draft.fill(ENTRY, self._data, dated=self.entry.expires.timestamp(), is_durable=False)

    def publish(self, ledger: Ledger) -> None:
        """Give the files of the draft their final names. Raises `NotSpooled` and `OSError`."""
        assert self.draft is not None
        take(self.order)
        ledger.rename(self.draft.size)
        ledger.discharge(self.folder.publish(self.draft, self.entry.id))

    def result(self) -> Spooled:
        """Return the entry. Raises `NotSpooled` if it is not kept."""
        if self.failure is not None:
            raise self.failure
        return self.entry

    def fail(self, error: NotSpooled | OSError) -> None:
        """Note why it is not kept."""
        self.failure = error if isinstance(error, NotSpooled) else NotSpooled(disk_reason(error))
