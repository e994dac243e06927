"""Guards the result of a tool that a program's hook is told, and answers in the program's own form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.guard.guard import Guard
from overspill.guard.policy import Policy
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

READER: Final = "overspill head -n 200 {id}"
"""Every agent program has a shell: the notice names a command that works in it."""
MAX_TOKENS: Final = 10_000
"""Programs cut or file away what is longer than 10,000 to 25,000 tokens."""


class _HookGuard(Guard):
    """A guard for one result. It uploads nothing unasked: the program waits for the hook to end."""

    _uploads_unasked = False


def answered(
    answer: Callable[[Guard, Mapping[str, Any]], dict[str, Any]], event: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what `answer` makes of the event, with a guard for the service of the environment."""
    policy = Policy(max_tokens=MAX_TOKENS, reader=READER)
    with SyncClient() as client, _HookGuard(client, policy) as guard:
        return answer(guard, event)
