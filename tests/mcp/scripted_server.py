"""An MCP server without any library, which does what its tools' names say, well or badly."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

LINE = "a line of a log\n"
ROWS = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"type": "string", "maxLength": 400}, "minItems": 2},
        "kind": {"enum": ["x" * 300]},
    },
    "required": ["rows", "kind"],
    "additionalProperties": False,
}
TABLE = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
                "required": ["name", "size"],
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
NUMBERS = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
    "required": ["numbers"],
    "additionalProperties": False,
}
ROW = {"type": "array", "items": {"type": "number"}, "minItems": 300, "maxItems": 300}
GRID_ROWS = {"type": "array", "items": ROW, "minItems": 300, "maxItems": 300}
GRID = {
    "type": "object",
    "properties": {"grid": GRID_ROWS, "unit": {"type": "string"}},
    "required": ["grid", "unit"],
    "additionalProperties": False,
}
NAMED_GRID = {"$ref": "#/$defs/Grid", "$defs": {"Grid": GRID}, "type": "object"}
GRIDS: dict[str, Any] = {"bare_grid": [[0.5] * 300] * 300}
GRIDS["grid"] = GRIDS["named_grid"] = {"grid": GRIDS["bare_grid"], "unit": "mm"}
TOOLS = [
    {"name": "long", "inputSchema": {"type": "object"}},
    {"name": "echo", "inputSchema": {"type": "object"}, "x-unknown": {"number": 1e2}},
    {"name": "rows", "inputSchema": {"type": "object"}, "outputSchema": ROWS},
    {"name": "table", "inputSchema": {"type": "object"}, "outputSchema": TABLE},
    {"name": "numbers", "inputSchema": {"type": "object"}, "outputSchema": NUMBERS},
    {"name": "grid", "inputSchema": {"type": "object"}, "outputSchema": GRID},
    {"name": "named_grid", "inputSchema": {"type": "object"}, "outputSchema": NAMED_GRID},
    {"name": "bare_grid", "inputSchema": {"type": "object"}, "outputSchema": GRID_ROWS},
    {"name": "inspect_output", "inputSchema": {"type": "object"}},
]


class Wrong(Exception):
    """A call that is answered with an error of JSON-RPC."""


def send(message: Any) -> None:
    print(message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}], **more}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:  # noqa: C901, PLR0911, PLR0912  (a case each)
    match name:
        case "long":
            if "megabytes" in arguments:
                half = LINE * (arguments["megabytes"] * 500_000 // len(LINE))
                return text(f"{half}the needle is 4711\n{half}")
            return text(LINE * 10_000, isError=bool(arguments.get("fails")), other={"kept": 1})
        case "rows":
            rows = {"rows": [f"row {number} " + "y" * 300 for number in range(1_000)], "kind": "x" * 300}
            return text(json.dumps(rows), structuredContent=rows)
        case "file":
            content = "".join(f"line {number} of a file\n" for number in range(9_000))
            return text(content, structuredContent={"content": content, "mtime": 1})
        case "links":
            link = {"type": "resource_link", "name": "x" * 100}
            return {"content": [{**link, "uri": f"x://{number}"} for number in range(3_000)]}
        case "table":
            table = {"items": [{"name": f"item {number}", "size": number} for number in range(9_000)]}
            return text("9000 items", structuredContent=table)
        case "numbers":
            return text("40000 numbers", structuredContent={"numbers": list(range(40_000))})
        case "grid" | "named_grid" | "bare_grid":
            return text("a grid", structuredContent=GRIDS[name])
        case "error":
            raise Wrong("no such table\n" + LINE * 10_000)
        case "shout":
            for _ in range(30):
                send("no JSON " * 20_000)
        case "noise":
            send("this is not JSON")
            send('{"half": ')
        case "flood":
            sys.stderr.write("flood\n" * 500_000)
        case "surrogate":  # half of a pair, as JavaScript cuts it
            return text("\ud83d" + LINE * 10_000)
        case "say":  # this is the answer
            send(arguments["line"])
            return None
        case "die":
            os._exit(3)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "leave":  # a process of another session, which holds the output
            left = subprocess.Popen(["sleep", "600"], stderr=subprocess.DEVNULL, start_new_session=True)
            return text(str(left.pid))
        case "hang":
            time.sleep(600)
        case "endless":
            while True:
                send(
                    {"method": "notifications/progress", "params": {"progressToken": 7, "message": LINE * 99}}
                )
        case "ask":
            send({"id": 1, "method": "sampling/createMessage", "params": {"messages": []}})
            return text(sys.stdin.readline().strip())
        case "progress":
            send({"method": "notifications/progress", "params": {"progressToken": 7, "progress": 0.5}})
        case "task":
            known = {"taskId": "t1", "status": "working"}
            return known if arguments.get("later") else {"task": known}
        case "input":
            return {"resultType": "input_required", "inputRequests": {}, "requestState": "x" * 100_000}
    return text(json.dumps({"name": name, **arguments}))


def answer(request: dict[str, Any]) -> Any:  # noqa: PLR0911  (a case each)
    params = request.get("params", {})
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {},
            }
        case "tools/list" if "endless" in sys.argv:
            return {"tools": [], "nextCursor": "2"}
        case "tools/list" if "listless" not in sys.argv:
            cursor = params.get("cursor")
            return {"tools": TOOLS[8:]} if cursor else {"tools": TOOLS[:8], "nextCursor": "2"}
        case "tasks/result":
            return text(LINE * 10_000)
        case "tasks/get":
            return {"taskId": "t1", "status": "completed", "result": text(LINE * 10_000)}
        case "tools/call":
            return call(params["name"], params.get("arguments", {}))
        case _:
            return {"echo": request}


def send_answer(request: dict[str, Any]) -> None:
    try:
        result = answer(request)
    except Wrong as wrong:
        send({"id": request["id"], "error": {"code": -32603, "message": str(wrong), "data": {"kept": 1}}})
    else:
        if result is not None:
            send({"id": request["id"], "result": result})


def main() -> None:
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            send_answer(request)
        elif "method" in request:
            send({"method": "notifications/seen", "params": {"line": line.strip()}})


if __name__ == "__main__":
    main()
