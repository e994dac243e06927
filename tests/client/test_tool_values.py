"""What a tool returns is guarded, also if it looks like a message that no tool makes."""

from __future__ import annotations

from typing import Any

import pytest
from overspill import Guard
from overspill.guard.tool_values import process_value, process_value_sync

LONG = "line of text\n" * 20_000
BLOCKS = [{"type": "text", "text": LONG}]
MESSAGES: dict[str, dict[str, Any]] = {
    "of a person": {"role": "user", "content": BLOCKS},
    "of the model": {"role": "assistant", "content": LONG},
    "by its type": {"type": "human", "content": LONG},
    "by both": {"type": "message", "role": "user", "content": BLOCKS},
    "of Gemini": {"role": "user", "parts": [{"text": LONG}]},
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
async def test_a_tools_value_that_looks_like_a_message_is_guarded_and_keeps_its_fields(
    message: dict[str, Any],
) -> None:
    guard = Guard(spool=False)
    for guarded in (
        await process_value(guard, message, tool="t"),
        process_value_sync(guard, message, tool="t"),
    ):
        assert guarded.notice is not None
        assert guarded.value.keys() == message.keys()
        assert {name: guarded.value[name] for name in ("role", "type") if name in message} == {
            name: message[name] for name in ("role", "type") if name in message
        }
        assert len(str(guarded.value)) < 10_000


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
async def test_a_wrapped_tool_returns_no_message_whole(message: dict[str, Any]) -> None:
    guard = Guard(spool=False)

    async def answer() -> dict[str, Any]:
        return message

    for value in (guard.wrap(lambda: message)(), await guard.wrap(answer)()):
        assert value.keys() == message.keys()
        assert len(str(value)) < 10_000


async def test_output_that_is_captured_is_no_message() -> None:
    guard = Guard(spool=False)
    message = MESSAGES["of the model"]

    assert (await guard.capture_output(message, "t")).truncated
    assert guard.capture_output_sync(message, "t").truncated


def test_a_short_one_is_the_same_object() -> None:
    message = {"role": "user", "content": "short"}

    assert process_value_sync(Guard(spool=False), message, tool="t").value is message
    assert Guard(spool=False).wrap(lambda: message)() is message
