"""Makes a call to a model again if it was too large: compact the history, then spill results, then retry.

Written once for both kinds of code, like the guard. No call is made twice with the same messages, no result
is spilled twice except in the last round, and every loop is bounded. If nothing helps, the provider's own
error is raised.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from overspill.execution.waiting import run_sync
from overspill.histories.history import ResultGuard, too_long
from overspill.histories.overflow import overflow
from overspill.histories.replacement import with_spilled
from overspill.histories.selection import KEPT_CHARS, Candidate, next_results, total_chars
from overspill.previews.styles import MARKED, TERSE
from overspill.text import quantities

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.guard.policy import Policy
    from overspill.histories.overflow import Overflow
    from overspill.histories.tool_results import ToolResult

T = TypeVar("T")

MAX_COMPACTIONS: Final = 3
_TIGHTEST_CHARS: Final = 500
"""Characters kept of a result in the last round, if shortening all to `KEPT_CHARS` did not help."""
_TIGHTEST_PREVIEW_BYTES: Final = 100
_MAX_NAMED: Final = 10
"""Captures that the note of an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Generic[T]):
    """The result of a recovered call (`value`), and the `messages` with which it succeeded: save those.

    `compactions` is the number of compactions. `spilled` has what the guard made of long results.
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
    """Call `call(messages)`. If that is too large for the model, call it again with less.

    First `compact`, plain or async, is used up to `attempts` times, while it makes the history smaller, with
    a call after each. A compaction that is itself too large for the model ends this. Then the largest results
    of tools go through the guard, as many as the provider's numbers ask for, with a call after each round. At
    first these are results at the end of the history, so that what the provider has cached stays as it is. If
    all are shortened to 2,000 characters and the call is still too large, they are shortened to a line or
    two. `window` is the model's context window in tokens, for providers that do not say it.

    Raises the provider's last error, with a note of what was tried. Every other exception of `call` and
    `compact` is raised at once.
    """
    results = ResultGuard(guard, _tight_policy(guard.policy), session)
    return await _Recovery(call, compact, results, window).run(messages, attempts)


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
    """Do what `recover` does, for code without an event loop."""
    results = ResultGuard(guard, _tight_policy(guard.policy), session, is_sync=True)
    return run_sync(_Recovery(call, compact, results, window).run(messages, attempts))


def _tight_policy(policy: Policy) -> Policy:
    """Return the policy for the rounds: results are short, and so are their previews."""
    return policy.limited(KEPT_CHARS, KEPT_CHARS).with_previews(KEPT_CHARS)


def _tightest_policy(policy: Policy) -> Policy:
    """Return the policy for the last round: a line or two of each result."""
    limited = policy.limited(_TIGHTEST_CHARS, _TIGHTEST_CHARS).with_previews(_TIGHTEST_PREVIEW_BYTES)
    return replace(limited, style=TERSE if policy.notice_style is MARKED else policy.style)


class _Attempt(NamedTuple):
    """The result of a call, or its error and what the provider says was too large."""

    value: Any
    error: Exception | None = None
    refused: Overflow | None = None


@dataclass(slots=True)
class _Recovery:
    """One recovery. It waits for nothing but its functions, so `run_sync` can run it without a loop."""

    call: Callable[[list[Any]], Any]
    compact: Callable[[list[Any]], Any] | None
    results: ResultGuard
    window: int | None
    compactions: int = 0
    rounds: int = 0
    spilled: list[Guarded] = field(default_factory=list)
    processed: list[Any] = field(default_factory=list)
    """Values that the guard has had. They do not go there again before the last round."""
    unspilled: list[Any] | None = None
    """The history before any result was spilled; None while `compact` still helps."""
    is_last: bool = False

    async def run(self, messages: list[Any], attempts: int) -> Recovered[Any]:
        attempt = await self._called(messages)
        while attempt.error is not None and self.compactions < attempts:
            compacted = await self._compacted(messages)
            if compacted is None:
                break
            messages, attempt = compacted, await self._called(compacted)
        self.unspilled = messages
        while attempt.error is not None:
            spilled = await self._spilled(messages, attempt.refused)
            if spilled is messages:
                spilled = await self._shortened(messages)
            if spilled is messages:
                raise self._with_note(attempt.error)
            messages, attempt = spilled, await self._called(spilled)
        return Recovered(
            value=attempt.value,
            messages=messages,
            compactions=self.compactions,
            spilled=tuple(self.spilled),
        )

    async def _called(self, messages: list[Any]) -> _Attempt:
        try:
            return _Attempt(await self._returned(self.call, messages))
        except Exception as error:
            refused = overflow(error)
            if refused is None:
                raise
            return _Attempt(None, error, refused)

    async def _returned(self, function: Callable[[list[Any]], Any], messages: list[Any]) -> Any:
        """Return what a function returns, which may be awaitable unless the caller has no event loop."""
        returned = function(messages)
        return await returned if inspect.isawaitable(returned) and not self.results.is_sync else returned

    async def _compacted(self, messages: list[Any]) -> list[Any] | None:
        """Return what `compact` returned, or the list that it changed. None if the history is no smaller."""
        if self.compact is None:
            return None
        before = total_chars(messages)
        try:
            returned = await self._returned(self.compact, messages)
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
        """Return the history with the next results spilled, or the same list if none is left that helps."""
        spilled = messages
        while spilled is messages and (chosen := self._chosen(messages, refused)):
            for result in chosen:
                self.processed.append(result.value)
                guarded = await self.results.process(result)
                shorter = with_spilled(spilled, [(result, guarded)])
                if shorter is not spilled:
                    self.spilled.append(guarded)
                spilled = shorter
        return spilled

    async def _shortened(self, messages: list[Any]) -> list[Any]:
        """Return the history with all results as short as possible; the same list if that does not help."""
        if self.is_last:
            return messages
        self.is_last = True
        last = self.results._replace(policy=_tightest_policy(self.results.guard.policy))
        results = [result for result, _ in too_long(self.unspilled or messages, last.policy)]
        spilled = [(result, await last.process(result)) for result in results]
        shorter = with_spilled(self.unspilled or messages, spilled)
        if total_chars(shorter) >= total_chars(messages):
            return messages
        self.spilled = [guarded for _, guarded in spilled if guarded.notice is not None]
        self.processed += [result.value for result in results]
        return shorter

    def _chosen(self, messages: list[Any], refused: Overflow | None) -> list[ToolResult]:
        """Choose the results of the next round, among those that the guard has not had."""
        candidates = [
            Candidate(content.size, result)
            for result, content in too_long(messages, self.results.policy)
            if not any(result.value is value for value in self.processed)
        ]
        self.rounds += 1
        return next_results(messages, candidates, refused, self.rounds, self.window)

    def _with_note(self, error: Exception) -> Exception:
        """Return `error` with a note of what was tried."""
        captures = [guarded.capture for guarded in self.spilled if guarded.capture is not None]
        named = ", ".join([*captures[:_MAX_NAMED], *(["…"] if len(captures) > _MAX_NAMED else [])])
        error.add_note(
            f"Overspill: still too large after {quantities.plural(self.compactions, 'compaction')} and with "
            f"{quantities.plural(len(self.spilled), 'tool result')} spilled{f' ({named})' if named else ''}."
        )
        return error
