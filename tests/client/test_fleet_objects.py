"""An output that waits for a slot costs few objects, because the garbage collector visits each."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import TYPE_CHECKING, Final

from overspill import Guard, Policy, Spool, SyncClient
from overspill.delivery import slots

from tests.client.scripted import scripted_in_thread, silence
from tests.waiting import until

if TYPE_CHECKING:
    from asyncio import Task
    from pathlib import Path

    from overspill.guard.guarded import Guarded

    from tests.client.scripted import Scripted

TEXT: Final = "a line of an output that is too long for a conversation\n" * 160
FIRST: Final = 200
"""Outputs before those that are counted: some of them have a slot, and import what uploads them."""
MORE: Final = 300
MAX_OBJECTS: Final = 24
"""Objects for each output, those of the task that guards it among them."""


def _waiting() -> int:
    return sum(each.waiting for of_loop in [*slots._of_loops.values()] for each in [*of_loop.values()])


def _begun(guard: Guard, numbers: range) -> list[Task[Guarded]]:
    return [
        asyncio.create_task(guard.process(f"output {number}\n{TEXT}", tool="t", session=f"s{number}"))
        for number in numbers
    ]


async def _objects_while_waiting(waiting: int, service: Scripted) -> Counter[type]:
    """Count what there is once so many outputs wait, and all others are sent: nothing is imported then."""
    sent = slots.MAX_OUTPUTS
    assert await asyncio.to_thread(until, lambda: _waiting() == waiting and len(service.received) >= sent)
    gc.collect()
    return Counter(map(type, gc.get_objects()))


async def test_an_output_that_waits_for_a_slot_takes_few_objects(tmp_path: Path) -> None:
    with scripted_in_thread(silence) as hanging, SyncClient(hanging.url) as client:
        policy = Policy(max_bytes=5_000, preview_bytes=500, wait=60)
        with Guard(client, policy, spool=Spool(tmp_path)) as guard:
            first = _begun(guard, range(FIRST))
            before = await _objects_while_waiting(FIRST - slots.MAX_OUTPUTS, hanging)
            more = _begun(guard, range(FIRST, FIRST + MORE))
            after = await _objects_while_waiting(FIRST - slots.MAX_OUTPUTS + MORE, hanging)
            for task in (*first, *more):
                task.cancel()
            await asyncio.gather(*first, *more, return_exceptions=True)

    for_each = Counter({kind: round(count / MORE) for kind, count in (after - before).items()})
    assert for_each.total() <= MAX_OBJECTS, for_each
