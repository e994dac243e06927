"""`overspill mcp-proxy`: what passes, what is guarded, and how it ends."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import termios
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from overspill.execution.backoff import Backoff
from overspill.mcp.proxy import http_client
from overspill.mcp.proxy.http_client import ProxyClient
from overspill.mcp.proxy.streams import MessageTooLong, lines, until_stuck
from overspill.mcp.rendering import MAX_RESULT_CHARS, VERSION

from tests.client.shell import OVERSPILL
from tests.mcp import bad_http_server, scripted_server
from tests.mcp.test_server import SDK
from tests.servers.overspill import clean_environment
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.launcher import Piped
    from tests.servers.overspill import ServiceProcess

SERVER: Final = [sys.executable, str(Path(__file__).parent / "scripted_server.py")]
PROXY: Final = [sys.executable, "-m", "overspill", "mcp-proxy"]
SECONDS: Final = 60


class Peer:
    """A client that sends lines and reads lines."""

    def __init__(self, piped: Piped) -> None:
        self.process, self.stdin, self.stdout, self.stderr = piped
        self.count = 0

    def send(self, message: dict[str, Any] | str) -> None:
        line = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message})
        self.stdin.write(line.encode() + b"\n")
        self.stdin.flush()

    def receive(self) -> Any:
        return json.loads(self.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        self.count += 1
        self.send({"id": self.count, "method": method, "params": params})
        answer = self.receive()
        assert answer["id"] == self.count
        return answer

    def call(self, name: str, **arguments: Any) -> Any:
        return self.ask("tools/call", name=name, arguments=arguments)["result"]

    def tools(self) -> dict[str, Any]:
        pages = [self.ask("tools/list")["result"], self.ask("tools/list", cursor="2")["result"]]
        return {tool["name"]: tool for page in pages for tool in page["tools"]}


@contextmanager
def proxied(
    url: str, *options: str, server: tuple[str, ...] = (), remote: str | None = None, policy: str = ""
) -> Iterator[Peer]:
    before = ["--", *SERVER, *server] if remote is None else ["--url", remote]
    words = ["mcp-proxy", *options, *before]
    environment = {**clean_environment(), "OVERSPILL_URL": url, "OVERSPILL_SPOOL": "off"}
    if policy:
        environment["OVERSPILL_POLICY"] = policy
    with OVERSPILL.piped(words, environment, seconds=SECONDS) as piped:
        yield Peer(piped)


@pytest.fixture
def peer(service: ServiceProcess) -> Iterator[Peer]:
    with proxied(service.url) as peer:
        peer.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        yield peer


def test_what_is_no_tool_call_passes_in_both_directions_as_it_is(peer: Peer) -> None:
    request = {
        "jsonrpc": "2.0",
        "id": "a\u00e9",
        "method": "of/tomorrow",
        "params": {"x": [1e100, None]},
        "z": 1,
    }
    peer.send(json.dumps(request))

    assert peer.receive()["result"]["echo"] == request

    peer.send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}')

    assert json.loads(peer.receive()["params"]["line"])["params"] == {"requestId": 99}


def test_a_request_of_the_server_reaches_the_client_and_its_answer_the_server(peer: Peer) -> None:
    peer.send({"id": 5, "method": "tools/call", "params": {"name": "ask"}})
    assert peer.receive()["method"] == "sampling/createMessage"
    peer.send({"id": 1, "result": {"role": "assistant"}})

    assert json.loads(peer.receive()["result"]["content"][0]["text"])["result"] == {"role": "assistant"}


def test_progress_comes_before_the_result(peer: Peer) -> None:
    peer.send({"id": 5, "method": "tools/call", "params": {"name": "progress"}})

    assert peer.receive()["params"] == {"progressToken": 7, "progress": 0.5}
    assert peer.receive()["id"] == 5


def test_a_long_result_becomes_a_notice_and_is_read_back_by_its_handle(peer: Peer) -> None:
    result = peer.call("long", fails=True)
    status = result["_meta"]["overspill"]
    reader = status["read_with"]
    read = peer.call(reader["tool"], **reader["arguments"], mode="TAIL", lines="2")

    assert len(json.dumps(result)) < 8_000
    assert result["isError"] is True
    assert result["other"] == {"kept": 1}
    assert status["outcome"] == "captured"
    assert read["structuredContent"]["content"].endswith(scripted_server.LINE * 2)


def test_a_line_of_20_megabytes_of_log_is_found_through_the_handle(peer: Peer) -> None:
    notice = peer.call("long", megabytes=20)
    reader = notice["_meta"]["overspill"]["read_with"]
    found = peer.call(reader["tool"], **reader["arguments"], mode="grep", pattern="needle")

    assert notice["_meta"]["overspill"]["total_bytes"] > 19_000_000
    assert "the needle is 4711" in found["content"][0]["text"]
    assert len(json.dumps(notice)) + len(json.dumps(found)) < 8_000


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the most memory that a process had")
def test_a_long_line_takes_less_than_four_times_its_size_of_memory(
    service: ServiceProcess, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("version = 1\nwait = 60\n")  # else the output is cut if the service is busy
    with proxied(service.url, policy=str(policy)) as peer:
        peer.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        peer.call("long")
        before = peak_kilobytes(peer.process.pid)
        stored = peer.call("long", megabytes=40)
        peak = peak_kilobytes(peer.process.pid)

    assert stored["_meta"]["overspill"]["outcome"] == "captured"
    assert peak - before < 4 * 40_000


def peak_kilobytes(process: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found is not None
    return int(found[1])


def test_the_reading_tools_are_on_the_last_page_under_names_that_are_free(peer: Peer) -> None:
    tools = peer.tools()

    assert list(tools) == [
        "long",
        "echo",
        "rows",
        "table",
        "numbers",
        "grid",
        "named_grid",
        "bare_grid",
        "inspect_output",
        "overspill_inspect_output",
        "list_captures",
    ]
    assert tools["echo"] == scripted_server.TOOLS[1]
    assert tools["list_captures"]["annotations"]["readOnlyHint"] is True
    assert tools["list_captures"]["_meta"][MAX_RESULT_CHARS] >= 20_000

    notice = peer.call("long")["content"][0]["text"]
    assert 'Read more: overspill_inspect_output("cap_' in notice
    assert json.loads(peer.call("inspect_output", x=1)["content"][0]["text"]) == {
        "name": "inspect_output",
        "x": 1,
    }
    assert "[overspill]" in peer.call("inspect_output", x="a word " * 10_000)["content"][0]["text"]


def test_a_result_with_an_output_schema_stays_valid(peer: Peer) -> None:
    schema = peer.tools()["rows"]["outputSchema"]
    result = peer.call("rows")

    jsonschema.validate(result["structuredContent"], schema)
    assert len(json.dumps(result)) < 60_000
    assert result["_meta"]["overspill"]["capture"]


def test_a_text_that_structured_content_repeats_is_stored_once(peer: Peer) -> None:
    status = peer.call("file")["_meta"]["overspill"]
    reader = status["read_with"]
    tail = peer.call(reader["tool"], **reader["arguments"], mode="tail", lines=1)["structuredContent"]

    assert status["total_lines"] == 9_000
    assert tail["content"] == "line 8999 of a file\n"
    assert tail["start_line"] == 9_000


def test_a_program_that_shows_structured_content_alone_shows_the_notice(peer: Peer) -> None:
    result = peer.call("file")

    assert result["structuredContent"] == {"content": result["content"][0]["text"], "mtime": 1}


def test_the_notice_is_an_item_of_a_list_whose_schema_has_room_for_it_nowhere_else(peer: Peer) -> None:
    schema = peer.tools()["table"]["outputSchema"]
    table = peer.call("table")["structuredContent"]

    jsonschema.validate(table, schema)
    assert table["items"][-1]["name"].startswith("[overspill] Output of table")


def test_the_notice_is_an_entry_of_an_object_whose_schema_has_no_room_for_a_text(peer: Peer) -> None:
    schema = peer.tools()["numbers"]["outputSchema"]
    found = peer.call("numbers")["structuredContent"]

    jsonschema.validate(found, schema)
    assert schema["additionalProperties"] is False
    assert found["overspill"].startswith("[overspill] Output of numbers")
    assert found["numbers"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["grid", "named_grid", "bare_grid"])
def test_the_notice_stands_alone_where_the_schema_wants_more_than_a_result_may_have(
    peer: Peer, name: str
) -> None:
    schema = peer.tools()[name]["outputSchema"]
    found = peer.call(name)["structuredContent"]

    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    jsonschema.validate(scripted_server.GRIDS[name], schema)
    assert found.pop("overspill").startswith(f"[overspill] Output of {name}")
    assert found == ({} if name == "bare_grid" else {"unit": "mm"})


def test_schemas_of_tools_that_stay_whole_stay_as_they_are(service: ServiceProcess) -> None:
    with proxied(service.url, "--whole", "grid") as peer:
        tools = peer.tools()

    assert tools["grid"]["outputSchema"] == scripted_server.GRID
    assert tools["numbers"]["outputSchema"] != scripted_server.NUMBERS


def test_the_message_of_an_error_that_is_too_long_becomes_a_notice(peer: Peer) -> None:
    error = peer.ask("tools/call", name="error", arguments={})["error"]
    capture = re.search(r"cap_[a-z2-7]{20}", error["message"])
    assert capture is not None
    head = peer.call("inspect_output", capture=capture[0], mode="head", lines=1)["structuredContent"]

    assert error["code"] == -32603
    assert error["data"] == {"kept": 1}
    assert len(error["message"]) < 5_000
    assert head["content"] == "no such table\n"


def test_links_that_are_too_many_are_a_text_that_is_stored_with_a_line_for_each(peer: Peer) -> None:
    result = peer.call("links")
    reader = result["_meta"]["overspill"]["read_with"]
    found = peer.call(reader["tool"], **reader["arguments"], mode="tail", lines=1)["structuredContent"]

    assert [block["type"] for block in result["content"]] == ["resource_link"] * 20 + ["text"]
    assert json.loads(found["content"])["uri"] == "x://2999"
    assert found["start_line"] == 2_980


def test_a_result_is_valid_for_a_client_that_asks_for_the_schemas_afterwards(peer: Peer) -> None:
    result = peer.call("rows")
    tools = peer.tools()

    jsonschema.validate(result["structuredContent"], tools["rows"]["outputSchema"])
    assert result["_meta"]["overspill"]["capture"]
    assert list(tools)[-2:] == ["overspill_inspect_output", "list_captures"]


@pytest.mark.parametrize("word", ["listless", "endless"])
def test_a_server_that_lists_its_tools_badly_holds_up_no_result(service: ServiceProcess, word: str) -> None:
    with proxied(service.url, server=(word,)) as peer:
        peer.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        result = peer.call("rows")

    assert "[overspill]" in result["content"][0]["text"]
    assert len(json.dumps(result)) < 60_000


def test_schemas_can_be_dropped_from_the_list(service: ServiceProcess) -> None:
    with proxied(service.url, "--drop-schemas") as peer:
        assert "outputSchema" not in peer.tools()["rows"]


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_the_reading_tools_speak_the_revision_of_the_connection(
    service: ServiceProcess, revision: str
) -> None:
    with proxied(service.url) as peer:
        peer.ask("initialize", protocolVersion=revision, capabilities={}, clientInfo={})
        tool, answer = peer.tools()["list_captures"], peer.call("list_captures")

    assert ("annotations" in tool) == (revision > "2024-11-05")
    assert ("outputSchema" in tool) == ("structuredContent" in answer) == (revision >= "2025-06-18")
    assert json.loads(answer["content"][0]["text"])["captures"] is not None


def test_a_result_that_asks_for_input_passes(peer: Peer) -> None:
    assert len(peer.call("input")["requestState"]) == 100_000


def test_tools_that_code_calls_and_those_named_stay_whole(service: ServiceProcess) -> None:
    with proxied(service.url, "--whole", "rows") as peer:
        assert len(peer.call("rows")["structuredContent"]["rows"]) == 1_000

        program = {"caller": {"type": "code_execution_20250825"}}
        whole = peer.ask("tools/call", name="long", _meta=program)["result"]["content"][0]["text"]
        assert whole == scripted_server.LINE * 10_000


def test_an_invented_handle_is_answered_with_what_to_do(peer: Peer) -> None:
    answer = peer.call("list_captures", limit="many")

    assert answer["isError"] is True
    assert "list_captures takes" in answer["structuredContent"]["error"]


def test_lines_that_are_no_json_go_to_standard_error(peer: Peer) -> None:
    assert peer.call("noise")["content"]
    peer.stdin.close()

    assert b"this is not JSON" in peer.stderr.read()


def test_lines_that_are_no_json_hold_nobody_up_if_their_reader_does_not_read(peer: Peer) -> None:
    assert peer.call("shout")["content"]
    peer.stdin.close()
    printed = peer.stderr.readline()

    assert printed.startswith(b"no JSON no JSON ")
    assert printed.endswith(b"... [156000 bytes more]\n")


def test_half_of_a_surrogate_pair_is_guarded_and_read_back(peer: Peer) -> None:
    found = peer.call("surrogate")

    assert found["_meta"]["overspill"]["outcome"] == "captured"
    assert "[overspill]" in found["content"][0]["text"]


@pytest.mark.parametrize(
    "result",
    [
        "[" * 2_000 + "]" * 2_000,
        json.dumps(scripted_server.text(scripted_server.LINE))[:-1] + ', "n": 1e999}',
        json.dumps(scripted_server.text(scripted_server.LINE))[:-1] + ', "n": NaN}',
    ],
    ids=["too deep to read, and short", "no number in Python", "no number in JSON"],
)
def test_an_answer_that_cannot_be_rewritten_passes_as_it_came(peer: Peer, result: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":7,"result":{result}}}'
    peer.send({"id": 7, "method": "tools/call", "params": {"name": "say", "arguments": {"line": line}}})

    assert peer.stdout.readline().decode().rstrip("\n") == line


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
        '{"jsonrpc":"2.0","method":"x","params":%s}' % ("[" * 900 + "]" * 900),
    ],
)
def test_no_line_of_the_client_ends_the_connection(peer: Peer, line: str) -> None:
    peer.send(line)
    seen = peer.receive()

    assert seen["method"] == "notifications/seen"
    assert peer.call("echo", x=1)["content"]


async def test_a_line_that_is_too_long_is_told_from_other_errors() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"short\n" + b"x" * 1_000)
    found = lines(reader, most_bytes=100)

    assert await anext(found) == b"short"
    with pytest.raises(MessageTooLong):
        await anext(found)


def test_a_flood_on_standard_error_passes(service: ServiceProcess) -> None:
    with proxied(service.url) as peer:
        peer.send({"id": 1, "method": "tools/call", "params": {"name": "flood"}})
        seen = sum(len(peer.stderr.read(1_000_000)) for _ in range(3))

        assert seen == 3_000_000
        assert peer.receive()["id"] == 1


@pytest.mark.parametrize(("end", "code"), [("die", 3), ("killed", 128 + signal.SIGKILL)])
def test_the_servers_death_answers_what_is_under_way_and_its_exit_code_is_ours(
    peer: Peer, end: str, code: int
) -> None:
    error = peer.ask("tools/call", name=end)["error"]

    assert f"exit code {code}" in error["message"]
    assert peer.process.wait(SECONDS) == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_server_and_the_proxy(peer: Peer, number: signal.Signals) -> None:
    peer.send({"id": 7, "method": "tools/call", "params": {"name": "hang"}})
    peer.process.send_signal(number)

    assert peer.process.wait(SECONDS) in {128 + number, 1}


def test_a_server_that_ignores_all_is_killed(service: ServiceProcess) -> None:
    with proxied(service.url, server=("stubborn",)) as peer:
        peer.ask("ping")
        peer.send({"id": 7, "method": "tools/call", "params": {"name": "hang"}})
        peer.process.send_signal(signal.SIGTERM)

        assert peer.process.wait(SECONDS) == 128 + signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="a pipe has 64 KiB there")
@pytest.mark.parametrize("told", ["end of input", "signal"])
def test_a_client_that_does_not_read_holds_up_no_end(peer: Peer, told: str) -> None:
    peer.send({"id": 7, "method": "tools/call", "params": {"name": "endless"}})
    wait_until(lambda: waiting_bytes(peer) > 50_000, "output that nobody reads")
    if told == "signal":
        peer.process.send_signal(signal.SIGTERM)
    else:
        peer.stdin.close()

    assert peer.process.wait(SECONDS) >= 128
    assert "the client does not read" in peer.stderr.read().decode()


@pytest.mark.skipif(sys.platform != "linux", reason="a pipe has 64 KiB there")
def test_a_client_that_does_not_read_holds_up_no_end_at_a_url(service: ServiceProcess) -> None:
    with (
        bad_http_server.running() as url,
        proxied(service.url, "--whole", "events", remote=url) as peer,
    ):
        peer.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        peer.send({"id": 7, "method": "tools/call", "params": {"name": "events"}})
        wait_until(lambda: waiting_bytes(peer) > 50_000, "output that nobody reads")
        peer.process.send_signal(signal.SIGTERM)

        assert peer.process.wait(SECONDS) == 128 + signal.SIGTERM


def waiting_bytes(peer: Peer) -> int:
    """How many bytes of the proxy's output are there to read."""
    return int.from_bytes(fcntl.ioctl(peer.stdout, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what a pipe holds")
@pytest.mark.parametrize(("kind", "taken"), [("pipe", 1_000), ("socket", 40_000)])
async def test_a_client_that_takes_too_little_for_more_to_be_written_is_not_given_up(
    kind: str, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    theirs, ours = os.pipe() if kind == "pipe" else (end.detach() for end in socket.socketpair())
    with os.fdopen(theirs, "rb", buffering=0) as client:
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop=loop), os.fdopen(ours, "wb", buffering=0)
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        writer.write(b"x" * 1_000_000)
        sizes = iter([taken, taken, taken, 0])

        async def take(seconds: float) -> None:
            client.read(next(sizes) * int(seconds))

        monkeypatch.setattr(asyncio, "sleep", take)
        await until_stuck(writer, 1)
        transport.abort()

    assert list(sizes) == []


def test_a_server_that_does_not_read_ends_with_its_client(service: ServiceProcess) -> None:
    with proxied(service.url, server=("stubborn",)) as peer:
        peer.ask("ping")
        peer.send({"id": 7, "method": "tools/call", "params": {"name": "hang"}})
        peer.send({"method": "notifications/more", "params": {"x": "y" * 1_000_000}})
        peer.stdin.close()

        assert peer.process.wait(SECONDS) == 128 + signal.SIGKILL


def test_what_the_server_leaves_behind_holds_nobody_up(peer: Peer) -> None:
    left = int(peer.call("leave")["content"][0]["text"])
    try:
        peer.ask("tools/call", name="die")

        assert peer.process.wait(SECONDS) == 3
    finally:
        os.kill(left, signal.SIGKILL)


def test_a_batch_is_answered_message_by_message(peer: Peer) -> None:
    peer.send('[{"jsonrpc":"2.0","id":"a","method":"x"},{"jsonrpc":"2.0","id":"b","method":"y"}]')

    assert {peer.receive()["id"], peer.receive()["id"]} == {"a", "b"}


def test_without_a_service_results_are_cut_and_the_connection_lives() -> None:
    with proxied("http://127.0.0.1:1") as peer:
        assert peer.call("long")["_meta"]["overspill"]["outcome"] == "truncated"
        assert peer.call("echo", x=1)["content"]


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ("reset", "cannot be reached: RemoteProtocolError"),
        ("half", "peer closed connection"),
        ("html", "text/html"),
        ("500", "error response"),
    ],
)
def test_a_server_at_a_url_that_fails_one_call_can_be_called_again(
    service: ServiceProcess, tool: str, says: str
) -> None:
    with bad_http_server.running() as url, proxied(service.url, remote=url) as peer:
        peer.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})

        assert says in peer.ask("tools/call", name=tool, arguments={})["error"]["message"]
        assert peer.call("fine")["content"][0]["text"] == "fine"


def test_a_server_at_a_url_that_is_down_is_said_and_the_proxy_lives(service: ServiceProcess) -> None:
    with proxied(service.url, remote="http://127.0.0.1:1/mcp") as peer:
        said = [peer.ask("initialize", protocolVersion="2025-06-18")["error"]["message"] for _ in range(2)]

    assert all("the MCP server at 127.0.0.1 cannot be reached" in each for each in said)


@pytest.mark.parametrize("status", [404, 400])
def test_a_server_at_a_url_that_was_restarted_is_called_in_a_new_session(
    service: ServiceProcess, status: int
) -> None:
    with bad_http_server.running(lost_status=status) as url, proxied(service.url, remote=url) as peer:
        peer.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        peer.send({"method": "notifications/initialized"})
        said = [peer.call(tool)["content"][0]["text"] for tool in ("fine", "restart", "fine", "fine")]

    assert said == ["fine", "bye", "fine", "fine"]


def test_what_a_server_at_a_url_says_by_itself_comes_after_any_interruption(service: ServiceProcess) -> None:
    ways = ("reset", "away", "reset", "tell", "break", "break", "break", "restart", "tell", "tell")
    with (
        bad_http_server.running(lost_status=404, listening=ways) as url,
        proxied(service.url, remote=url) as peer,
    ):
        peer.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        peer.send({"method": "notifications/initialized"})
        said = [peer.receive()["method"] for _ in range(6)]

    assert said == ["after/nothing", "after/7", "after/7", "after/7", "after/nothing", "after/7"]


async def test_a_server_that_stays_away_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(backoff: Backoff, failures: int) -> float:
        pauses.append(backoff.bound(failures))
        return 0.0

    monkeypatch.setattr(Backoff, "pause", pause)
    ways = ("away", "reset") * 6
    with bad_http_server.running(lost_status=404, listening=ways) as url:
        async with ProxyClient({}) as client:
            refused = await client.get(url)

    assert refused.status_code == 405
    assert (len(pauses), pauses[:2], pauses[-1]) == (12, [0.25, 0.5], 60.0)


async def test_a_server_that_answers_again_is_listened_to_before_a_long_pause_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pausing = asyncio.Event()

    def pause(_: Backoff, failures: int) -> float:
        pausing.set()
        return 3_600.0

    monkeypatch.setattr(Backoff, "pause", pause)
    monkeypatch.setattr(http_client, "_SHORT_PAUSE", 0.0)
    with bad_http_server.running(listening=("away",)) as url:
        async with ProxyClient({}) as client, asyncio.timeout(30):
            listening = asyncio.create_task(client.get(url))
            await pausing.wait()
            await client.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
            refused = await listening

    assert refused.status_code == 405


@contextmanager
def session_at_url(service: ServiceProcess) -> Iterator[tuple[Peer, list[str]]]:
    """A client in a session of a server at a URL, and the sessions of that which were ended."""
    ended: list[str] = []
    with (
        bad_http_server.running(lost_status=404, ended=ended) as url,
        proxied(service.url, remote=url) as peer,
    ):
        peer.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        peer.send({"method": "notifications/initialized"})
        peer.call("fine")
        yield peer, ended


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (None, 0)])
def test_the_session_at_a_url_is_ended_even_if_the_server_does_not_say_so(
    service: ServiceProcess, number: signal.Signals | None, code: int
) -> None:
    with session_at_url(service) as (peer, ended):
        peer.stdin.close() if number is None else peer.process.send_signal(number)

        assert peer.process.wait(SECONDS) == code
        assert ended == ["session-0"]


def test_a_client_that_speaks_on_after_a_signal_makes_no_noise(service: ServiceProcess) -> None:
    with session_at_url(service) as (peer, ended):
        peer.process.send_signal(signal.SIGTERM)
        wait_until(lambda: ended, "the end of the session")
        with suppress(BrokenPipeError):
            for _ in range(3):
                peer.send({"method": "notifications/more"})
        peer.process.wait(SECONDS)

        assert b"Traceback" not in peer.stderr.read()


def test_an_event_of_more_than_a_megabyte_is_guarded(service: ServiceProcess) -> None:
    with bad_http_server.running() as url, proxied(service.url, remote=url) as peer:
        peer.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        found = peer.call("events")

    assert found["_meta"]["overspill"]["total_bytes"] == len(bad_http_server.LINE) * 100_000


@pytest.mark.parametrize(
    ("line", "number"),
    [("no JSON", None), ('{"jsonrpc":"2.0","id":5,"method":"x","params":[1]}', 5), ('{"id":[5]}', None)],
)
def test_what_cannot_be_posted_is_answered(service: ServiceProcess, line: str, number: int | None) -> None:
    with bad_http_server.running() as url, proxied(service.url, remote=url) as peer:
        peer.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        peer.send(line)
        answer = peer.receive()

        assert (answer["id"], answer["error"]["code"]) == (number, -32600)
        assert peer.call("fine")["content"]


def test_a_list_in_the_place_of_metadata_passes(service: ServiceProcess) -> None:
    with bad_http_server.running() as url, proxied(service.url, remote=url) as peer:
        peer.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})

        assert peer.ask("tools/call", name="fine", arguments={}, _meta=[1])["result"]["content"]


@pytest.mark.parametrize(("revision", "header"), [("2026-07-28", "west"), (None, "none")])
def test_arguments_that_a_schema_puts_into_headers_are_there(
    service: ServiceProcess, revision: str | None, header: str
) -> None:
    meta = {} if revision is None else {VERSION: revision}
    with bad_http_server.running() as url, proxied(service.url, remote=url) as peer:
        peer.ask("tools/list", _meta=meta)
        found = peer.ask("tools/call", name="region", arguments={"region": "west"}, _meta=meta)

    assert found["result"]["content"][0]["text"] == header


def test_a_server_that_does_not_exist_is_said() -> None:
    done = subprocess.run([*PROXY, "--", "/nowhere/server"], capture_output=True, text=True, check=False)

    assert done.returncode == 127
    assert "/nowhere/server: No such file" in done.stderr


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_works_through_the_proxy(service: ServiceProcess, mode: str) -> None:
    program, *arguments = OVERSPILL.command("mcp-proxy", "--", *SDK.command())
    environment = {**clean_environment(), "OVERSPILL_URL": service.url}
    parameters = StdioServerParameters(command=program, args=arguments, env=environment)
    async with Client(stdio_client(parameters), mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        long = await client.call_tool("log", {})
        rows = await client.call_tool("numbers", {})
        assert long.meta is not None
        reader = long.meta["overspill"]["read_with"]
        read = await client.call_tool(
            reader["tool"], {**reader["arguments"], "mode": "grep", "pattern": "4321"}
        )
        prompt = await client.get_prompt("hello", {"name": "you"})

    assert names == ["log", "numbers", "kilobyte", "inspect_output", "list_captures"]
    assert rows.structured_content is not None
    assert len(str(rows)) < 60_000
    assert read.structured_content is not None
    assert "line 4321" in read.structured_content["content"]
    assert "you" in str(prompt)


@pytest.mark.parametrize(("later", "method"), [(False, "tasks/result"), (True, "tasks/get")])
def test_the_result_of_a_call_that_became_a_task_is_guarded(peer: Peer, later: bool, method: str) -> None:
    made = peer.call("task", later=later)
    answer = peer.ask(method, taskId="t1")["result"]
    result = answer["result"] if later else answer
    of_others = peer.ask(method, taskId="t2")["result"]

    assert (made if later else made["task"])["taskId"] == "t1"
    assert "[overspill] Output of task" in result["content"][0]["text"]
    assert result["_meta"]["overspill"]["total_lines"] == 10_000
    assert "[overspill]" not in json.dumps(of_others)


# --- programs that cut results themselves -------------------------------------------------------


@pytest.mark.parametrize("names_itself", ["at the start", "in each request"])
def test_results_and_answers_are_as_short_as_the_clients_program_needs(
    service: ServiceProcess, names_itself: str
) -> None:
    info = {"clientInfo": {"name": "Visual Studio Code", "version": "1.120"}}
    meta: dict[str, Any] = {}
    with proxied(service.url) as peer:
        if names_itself == "at the start":
            peer.ask("initialize", protocolVersion="2025-11-25", capabilities={}, **info)
        else:
            meta = {"_meta": {f"io.modelcontextprotocol/{key}": value for key, value in info.items()}}
        listed = peer.ask("tools/list", cursor="2", **meta)["result"]["tools"]
        long = {"name": "echo", "arguments": {"text": "a word " * 1_500}}
        result = peer.ask("tools/call", **long, **meta)["result"]
        capture = result["_meta"]["overspill"]["capture"]
        reading = {
            "name": "overspill_inspect_output",
            "arguments": {"capture": capture, "mode": "range", "start": 1, "max_chars": 40_000},
        }
        answer = peer.ask("tools/call", **reading, **meta)["result"]

    assert listed[1]["inputSchema"]["properties"]["max_chars"]["maximum"] == 8_000
    assert len(result["content"][0]["text"]) < 8_000
    assert "a word a word" in answer["content"][0]["text"]
    assert len(answer["content"][0]["text"]) <= 8_000


def test_a_client_that_is_not_known_gets_the_usual_limits(peer: Peer) -> None:
    text = peer.call("echo", text="a word " * 1_500)["content"][0]["text"]

    assert "cap_" not in text
