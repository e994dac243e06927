"""An MCP server over HTTP that breaks in the way that the name of the tool says, or tells what it got."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE = "a line of a log\n"
REGION = {"type": "string", "x-mcp-header": "Region"}
TOOL = {"name": "region", "inputSchema": {"type": "object", "properties": {"region": REGION}}}


LOST = {"code": -32000, "message": "Bad Request: No valid session ID provided"}


class Handler(BaseHTTPRequestHandler):
    lost_status: int | None = None
    """How a request of a session that is not known is answered; None if there are no sessions."""
    begun, session = 0, ""

    listening: tuple[str, ...] = ()
    """What becomes of each request for what the server says by itself; then it is refused."""

    def do_GET(self) -> None:
        kind = type(self)
        way, kind.listening = (self.listening or ("refuse",))[0], self.listening[1:]
        told = {"jsonrpc": "2.0", "method": f"after/{self.headers.get('last-event-id', 'nothing')}"}
        event = f"id: 7\nretry: 1\nevent: message\ndata: {json.dumps(told)}\n\n"
        if way in {"tell", "break"}:
            extra = 1_000 if way == "break" else 0
            self.answer(event, kind="text/event-stream", length=len(event) + extra)
        elif way == "restart":
            kind.session = "none"
            self.answer(json.dumps({"jsonrpc": "2.0", "id": None, "error": LOST}), status=self.lost_status)
        elif way != "reset":
            self.answer("", status={"away": 503, "refuse": 405}[way])
        self.close_connection = True

    ended: list[str]
    """The sessions that were deleted. Nobody is told that they were."""

    def do_DELETE(self) -> None:
        self.ended.append(self.headers["mcp-session-id"])
        self.rfile.read()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.is_of_session(asked["method"]):
            self.answer(json.dumps({"jsonrpc": "2.0", "id": None, "error": LOST}), status=self.lost_status)
        elif "id" not in asked:
            self.answer("", status=202)
        elif asked["method"] == "tools/call":
            self.call(asked["id"], asked["params"]["name"])
        elif asked["method"] == "tools/list":
            self.result(asked["id"], {"tools": [TOOL]})
        else:
            self.result(asked["id"], {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}})

    def is_of_session(self, method: str) -> bool:
        kind = type(self)
        if self.lost_status is not None and method == "initialize":
            kind.begun, kind.session = self.begun + 1, f"session-{self.begun}"
        return self.lost_status is None or self.headers.get("mcp-session-id", self.session) == self.session

    def call(self, number: int, tool: str) -> None:
        match tool:
            case "reset":
                self.close_connection = True
            case "half":
                self.answer('{"jsonrpc"', length=1_000)
                self.close_connection = True
            case "html":
                self.answer("<html>", kind="text/html")
            case "500":
                self.answer("oops", status=500)
            case "events":
                content = [{"type": "text", "text": LINE * 100_000}]
                message = {"jsonrpc": "2.0", "id": number, "result": {"content": content}}
                self.answer(f"event: message\ndata: {json.dumps(message)}\n\n", kind="text/event-stream")
            case "restart":
                self.text(number, "bye")
                type(self).session = "none"
            case "region":
                self.text(number, self.headers.get("Mcp-Param-Region", "none"))
            case _:
                self.text(number, "fine")

    def text(self, number: int, text: str) -> None:
        self.result(number, {"content": [{"type": "text", "text": text}]})

    def result(self, number: int, result: dict[str, Any]) -> None:
        self.answer(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))

    def answer(
        self,
        body: str,
        *,
        kind: str = "application/json",
        status: int | None = 200,
        length: int | None = None,
    ) -> None:
        self.send_response(status or 200)
        if self.session:
            self.send_header("mcp-session-id", self.session)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def running(
    lost_status: int | None = None, listening: tuple[str, ...] = (), ended: list[str] | None = None
) -> Iterator[str]:
    """The URL of a server."""
    known = {"lost_status": lost_status, "listening": listening, "ended": [] if ended is None else ended}
    handler = type("SessionHandler", (Handler,), known)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
