"""The guard: every output of a tool passes it, and an output that is too long becomes a notice.

It raises nothing of its own and loses nothing silently: an output that cannot be stored is cut, and its
notice says so.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self, TypeVar

from overspill.delivery.storage import Storage
from overspill.execution import pacing, threads
from overspill.execution.waiting import run_sync
from overspill.guard import argument_checks, call_context, output_capture, turn
from overspill.guard.call_context import guarding_tool, take_sender
from overspill.guard.executors import ASYNC, SYNC
from overspill.guard.output import name_text
from overspill.guard.partial_updates import clamp_update
from overspill.guard.pipeline import Pipeline
from overspill.guard.policy import Policy
from overspill.guard.policy_defaults import INLINE_CHARS, INLINE_LINES
from overspill.guard.streams import GuardedStream
from overspill.guard.trial import Trial
from overspill.guard.turn import Turn
from overspill.guard.wrapping import Wrapper
from overspill.shapes.guarded_chunks import is_async_chunk_iterator, is_chunk_iterator
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from prometheus_client import CollectorRegistry

    from overspill.guard.counts.tally import OutputCount
    from overspill.guard.guarded import Guarded
    from overspill.guard.holdout import Holdout
    from overspill.shapes.captured import CapturedOutput
    from overspill.spools.spool import Spool
    from overspill.transfer.client import Client
    from overspill.wire import Outcome

Tool = TypeVar("Tool")


class Guard:
    """Guards the outputs of any number of tools, for any number of tasks and threads.

        with SyncClient(session="run-42") as client, Guard(client) as guard:
            run_command = guard.wrap(run_command)          # a function, a coroutine function or a generator
            text = run_command("make test")                # the output itself, or a notice with a handle
            guarded = guard.process_sync(rows, tool="query", call_id="call_1")
            print(guarded.outcome, guarded.capture, guarded.value)

    `client` is a `Client`, a `SyncClient`, or the URL of a service. For a URL the guard makes a client with
    the key of `OVERSPILL_KEY`, and closes that client when it is closed itself.

    `spool` keeps what the service does not take: a `Spool`, a `Workspace` that the agent itself can read,
    True for the spool that the environment names if there is a client, or False for none. Without a client
    and a spool nothing can be stored, and an output that is too long is cut. `session` is the session of
    calls that name none; by default it is the client's. With a `holdout`, a random share of all sessions is
    treated in another way, to compare them with the others.

    A guard is a context manager. Closing it reports its last counts and uploads what waits in the spool, for
    a bounded time. Raises `TypeError` for a client, a policy or a spool of another type, and `ValueError` for
    a URL or a variable of the environment that makes no sense.
    """

    _uploads_unasked = True
    """Whether to upload, at the beginning and the end, what other guards and processes left in the spool."""

    def __init__(
        self,
        client: Client | SyncClient | str | None = None,
        policy: Policy | None = None,
        *,
        session: str | None = None,
        spool: Spool | bool = True,
        holdout: Holdout | None = None,
    ) -> None:
        argument_checks.check_guard_arguments(client, policy, holdout)
        self.policy: Policy = Policy() if policy is None else policy
        self._own_client = None
        if isinstance(client, str):
            client = self._own_client = SyncClient(client)
        self._storage = Storage(client, spool=spool, uploads_unasked=self._uploads_unasked)
        self.session: str = self._storage.session if session is None else session
        self.client: Client | SyncClient | None = client
        self.spool: Spool | bool = spool
        self.holdout: Holdout | None = holdout
        self._given: dict[str, Any] = {"client": client, "policy": policy, "session": session, "spool": spool}
        trial = None if holdout is None else Trial(holdout, self.policy)
        self._pipeline = Pipeline(self.policy, self._storage, self.session, self, trial)
        self._storage.upload_leftovers()
        self._wrapper = Wrapper(self._pipeline)

    def __copy__(self) -> Self:
        """Return the guard itself: copies of an agent share their guard, its counts and its clients."""
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a guard like this one in another process, with clients of its own."""
        return functools.partial(type(self), **self._given, holdout=self.holdout), ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Do the same as `close`, for asynchronous code."""
        await threads.run_closing(self.close)

    def close(self) -> None:
        """Report the last counts, for 2 seconds at most, and upload what waits in the spool.

        The upload ends after `OVERSPILL_EXIT_SECONDS`, by default 0.5. A service that has just failed is not
        asked. What is still in the spool then waits for the next guard. Raises nothing.
        """
        self._pipeline.reports.close()
        self._storage.close()
        if self._own_client is not None:
            self._own_client.close()

    def policy_for(self, session: str | None = None) -> Policy:
        """Return the policy for the outputs of a session: the guard's own, or that of a held-out session."""
        trial = self._pipeline.trial
        named = self._pipeline.intake.session_of(session)
        return self.policy if trial is None else trial.policy(named)

    @property
    def stats(self) -> dict[tuple[str, Outcome], OutputCount]:
        """The counts of all outputs so far, by tool and outcome."""
        return self._pipeline.tally.counts()

    async def process(  # noqa: PLR0913  (one for each thing that is known of an output)
        self,
        result: Any,
        *,
        tool: str,
        call_id: str | None = None,
        session: str | None = None,
        status: str = "",
        matches_dropped: int | None = None,
        policy: Policy | None = None,
        is_printed: bool = False,
    ) -> Guarded:
        """Return the value for the conversation: `result` itself, or a shorter value of the same shape.

        A message of a person, the model or the system is returned unchanged. An iterator of chunks is read to
        its end. An exception is a result like any other. `policy` replaces the guard's own for this output.
        `is_printed`: the model is shown `str(value)`, so a text may stand for an object of which no shorter
        copy can be made. Waits for the service as long as the policy's `wait` says. Raises nothing but
        `CancelledError`.
        """
        shared = turn.current(self)
        if shared is None and policy is None:
            quick = self._pipeline.quick(result, tool, session, matches_dropped)
            if quick is not None:
                return quick
        await pacing.wait_to_begin()
        sender = take_sender()
        output = self._pipeline.intake.output(
            ASYNC, result, name_text(tool), policy, call_id, session, status
        )._replace(matches_dropped=matches_dropped, is_printed=is_printed, sender=sender)
        if is_async_chunk_iterator(result):
            return await GuardedStream(self._pipeline, output).read_to_end_async()
        if is_chunk_iterator(result):
            return await GuardedStream(self._pipeline, output._replace(executor=SYNC)).read_to_end_in_thread()
        if shared is None:
            return await self._pipeline.process(output)
        with shared.calling() as call:
            return await self._pipeline.process(output._replace(call=call))

    def process_sync(  # noqa: PLR0913  (as above)
        self,
        result: Any,
        *,
        tool: str,
        call_id: str | None = None,
        session: str | None = None,
        status: str = "",
        matches_dropped: int | None = None,
        policy: Policy | None = None,
        is_printed: bool = False,
    ) -> Guarded:
        """Do the same as `process` without an event loop. Guard an asynchronous iterator as it is read."""
        shared = turn.current(self)
        if shared is None and policy is None:
            quick = self._pipeline.quick(result, tool, session, matches_dropped)
            if quick is not None:
                return quick
        sender = take_sender()
        output = self._pipeline.intake.output(
            SYNC, result, name_text(tool), policy, call_id, session, status
        )._replace(matches_dropped=matches_dropped, is_printed=is_printed, sender=sender)
        if is_async_chunk_iterator(result):
            return GuardedStream(self._pipeline, output._replace(executor=ASYNC)).guard_lazily()
        if is_chunk_iterator(result):
            return GuardedStream(self._pipeline, output).read_to_end()
        if shared is None:
            return run_sync(self._pipeline.process(output))
        with shared.calling() as call:
            return run_sync(self._pipeline.process(output._replace(call=call)))

    async def capture_output(
        self,
        content: Any,
        source: str,
        *,
        inline_threshold: int = INLINE_CHARS,
        inline_lines: int = INLINE_LINES,
        call_id: str | None = None,
        session: str | None = None,
    ) -> CapturedOutput:
        """Return the parts of an output: all of `content` if it is short, else a preview and the handle.

        `source` names the tool. An output is short if it has at most `inline_threshold` characters and
        `inline_lines` lines. A longer one is stored for a day unless the policy's `ttl` says otherwise.
        Raises `ValueError` for a limit below 0, and otherwise nothing but `CancelledError`.
        """
        policy = output_capture.limited(self.policy, inline_threshold, inline_lines)
        with guarding_tool():
            found = await self.process(content, tool=source, call_id=call_id, session=session, policy=policy)
        return await output_capture.captured(content, found)

    def capture_output_sync(
        self,
        content: Any,
        source: str,
        *,
        inline_threshold: int = INLINE_CHARS,
        inline_lines: int = INLINE_LINES,
        call_id: str | None = None,
        session: str | None = None,
    ) -> CapturedOutput:
        """Do the same as `capture_output`, for code without an event loop."""
        policy = output_capture.limited(self.policy, inline_threshold, inline_lines)
        with guarding_tool():
            found = self.process_sync(content, tool=source, call_id=call_id, session=session, policy=policy)
        return output_capture.captured_sync(content, found)

    def wrap(self, tool: Tool, *, name: str | None = None) -> Tool:
        """Return `tool` with its outputs guarded: a coroutine function stays one, a generator function too.

        A tool object of a framework, such as LangChain's `StructuredTool`, becomes a copy of its class.
        `name` is the tool's name for limits and notices; by default its own. The id of a call is the one
        that `calling` gives, or a random one.

        Exceptions are guarded too: one whose message is too long keeps its type. A guarded generator passes
        on neither `send` nor `throw`, because its chunks are held back.

        Raises `TypeError` for anything but a tool.
        """
        return self._wrapper.wrap(tool, name)

    def partial(self, update: Any, *, tool: str = "") -> Any:
        """Return a tool's report while it runs, cut to the tool's limits. Nothing is stored.

        It keeps its shape. A style that fills the limits cuts it in the style's own words. Secrets are masked
        in what is cut.
        """
        return clamp_update(update, self.policy, tool)

    def turn(self, budget: int) -> Turn:
        """Return a block, for `with` or `async with`, whose results share `budget` bytes: see `Turn`.

        Raises `ValueError` for a budget below 0.
        """
        return Turn(budget, self)

    def export(self, registry: CollectorRegistry | None = None) -> None:
        """Show the counts in a Prometheus registry, by default the library's own.

        Raises `ImportError` without the extra `overspill[prometheus]`.
        """
        from prometheus_client import REGISTRY  # noqa: PLC0415  (an optional library)

        from overspill.guard.counts.prometheus import export  # noqa: PLC0415

        export(self._pipeline.tally, self, REGISTRY if registry is None else registry)

    def bypass(self) -> AbstractContextManager[None]:
        """Return a block in which outputs pass whole: for code that needs all that its tools return."""
        return call_context.bypassing()
