"""Makes the result of `Guard.capture_output`: the parts of an output, also of a stream that stays whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from overspill.delivery.reasons import reason
from overspill.execution import threads
from overspill.guard import number_checks
from overspill.shapes.captured import CapturedOutput
from overspill.shapes.guarded_chunks import is_async_chunk_iterator, is_chunk_iterator
from overspill.text.reasons import one_safe_line
from overspill.wire import DEFAULT_TTL

if TYPE_CHECKING:
    from overspill.guard.guarded import Guarded
    from overspill.guard.policy import Policy


def limited(policy: Policy, inline_threshold: int, inline_lines: int) -> Policy:
    """Return the policy with these limits; a long output is kept for a day unless it says otherwise.

    Raises `ValueError` for a limit below 0.
    """
    number_checks.whole("inline_threshold", inline_threshold)
    number_checks.whole("inline_lines", inline_lines)
    policy = replace(policy.limited(inline_threshold, inline_lines), least_gain=None)
    return policy if policy.ttl is not None else replace(policy, ttl=DEFAULT_TTL)


async def captured(content: Any, guarded: Guarded) -> CapturedOutput:
    """Return the parts of an output. A stream that stays is read to its end."""
    if guarded.notice is not None or not (is_async_chunk_iterator(content) or is_chunk_iterator(content)):
        return await threads.run(_parts, content, guarded)
    chunks: list[Any] = []
    try:
        if is_async_chunk_iterator(content):
            async for chunk in guarded.value:
                chunks.append(chunk)  # noqa: PERF401  (those before a failure count)
        else:
            await threads.run_alone(chunks.extend, guarded.value)
    except Exception as error:  # noqa: BLE001  (a tool's own: what came before it is the output)
        return _failed_stream(chunks, error)
    return await threads.run(_parts, _joined_chunks(chunks), guarded)


def captured_sync(content: Any, guarded: Guarded) -> CapturedOutput:
    """Do the same as `captured`, for code without an event loop."""
    if guarded.notice is not None or not is_chunk_iterator(content):
        return _parts(content, guarded)
    chunks: list[Any] = []
    try:
        chunks.extend(guarded.value)
    except Exception as error:  # noqa: BLE001  (as above)
        return _failed_stream(chunks, error)
    return _parts(_joined_chunks(chunks), guarded)


def _joined_chunks(chunks: list[Any]) -> Any:
    """Return the chunks of a short stream as one text, or as an iterator if they are not all text."""
    for kind in (str, bytes):
        if chunks and all(isinstance(chunk, kind) for chunk in chunks):
            return kind().join(chunks)
    return iter(chunks)


def _failed_stream(chunks: list[Any], error: Exception) -> CapturedOutput:
    """Return the chunks of a stream before it failed, and the reason."""
    return CapturedOutput.of(
        _joined_chunks(chunks), None, one_safe_line(f"the stream failed: {reason(error)}")
    )


def _parts(content: Any, guarded: Guarded) -> CapturedOutput:
    if guarded.reason is not None and guarded.notice is None:  # it could not be measured, so it has no text
        return CapturedOutput(content=content, reason=guarded.reason)
    return CapturedOutput.of(content, guarded.notice, guarded.reason)
