"""One output on its way through the guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from overspill.text.rendering import printable

if TYPE_CHECKING:
    from overspill.delivery.stream_upload import StreamUpload
    from overspill.guard.policy import Policy
    from overspill.guard.trial import Assignment
    from overspill.guard.turn import RunningCall


class Output(NamedTuple):
    """One output as the guard was given it. `call` is the running call of its turn, if it has one.

    A call id that `is_minted` was made up here. `assignment` is the cohort of its session in an experiment.
    `live` has sent a beginning of the output to the service, if it is not None.
    """

    result: Any
    tool: str
    policy: Policy
    call_id: str | None = None
    session: str | None = None
    status: str = ""
    matches_dropped: int | None = None
    call: RunningCall | None = None
    is_minted: bool = False
    assignment: Assignment | None = None
    live: StreamUpload | None = None


def name_text(name: Any) -> str:
    """Return an id or a name as text. Frameworks also give None, and numbers as JSON-RPC does."""
    return "" if name is None else printable(name)
