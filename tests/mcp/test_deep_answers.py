"""Answers and calls that are nested more deeply than decoders read are guarded too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.mcp.proxy.deep_json import members
from overspill.mcp.proxy.messages import messages, request_of

from tests.mcp.test_proxy import Peer, proxied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.overspill import ServiceProcess

DEPTH: Final = 50_000
DEEP: Final = "[" * DEPTH + "]" * DEPTH
DEEP_OBJECTS: Final = '{"a":' * DEPTH + '"}{\\"["' + "}" * DEPTH


@pytest.fixture(scope="module")
def shared(service: ServiceProcess) -> Iterator[Peer]:
    with proxied(service.url) as peer:
        peer.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        yield peer


def answered(peer: Peer, member: str) -> str:
    """Return what the client gets where the server answers a call with a member."""
    line = f'{{"jsonrpc":"2.0","id":{peer.count + 1},{member},"more":1e2}}'
    peer.count += 1
    call = {"name": "say", "arguments": {"line": line}}
    peer.send({"id": peer.count, "method": "tools/call", "params": call})
    return peer.stdout.readline().decode()


@pytest.mark.parametrize("deep", [DEEP, DEEP_OBJECTS])
@pytest.mark.parametrize("member", ['"result":{"content":[],"structuredContent":%s}', '"error":%s'])
def test_an_answer_that_is_nested_deeply_is_stored_as_a_text(shared: Peer, member: str, deep: str) -> None:
    found = answered(shared, member % deep)

    assert "] Output of say" in json.dumps(json.loads(found))
    assert '"more":1e2' in found
    assert len(found) < 10_000


def test_an_answer_that_is_nested_deeply_and_short_passes_as_it_came(shared: Peer) -> None:
    member = f'"result":{{"content":[],"structuredContent":{"[" * 2_000}{"]" * 2_000}}}'

    assert f"{member}," in answered(shared, member)


def test_a_call_whose_arguments_are_nested_deeply_is_known() -> None:
    params = f'{{"name":"long","arguments":{DEEP},"caller":{{"type":"code"}}}}'
    line = f'{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{params}}}'.encode()
    [(raw, message)] = messages(line)
    request = request_of(message)

    assert raw == line
    assert (request.id, request.method, request.tool) == (5, "tools/call", "long")
    assert request.is_from_program


VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES), st.booleans())
def test_members_are_what_a_decoder_reads(found: dict[str, object], spaced: bool) -> None:
    text = json.dumps(found, indent=2 if spaced else None, ensure_ascii=spaced).encode()

    assert {name: json.loads(each) for name, each in members(text).items()} == found


@pytest.mark.parametrize("text", [b"", b"[]", b'"{"', b'{"a":[', b"{}}"])
def test_what_is_no_object_has_no_members(text: bytes) -> None:
    with pytest.raises(ValueError, match="no object"):
        members(text)
