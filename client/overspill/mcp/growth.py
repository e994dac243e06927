"""Watches the growth of live captures, for progress and subscriptions.

One watch serves all users of a capture. A watch waits in the service until the capture grows or ends. It
looks at most once a second, and reads no more than a line or two, however much comes. Watches are tasks of
the server's event loop. They raise nothing: a failure is an answer with `error`.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from overspill import wire
from overspill.agent_tools.inspect_request import MIN_CHARS
from overspill.execution.backoff import Backoff
from overspill.text import quantities

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from overspill.agent_tools.agent_tool import AgentTool, Answer

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at a capture that grows."""
_WAIT_SECONDS: Final = 60.0
_ANYTHING: Final = "."
"""A pattern that also matches a last line without its end, such as a prompt."""
_BACKOFF: Final = Backoff(first=1.0, longest=30.0)
_FINAL_ERRORS: Final = frozenset(
    {wire.Code.NOT_FOUND, wire.Code.EXPIRED, wire.Code.DELETED, wire.Code.FORBIDDEN}
)
"""Errors after which the capture cannot grow any more."""


class Growth(Struct, frozen=True):
    """The progress of a capture. `answer` is the tool's answer; it is an error if the read failed."""

    total_lines: int
    total_bytes: int
    is_live: bool
    answer: Answer

    def __str__(self) -> str:
        size = f"{quantities.plural(self.total_lines, 'line')}, {quantities.plural(self.total_bytes, 'byte')}"
        return f"{size} so far" if self.is_live else size


class Watch:
    """One capture. `growth` is what was seen last, None before the first answer."""

    def __init__(self, inspecting: AgentTool, capture: str) -> None:
        self._inspecting, self._capture = inspecting, capture
        self._changed = asyncio.Event()
        self.growth: Growth | None = None
        self.users = 0

    async def after(self, seen: Growth | None) -> Growth:
        """Wait until the growth differs from `seen`, and return it."""
        while self.growth is None or self.growth is seen:
            await self._changed.wait()
        return self.growth

    async def run(self) -> None:
        """Look at the capture until it has ended."""
        failures = 0
        self._note(await self._look())
        while self.growth is not None and self.growth.is_live:
            found = await self._look(after=self.growth)
            failures = failures + 1 if "error" in found else 0
            self._note(found)
            await asyncio.sleep(_BACKOFF.pause(failures) if failures else LOOK_SECONDS)

    async def _look(self, after: Growth | None = None) -> Answer:
        """Return the capture's growth: at once, or when there is more than `after`, or after a minute."""
        arguments: dict[str, Any] = {"capture": self._capture, "mode": "wait", "max_chars": MIN_CHARS}
        if after is None:
            return await self._inspecting.acall({**arguments, "timeout_seconds": 0})
        news = {"pattern": _ANYTHING, "lines": 1, "cursor": str(after.total_bytes)}
        found = await self._inspecting.acall({**arguments, **news, "timeout_seconds": _WAIT_SECONDS})
        if found.get("code") == wire.Code.INVALID_PARAMETER:  # a lost catalog has fewer bytes now
            return await self._look()
        return found

    def _note(self, answer: Answer) -> None:
        """Wake everyone who waits if the answer has something new."""
        old, new = self.growth, _growth(answer, self.growth)
        if old is not None and (old.total_bytes, old.is_live) == (new.total_bytes, new.is_live):
            return
        self.growth = new
        event, self._changed = self._changed, asyncio.Event()
        event.set()


def _growth(answer: Answer, old: Growth | None) -> Growth:
    if "error" not in answer:
        is_live = answer.get("state") == wire.State.LIVE  # what is on this machine only has no state
        return Growth(answer["total_lines"], answer["total_bytes"], is_live, answer)
    if old is None:
        return Growth(0, 0, is_live=False, answer=answer)
    return Growth(old.total_lines, old.total_bytes, answer["code"] not in _FINAL_ERRORS, answer)


class Watches:
    """The watches of one server."""

    def __init__(self, inspecting: AgentTool) -> None:
        self._inspecting = inspecting
        self._watches: dict[str, tuple[Watch, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def of(self, capture: str) -> AsyncIterator[Watch]:
        """Watch a capture within the block. All who watch it share the requests."""
        if capture not in self._watches:
            made = Watch(self._inspecting, capture)
            self._watches[capture] = made, asyncio.create_task(made.run(), name=f"watch of {capture}")
        watch, task = self._watches[capture]
        watch.users += 1
        try:
            yield watch
        finally:
            watch.users -= 1
            if not watch.users:
                del self._watches[capture]
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
