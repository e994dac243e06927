"""A call to a model that is made again with less when it was too large: compact, then spill, then retry.

Written once for both kinds of code, like the guard. No call is ever made twice with the same messages, no
result is spilled twice but in the last round, and every loop is bounded. What cannot be helped ends as the
provider's own error.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from overspill.guard.executors import finished
from overspill.histories.history import Guarding, too_long, with_spilled
from overspill.histories.overflow import Kind, overflow
from overspill.histories.selection import (
    KEPT,
    THRESHOLDS,
    above_threshold,
    chars_to_shed,
    largest_at_the_end,
    last_answer,
    total_chars,
)
from overspill.previews.styles import MARKED, TERSE
from overspill.shapes.content import size_of
from overspill.text import measure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.guard.policy import Policy
    from overspill.histories.history import ToolResult
    from overspill.histories.overflow import Overflow

T = TypeVar("T")

MAX_COMPACTIONS: Final = 3
_MOST_ROUNDS: Final = len(THRESHOLDS)
_SHORT: Final = 500
"""Characters of a result that stay where shortening all of them to `KEPT` did not help."""
_SHORT_PREVIEW: Final = 100
_MOST_NAMED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Generic[T]):
    """What the call returned, and the `messages` that it took: save those.

    `compactions` counts those that were used; `spilled` is what the guard made of results that were too long.
    """

    value: T
    messages: list[Any]
    compactions: int = 0
    spilled: tuple[Guarded, ...] = ()


async def recover(
    call: Callable[[list[Any]], Awaitable[T]],
    messages: list[Any],
    *,
    guard: Guard,
    compact: Callable[[list[Any]], Any] | None = None,
    attempts: int = MAX_COMPACTIONS,
    window: int | None = None,
    session: str | None = None,
) -> Recovered[T]:
    """`call(messages)`, and where that is too large for the model, again with less.

    First `compact`, plain or async, up to `attempts` times and while that makes the history smaller, with a
    call after each; a compaction that is too large for the model itself ends that. Then the largest results
    of tools go through the guard, as many as the provider's numbers ask for, with a call after each round:
    at first those at the end, which leaves what the provider has cached as it is. Where all are shortened to
    2,000 characters and it is still too large, they are shortened to a line or two.
    `window` is the model's, in tokens, for providers that do not say it. Raises the provider's last error
    with a note of what was tried; every other exception of `call` and `compact` at once.
    """
    guarding = Guarding(guard, _tight(guard.policy), session)
    compacting = None if compact is None else _awaiting(compact)
    last = guarding._replace(policy=_tightest(guard.policy))
    recovery = _Recovery(_awaiting(call), compacting, guarding.process, last.process, guarding, last, window)
    return await recovery.run(messages, attempts)


def recover_sync(
    call: Callable[[list[Any]], T],
    messages: list[Any],
    *,
    guard: Guard,
    compact: Callable[[list[Any]], list[Any] | None] | None = None,
    attempts: int = MAX_COMPACTIONS,
    window: int | None = None,
    session: str | None = None,
) -> Recovered[T]:
    """As `recover`, for code without an event loop."""
    guarding = Guarding(guard, _tight(guard.policy), session)
    compacting = None if compact is None else _at_once(compact)
    last = guarding._replace(policy=_tightest(guard.policy))
    recovery = _Recovery(
        _at_once(call), compacting, guarding.process_sync, last.process_sync, guarding, last, window
    )
    return finished(recovery.run(messages, attempts))


def _tight(policy: Policy) -> Policy:
    """The policy as it is where every character counts."""
    return replace(
        policy.limited(KEPT, KEPT),
        preview_bytes=min(policy.preview_bytes, KEPT),
        lost_preview_bytes=min(policy.lost_preview, KEPT),
    )


def _tightest(policy: Policy) -> Policy:
    """The policy as it is where hardly anything has room."""
    return replace(
        policy.limited(_SHORT, _SHORT),
        style=TERSE if policy.notice_style is MARKED else policy.style,
        preview_bytes=min(policy.preview_bytes, _SHORT_PREVIEW),
        lost_preview_bytes=min(policy.lost_preview, _SHORT_PREVIEW),
    )


def _awaiting(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Awaitable[Any]]:
    async def awaited(messages: list[Any]) -> Any:
        result = function(messages)
        return await result if inspect.isawaitable(result) else result

    return awaited


def _at_once(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Awaitable[Any]]:
    async def returned(messages: list[Any]) -> Any:
        return function(messages)

    return returned


class _Answer(NamedTuple):
    """What a call returned; or its error, and what that says was too large."""

    value: Any
    error: Exception | None = None
    refused: Overflow | None = None


@dataclass(slots=True)
class _Recovery:
    """One recovery. All that it waits for are the three functions; see `finished`."""

    call: Callable[[list[Any]], Awaitable[Any]]
    compact: Callable[[list[Any]], Awaitable[Any]] | None
    process: Callable[[ToolResult], Awaitable[Guarded]]
    process_last: Callable[[ToolResult], Awaitable[Guarded]]
    guarding: Guarding
    guarding_last: Guarding
    window: int | None
    compactions: int = 0
    rounds: int = 0
    spilled: list[Guarded] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    """Values that the guard has had: not again before the last round, whatever it made of them."""
    unspilled: list[Any] | None = None
    """The history before any result was spilled; None while `compact` still helps."""
    is_last: bool = False

    async def run(self, messages: list[Any], attempts: int) -> Recovered[Any]:
        answer = await self._called(messages)
        while answer.error is not None and self.compactions < attempts:
            compacted = await self._compacted(messages)
            if compacted is None:
                break
            messages, answer = compacted, await self._called(compacted)
        self.unspilled = messages
        while answer.error is not None:
            spilled = await self._spilled(messages, answer.refused)
            if spilled is messages:
                spilled = await self._shortened(messages)
            if spilled is messages:
                raise self._noted(answer.error)
            messages, answer = spilled, await self._called(spilled)
        return Recovered(
            value=answer.value,
            messages=messages,
            compactions=self.compactions,
            spilled=tuple(self.spilled),
        )

    async def _called(self, messages: list[Any]) -> _Answer:
        try:
            return _Answer(await self.call(messages))
        except Exception as error:
            refused = overflow(error)
            if refused is None:
                raise
            return _Answer(None, error, refused)

    async def _compacted(self, messages: list[Any]) -> list[Any] | None:
        """What `compact` returned, or left in the list itself; None where the history is no smaller."""
        if self.compact is None:
            return None
        before = total_chars(messages)
        try:
            returned = await self.compact(messages)
        except Exception as error:
            if overflow(error) is None:
                raise
            return None
        compacted: list[Any] = messages if returned is None else returned
        if total_chars(compacted) >= before:
            return None
        self.compactions += 1
        return compacted

    async def _spilled(self, messages: list[Any], refused: Overflow | None) -> list[Any]:
        """The history with the next results spilled; the same one where none is left to shorten it."""
        spilled = messages
        while spilled is messages and (picked := self._picked(messages, refused)):
            for result in picked:
                self.given.append(result.value)
                guarded = await self.process(result)
                shorter = with_spilled(spilled, [(result, guarded)])
                if shorter is not spilled:
                    self.spilled.append(guarded)
                spilled = shorter
        return spilled

    async def _shortened(self, messages: list[Any]) -> list[Any]:
        """The history with all results as short as can be, once; the same one where that does not help."""
        if self.is_last:
            return messages
        self.is_last = True
        results = [result for result, _ in too_long(self.unspilled or messages, self.guarding_last.policy)]
        spilled = [(result, await self.process_last(result)) for result in results]
        shorter = with_spilled(self.unspilled or messages, spilled)
        if total_chars(shorter) >= total_chars(messages):
            return messages
        self.spilled = [guarded for _, guarded in spilled if guarded.notice is not None]
        self.given += [result.value for result in results]
        return shorter

    def _picked(self, messages: list[Any], refused: Overflow | None) -> list[ToolResult]:
        """The largest results, as many as take the history below the limit; all where nobody knows better.

        Those at the end of the history come first, for what stands before them is cached.
        """
        sizes = [
            (size_of(content), result)
            for result, content in too_long(messages, self.guarding.policy)
            if not any(result.value is value for value in self.given)
        ]
        self.rounds += 1
        if self.rounds > _MOST_ROUNDS:
            return [result for _, result in sizes]
        shed = chars_to_shed(refused, messages)
        if shed is not None:
            return largest_at_the_end(sizes, shed * 2 ** (self.rounds - 1))
        new = [each for each in sizes if int(each[1].path[0]) > last_answer(messages)]
        window = refused.limit if refused is not None and refused.kind is Kind.CONTEXT else None
        return above_threshold(new or sizes, window or self.window)

    def _noted(self, error: Exception) -> Exception:
        captures = [guarded.capture for guarded in self.spilled if guarded.capture is not None]
        named = ", ".join([*captures[:_MOST_NAMED], *(["…"] if len(captures) > _MOST_NAMED else [])])
        error.add_note(
            f"Overspill: still too large after {measure.plural(self.compactions, 'compaction')} and with "
            f"{measure.plural(len(self.spilled), 'tool result')} spilled{f' ({named})' if named else ''}."
        )
        return error
