"""A budget in bytes that the results of one turn share: what is too much together spills, the largest first.

Results wait until no other call of the turn is running and are then decided on together. So which of them
spill depends on their sizes alone, and not on which call was the quickest.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import suppress
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

from overspill.execution import waiting
from overspill.execution.waiting import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextvars import Token

DECISION_TIMEOUT_SECONDS: Final = 60.0
"""Seconds that a result waits for the other calls of its turn. The turn waits for none of them twice."""
_LOOP_PASSES: Final = 2
"""How often the event loop goes round before a decision, so that tasks which were created have started."""
_START_SECONDS: Final = 0.002
"""Seconds that a thread other than the turn's own waits for the same reason."""


class PendingResult(NamedTuple):
    """A result on its way into the conversation.

    `size` and `spilled` are its bytes as it is and, at most, as a notice, `least` as the shortest one;
    `spilled` is None for what is never spilled. `exceeds`: it is above its own limits and spills anyway.
    `call_id` decides between equal sizes, so an id that was made up at random does not belong here.
    """

    size: int
    spilled: int | None = None
    exceeds: bool = False
    call_id: str = ""
    least: int | None = None

    @property
    def saved(self) -> int:
        """Bytes that spilling it keeps out of the conversation; 0 or less where it brings nothing."""
        return 0 if self.spilled is None else self.size - self.spilled

    def cost(self, *, spills: bool) -> int:
        """Return the bytes that the result takes in the conversation, spilled or whole."""
        return self.size - self.saved if spills else self.size

    def shortened(self) -> PendingResult:
        """The same with the shortest notice at most."""
        return self if self.spilled is None or self.least is None else self._replace(spilled=self.least)


def choose(offers: Sequence[PendingResult], room: int) -> list[bool]:
    """Which of `offers` spill, so that together they take `room` bytes at most, or as few as they can.

    Among equal sizes and call ids, the earlier offer spills first.
    """
    spills = [offer.exceeds for offer in offers]
    total = _total(offers, spills)
    for number in sorted(
        range(len(offers)), key=lambda number: (-offers[number].size, offers[number].call_id)
    ):
        if total <= room:
            break
        if not spills[number] and offers[number].saved > 0:
            spills[number] = True
            total -= offers[number].saved
    return spills


def rooms(offers: Sequence[PendingResult], room: int) -> list[int | None]:
    """The bytes that a notice in the place of each offer may take; None for those that stay.

    Notices share what is left where there is not room enough for all of them at their full length.
    """
    spills = choose(offers, room)
    if _total(offers, spills) <= room:
        return [offer.spilled if spill else None for offer, spill in zip(offers, spills, strict=True)]
    short = [offer.shortened() for offer in offers]
    spills = choose(short, room)
    share = max(0, room - _total(short, spills)) // max(1, sum(spills))
    return [
        min(full.spilled or 0, (least.spilled or 0) + share) if spill else None
        for full, least, spill in zip(offers, short, spills, strict=True)
    ]


def _total(offers: Sequence[PendingResult], spills: Sequence[bool]) -> int:
    return sum(offer.cost(spills=spill) for offer, spill in zip(offers, spills, strict=True))


class Turn:
    """The block of one turn, `with` or `async with`; each is entered once.

    Calls of `owner`'s tools made inside it are found through the context, which tasks inherit, and
    threads where they are given a copy of it (`asyncio.to_thread` does). What still waits when the block
    ends is decided then.
    """

    def __init__(self, budget: int, owner: object, *, timeout: float = DECISION_TIMEOUT_SECONDS) -> None:
        if budget < 0:
            raise ValueError(f"the budget of a turn must be 0 or more, not {budget}")
        self.budget = budget
        self._owner = owner
        self._ledger = _Ledger(budget, timeout)
        self._token: Token[_Turns | None] | None = None

    @property
    def used(self) -> int:
        """Bytes that went into the conversation so far; a notice counts as what it may take at most."""
        return self._ledger.used

    def calling(self) -> RunningCall:
        """The block of one tool call, from before the tool runs until its result is decided on."""
        return RunningCall(self._ledger, self._owner)

    @property
    def is_on(self) -> bool:
        """Whether it is going on, and in this process: a forked child has a conversation of its own."""
        return not self._ledger.is_over and self._ledger.process == os.getpid()

    def __enter__(self) -> Self:
        if self._token is not None:
            raise RuntimeError("a turn is entered once; make a new one")
        self._token = _placed(self._owner, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.close()
        if self._token is not None:
            _reset(self._token)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


class RunningCall:
    """One call of a turn. Calls of guarded tools inside it go to code, so they take no part in the turn."""

    def __init__(self, ledger: _Ledger, owner: object) -> None:
        self.number: int = 0
        self._ledger = ledger
        self._owner = owner
        self._token: Token[_Turns | None] | None = None

    def __enter__(self) -> Self:
        self.number = self._ledger.start(self)
        self._token = _placed(self._owner, None)
        return self

    def __exit__(self, *_: object) -> None:
        self._ledger.withdraw(self)
        self._ledger.leave(self)
        if self._token is not None:
            _reset(self._token)

    async def decide(self, offer: PendingResult) -> int | None:
        """The bytes that a notice may take in the result's place, or None where it stays.

        Comes once all other calls of the turn have their results too.
        """
        verdict = self._ledger.offer(self, offer)
        for _ in range(_LOOP_PASSES):
            await waiting.pause()
        self._ledger.leave(self)
        await waiting.wait(verdict, self._ledger.timeout)
        return self._ledger.settled(verdict)

    def decide_sync(self, offer: PendingResult) -> int | None:
        """As `decide`, for threads. In an event loop's own thread it decides at once, for this call alone."""
        verdict = self._ledger.offer(self, offer)
        if _in_event_loop():
            self._ledger.decide([self])
        elif threading.get_ident() != self._ledger.thread:
            time.sleep(_START_SECONDS)
        self._ledger.leave(self)
        waiting.wait_blocking(verdict, self._ledger.timeout)
        return self._ledger.settled(verdict)


class _Waiting(NamedTuple):
    offer: PendingResult
    verdict: Reply[int | None]


class _Ledger:
    """Which calls run, which results wait, and how much is used; for any thread.

    A thread may take the lock that it holds again, for the garbage collector can end a forgotten call at any
    moment.
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
        """The call runs; answers with its number in the turn."""
        with self._lock:
            self._running.add(call)
            return next(self._numbers)

    def offer(self, call: RunningCall, offer: PendingResult) -> Reply[int | None]:
        """The decision to come on the result of a call."""
        verdict: Reply[int | None] = Reply()
        with self._lock:
            self._waiting[call] = _Waiting(offer, verdict)
        return verdict

    def leave(self, call: RunningCall) -> None:
        """The call does not run any more. When none does, those that wait are decided on."""
        with self._lock:
            self._running.discard(call)
            if self.is_over or not self._running:
                self.decide(self._waiting)

    def withdraw(self, call: RunningCall) -> None:
        """Nobody wants the decision any more, as after a cancellation."""
        with self._lock:
            self._waiting.pop(call, None)

    def settled(self, verdict: Reply[int | None]) -> int | None:
        """The decision; where it did not come in time, it is taken now, and who still runs not waited for."""
        if not verdict.done():
            with self._lock:
                self._running.clear()
                self.decide(self._waiting)
        return verdict.result()

    def close(self) -> None:
        """End the turn: decide on the results that wait. Later ones are not held back."""
        with self._lock:
            self.is_over = True
            self.decide(self._waiting)

    def decide(self, calls: Iterable[RunningCall]) -> None:
        """Decide on those of the calls that wait, together."""
        with self._lock:
            ordered = sorted(calls, key=lambda call: call.number)
            taken = [self._waiting.pop(call) for call in ordered if call in self._waiting]
            allowed = rooms([each.offer for each in taken], self._budget - self.used)
            for each, room in zip(taken, allowed, strict=True):
                self.used += each.offer.size if room is None else room
                each.verdict.set_result(room)


_Turns: TypeAlias = "Mapping[object, Turn | None]"
"""By owner: the turn that its calls belong to; None inside one of its calls."""
_TURNS: Final[ContextVar[_Turns | None]] = ContextVar("overspill_turns", default=None)


def current(owner: object) -> Turn | None:
    """The turn that a call of `owner`'s tools takes part in here."""
    turns = _TURNS.get()
    if turns is None:
        return None
    turn = turns.get(owner)
    return turn if turn is not None and turn.is_on else None


def _placed(owner: object, turn: Turn | None) -> Token[_Turns | None]:
    return _TURNS.set({**(_TURNS.get() or {}), owner: turn})


def _reset(token: Token[_Turns | None]) -> None:
    with suppress(ValueError):  # the block ends in another context than it began, as an abandoned task's does
        _TURNS.reset(token)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
