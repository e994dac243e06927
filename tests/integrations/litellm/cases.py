"""A real LiteLLM proxy between an agent and a scripted provider."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from overspill import SyncClient

from tests.servers.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = os.environ["OVERSPILL_URL"]
PAGE = Path(__file__).parents[3] / "client" / "docs" / "integrations" / "litellm.md"
KEY = "sk-7f3a9c1e5b2d8046a1c3e5f7092b4d6e"
OUTPUT = "".join(f"line {number}\n" for number in range(20_000))
READY_SECONDS = 90
CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "done"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "done", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


class Provider(BaseHTTPRequestHandler):
    """Answers every request, and keeps the bodies."""

    seen: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.seen.append(self.rfile.read(int(self.headers["content-length"])))
        kinds = {"completions": CHAT, "responses": RESPONSE, "messages": MESSAGE}
        data = json.dumps(next(kinds[kind] for kind in kinds if kind in self.path)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def proxy(folder: Path, provider: str, service: str) -> Iterator[str]:
    """Run a proxy with the lines of our page in its configuration."""
    port = free_port()
    ours = PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]
    (folder / "config.yaml").write_text(
        f"""\
model_list:
  - model_name: chat
    litellm_params: {{model: openai/m, api_base: "{provider}/v1", api_key: x}}
  - model_name: claude
    litellm_params: {{model: anthropic/m, api_base: "{provider}", api_key: x}}
general_settings: {{master_key: {KEY}}}
{ours}"""
    )
    program = Path(sys.executable).with_name("litellm")
    config = folder / "config.yaml"
    words = [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "OVERSPILL_URL": service, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(words, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(f"http://127.0.0.1:{port}/health/liveliness", folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def wait_for(url: str, log: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(log.read_text()[-4_000:])


@pytest.fixture(scope="module")
def gateway(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with proxy(tmp_path_factory.mktemp("proxy"), provider, URL) as url:
        yield url


def passed(gateway: str, path: str, body: dict[str, Any]) -> bytes:
    """Send a request through the proxy; return what the provider got."""
    request = urllib.request.Request(
        f"{gateway}{path}",
        json.dumps(body).encode(),
        {
            "content-type": "application/json",
            "authorization": f"Bearer {KEY}",
            "anthropic-version": "2023-06-01",
        },
    )
    before = len(Provider.seen)
    urllib.request.urlopen(request, timeout=60).close()
    assert len(Provider.seen) == before + 1
    return Provider.seen[-1]


def chat(output: Any, **more: Any) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "big", "arguments": "{}"}}
    return {
        "model": "chat",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": output},
        ],
        **more,
    }


def responses(output: Any) -> dict[str, Any]:
    return {
        "model": "chat",
        "input": [
            {"role": "user", "content": "go"},
            {"type": "function_call", "call_id": "call_2", "name": "big", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_2", "output": output},
        ],
    }


def messages(output: Any) -> dict[str, Any]:
    return {
        "model": "claude",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "big", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": output}],
            },
        ],
    }


REQUESTS = pytest.mark.parametrize(
    ("path", "request_with"),
    [("/v1/chat/completions", chat), ("/v1/responses", responses), ("/v1/messages", messages)],
    ids=["chat", "responses", "messages"],
)


@REQUESTS
def test_a_long_result_goes_to_the_model_as_a_notice(gateway: str, path: str, request_with: Any) -> None:
    seen = passed(gateway, path, request_with(OUTPUT))
    capture = "cap_" + seen.decode().partition("cap_")[2][:20]

    assert len(seen) < 8_000
    assert b"[overspill]" in seen
    with SyncClient(URL) as client:
        assert client.content(capture).decode() == OUTPUT
        assert client.get(capture).session.startswith("litellm/")


@REQUESTS
def test_a_request_without_long_results_passes_as_it_is(gateway: str, path: str, request_with: Any) -> None:
    assert b"overspill" not in passed(gateway, path, request_with("short"))
    assert json.dumps("short").encode() in passed(gateway, path, request_with("short"))


def test_the_next_requests_of_a_conversation_have_the_same_bytes(gateway: str) -> None:
    first = json.loads(passed(gateway, "/v1/chat/completions", chat(OUTPUT)))
    longer = chat(OUTPUT)
    longer["messages"] += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "more"}]
    second = json.loads(passed(gateway, "/v1/chat/completions", longer))

    assert second["messages"][: len(first["messages"])] == first["messages"]


def test_another_replica_says_the_same(gateway: str, provider: str, tmp_path: Path) -> None:
    first = passed(gateway, "/v1/chat/completions", chat(OUTPUT))
    with proxy(tmp_path, provider, URL) as other:
        assert passed(other, "/v1/chat/completions", chat(OUTPUT)) == first


def test_a_session_that_the_proxy_knows_is_that_of_the_capture(gateway: str) -> None:
    seen = passed(gateway, "/v1/chat/completions", chat(OUTPUT, litellm_session_id="thread-9"))
    capture = "cap_" + seen.decode().partition("cap_")[2][:20]

    with SyncClient(URL) as client:
        assert client.get(capture).session.endswith("/thread-9")


def test_without_the_service_requests_still_pass(provider: str, tmp_path: Path) -> None:
    with proxy(tmp_path, provider, "http://127.0.0.1:1") as alone:
        seen = passed(alone, "/v1/chat/completions", chat(OUTPUT))

    assert b"NOT STORED" in seen or json.dumps(OUTPUT).encode() in seen
