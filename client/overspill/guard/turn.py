"""A budget in bytes that the results of one turn share. If they exceed it together, the largest ones spill.

A result waits until no other call of the turn is running; then all that wait are decided on together. So a
result's size decides whether it spills, and not which call was the quickest.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

from overspill.execution import waiting
from overspill.execution.loop_thread import is_in_event_loop
from overspill.execution.waiting import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextvars import Token

DECISION_TIMEOUT_SECONDS: Final = 60.0
"""How long a result waits for the other calls of its turn. The turn waits for no call twice."""
_LOOP_PASSES: Final = 2
"""Passes of the event loop before a decision: tasks that were just created start in them."""
_START_SECONDS: Final = 0.002
"""How long a thread other than the turn's own waits for the same reason."""


class PendingResult(NamedTuple):
    """A result that waits for the turn's decision.

    `size` is its bytes, `notice_bytes` the most bytes of its notice, `shortest_notice_bytes` those of the
    shortest one. `notice_bytes` is None for a result that never spills. `exceeds`: it is above its own limits
    and spills anyway. `call_id` decides between equal sizes, so it must not be an id made up at random.
    """

    size: int
    notice_bytes: int | None = None
    exceeds: bool = False
    call_id: str = ""
    shortest_notice_bytes: int | None = None

    @property
    def saved(self) -> int:
        """Bytes that spilling keeps out of the conversation; 0 or less if it keeps out none."""
        return 0 if self.notice_bytes is None else self.size - self.notice_bytes

    def cost(self, *, spills: bool) -> int:
        """Return the bytes that the result takes in the conversation, spilled or whole."""
        return self.size - self.saved if spills else self.size

    def shortened(self) -> PendingResult:
        """Return the same result with the shortest notice."""
        if self.notice_bytes is None or self.shortest_notice_bytes is None:
            return self
        return self._replace(notice_bytes=self.shortest_notice_bytes)


def choose_spills(results: Sequence[PendingResult], room: int) -> list[bool]:
    """Return which results spill, so that all together take at most `room` bytes, or as few as possible.

    Larger results spill first. Among equal sizes the call id decides, and then the order.
    """
    spills = [result.exceeds for result in results]
    total = _total(results, spills)
    for number in sorted(
        range(len(results)), key=lambda number: (-results[number].size, results[number].call_id)
    ):
        if total <= room:
            break
        if not spills[number] and results[number].saved > 0:
            spills[number] = True
            total -= results[number].saved
    return spills


def notice_limits(results: Sequence[PendingResult], room: int) -> list[int | None]:
    """Return the most bytes of the notice that replaces each result; None for results that stay.

    If the notices do not all fit at full length, they share evenly what is left above the shortest ones.
    """
    spills = choose_spills(results, room)
    if _total(results, spills) <= room:
        return [result.notice_bytes if spill else None for result, spill in zip(results, spills, strict=True)]
    short = [result.shortened() for result in results]
    spills = choose_spills(short, room)
    share = max(0, room - _total(short, spills)) // max(1, sum(spills))
    return [
        min(full.notice_bytes or 0, (shortest.notice_bytes or 0) + share) if spill else None
        for full, shortest, spill in zip(results, short, spills, strict=True)
    ]


def _total(results: Sequence[PendingResult], spills: Sequence[bool]) -> int:
    return sum(result.cost(spills=spill) for result, spill in zip(results, spills, strict=True))


class Turn:
    """The block of one turn, for `with` or `async with`. It can be entered once.

    Calls of `owner`'s tools inside it find the turn through the context variables. Tasks inherit these;
    threads do if they get a copy of the context, as with `asyncio.to_thread`. When the block ends, the
    results that still wait are decided on.
    """

    def __init__(self, budget: int, owner: object, *, timeout: float = DECISION_TIMEOUT_SECONDS) -> None:
        if not (isinstance(budget, (int, float)) and budget >= 0):
            raise ValueError(f"the budget of a turn must be 0 or more, not {budget!r}")
        self.budget = budget
        self._owner = owner
        self._state = _TurnState(budget, timeout)
        self._token: Token[_Turns | None] | None = None

    @property
    def used(self) -> int:
        """Bytes that went into the conversation so far. A notice counts as the most that it may take."""
        return self._state.used

    def calling(self) -> RunningCall:
        """Return the block of one tool call: from before the tool runs until its result is decided on."""
        return RunningCall(self._state, self._owner)

    @property
    def is_on(self) -> bool:
        """Whether the turn is running in this process. A forked child has a conversation of its own."""
        return not self._state.is_over and self._state.process == os.getpid()

    def __enter__(self) -> Self:
        if self._token is not None:
            raise RuntimeError("a turn is entered once; make a new one")
        self._token = _set_turn(self._owner, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._state.close()
        if self._token is not None:
            _reset(self._token)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


class RunningCall:
    """One call of a turn. Guarded tools that it calls return to code, so they take no part in the turn."""

    def __init__(self, state: _TurnState, owner: object) -> None:
        self.number: int = 0
        self._state = state
        self._owner = owner
        self._token: Token[_Turns | None] | None = None

    def __enter__(self) -> Self:
        self.number = self._state.start(self)
        self._token = _set_turn(self._owner, None)
        return self

    def __exit__(self, *_: object) -> None:
        self._state.withdraw(self)
        self._state.leave(self)
        if self._token is not None:
            _reset(self._token)

    async def decide(self, result: PendingResult) -> int | None:
        """Wait until no other call of the turn runs. Return the most bytes of a notice, or None to stay."""
        decision = self._state.add(self, result)
        for _ in range(_LOOP_PASSES):
            await waiting.pause()
        self._state.leave(self)
        await waiting.wait(decision, self._state.timeout)
        return self._state.settled(decision)

    def decide_sync(self, result: PendingResult) -> int | None:
        """Do the same in a thread. In the thread of an event loop, decide on this call alone, at once."""
        decision = self._state.add(self, result)
        if is_in_event_loop():
            self._state.decide([self])
        elif threading.get_ident() != self._state.thread:
            time.sleep(_START_SECONDS)
        self._state.leave(self)
        waiting.wait_blocking(decision, self._state.timeout)
        return self._state.settled(decision)


class _Waiting(NamedTuple):
    result: PendingResult
    decision: Reply[int | None]


class _TurnState:
    """The state of a turn: calls that run, results that wait, and the bytes used. For any thread.

    The lock is reentrant: the garbage collector may end a forgotten call in a thread that holds the lock.
    """

    def __init__(self, budget: int, timeout: float) -> None:
        self.timeout = timeout
        self.used: int = 0
        self.is_over: bool = False
        self.process: int = os.getpid()
        self.thread: int = threading.get_ident()
        self._budget = budget
        self._lock = threading.RLock()
        self._numbers = count()
        self._running: set[RunningCall] = set()
        self._waiting: dict[RunningCall, _Waiting] = {}

    def start(self, call: RunningCall) -> int:
        """Note that the call runs. Return its number in the turn."""
        with self._lock:
            self._running.add(call)
            return next(self._numbers)

    def add(self, call: RunningCall, result: PendingResult) -> Reply[int | None]:
        """Add the result of a call. Return the decision on it, which comes later."""
        decision: Reply[int | None] = Reply()
        with self._lock:
            self._waiting[call] = _Waiting(result, decision)
        return decision

    def leave(self, call: RunningCall) -> None:
        """Note that the call has ended. If no other runs, decide on the results that wait."""
        with self._lock:
            self._running.discard(call)
            if self.is_over or not self._running:
                self.decide(self._waiting)

    def withdraw(self, call: RunningCall) -> None:
        """Drop the call's result: nobody needs the decision now, for example after a cancellation."""
        with self._lock:
            self._waiting.pop(call, None)

    def settled(self, decision: Reply[int | None]) -> int | None:
        """Return the decision. On timeout, decide now without the calls that still run."""
        if not decision.done():
            with self._lock:
                self._running.clear()
                self.decide(self._waiting)
        return decision.result()

    def close(self) -> None:
        """End the turn: decide on the results that wait. Later ones are not held back."""
        with self._lock:
            self.is_over = True
            self.decide(self._waiting)

    def decide(self, calls: Iterable[RunningCall]) -> None:
        """Decide together on the results of these calls. Calls without a result are skipped."""
        with self._lock:
            ordered = sorted(calls, key=lambda call: call.number)
            taken = [self._waiting.pop(call) for call in ordered if call in self._waiting]
            allowed = notice_limits([each.result for each in taken], self._budget - self.used)
            for each, room in zip(taken, allowed, strict=True):
                self.used += each.result.size if room is None else room
                each.decision.set_result(room)


_Turns: TypeAlias = "Mapping[object, Turn | None]"
"""The turn of each owner's calls. None inside one of these calls."""
_TURNS: Final[ContextVar[_Turns | None]] = ContextVar("overspill_turns", default=None)


def current(owner: object) -> Turn | None:
    """Return the turn that a call of `owner`'s tools takes part in, if any."""
    turns = _TURNS.get()
    if turns is None:
        return None
    turn = turns.get(owner)
    return turn if turn is not None and turn.is_on else None


def _set_turn(owner: object, turn: Turn | None) -> Token[_Turns | None]:
    return _TURNS.set({**(_TURNS.get() or {}), owner: turn})


def _reset(token: Token[_Turns | None]) -> None:
    with suppress(ValueError):  # an abandoned task ends the block in another context than it began
        _TURNS.reset(token)
