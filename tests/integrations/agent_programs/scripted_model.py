"""A server of the model APIs that agent programs ask, which calls a shell as a script says.

Sources: docs.anthropic.com/en/api/messages-streaming, ai.google.dev/api/generate-content, and of
platform.openai.com/docs/api-reference the pages responses-streaming and chat-streaming.
"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Event: TypeAlias = dict[str, Any]


class ShellCall(NamedTuple):
    """A call of a program's shell: the name of its tool, and the arguments."""

    tool: str
    arguments: dict[str, Any]


class Api(NamedTuple):
    """How an API is spoken: where it is, what tools returned by its requests, and how it answers."""

    path: str
    results: Callable[[Event], list[str]]
    answer: Callable[[int, ShellCall | None], Iterable[Event]]


class ScriptedModel:
    """Answers each request with the next command of `script`, which is given what the last one returned.

    `results` are what the model was given for its calls so far.
    """

    def __init__(self, api: Api, script: Sequence[Callable[[str], ShellCall]]) -> None:
        self._api, self._script = api, script
        self.results: list[str] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._done(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._done(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _done(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        app = web.Application(client_max_size=1024**3)
        app.router.add_post(self._api.path, self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        call = None
        if asked.get("tools"):  # else the program asks for a title, or whether it may go on
            self.results = self._api.results(asked)
            call = self._next()
        events = self._api.answer(len(self.results), call)
        text = "".join(map(_sent, events))
        return web.Response(text=text, content_type="text/event-stream")

    def _next(self) -> ShellCall | None:
        number = len(self.results)
        if number == len(self._script):
            return None
        return self._script[number](self.results[-1] if self.results else "")


def _sent(event: Event) -> str:
    """Return an event as server-sent. Gemini's client takes no names of events."""
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {json.dumps(event)}\n\n"


def _text(content: Any) -> str:
    """Return the text of content that is one, or a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def _messages_results(asked: Event) -> list[str]:
    blocks = [each for message in asked["messages"] for each in message["content"] if isinstance(each, dict)]
    return [_text(block["content"]) for block in blocks if block["type"] == "tool_result"]


def _messages_answer(number: int, call: ShellCall | None) -> Iterable[Event]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    block: Event = {"type": "text", "text": ""}
    delta: Event = {"type": "text_delta", "text": "done"}
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": call.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "end_turn" if call is None else "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": usage}
    yield {"type": "message_stop"}


def _responses_results(asked: Event) -> list[str]:
    return [_text(item["output"]) for item in asked["input"] if item["type"] == "function_call_output"]


def _responses_answer(number: int, call: ShellCall | None) -> Iterable[Event]:
    item: Event = {"type": "message", "id": "msg_1", "role": "assistant"}
    item["content"] = [{"type": "output_text", "text": "done", "annotations": []}]
    if call is not None:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        item |= {"name": call.tool, "arguments": json.dumps(call.arguments)}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    yield {"type": "response.created", "response": {"id": f"resp_{number}"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": f"resp_{number}", "usage": usage}}


def _chat_results(asked: Event) -> list[str]:
    return [_text(message["content"]) for message in asked["messages"] if message["role"] == "tool"]


def _chat_answer(number: int, call: ShellCall | None) -> Iterable[Event]:
    delta: Event = {"role": "assistant", "content": "done"}
    if call is not None:
        function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
        called = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
        delta = {"role": "assistant", "content": None, "tool_calls": [called]}
    chunk = {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    yield {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "stop" if call is None else "tool_calls"
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def _gemini_results(asked: Event) -> list[str]:
    parts = [part for content in asked["contents"] for part in content["parts"]]
    answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    return [answer.get("output") or answer["error"] for answer in answers]


def _gemini_answer(number: int, call: ShellCall | None) -> Iterable[Event]:
    part: Event = {"text": "done"}
    if call is not None:
        part = {"functionCall": {"name": call.tool, "args": call.arguments, "id": f"call_{number}"}}
    content = {"role": "model", "parts": [part]}
    yield {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}


MESSAGES: Final = Api("/v1/messages", _messages_results, _messages_answer)
RESPONSES: Final = Api("/v1/responses", _responses_results, _responses_answer)
CHAT: Final = Api("/v1/chat/completions", _chat_results, _chat_answer)
GEMINI: Final = Api("/v1beta/models/{model}", _gemini_results, _gemini_answer)
