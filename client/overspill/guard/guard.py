"""The guard: every tool output passes it, and what is too long for the conversation leaves as a notice.

It never raises on its own account and never loses output silently: what cannot be stored is cut, and the
model is told so.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from overspill.delivery.storage import Storage, reason
from overspill.execution import pacing, threads
from overspill.guard import checks, turn
from overspill.guard.executors import AsyncExecutor, SyncExecutor, run_sync
from overspill.guard.output import Output, name_text
from overspill.guard.pipeline import Pipeline
from overspill.guard.policy import INLINE_CHARS, INLINE_LINES, Policy
from overspill.guard.streams import Stream
from overspill.guard.tool_objects import is_tool_object, with_guarded
from overspill.guard.turn import Turn
from overspill.guard.wrapping import Wrapper
from overspill.previews.filling import Filling, shortened
from overspill.shapes.captured import CapturedOutput
from overspill.shapes.guarded_chunks import is_async_chunk_iterator, is_chunk_iterator
from overspill.shapes.partial import clamp_partial
from overspill.text.reasons import one_safe_line
from overspill.transfer import call_context
from overspill.transfer.client import Client
from overspill.transfer.sync import SyncClient
from overspill.wire import DEFAULT_TTL

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from prometheus_client import CollectorRegistry

    from overspill.guard.counts.tally import OutputCount
    from overspill.guard.guarded import Guarded
    from overspill.spools.spool import Spool
    from overspill.wire import Outcome

Tool = TypeVar("Tool")

_ASYNC: Final = AsyncExecutor()
_SYNC: Final = SyncExecutor()


class Guard:
    """Guards the outputs of any number of tools, from any number of tasks and threads.

        with SyncClient(session="run-42") as client, Guard(client) as guard:
            run_command = guard.wrap(run_command)          # a function, a coroutine function or a generator
            text = run_command("make test")                # the output itself, or a notice with a handle
            guarded = guard.process_sync(rows, tool="query", call_id="call_1")
            print(guarded.outcome, guarded.capture, guarded.value)

    `client` is a `Client`, a `SyncClient`, or the URL of a service, with the key of `OVERSPILL_KEY`; a client
    that is made from a URL is closed with the guard.

    What the service does not take waits in `spool`: where it is True, the one that the environment names if
    there is a client; a `Workspace` is one that the agent itself can read. Without client and spool nothing
    can be stored, and what is too long is cut. `session` is that of calls which bring none of their own;
    the client's, if it is not given.

    Used as a context manager, or closed, it reports its last counts, and leaves open a client that it was
    given. Raises `TypeError` and `ValueError` for arguments that cannot be meant.
    """

    _uploads_unasked = True
    """Whether it looks, when it begins and ends, for what other guards and processes left in the spool."""

    def __init__(
        self,
        client: Client | SyncClient | str | None = None,
        policy: Policy | None = None,
        *,
        session: str | None = None,
        spool: Spool | bool = True,
    ) -> None:
        _check(client, policy)
        self.policy: Policy = Policy() if policy is None else policy
        self._own_client = None
        if isinstance(client, str):
            client = self._own_client = SyncClient(client)
        self._storage = Storage(client, spool=spool, uploads_unasked=self._uploads_unasked)
        self.session: str = self._storage.session if session is None else session
        self._given: dict[str, Any] = {"client": client, "policy": policy, "session": session, "spool": spool}
        self._pipeline = Pipeline(self.policy, self._storage, self.session)
        self._pipeline.owner = self
        self._storage.look()
        self._wrapper = Wrapper(self._pipeline, self)

    def __copy__(self) -> Self:
        """Return the guard itself: copies of an agent share their guard, its counts and its clients."""
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes a guard like this one in another process, with clients of its own."""
        return functools.partial(type(self), **self._given), ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """As `close`, for asynchronous code."""
        await threads.run_blocking(self.close)

    def close(self) -> None:
        """Report the last counts and upload what waits, for some seconds and some tenths of a second at most.

        A service that is left alone is not asked. What is still spooled then waits for the next guard.
        """
        self._pipeline.reports.close()
        self._storage.close()
        if self._own_client is not None:
            self._own_client.close()

    @property
    def stats(self) -> dict[tuple[str, Outcome], OutputCount]:
        """What passed so far, by tool and outcome."""
        return self._pipeline.tally.counts()

    async def process(
        self,
        result: Any,
        *,
        tool: str,
        call_id: str | None = None,
        session: str | None = None,
        status: str = "",
        matches_dropped: int | None = None,
        policy: Policy | None = None,
    ) -> Guarded:
        """`result` as it may go into the conversation: the same object, or a stand-in of the same shape.

        An iterator of chunks is read to its end; an exception is a result like any other. `policy` goes
        before the guard's own. Waits for the service no longer than the policy's deadline. Raises nothing
        but `CancelledError`.
        """
        shared = turn.current(self)
        if shared is None and policy is None:
            quick = self._pipeline.quick(result, tool, matches_dropped)
            if quick is not None:
                return quick
        await pacing.wait_to_begin()
        output = self._output(result, tool, call_id, session, status, matches_dropped, policy)
        if is_async_chunk_iterator(result):
            return await Stream(self._pipeline, _ASYNC, output).ended_async()
        if is_chunk_iterator(result):
            return await Stream(self._pipeline, _SYNC, output).ended_in_thread(_ASYNC)
        if shared is None:
            return await self._pipeline.process(_ASYNC, output)
        with shared.calling() as call:
            return await self._pipeline.process(_ASYNC, output._replace(call=call))

    def process_sync(
        self,
        result: Any,
        *,
        tool: str,
        call_id: str | None = None,
        session: str | None = None,
        status: str = "",
        matches_dropped: int | None = None,
        policy: Policy | None = None,
    ) -> Guarded:
        """As `process`, for code without an event loop; an asynchronous iterator is guarded as it is read."""
        shared = turn.current(self)
        if shared is None and policy is None:
            quick = self._pipeline.quick(result, tool, matches_dropped)
            if quick is not None:
                return quick
        output = self._output(result, tool, call_id, session, status, matches_dropped, policy)
        if is_async_chunk_iterator(result):
            return Stream(self._pipeline, _ASYNC, output).begun()
        if is_chunk_iterator(result):
            return Stream(self._pipeline, _SYNC, output).ended()
        if shared is None:
            return run_sync(self._pipeline.process(_SYNC, output))
        with shared.calling() as call:
            return run_sync(self._pipeline.process(_SYNC, output._replace(call=call)))

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
        """File-based output management: `content` as it is, or a cut of it and where the rest is.

        `inline_threshold` characters and `inline_lines` lines may stay; `source` names the tool. What is
        more is kept for a day unless the policy says otherwise. Raises `ValueError` for a limit below 0,
        and else nothing but `CancelledError`.
        """
        policy = self._file_based(inline_threshold, inline_lines)
        guarded = await self.process(content, tool=source, call_id=call_id, session=session, policy=policy)
        if guarded.notice is not None or not (is_async_chunk_iterator(content) or is_chunk_iterator(content)):
            return await threads.run(_captured, content, guarded)
        chunks: list[Any] = []
        try:
            if is_async_chunk_iterator(content):
                async for chunk in guarded.value:
                    chunks.append(chunk)  # noqa: PERF401  (those before a failure count)
            else:
                await _ASYNC.run_alone(partial(chunks.extend, guarded.value))
        except Exception as error:  # noqa: BLE001  (a tool's own: what came before it is the output)
            return _failed_stream(chunks, error)
        return await threads.run(_captured, _joined(chunks), guarded)

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
        """As `capture_output`, for code without an event loop."""
        policy = self._file_based(inline_threshold, inline_lines)
        guarded = self.process_sync(content, tool=source, call_id=call_id, session=session, policy=policy)
        if guarded.notice is not None or not is_chunk_iterator(content):
            return _captured(content, guarded)
        chunks: list[Any] = []
        try:
            chunks.extend(guarded.value)
        except Exception as error:  # noqa: BLE001  (as above)
            return _failed_stream(chunks, error)
        return _captured(_joined(chunks), guarded)

    def wrap(self, tool: Tool, *, name: str | None = None) -> Tool:
        """`tool` with its outputs guarded, async if it is. The call id is that of `calling`, or minted.

        A framework's tool object, as LangChain's `StructuredTool`, becomes a copy of its class.

        What it raises is guarded too: an exception with too long a message keeps its type. What is sent or
        thrown into a stream does not reach the tool, whose chunks are held back.
        """
        if is_tool_object(tool):
            named = name or str(getattr(tool, "name", type(tool).__name__))
            guarded: Tool = with_guarded(tool, lambda function: self._wrapper.wrap(function, named))
            return guarded
        function: Any = tool
        called = name or str(getattr(tool, "__name__", type(tool).__name__))
        wrapped: Any = self._wrapper.wrap(function, called)
        return cast("Tool", wrapped)

    def partial(self, update: Any, *, tool: str = "") -> Any:
        """What a tool tells of itself while it runs: cut to the tool's limits in its shape, not stored.

        A style that fills the limits cuts it in its own words, as it does the result.
        """
        if call_context.is_bypassed():
            return update
        limits, style = self.policy.limits(tool), self.policy.notice_style
        shorten = (
            partial(shortened, style, self.policy.cut_strategy, limits)
            if isinstance(style, Filling)
            else None
        )
        return clamp_partial(update, limits, shorten)

    def turn(self, budget: int) -> Turn:
        """A block, `with` or `async with`, whose results have `budget` bytes together; see `Turn`."""
        return Turn(budget, self)

    def export(self, registry: CollectorRegistry | None = None) -> None:
        """Show the counts in a Prometheus registry, the default one if none is given.

        Needs `overspill[prometheus]`; raises `ImportError` without it.
        """
        from prometheus_client import REGISTRY  # noqa: PLC0415  (an optional library)

        from overspill.guard.counts.prometheus import export  # noqa: PLC0415

        export(self._pipeline.tally, self, REGISTRY if registry is None else registry)

    def bypass(self) -> AbstractContextManager[None]:
        """Within the block, outputs pass whole: for code that calls tools and needs all that they return."""
        return call_context.bypassing()

    def _output(
        self,
        result: Any,
        tool: Any,
        call_id: str | None,
        session: str | None,
        status: str,
        matches_dropped: int | None,
        policy: Policy | None,
    ) -> Output:
        return Output(
            result, name_text(tool), policy or self.policy, call_id, session, status, matches_dropped
        )

    def _file_based(self, inline_threshold: int, inline_lines: int) -> Policy:
        checks.whole("inline_threshold", inline_threshold)
        checks.whole("inline_lines", inline_lines)
        policy = replace(self.policy.limited(inline_threshold, inline_lines), least_gain=None)
        return policy if policy.ttl is not None else replace(policy, ttl=DEFAULT_TTL)


def _check(client: object, policy: object) -> None:
    """Say early and clearly what was mixed up."""
    if not (client is None or isinstance(client, (Client, SyncClient, str))):
        what = type(client).__name__
        hint = "; give a policy by name: Guard(policy=…)" if isinstance(client, Policy) else ""
        raise TypeError(f"client must be a Client, a SyncClient or the URL of a service, not a {what}{hint}")
    if not (policy is None or isinstance(policy, Policy)):
        raise TypeError(f"policy must be a Policy, not {policy!r}")


def _joined(chunks: list[Any]) -> Any:
    """What a stream that stays came to: one text where its chunks are such."""
    for kind in (str, bytes):
        if chunks and all(isinstance(chunk, kind) for chunk in chunks):
            return kind().join(chunks)
    return iter(chunks)


def _failed_stream(chunks: list[Any], error: Exception) -> CapturedOutput:
    """What came of a stream before it failed, and why it did."""
    return CapturedOutput.of(_joined(chunks), None, one_safe_line(f"the stream failed: {reason(error)}"))


def _captured(content: Any, guarded: Guarded) -> CapturedOutput:
    if guarded.reason is not None and guarded.notice is None:  # it could not even be looked at
        return CapturedOutput(content=content, reason=guarded.reason)
    return CapturedOutput.of(content, guarded.notice, guarded.reason)
