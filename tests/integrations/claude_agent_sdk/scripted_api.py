"""A server of Anthropic's messages that says what a script says: Claude Code itself runs against it."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Sequence


class ScriptedApi:
    """Answers the first request with the first turn, and so on. `requests` are those with tools."""

    def __init__(self, turns: Sequence[Sequence[dict[str, Any]]]) -> None:
        self.turns = turns
        self.requests: list[dict[str, Any]] = []
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application(client_max_size=1024**3)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/messages/count_tokens", self._count)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _count(self, _: web.Request) -> web.Response:
        return web.json_response({"input_tokens": 10})

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        turn = sum(message["role"] == "assistant" for message in asked["messages"])
        blocks: Sequence[dict[str, Any]] = [{"type": "text", "text": "done"}]
        if asked.get("tools"):
            self.requests.append(asked)
            blocks = self.turns[turn] if turn < len(self.turns) else blocks
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(f"msg_{turn}", asked["model"], blocks):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response


def _events(name: str, model: str, blocks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of one streamed message. Claude Code joins messages of one name."""
    message = {"id": name, "type": "message", "role": "assistant", "model": model, "content": []}
    ended = {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, **ended}}]
    for index, block in enumerate(blocks):
        events += _block_events(index, block)
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}})
    return [*events, {"type": "message_stop"}]


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "text":
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        written = json.dumps(block["input"])
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": written}
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]
