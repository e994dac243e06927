"""Answers of MCP servers that no protocol foresees: none reaches the model whole, and none is lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from overspill.mcp.proxy.open_requests import OpenRequests
from overspill.mcp.request import CALL, Request

from tests.mcp.test_proxy import proxied

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from tests.mcp.test_proxy import Peer
    from tests.servers.overspill import ServiceProcess

LONG: Final = "a word " * 20_000
BLOCK: Final = {"type": "text", "text": LONG}
RESULT: Final = json.dumps({"content": [BLOCK]})
LINK: Final = {"type": "resource_link", "name": "x"}
SHORT_BYTES: Final = 8_000


@pytest.fixture(scope="module")
def shared(service: ServiceProcess) -> Iterator[Peer]:
    with proxied(service.url) as peer:
        peer.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        yield peer


def say(peer: Peer, *lines: str) -> None:
    """Have the server send lines, in which `@` is the id of the call."""
    peer.count += 1
    line = "\n".join(each.replace("@", str(peer.count)) for each in lines)
    peer.send(
        {"id": peer.count, "method": "tools/call", "params": {"name": "say", "arguments": {"line": line}}}
    )


def response(given: str, **members: str) -> str:
    more = "".join(f',"{name}":{value}' for name, value in members.items())
    return f'{{"jsonrpc":"2.0","id":{given}{more}}}'


def said(result: Any) -> str:
    return response("@", result=json.dumps(result))


ANSWERS: Final = {
    "its id is a text": response('"@"', result=RESULT),
    "its id is a fraction": response("@.0", result=RESULT),
    "it has an error that is null": response("@", error="null", result=RESULT),
    "it has a result that is null": response(
        "@", result="null", error=json.dumps({"code": 1, "message": LONG})
    ),
    "it has a number that Python has not": response("@", result=RESULT[:-1] + ',"n":1e999}'),
    "it has a number that JSON has not": response("@", result=RESULT[:-1] + ',"n":NaN}'),
    "it has structured content alone": said({"structuredContent": {"log": LONG}}),
    "its content is a text": said({"content": LONG}),
    "its content is a block": said({"content": BLOCK}),
    "its content is null": said({"content": None, "structuredContent": {"log": LONG}}),
    "it is of the first revision": said({"toolResult": LONG}),
    "it is a list": said([BLOCK]),
    "it is a text": said(LONG),
    "it is of an unknown type": said({"resultType": "tomorrow", "content": [BLOCK]}),
    "it is an error that is a text": response("@", error=json.dumps(LONG)),
    "it is an error that is a list": response("@", error=json.dumps([LONG])),
    "it is an error without a message": response("@", error=json.dumps({"code": 1, "data": LONG})),
    "it looks like a message of a person": said({"role": "user", "content": [BLOCK]}),
    "it looks like a message of the model": said({"type": "ai", "content": LONG}),
    "it is an error that looks like a message": response(
        "@", error=json.dumps({"code": 1, "message": "no", "role": "user", "content": LONG})
    ),
    "it is a link that is long": said({"content": [{**LINK, "uri": f"data:,{LONG}"}]}),
    "it is a link with a long text": said({"content": [{**LINK, "uri": "a://b", "description": LONG}]}),
}


@pytest.mark.parametrize("form", ANSWERS)
def test_an_answer_that_is_too_long_is_stored_also_if(shared: Peer, form: str) -> None:
    say(shared, ANSWERS[form])
    line = shared.stdout.readline().decode()

    assert len(line) < SHORT_BYTES
    assert "cap_" in line
    assert isinstance(json.loads(line), dict)


def test_a_second_answer_is_as_short_as_the_first(shared: Peer) -> None:
    say(shared, response("@", result=RESULT), response("@", result=RESULT))
    lines = [shared.stdout.readline() for _ in range(2)]

    assert max(map(len, lines)) < SHORT_BYTES


def test_what_else_an_answer_has_stays_byte_for_byte(shared: Peer) -> None:
    say(shared, response("@", **{"of/tomorrow": "[1e2, 1.50]"}, result=RESULT))

    assert '"of/tomorrow":[1e2, 1.50]' in shared.stdout.readline().decode()


@pytest.mark.parametrize("ending", ["result", "error"])
def test_news_of_a_task_that_was_a_call_are_shortened(shared: Peer, ending: str) -> None:
    assert shared.call("task", later=True)["taskId"] == "t1"
    whole = {"result": {"content": [BLOCK]}, "error": {"code": 1, "message": LONG}}[ending]
    news = {"taskId": "t1", "status": "ended", ending: whole}
    say(shared, json.dumps({"jsonrpc": "2.0", "method": "notifications/tasks", "params": news}))
    found = shared.receive()

    assert len(json.dumps(found)) < SHORT_BYTES
    assert "cap_" in json.dumps(found["params"][ending])
    assert found["params"]["status"] == "ended"


def test_no_server_answers_a_call_of_our_tools(silent: socket.socket) -> None:
    url = "http://{}:{}".format(*silent.getsockname())
    with proxied(url) as peer:
        peer.send({"id": 1_000, "method": "tools/call", "params": {"name": "list_captures"}})
        say(peer, response("1000", result="{}"), response('"1000"', result="{}"), response("@", result="{}"))

        assert peer.receive()["id"] == peer.count


def test_a_call_whose_id_is_like_that_of_a_call_of_our_tools_is_answered(silent: socket.socket) -> None:
    url = "http://{}:{}".format(*silent.getsockname())
    with proxied(url) as peer:
        peer.send({"id": 7, "method": "tools/call", "params": {"name": "list_captures"}})
        line = response('"7"', result='{"content":[]}')
        peer.send({"id": "7", "method": "tools/call", "params": {"name": "say", "arguments": {"line": line}}})

        assert peer.receive()["id"] == "7"


def test_requests_that_are_given_up_are_forgotten() -> None:
    requests = OpenRequests()
    for number in range(3_000):
        requests.note(Request(number, CALL, {"name": "x", "arguments": {"text": LONG}}))
        requests.give_up(number)

    assert requests.end() == []
    assert requests.answered(0) is None
    assert requests.answered("2999") == Request(2_999, CALL, {"name": "x"})
