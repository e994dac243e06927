"""A tool's result is guarded, even if it looks like a message that no tool makes."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
from collections import OrderedDict, UserDict
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest
from anthropic.types import Message, TextBlock, Usage
from google.genai.types import Blob, Content, Part
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage
from mcp.types import CreateMessageResult, PromptMessage, SamplingMessage, TextContent
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from overspill import Guard, spill_messages_sync
from overspill.guard.call_context import guarding_tool
from overspill.integrations.adapter import Adapter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

LONG = "line of text\n" * 8_000
BLOCKS = [{"type": "text", "text": LONG}]
PICTURE = {"type": "image", "data": "aGk=" * 50_000, "mimeType": "image/png"}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
MESSAGES: dict[str, dict[str, Any]] = {
    "of a person": {"role": "user", "content": BLOCKS},
    "of the model": {"role": "assistant", "content": LONG},
    "by its type": {"type": "human", "content": LONG},
    "by both": {"type": "message", "role": "user", "content": BLOCKS},
    "of Gemini": {"role": "user", "parts": [{"text": LONG}]},
    "beside a result": {"role": "user", "content": [RESULT, *BLOCKS]},
    "of a tool, beside a result": {"role": "tool", "content": [RESULT, *BLOCKS]},
    "beside a result, and no block": {"role": "user", "content": [RESULT, {"type": "other", "log": LONG}]},
    "with long calls": {
        "role": "assistant",
        "content": [{"type": "text", "text": "ok"}],
        "tool_calls": [{"function": {"name": "run", "arguments": LONG}}],
    },
}


@dataclasses.dataclass
class OfDataclass:
    role: str
    content: Any
    more: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class OfFrozenDataclass:
    role: str
    content: Any


@attrs.define
class OfAttrs:
    role: str
    content: Any


class OfMsgspec(msgspec.Struct, frozen=True, tag="assistant"):
    role: str
    content: Any


class OfPydantic(pydantic.BaseModel):
    role: str
    content: Any


class OfNamedTuple(NamedTuple):
    role: str
    content: Any


CLASSES: tuple[Callable[..., Any], ...] = (
    *(OfDataclass, OfFrozenDataclass, OfAttrs, OfMsgspec, OfPydantic, OfNamedTuple, SimpleNamespace),
    *(OrderedDict, UserDict, lambda **fields: MappingProxyType(fields)),
)
OBJECTS: dict[str, Any] = {
    **{
        f"{type(made).__name__} with a text": made
        for made in (kind(role="user", content=LONG) for kind in CLASSES)
    },
    **{
        f"{type(made).__name__} with blocks": made
        for made in (kind(role="user", content=BLOCKS) for kind in CLASSES)
    },
    "a message around a message": OfDataclass("user", OfPydantic(role="user", content=LONG)),
    "another field is long": OfDataclass("assistant", [{"type": "text", "text": "ok"}], LONG),
    "OpenAI's completion": ChatCompletionMessage(role="assistant", content=LONG),
    "OpenAI's response": ResponseOutputMessage(
        id="m",
        role="assistant",
        status="completed",
        type="message",
        content=[ResponseOutputText(type="output_text", text=LONG, annotations=[])],
    ),
    "Anthropic's": Message(
        id="m",
        type="message",
        role="assistant",
        model="m",
        content=[TextBlock(type="text", text=LONG)],
        usage=Usage(input_tokens=1, output_tokens=1),
    ),
    "LangChain's of a person": HumanMessage(LONG),
    "LangChain's of the model": AIMessage([{"type": "text", "text": LONG}]),
    "LangChain's of the system": SystemMessage(LONG),
    "LangChain's of a role": ChatMessage(role="user", content=LONG),
    "MCP's of a prompt": PromptMessage(role="user", content=TextContent(type="text", text=LONG)),
    "MCP's to sample": SamplingMessage(role="user", content=TextContent(type="text", text=LONG)),
    "MCP's sampled": CreateMessageResult(
        role="assistant", model="m", content=TextContent(type="text", text=LONG)
    ),
    "Gemini's": Content(role="model", parts=[Part(text=LONG)]),
}


async def by_adapter(guard: Guard, value: Any) -> Any:
    return (await Adapter(guard).call("t", "c").process(value)).value


async def by_adapter_sync(guard: Guard, value: Any) -> Any:
    return Adapter(guard).call("t", "c").process_sync(value).value


async def by_function(guard: Guard, value: Any) -> Any:
    return guard.wrap(lambda: value)()


async def by_coroutine(guard: Guard, value: Any) -> Any:
    async def answer() -> Any:
        return value

    return await guard.wrap(answer)()


async def by_turn(guard: Guard, value: Any) -> Any:
    async with guard.turn(100_000):
        return await by_coroutine(guard, value)


async def by_block(guard: Guard, value: Any) -> Any:
    with guarding_tool():
        return (await guard.process(value, tool="t")).value


async def by_update(guard: Guard, value: Any) -> Any:
    return guard.partial(value, tool="t")


WAYS = [by_adapter, by_adapter_sync, by_function, by_coroutine, by_turn, by_block, by_update]
MAX_CHARS = 60_000


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
async def test_a_tools_value_that_looks_like_a_message_is_guarded_and_keeps_its_fields(
    message: dict[str, Any], way: Callable[[Guard, Any], Awaitable[Any]]
) -> None:
    value = await way(Guard(spool=False), message)

    assert value.keys() == message.keys()
    assert {name: value[name] for name in ("role", "type") if name in message} == {
        name: message[name] for name in ("role", "type") if name in message
    }
    assert len(str(value)) < (MAX_CHARS if way is by_update else 10_000)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("message", OBJECTS.values(), ids=OBJECTS)
async def test_a_tools_object_that_looks_like_a_message_is_guarded_and_keeps_its_class(
    message: Any, way: Callable[[Guard, Any], Awaitable[Any]]
) -> None:
    value = await way(Guard(spool=False), message)

    assert type(value) is type(message)
    assert len(repr(value)) < (MAX_CHARS if way is by_update else 10_000)


@pytest.mark.parametrize("message", [*MESSAGES.values(), *OBJECTS.values()], ids=[*MESSAGES, *OBJECTS])
async def test_output_that_is_captured_is_no_message(message: Any) -> None:
    guard = Guard(spool=False)

    assert (await guard.capture_output(message, "t")).truncated
    assert guard.capture_output_sync(message, "t").truncated


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize(
    "holding",
    [
        lambda message: [message, message],
        lambda message: {"role": "tool", "tool_call_id": "c", "content": [message]},
        lambda message: {"content": [message], "isError": False},
        lambda message: {"history": (message, {"a": 1})},
    ],
)
async def test_messages_in_a_tools_value_are_guarded_too(
    holding: Callable[[Any], Any], message: dict[str, Any]
) -> None:
    assert len(str(await by_adapter(Guard(spool=False), holding(message)))) < 10_000


@pytest.mark.parametrize("message", [*MESSAGES.values(), *OBJECTS.values()], ids=[*MESSAGES, *OBJECTS])
async def test_a_host_may_hand_over_any_message_of_its_conversation(message: Any) -> None:
    guard = Guard(spool=False)

    assert (await guard.process(message, tool="t")).value is message
    assert guard.process_sync(message, tool="t").value is message


async def test_long_fields_of_a_message_of_the_type_of_a_result_are_guarded() -> None:
    message = {**MESSAGES["with long calls"], "type": "tool_result", "content": "ok"}

    assert len(str(await by_adapter(Guard(spool=False), message))) < 10_000


def test_a_result_is_guarded_beside_a_persons_long_text_that_stays() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": LONG}
    turn = {"role": "user", "content": [result, *BLOCKS]}
    guarded = Guard(spool=False).process_sync(turn, tool="t")

    assert guarded.value["content"][1] is turn["content"][1]
    assert len(str(guarded.value["content"][0])) < 10_000
    assert guarded.bytes_after < 10_000


async def test_a_tool_that_yields_may_hand_over_a_message_of_its_own_conversation() -> None:
    guard, message = Guard(spool=False), MESSAGES["of a person"]
    passed: list[bool] = []

    def tool() -> Iterator[str]:
        passed.append(guard.process_sync(message, tool="t").value is message)
        yield "ok"

    async def asynchronous() -> AsyncIterator[str]:
        passed.append((await guard.process(message, tool="t")).value is message)
        yield "ok"

    await by_adapter(guard, tool())
    await by_adapter(guard, asynchronous())
    await by_adapter_sync(guard, tool())
    await guard.capture_output(asynchronous(), "t")
    guard.capture_output_sync(tool(), "t")

    assert passed == [True] * 5


def test_output_that_is_captured_may_be_abandoned_with_its_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", noted.append)
    loop = asyncio.new_event_loop()

    async def endless() -> AsyncIterator[str]:
        yield "ok"
        await loop.create_future()

    async def begin() -> None:
        tasks.append(asyncio.create_task(Guard(spool=False).capture_output(endless(), "t")))
        await asyncio.sleep(0.05)

    tasks: list[Any] = []
    loop.run_until_complete(begin())
    loop.close()
    tasks.clear()
    gc.collect()

    assert [each.exc_value for each in noted] == []


@pytest.mark.parametrize("role", ["user", "tool"])
async def test_pictures_of_such_a_message_stay(role: str) -> None:
    message = {"role": role, "content": [*BLOCKS, PICTURE]}
    of_gemini = Content(role="user", parts=[Part(text=LONG), Part(inline_data=Blob(data=b"x" * 200_000))])
    guard = Guard(spool=False)

    assert (await by_adapter(guard, message))["content"][1] is PICTURE
    assert (await by_adapter(guard, of_gemini)).parts[1] is of_gemini.parts[1]  # type: ignore[index]


def test_a_function_that_responds_with_what_looks_like_a_message_is_spilled_from_a_history() -> None:
    response = {"role": "user", "content": LONG}
    part = {"functionResponse": {"name": "t", "id": "c", "response": response}}
    messages = [{"role": "user", "content": LONG}, {"role": "user", "parts": [part]}]
    person, turn = spill_messages_sync(messages, Guard(spool=False))

    assert person is messages[0]
    assert len(str(turn)) < 10_000
    assert turn["parts"][0]["functionResponse"]["response"]["role"] == "user"


def test_a_short_one_is_the_same_object() -> None:
    guard = Guard(spool=False)
    for message in (
        {"role": "user", "content": "short"},
        OfDataclass("user", "short"),
        HumanMessage("short"),
    ):
        assert Adapter(guard).call("t", "c").process_sync(message).value is message
        assert guard.wrap(lambda message=message: message)() is message
