"""A server of OpenAI's chat completions that says what a script says: Copilot itself runs against it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Sequence

    from tests.integrations.kit.harness import Call


class ScriptedApi:
    """Answers the first request with the first turn, and so on, once `ready` is set. It keeps `requests`."""

    def __init__(self, turns: Sequence[Sequence[Call]], ready: asyncio.Event | None = None) -> None:
        self.turns, self.ready = turns, ready
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[ScriptedApi]:
        app = web.Application(client_max_size=1024**3)
        app.router.add_post("/chat/completions", self._completions)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _completions(self, request: web.Request) -> web.Response:
        asked = await request.json()
        number = len(self.requests)
        self.requests.append(asked)
        if self.ready is not None:
            await self.ready.wait()
        calls = self.turns[number] if number < len(self.turns) else ()
        message: dict[str, Any] = {"role": "assistant", "content": None if calls else "done"}
        if calls:
            message["tool_calls"] = [_call(index, call) for index, call in enumerate(calls)]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        answer = {"id": f"{number}", "object": "chat.completion", "created": 1, "model": asked["model"]}
        return web.json_response({**answer, "choices": [choice]})


def _call(index: int, call: Call) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments))}
    return {"index": index, "id": call.id, "type": "function", "function": function}
