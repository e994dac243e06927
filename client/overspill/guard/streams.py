"""Guards results that come in chunks: as a tool yields them, or read to the end at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill.execution import threads
from overspill.execution.waiting import run_sync
from overspill.guard import call_context
from overspill.guard.assessment import reserve
from overspill.guard.band import all_go_to_service
from overspill.guard.results import inline
from overspill.guard.trial import PassedChunks
from overspill.shapes.chunk_stream import ChunkStream
from overspill.shapes.guarded_chunks import aclose_source, close_source, guarded_chunks, guarded_chunks_async
from overspill.shapes.records import is_opaque_record
from overspill.text import measure
from overspill.text.body import FileBody
from overspill.transfer.live_calls import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator

    from overspill.delivery.storage import Storage
    from overspill.delivery.stream_upload import StreamUpload
    from overspill.guard.guarded import Guarded
    from overspill.guard.output import Output
    from overspill.guard.pipeline import Pipeline
    from overspill.guard.policy import Policy
    from overspill.live.ports import Beginning
    from overspill.shapes.stream_shapes import StreamShape

_END: Final = object()
_MAX_LOST: Final = 64 * 1024 * 1024
"""Bytes of a stream that are read if nothing can store it: enough for a preview."""


class GuardedStream:
    """One result that comes in chunks. `guarded` is its outcome, or None as long as it is not too long."""

    def __init__(self, pipeline: Pipeline, output: Output) -> None:
        origin = pipeline.intake.origin(output)  # asked here, because another task may read the stream
        self._pipeline = pipeline
        self._output = output._replace(
            call_id=origin.call_id, session=origin.session, is_minted=origin.is_minted
        )
        limit = _most_kept(pipeline.storage, output.policy)
        limits = output.policy.limits(output.tool)
        self._chunks = ChunkStream(
            limits,
            max_bytes=limit,
            reserve=reserve(output.policy),
            redactor=output.policy.redactor(),
            masks_inline=output.policy.masks_inline,
            on_long=self._begin_live,
        )
        self._live: StreamUpload | None = None
        self._is_bypassed = call_context.is_bypassed()
        self._is_dropped = False
        self._size = 0
        self._passed = None if output.assignment is None else PassedChunks()
        self.guarded: Guarded | None = None

    def chunks(self) -> Generator[Any, None, Any]:
        """Yield the chunks of a synchronous source that go into the conversation."""
        source = self._output.result
        if not self._is_bypassed:
            source = guarded_chunks(source, self._chunks, lambda shape: run_sync(self._settle(shape)))
        returned, failure = None, None
        try:
            while True:
                yield self._measured(next(source))
        except StopIteration as ended:
            returned = ended.value
        except Exception as error:  # noqa: BLE001  (a tool's own, raised below)
            failure = error
        finally:
            self._leave_live()
            close_source(source)
        if failure is not None:
            raise run_sync(self._failure(failure))
        self._count()
        return returned

    async def chunks_async(self) -> AsyncGenerator[Any, None]:
        """Do the same as `chunks`, for an asynchronous source."""
        source = self._output.result
        if not self._is_bypassed:
            source = guarded_chunks_async(source, self._chunks, self._settle, self._output.run)
        failure = None
        try:
            async for chunk in source:
                yield self._measured(chunk)
        except Exception as error:  # noqa: BLE001  (as above)
            failure = error
        finally:
            self._leave_live()
            await aclose_source(source)
        if failure is not None:
            raise await self._failure(failure)
        self._count()

    def guard_lazily(self) -> Guarded:
        """Return an asynchronous stream, which is guarded as somebody reads it."""
        return self._inline(self.chunks_async())

    def read_to_end(self) -> Guarded:
        """Read the stream to its end. Return its outcome.

        The value is one chunk, or an iterator of what stays for a stream of records. Reading stops at the
        first object that shows nothing of itself: the rest is guarded as somebody reads the value.
        """
        chunks, items = self.chunks(), _ReadItems()
        try:
            while self._may_go_on(items):
                items.read.append(next(chunks))
        except StopIteration:
            pass
        except Exception as error:  # noqa: BLE001  (a tool's own, raised again behind what came before)
            items.failure = error
        if self.guarded is None:
            return self._inline(items.replayed(chunks))
        chunks.close()
        return self._with_all(self.guarded, items.replayed(iter(())))

    async def read_to_end_in_thread(self) -> Guarded:
        """Do the same as `read_to_end`, in a thread of its own: the tool may block. Cancelling stops it."""
        try:
            return await threads.run_alone(self.read_to_end)
        except BaseException:  # the caller was cancelled, by whichever event loop
            self._is_dropped = self._chunks.is_over = True
            raise

    async def read_to_end_async(self) -> Guarded:
        """Do the same as `read_to_end`, for an asynchronous source."""
        chunks, items = self.chunks_async(), _ReadItems()
        try:
            while self._may_go_on(items):
                items.read.append(await anext(chunks))
        except StopAsyncIteration:
            pass
        except Exception as error:  # noqa: BLE001  (as above)
            items.failure = error
        if self.guarded is None:
            return self._inline(items.replayed_async(chunks))
        await chunks.aclose()
        return self._with_all(self.guarded, items.replayed_async(_nothing()))

    def _may_go_on(self, items: _ReadItems) -> bool:
        """Return whether to read on: there may be more, and what has come is bounded."""
        if self._chunks.is_of_records and not self._is_bypassed:
            return not items.is_silent
        return self.guarded is None and items.are_chunks

    def _with_all(self, guarded: Guarded, items: Any) -> Guarded:
        """Return the outcome with all items as its value, if the stream is one of records."""
        return replace(guarded, value=items) if self._chunks.is_of_records else guarded

    async def _settle(self, shape: StreamShape) -> Any:
        """Store a stream that was too long, and return what replaces it."""
        output, live = self._output, await self._stopped_live(shape)
        self.guarded = await self._pipeline.replaced(output._replace(live=live), shape)
        if live is not None and self.guarded.capture == live.id:
            self._live = None
        return self.guarded.value

    def _begin_live(self) -> None:
        """Upload the stream while it grows, if it goes to the service whatever its length."""
        output = self._output
        origin = self._pipeline.intake.origin(output)
        if all_go_to_service(output.policy.bands) and not origin.capture:
            handle = new_id(origin.session, origin.call_id)
            description = origin.description(handle, ttl=output.policy.ttl)
            self._live = self._pipeline.storage.begin_live(self._chunks, description, output.flow)

    async def _stopped_live(self, shape: StreamShape) -> Beginning | None:
        """Send no more of the stream. Return the beginning that the service may have, if any."""
        live = self._live
        if live is None or live.is_inherited or self._is_dropped:
            return None
        with suppress(Exception):  # it was stopped, or whatever fails: then it is stored at its end
            await self._output.executor.result(live.stop())
        return live.beginning(is_own=isinstance(shape.body, FileBody) and not shape.missing)

    def _leave_live(self) -> None:
        """Abandon a capture that no notice names. Called in finalizers too."""
        live, self._live = self._live, None
        if live is not None:
            live.abandon()

    async def _failure(self, error: Exception) -> Exception:
        """Return the exception to raise: the tool's, or one of its type with a notice as its message.

        The guard counts it as the outcome of the stream.
        """
        if self._is_bypassed:
            self._count()
            return error
        raised = (await self._pipeline.process(self._output._replace(result=error))).value
        return raised if isinstance(raised, Exception) else error

    def _measured(self, chunk: Any) -> Any:
        if isinstance(chunk, str):
            self._size += measure.size(chunk)
        elif isinstance(chunk, bytes):
            self._size += len(chunk)
        if self._passed is not None:
            self._passed.take(chunk)
        return chunk

    def _count(self) -> None:
        """Count a stream that stayed whole."""
        if self.guarded is None and not self._is_dropped:
            guarded, assigned = self._inline(None), self._output.assignment
            above = None
            if assigned is not None and self._passed is not None:
                above = self._passed.oversized(assigned.limits, guarded.bytes_before)
            self._pipeline.count(self._output, guarded, above)

    def _inline(self, value: Any) -> Guarded:
        return inline(self._output._replace(result=value), self._chunks.size or self._size)


class _ReadItems:
    """The items that were read from a stream, and how it failed if it did."""

    def __init__(self) -> None:
        self.read: list[Any] = []
        self.failure: Exception | None = None

    @property
    def is_silent(self) -> bool:
        """Whether the last item has no visible content: a stream of such items may be endless."""
        return bool(self.read) and is_opaque_record(self.read[-1])

    @property
    def are_chunks(self) -> bool:
        """Whether the items so far are text or bytes: the guard limits how much of these passes."""
        return not self.read or isinstance(self.read[-1], str | bytes)

    def replayed(self, rest: Iterator[Any]) -> Iterator[Any]:
        yield from self.read
        if self.failure is not None:
            raise self.failure
        yield from rest

    async def replayed_async(self, rest: AsyncIterator[Any]) -> AsyncIterator[Any]:
        for chunk in self.read:
            yield chunk
        if self.failure is not None:
            raise self.failure
        async for chunk in rest:
            yield chunk


async def _nothing() -> AsyncIterator[Any]:
    for nothing in tuple[Any, ...]():
        yield nothing


def _most_kept(storage: Storage, policy: Policy) -> int:
    """Return the most bytes of a stream that are worth keeping under a policy."""
    limit = policy.max_stream_bytes
    for band in reversed(policy.bands):
        if storage.has_any(band.destinations):
            break
        limit = min(limit, band.above or _MAX_LOST)
    return limit if storage.largest is None else min(limit, storage.largest)
