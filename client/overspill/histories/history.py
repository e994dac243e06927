"""Makes histories of messages shorter: results of tools that are too long are cut, or stored and cut.

Only results of tools are touched; see `tool_results`. What does not change stays the same object, and no
input is ever changed. Notices from earlier passes stay as they are, byte for byte.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.execution.waiting import run_sync
from overspill.guard.call_context import guarding_tool
from overspill.guard.policy import Policy
from overspill.guard.spill import Spill
from overspill.histories.aging import NEWEST, assessed, beyond_budget, for_old_results
from overspill.histories.replacement import shortened, with_new_values, with_spilled
from overspill.histories.tool_results import tool_results
from overspill.previews.notice_facts import StoreResult
from overspill.shapes.field_copies import Unchangeable
from overspill.spools.store_request import Origin
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.histories.tool_results import ToolResult
    from overspill.shapes.fields import FieldPath
    from overspill.shapes.shape import Shape

WITHOUT_STORE: Final = "the history was cut before it was saved, with no store at hand"


def clamp_messages(
    messages: list[Any],
    policy: Policy | None = None,
    *,
    session: str = "",
    keep_copies: bool = True,
    budget: int | None = None,
    newest: int = NEWEST,
) -> list[Any]:
    """Return the history in a form to save: results above the policy's limits become notices.

    Nothing is stored. `session` is for the ids in the notices. Without `keep_copies` the fields `artifact`
    and `details` go from messages whose result is cut, or was cut before. If all results together have more
    than `budget` bytes, the oldest are cut too, except the `newest` last ones. Cutting takes 5 ms a megabyte:
    call it in a thread.
    """
    policy = Policy() if policy is None else policy
    new = _cut(too_long(messages, policy), policy, session)
    clamped = with_new_values(messages, new, keep_copies=keep_copies)
    policy = for_old_results(policy)
    new = _cut(beyond_budget(tool_results(clamped), policy, budget, newest), policy, session)
    return with_new_values(clamped, new, keep_copies=keep_copies)


def _cut(chosen: Iterable[tuple[ToolResult, Shape]], policy: Policy, session: str) -> dict[FieldPath, Any]:
    """Return a notice for each chosen result, at its path. Nothing is stored."""
    new: dict[FieldPath, Any] = {}
    for result, content in chosen:
        origin = Origin(result.tool, result.call_id, session, result.status)
        spill = Spill.of(content, policy, origin)
        with suppress(Unchangeable):
            notice = spill.notice(StoreResult(outcome=Outcome.TRUNCATED, reason=WITHOUT_STORE))
            new |= shortened(result, spill.replaced(notice), notice)
    return new


async def spill_messages(
    messages: list[Any],
    guard: Guard,
    *,
    policy: Policy | None = None,
    session: str | None = None,
    keep_copies: bool = True,
    budget: int | None = None,
    newest: int = NEWEST,
) -> list[Any]:
    """Return the history with each result that is too long stored by the guard and replaced by its notice.

    A capture gets the id that the guard gave it, or would have given it, when the tool returned: the id
    follows from session, call and content. `policy` replaces the guard's own. `keep_copies`, `budget` and
    `newest` are as in `clamp_messages`.
    """
    results = ResultGuard(guard, policy or guard.policy_for(session), session)
    return await _spilled(messages, results, budget, newest, keep_copies=keep_copies)


def spill_messages_sync(
    messages: list[Any],
    guard: Guard,
    *,
    policy: Policy | None = None,
    session: str | None = None,
    keep_copies: bool = True,
    budget: int | None = None,
    newest: int = NEWEST,
) -> list[Any]:
    """Do what `spill_messages` does, for code without an event loop."""
    results = ResultGuard(guard, policy or guard.policy_for(session), session, is_sync=True)
    return run_sync(_spilled(messages, results, budget, newest, keep_copies=keep_copies))


class ResultGuard(NamedTuple):
    """A guard for the results in a history, with a policy and a session.

    If it `is_sync`, its coroutines never suspend, so that `run_sync` can run them.
    """

    guard: Guard
    policy: Policy
    session: str | None
    is_sync: bool = False

    async def process(self, result: ToolResult) -> Guarded:
        """Pass one result through the guard."""
        facts: dict[str, Any] = {
            "tool": result.tool,
            "call_id": result.call_id,
            "session": self.session,
            "status": result.status,
            "policy": self.policy,
        }
        with guarding_tool():
            if self.is_sync:
                return self.guard.process_sync(result.value, **facts)
            return await self.guard.process(result.value, **facts)


async def _spilled(
    messages: list[Any], results: ResultGuard, budget: int | None, newest: int, *, keep_copies: bool
) -> list[Any]:
    """Spill the results that are too long, and then old ones until all are within the budget."""
    guarded = [(each, await results.process(each)) for each, _ in too_long(messages, results.policy)]
    spilled = with_spilled(messages, guarded, keep_copies=keep_copies)
    results = results._replace(policy=for_old_results(results.policy))
    old = beyond_budget(tool_results(spilled), results.policy, budget, newest)
    guarded = [(each, await results.process(each)) for each, _ in old]
    return with_spilled(spilled, guarded, keep_copies=keep_copies)


def too_long(messages: Sequence[Any], policy: Policy) -> Iterator[tuple[ToolResult, Shape]]:
    """Yield the results that have to spill, each with its content."""
    for result in tool_results(messages):
        shape = assessed(result, policy)
        if shape is not None:
            yield result, shape
