"""One output on its way through the guard: its call, its session, its policy, and its cohort."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from overspill.guard import call_context
from overspill.guard.executors import SYNC
from overspill.live.ports import Beginning
from overspill.previews.remembered import Previews
from overspill.shapes.sender import Sender
from overspill.shapes.status import status_of
from overspill.spools.store_request import Origin
from overspill.text.rendering import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

    from overspill.guard.executors import Executor
    from overspill.guard.policy import Policy
    from overspill.guard.trial import Assignment, Trial
    from overspill.guard.turn import RunningCall

R = TypeVar("R")


class Output(NamedTuple):
    """One output as the guard was given it. `call` is the running call of its turn, if it has one.

    Its caller waits through `executor`. `guard` is the number of its guard. `previews` are those that were
    tried of it. A call id that `is_minted` was made up here. `assignment` is the cohort of its session in an
    experiment. `live` is what the service may have of it already. A model is shown `str(result)` of what
    `is_printed`. If a host is its `sender`, it passes if it looks like a message that no tool made.
    """

    executor: Executor
    guard: int
    result: Any
    tool: str
    policy: Policy
    previews: Previews
    call_id: str | None = None
    session: str | None = None
    status: str = ""
    matches_dropped: int | None = None
    call: RunningCall | None = None
    is_minted: bool = False
    assignment: Assignment | None = None
    live: Beginning | None = None
    is_printed: bool = False
    sender: Sender = Sender.TOOL

    @property
    def flow(self) -> Hashable:
        """The key of its place in a queue. Each session of each guard has a key of its own."""
        return self.guard, self.session

    def run(self, work: Callable[..., R], *args: Any, is_quick: bool = False) -> Coroutine[Any, Any, R]:
        """Do `work(*args)`, which may take milliseconds unless it `is_quick`."""
        return (SYNC if is_quick else self.executor).run(self.flow, work, *args)


class Intake:
    """The settings that a guard's outputs share: `policy`, the `session` of calls that name none, a trial."""

    def __init__(self, policy: Policy, session: str, trial: Trial | None = None) -> None:
        self._policy = policy
        self._session = session
        self._trial = trial

    def output(
        self,
        executor: Executor,
        result: Any,
        tool: str,
        policy: Policy | None = None,
        call_id: str | None = None,
        session: str | None = None,
        status: str = "",
    ) -> Output:
        """Return the output of a call. A call with a `policy` of its own takes no part in an experiment."""
        if session is not None and type(session) is not str:
            session = name_text(session)  # it is a key of queues
        assigned = None
        if policy is None and self._trial is not None:
            assigned = self._trial.assignment(self.session_of(session), tool)
        if policy is None:
            policy = self._policy if assigned is None else assigned.policy
        return Output(
            executor,
            id(self),
            result,
            tool,
            policy,
            Previews(),
            call_id,
            session,
            status,
            assignment=assigned,
        )

    def session_of(self, session: str | None) -> str:
        """Return the given session, else that of `calling`, else the guard's own."""
        if session is None:
            call = call_context.current()
            session = self._session if call is None or call.session is None else call.session
        return name_text(session)

    def origin(self, output: Output) -> Origin:
        """Return the given call and session, else those of `calling`, else a random id and the guard's."""
        call = call_context.current()
        call_id, is_minted = output.call_id, output.is_minted
        if call_id is None:
            is_minted = call is None
            call_id = call_context.minted() if call is None else call.id
        status = name_text(output.status) or status_of(output.result)
        cohort = "" if output.assignment is None else output.assignment.cohort.encode()
        session = self.session_of(output.session)
        live = output.live or ("" if call is None else call.capture)
        origin = Origin(output.tool, name_text(call_id), session, status, is_minted, cohort)
        if isinstance(live, Beginning):
            return origin._replace(capture=live.id, live=live)
        return origin._replace(capture=live)


def name_text(name: Any) -> str:
    """Return an id or a name as text. Frameworks also give None, and numbers as JSON-RPC does."""
    return "" if name is None else printable(name)
