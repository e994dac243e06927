"""Wraps functions, coroutine functions and generators so that what they return, yield or raise is guarded."""

from __future__ import annotations

import functools
import inspect
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from overspill.execution import pacing
from overspill.execution.waiting import run_sync
from overspill.guard import turn
from overspill.guard.executors import ASYNC, SYNC
from overspill.guard.return_types import keep_return_type
from overspill.guard.streams import GuardedStream
from overspill.guard.tool_objects import is_tool_object, name_of, with_guarded
from overspill.shapes.guarded_chunks import is_async_chunk_iterator, is_chunk_iterator

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from overspill.guard.output import Output
    from overspill.guard.pipeline import Pipeline
    from overspill.guard.turn import RunningCall

P = ParamSpec("P")
Tool = TypeVar("Tool")


class Wrapper:
    """Wraps the tools of the guard that has this pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("_wrapper"), (self._pipeline.owner,)

    def wrap(self, tool: Tool, name: str | None) -> Tool:
        """Return a function or a framework's tool object with its outputs guarded: see `Guard.wrap`."""
        wrapped: Any
        if is_tool_object(tool):
            named = name or name_of(tool)
            wrapped = with_guarded(tool, lambda function: self._function_of(function, named))
        elif callable(tool):
            wrapped = self._function_of(tool, name or str(getattr(tool, "__name__", type(tool).__name__)))
        else:
            raise TypeError(f"wrap takes a function or a framework's tool object, not {type(tool).__name__}")
        return cast("Tool", wrapped)

    def _function_of(self, tool: Callable[P, Any], name: str) -> Callable[P, Any]:
        """Return a function with its outputs guarded. `name` is the tool's name for limits and notices."""
        if inspect.iscoroutinefunction(tool):
            return self._coroutine_function(tool, name)
        if inspect.isasyncgenfunction(tool):
            return self._asynchronous_generator(tool, name)
        if inspect.isgeneratorfunction(tool):
            return self._generator(tool, name)
        return self._function(tool, name)

    def _coroutine_function(self, tool: Callable[P, Awaitable[Any]], name: str) -> Callable[P, Any]:
        inline_size, owner = self._pipeline.fast_path(name).inline_size, self._pipeline.owner

        async def run(call: RunningCall | None, *args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                result = await tool(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  (it is raised below, with a shorter message if needed)
                failure = _as_raised(error)
            else:
                if call is None and inline_size(result) is not None:
                    return result
                return keep_return_type(tool, result, await self._value(result, name, call))
            raise await self._value(failure, name, call)

        @functools.wraps(tool)
        async def guarded(*args: P.args, **kwargs: P.kwargs) -> Any:
            shared = turn.current(owner)
            if shared is None:
                return await run(None, *args, **kwargs)
            with shared.calling() as call:
                return await run(call, *args, **kwargs)

        return guarded

    def _function(self, tool: Callable[P, Any], name: str) -> Callable[P, Any]:
        inline_size, owner = self._pipeline.fast_path(name).inline_size, self._pipeline.owner

        def run(call: RunningCall | None, *args: P.args, **kwargs: P.kwargs) -> Any:
            try:
                result = tool(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  (as above)
                failure = _as_raised(error)
            else:
                if call is None and inline_size(result) is not None:
                    return result
                if _is_awaitable(result):  # the tool is asynchronous behind a plain function
                    return self._coroutine_function(lambda: result, name)()
                return keep_return_type(tool, result, self._value_sync(result, name, call))
            raise self._value_sync(failure, name, call)

        @functools.wraps(tool)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Any:
            shared = turn.current(owner)
            if shared is None:
                return run(None, *args, **kwargs)
            with shared.calling() as call:
                return run(call, *args, **kwargs)

        return guarded

    def _asynchronous_generator(self, tool: Callable[P, Any], name: str) -> Callable[P, Any]:
        @functools.wraps(tool)
        async def guarded(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Any, None]:
            output = self._pipeline.intake.output(ASYNC, tool(*args, **kwargs), name)
            chunks = GuardedStream(self._pipeline, output).chunks_async()
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()

        return guarded

    def _generator(self, tool: Callable[P, Any], name: str) -> Callable[P, Any]:
        @functools.wraps(tool)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, Any]:
            output = self._pipeline.intake.output(SYNC, tool(*args, **kwargs), name)
            return (yield from GuardedStream(self._pipeline, output).chunks())

        return guarded

    async def _value(self, result: Any, name: str, call: RunningCall | None) -> Any:
        output = self._pipeline.intake.output(ASYNC, result, name)._replace(call=call)
        if (chunks := self._chunks(output)) is not None:
            return chunks
        await pacing.wait_to_begin()
        return (await self._pipeline.process(output)).value

    def _value_sync(self, result: Any, name: str, call: RunningCall | None) -> Any:
        output = self._pipeline.intake.output(SYNC, result, name)._replace(call=call)
        if (chunks := self._chunks(output)) is not None:
            return chunks
        return run_sync(self._pipeline.process(output)).value

    def _chunks(self, output: Output) -> Any:
        """Return the guarded chunks of a result that comes in chunks, None for any other."""
        if is_async_chunk_iterator(output.result):
            return GuardedStream(self._pipeline, output._replace(executor=ASYNC)).chunks_async()
        if is_chunk_iterator(output.result):
            return GuardedStream(self._pipeline, output._replace(executor=SYNC)).chunks()
        return None


def _is_awaitable(result: Any) -> bool:
    try:
        return inspect.isawaitable(result)
    except Exception:  # noqa: BLE001  (a foreign class or proxy: whatever it raises)
        return False


def _as_raised(error: Exception) -> Exception:
    """Return the exception without this module's frame in its traceback."""
    traceback = error.__traceback__
    return error if traceback is None else error.with_traceback(traceback.tb_next)
