"""Tools that stream what they return through a guard: others see it grow, whatever the framework."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from overspill import Guard, SyncClient
from overspill.wire import State

from tests.integrations.kit.cases import handle_in, one
from tests.integrations.kit.fixtures import guard, possible, session, way

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["guard", "possible", "session", "way"]
SECONDS = 60


def test_a_stream_in_a_tool_is_seen_while_it_grows(way: str, guard: Guard, session: str) -> None:
    assert isinstance(guard.client, SyncClient)
    client, seen, name = guard.client, set[str](), f"read_log of {session}"

    def lines() -> Iterator[str]:
        yield "a line of the log\n" * 100_000
        until = time.monotonic() + SECONDS
        while not seen and time.monotonic() < until:
            time.sleep(0.05)
            found = client.list(tool=name).captures
            seen.update(each.id for each in found if each.state is State.LIVE)
        yield "the end\n"

    def read_log() -> str:
        """Read the log."""
        return "".join(guard.wrap(lines, name=name)())

    result = one(way, guard, session, read_log)
    entry = client.get(handle_in(result.text))

    assert seen == {entry.id}
    assert (entry.state, entry.lines) == (State.COMPLETE, 100_001)
