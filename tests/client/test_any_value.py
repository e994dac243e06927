"""Whatever a tool returns, and wherever in it a long text is, a model is shown a short one."""

from __future__ import annotations

import copy
import dataclasses
import decimal
import enum
import json
import pathlib
from collections import OrderedDict, UserDict, deque
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from mcp.types import CallToolResult, TextContent
from overspill import Guard
from overspill.guard.call_context import guarding_tool
from overspill.integrations.adapter import Adapter
from overspill.shapes.sender import Sender

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = "line of text\n" * 8_000
DATA = "iVBORw0K" * 10_000
MAX_CHARS = 20_000
OK: dict[str, Any] = {"type": "text", "text": "ok"}
FORMS: list[dict[str, Any]] = [
    {},
    OK,
    {"text": "ok"},
    {"content": [OK]},
    {"content": [OK], "isError": False},
    {"role": "tool", "tool_call_id": "c", "content": "ok"},
    {"role": "assistant", "content": "ok"},
    {"role": "user", "content": [OK]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]},
    {"role": "assistant", "type": "tool_result", "content": "ok"},
    {"type": "tool_result", "tool_use_id": "c", "content": [OK, {"type": "thinking", "thinking": "ok"}]},
    {"type": "function_call_output", "call_id": "c", "output": "ok"},
    {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "ok", "stderr": ""}]},
    {"toolUseId": "c", "status": "success", "content": [{"text": "ok"}]},
    {"toolResult": {"toolUseId": "c", "content": [{"text": "ok"}]}},
    {"functionResponse": {"name": "t", "id": "c", "response": {"a": 1}}},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "ok"}},
    {"type": "resource_link", "uri": "file:///a", "name": "ok"},
    {"type": "document", "source": {"type": "text", "data": "ok"}},
    {"type": "search_result", "source": "a", "title": "ok", "content": [OK]},
    {"type": "refusal", "refusal": "ok"},
]
PICTURE, RESOURCE, DOCUMENT = (
    next(at for at, form in enumerate(FORMS) if form.get("type") == type_)
    for type_ in ("image", "resource", "document")
)
FIELDS = [
    *("content", "type", "text", "role", "result", "metadata", "artifact", "_meta", "output", "data", "uri"),
    *(
        "structuredContent",
        "details",
        "tool_calls",
        "annotations",
        "id",
        "name",
        "status",
        "parts",
        "response",
    ),
    *("additional_kwargs", "log", "title", "context", "citations", "description", "isError", "extras"),
]


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()


class Member(enum.Enum):
    """A class with a long member."""

    LONG = LONG


@dataclasses.dataclass
class OfDataclass:
    content: Any
    log: Any = None


@attrs.define
class OfAttrs:
    content: Any
    log: Any = None


class OfMsgspec(msgspec.Struct):
    content: Any
    log: Any = None


class OfPydantic(pydantic.BaseModel):
    content: Any
    log: Any = None


class OfNamedTuple(NamedTuple):
    content: Any
    log: Any = None


CLASSES = (OfDataclass, OfAttrs, OfMsgspec, OfPydantic, OfNamedTuple, SimpleNamespace)
LEAVES: dict[str, Any] = {
    "text": LONG,
    "text of a class": Text(LONG),
    "one word": "x" * 100_000,
    "bytes": LONG.encode(),
    "memory": memoryview(LONG.encode()),
    "list": [LONG],
    "dict": {"k": LONG},
    "name": {LONG: 1},
    "set": {LONG},
    "many": [["x"] * 9] * 4_000,
    "block": [{"type": "text", "text": LONG}],
    "path": [pathlib.PurePosixPath(LONG)],
    "number": [decimal.Decimal("1" * 100_000)],
    "error": [ValueError(LONG)],
    "member": [Member.LONG],
}


BINARY = {"bytes", "memory", "one word"}


def _dicts_in(value: Any) -> list[dict[str, Any]]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    below = [found for item in items for found in _dicts_in(item)]
    return [value, *below] if isinstance(value, dict) else below


def in_form(form: int, holder: int, field: str, leaf: Any) -> Any:
    """Return a value in a protocol's form, with a leaf in a field of any dict in it."""
    value = copy.deepcopy(FORMS[form])
    dicts = _dicts_in(value)
    dicts[holder % len(dicts)][field] = leaf
    return value


def _nested(value: Any, times: int) -> Any:
    for _ in range(times):
        value = [value]
    return value


def _cycle(value: Any) -> Any:
    held = {"content": [OK], "value": value}
    held["self"] = held
    return held


HOLDERS: list[Callable[[Any], Any]] = [
    *(
        lambda value: [value],
        lambda value: [OK, value],
        lambda value: (value, 1),
        lambda value: deque([value]),
    ),
    *(lambda value: {"rows": value}, lambda value: OrderedDict(content=[OK], more=value)),
    *(lambda value: UserDict(content=[OK], more=value), lambda value: MappingProxyType({"more": value})),
    lambda value: {"role": "tool", "tool_call_id": "c", "content": [value]},
    lambda value: {"content": [OK, value], "isError": False},
    *(lambda value: _nested(value, 12), lambda value: _nested(value, 200), _cycle),
    *((lambda value, kind=kind: kind(content=value, log=None)) for kind in CLASSES),
    *((lambda value, kind=kind: kind(content=[OK], log=value)) for kind in CLASSES),
    *((lambda value, kind=kind: kind(content="ok", log=value)) for kind in CLASSES),
    lambda value: SimpleNamespace(role="tool", tool_call_id="c", content="ok", log=value),
    lambda value: SimpleNamespace(type="text", text="ok", more=value),
]


BESIDE_CONTENT = next(
    at for at, hold in enumerate(HOLDERS) if getattr(hold({}), "log", None) == {} and hold({}).content == [OK]
)


def shown(value: Any) -> int:
    """Return the characters that a model is shown at most: of the text, or of the JSON."""
    try:
        as_json = json.dumps(value, default=str, skipkeys=True)
    except (ValueError, RecursionError):  # a cycle, or too deep: a framework has only its text
        as_json = ""
    try:
        return max(len(str(value)), len(as_json))
    except RecursionError:
        return len(as_json)


def by_function(guard: Guard, value: Any) -> Any:
    return guard.wrap(lambda: value)()


def by_adapter(guard: Guard, value: Any) -> Any:
    return Adapter(guard).call("t", "c").process_sync(value, is_printed=True).value


@pytest.mark.parametrize("way", [by_function, by_adapter])
@settings(max_examples=200, deadline=None)
@given(
    leaf=st.sampled_from(sorted(LEAVES)),
    form=st.none() | st.integers(0, len(FORMS) - 1),
    holder=st.integers(0, 3),
    field=st.sampled_from(FIELDS),
    holders=st.lists(st.integers(0, len(HOLDERS) - 1), max_size=2),
)
@example(leaf="bytes", form=RESOURCE, holder=0, field="data", holders=[BESIDE_CONTENT])
@example(leaf="bytes", form=RESOURCE, holder=1, field="data", holders=[BESIDE_CONTENT])
@example(leaf="one word", form=DOCUMENT, holder=1, field="data", holders=[BESIDE_CONTENT])
def test_no_long_text_in_any_place_of_any_value_passes(
    way: Callable[[Guard, Any], Any], leaf: str, form: int | None, holder: int, field: str, holders: list[int]
) -> None:
    assume(form != PICTURE or field != "data" or leaf not in BINARY)  # the data of a picture stays
    value = LEAVES[leaf] if form is None else in_form(form, holder, field, LEAVES[leaf])
    for at in holders:
        value = HOLDERS[at](value)

    chars = shown(way(Guard(spool=False), value))
    assert chars < MAX_CHARS


def test_long_fields_that_were_taken_for_a_protocols_are_guarded() -> None:
    guard = Guard(spool=False)
    of_list = {"role": "assistant", "type": "tool_result", "content": "ok", "tool_calls": [LONG]}
    many = SimpleNamespace(type="text", text="ok", html="x" * 400)

    assert shown(by_function(guard, OfDataclass([OK], LONG))) < MAX_CHARS
    assert shown(by_function(guard, {"content": [OK], "metadata": LONG})) < MAX_CHARS
    assert shown(by_function(guard, [of_list])) < MAX_CHARS
    assert shown(by_function(guard, [many] * 1_000)) < MAX_CHARS


@pytest.mark.parametrize(
    "media",
    [
        {"type": "image", "data": DATA, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.pdf", "blob": DATA}},
        {"type": "file", "base64": DATA, "mime_type": "application/pdf"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": DATA}},
        {"document": {"format": "pdf", "name": "a", "source": {"bytes": DATA}}},
        {"inlineData": {"mimeType": "application/pdf", "data": DATA}},
    ],
    ids=lambda media: next(iter(media)) + str(media.get("type", "")),
)
@pytest.mark.parametrize(
    "held",
    [
        lambda media: [media],
        lambda media: {"content": [media]},
        lambda media: {"content": [media], "isError": False},
        lambda media: {"role": "tool", "tool_call_id": "c", "content": [media]},
        lambda media: [{"type": "tool_result", "tool_use_id": "c", "content": [media]}],
        lambda media: {"toolResult": {"toolUseId": "c", "status": "success", "content": [media]}},
    ],
)
@pytest.mark.parametrize("sender", Sender)
def test_the_data_of_a_file_stays_also_if_there_is_no_text_beside_it(
    held: Callable[[Any], Any], media: Any, sender: Sender
) -> None:
    result = held(media)
    with guarding_tool(sender):
        shown_of_it = Guard(spool=False).process_sync(result, tool="t").value

    assert shown_of_it is result


def test_what_mcp_has_for_programs_stays_in_a_servers_result_alone() -> None:
    result = {"content": [{**OK, "annotations": {"note": LONG}}], "_meta": {"widget": LONG}}
    guard = Guard(spool=False)
    with guarding_tool(Sender.MCP_SERVER):
        of_server = guard.process_sync(result, tool="t").value
    of_tool = by_function(guard, result)

    assert of_server is result
    assert shown(of_tool) < MAX_CHARS


def test_what_a_framework_sends_to_no_model_stays_in_its_own_objects() -> None:
    message = ToolMessage("ok", tool_call_id="c", artifact=LONG, additional_kwargs={"raw": LONG})
    result = CallToolResult(content=[TextContent(type="text", text="ok")], _meta={"widget": LONG})
    guard = Guard(spool=False)

    assert by_function(guard, message) is message
    assert by_function(guard, result) is result
