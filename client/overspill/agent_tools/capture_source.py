"""The captures that an agent may read: those of a service, and those that still wait on this machine.

Its work runs in the loop thread, so that one implementation serves synchronous and asynchronous callers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from overspill.agent_tools.agent_tool import AgentTool, Answer, Arguments
from overspill.delivery.loop_access import LoopAccess
from overspill.execution.waiting import result, wait_blocking
from overspill.spools.holder import Holder
from overspill.spools.spool import partition_for
from overspill.transfer.client import Client
from overspill.transfer.sync import SyncClient, synchronous_like

if TYPE_CHECKING:
    from overspill.execution.waiting import Reply
    from overspill.spools.spool import Spool

Work: TypeAlias = Callable[[Client | None], Coroutine[Any, Any, Answer]]
"""Work with the asynchronous client, or without one."""


class CaptureSource:
    """The captures that one agent may read. `client` and `spool` are as for `Guard`.

    `session` is the session of calls that name none; by default it is the client's. Raises what `Guard` does
    for a wrong spool.
    """

    def __init__(
        self,
        client: Client | SyncClient | None,
        *,
        session: str | None = None,
        spool: Spool | bool = True,
    ) -> None:
        usual = "" if client is None else client.session
        self.session: str = usual if session is None else session
        self.holder: Holder = Holder(partition_for(client, spool), session=self.session)
        self._client = synchronous_like(client) if isinstance(client, Client) else client
        self._loop = LoopAccess()

    def tool(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        answer: Callable[[Client | None, str, Arguments], Coroutine[Any, Any, Answer]],
    ) -> AgentTool:
        """Return a tool whose calls `answer` answers, given the client, the session and the arguments."""

        def work(arguments: Arguments, session: str | None) -> Work:
            named = self.session if session is None else session
            return lambda client: answer(client, named, arguments)

        return AgentTool(
            name,
            description,
            parameters,
            lambda given, session: self.run(work(given, session)),
            lambda given, session: result(self._begin(work(given, session))),
        )

    def run(self, work: Work) -> Answer:
        """Return the answer of `work`. Raises what that raises, and what `_begin` does."""
        reply = self._begin(work)
        wait_blocking(reply)
        return reply.result()

    def _begin(self, work: Work) -> Reply[Answer]:
        """Begin in the loop thread. Raises `RuntimeError` if there is none, and `ClientClosed`."""
        if self._client is None:
            return self._loop.begin(work(None))
        return self._client.begin(work)
