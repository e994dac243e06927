import json
import math
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Policy
from overspill.previews import notice_forms
from overspill.previews.notice_facts import Facts
from overspill.reading.text import is_utf8
from overspill.shapes.envelope import Envelope, joined
from overspill.shapes.examination import examine
from overspill.shapes.sender import Sender
from overspill.shapes.shape import Shape
from overspill.shapes.writer import as_text, text_of
from overspill.text.encoding import encode

from tests import notices

ID = "cap_abcdefghij234567abcd"
NOTICE = notices.captured(
    Facts(id=ID, tool="t", size=9_999, lines=99, preview="shown", reader="read {id}"),
    datetime(2026, 11, 22, tzinfo=UTC),
)
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)


class Block(pydantic.BaseModel):
    type: str
    text: str | None = None
    data: str | None = None


class Result(pydantic.BaseModel):
    content: list[Block]
    structuredContent: dict[str, Any] | None = None  # noqa: N815
    isError: bool = False  # noqa: N815


class Plain:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@dataclass
class Record:
    name: str
    tags: set[str]


ROWS: dict[str, Any] = {
    "videos": [{"type": "video", "url": f"v/{n}", "title": "t", "description": "d" * 80} for n in range(100)],
    "files": [{"type": "file", "file": f"src/{n}.py", "size": n} for n in range(1_000)],
    "paragraphs": [{"type": "text", "text": "p", "html": "x" * 400} for _ in range(20)],
    "functions": [{"type": "function", "content": "def f", "body": "x" * 400} for _ in range(20)],
    "nested": [{"type": "text", "text": "p", "spans": [[n, n] for n in range(3_000)]}],
    "pictures": [{"type": "image", "url": f"v/{n}"} for n in range(5_000)],
    "output": {"content": [{"type": "text", "text": "ok"}], "stdout": "x" * 5_000},
    "message": {"role": "tool", "content": "ok", "data": "x" * 5_000},
    "answer": {"role": "assistant", "content": "ok", "log": "x" * 5_000},
    "a file": {"type": "file", "data": "x" * 5_000},
    "a document": {"type": "document", "source": {"pages": ["x"] * 5_000}},
    "tables": [{"type": "file", "data": [["x"] * 9] * 9}],
    "resource": [{"type": "resource", "resource": {"uri": "u", "text": "t", "html": "x" * 5_000}}],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_data_are_captured_whole_whatever_their_type_says(name: str) -> None:
    assert json.loads(str(shape_of(ROWS[name]).body)) == ROWS[name]


def test_a_little_besides_makes_no_data_of_a_block() -> None:
    block = {
        **text_block("hello"),
        "source_line": 7,
        "path": "src/a.py",
        "extras": {"signature": "x" * 9_000},
    }

    found = examine([block], sender=Sender.HOST)
    assert found is not None
    assert found.body == "hello"
    assert str(shape_of([block]).body).startswith("hello\n{\n")


def shape_of(result: Any) -> Shape:
    found = examine(result)
    assert found is not None
    return found


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


# --- what passes through --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        None,
        True,
        7,
        1.5,
        object(),
        Plain(x=1),
        Plain(type="ai", content="hi"),
        Record,
    ],
)
def test_what_has_no_text_of_a_tool_passes_through(result: Any) -> None:
    assert examine(result) is None


def test_a_message_that_no_tool_made_passes_through_where_one_may_come() -> None:
    message = {"role": "user", "content": "hi"}

    assert examine(message, sender=Sender.HOST) is None
    assert examine(message) is not None


# --- strings and bytes ----------------------------------------------------------------------------


def test_a_string_is_captured_as_it_is_and_becomes_the_notice() -> None:
    found = shape_of("abc")

    assert (found.body, found.content_type) == ("abc", "text/plain; charset=utf-8")
    assert found.replaced(NOTICE) == str(NOTICE)


class Chunk(bytes):
    """Bytes of a class of their own."""


@pytest.mark.parametrize("value", [np.str_("x"), np.bytes_(b"x"), Chunk(b"x")], ids=type)
def test_a_notice_has_the_class_of_the_text_or_the_bytes_also_if_python_cannot_make_it(value: Any) -> None:
    found = shape_of(value).replaced(NOTICE)

    assert type(found) is type(value)
    assert found == (str(NOTICE) if isinstance(found, str) else str(NOTICE).encode())


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_captured_as_they_are(kind: Any) -> None:
    found = shape_of(kind(b"\x89PNG\r\n\x1a\n\xff"))

    assert (found.body, found.content_type) == (b"\x89PNG\r\n\x1a\n\xff", "image/png")


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        ("é".encode(), "text/plain; charset=utf-8"),
        (b"\xff\x00", "application/octet-stream"),
        (b"RIFF....WEBP", "image/webp"),
    ],
)
def test_bytes_are_text_where_they_are_utf8(data: bytes, content_type: str) -> None:
    assert shape_of(data).content_type == content_type


@given(st.binary() | st.text().map(str.encode), st.sampled_from([0, 1024 * 1024 - 1]))
def test_bytes_are_utf8_where_python_can_decode_them(data: bytes, before: int) -> None:
    whole = b"a" * before + data
    try:
        whole.decode()
    except UnicodeDecodeError:
        assert not is_utf8(whole)
    else:
        assert is_utf8(whole)


def test_bytes_in_data_are_captured_as_they_are() -> None:
    printed = b"caf\xe9\n" * 2_000
    one = examine((0, printed))
    both = examine(subprocess.CompletedProcess(["make"], 1, printed, b"\xff" + printed))
    assert isinstance(one, Envelope)
    assert isinstance(both, Envelope)
    limits = Policy().limits("t")

    assert one.within(limits, 1_000).body == printed
    assert encode(text_of(both.within(limits, 1_000).body)) == printed + b"\xff" + printed


def test_objects_made_of_json_are_captured_with_names_that_python_has_too() -> None:
    given = {"__class__": "Order", "__dict__": "of words", "__doc__": None, "total": 3}

    assert json.loads(text_of(shape_of(SimpleNamespace(**given)).body)) == given


@pytest.mark.parametrize("file", [b"\x89PNG\r\n\x1a\n", b"RIFF....WAVE", b"\0\0..ftypisom"])
def test_files_of_known_kinds_in_data_are_no_text(file: bytes) -> None:
    found = shape_of({"file": file + b"\xff" * 100_000})

    assert not found.exceeds(Policy().limits("t"))


# --- containers -----------------------------------------------------------------------------------


@given(JSON.filter(lambda value: isinstance(value, (dict, list))))
def test_containers_are_captured_as_the_indented_json_of_the_standard_library(value: Any) -> None:
    assert as_text(value) == json.dumps(value, ensure_ascii=False, indent=2)


def test_a_dict_becomes_a_dict() -> None:
    found = shape_of({"rows": [1, "é", math.inf]})

    assert found.body == '{\n  "rows": [\n    1,\n    "é",\n    Infinity\n  ]\n}'
    assert found.content_type == "application/json"
    assert found.replaced(NOTICE) == {"rows": [1, str(NOTICE), math.inf]}


def test_values_that_json_lacks_are_shown_as_they_can() -> None:
    value = {
        "record": Record("a", {"y", "x"}),
        "raw": b"\xff\xfe",
        "text": b"ok",
        "model": Block(type="t"),
        "type": int,
    }

    assert json.loads(str(shape_of(value).body)) == {
        "record": {"name": "a", "tags": ["x", "y"]},
        "raw": "<2 bytes of application/octet-stream>",
        "text": "ok",
        "model": {"type": "t", "text": None, "data": None},
        "type": "<class 'int'>",
    }


def test_a_container_that_holds_itself_says_so_where_it_would_begin_again() -> None:
    value: dict[str, Any] = {"a": 1}
    value["me"] = [value]

    assert shape_of(value).body == '{\n  "a": 1,\n  "me": [\n    "<dict that holds itself>"\n  ]\n}'


def test_keys_that_json_lacks_are_written_as_they_print() -> None:
    assert json.loads(str(shape_of({(1, 2): 3, None: 4, 1.5: 5}).body)) == {"(1, 2)": 3, "null": 4, "1.5": 5}


@pytest.mark.parametrize("value", [Record("a", set()), Block(type="x"), (1, 2), {1}, ["a", "b"], []])
def test_records_and_collections_are_structured(value: Any) -> None:
    assert isinstance(shape_of(value), Envelope)


def test_search_hits_with_a_type_are_no_content_blocks() -> None:
    assert isinstance(shape_of([{"type": "repo", "name": "x"}]), Envelope)


# --- content blocks -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text", "input_text", "output_text"])
def test_text_blocks_of_every_protocol_share_one_capture(kind: Any) -> None:
    found = shape_of([{"type": kind, "text": "a\n"}, {"type": kind, "text": "b", "cache_control": 1}])

    assert found.body == "a\nb"


def test_the_first_text_becomes_the_notice_and_later_ones_placeholders() -> None:
    blocks = [IMAGE, text_block("a" * 500), IMAGE, text_block("b" * 500)]

    assert shape_of(blocks).replaced(NOTICE) == [
        IMAGE,
        text_block(str(NOTICE)),
        IMAGE,
        text_block(f"[overspill {ID}: 500 bytes of text, in the capture]"),
    ]


def test_blocks_of_other_types_are_the_same_objects() -> None:
    image = Block(type="image", data="x")
    kept = shape_of([image, Block(type="text", text="a")]).replaced(NOTICE)

    assert kept[0] is image


def test_a_text_shorter_than_its_placeholder_stays() -> None:
    kept = shape_of([text_block("a" * 500), text_block("exit status 1")]).replaced(NOTICE)

    assert kept == [text_block(str(NOTICE)), text_block("exit status 1")]


def test_the_original_blocks_are_not_changed() -> None:
    blocks = [text_block("a"), text_block("b")]
    shape_of(blocks).replaced(NOTICE)

    assert blocks == [text_block("a"), text_block("b")]


def test_a_thousand_text_blocks_do_not_become_a_thousand_placeholders() -> None:
    kept = shape_of([text_block("x" * 100)] * 1_000).replaced(NOTICE)

    assert len(kept) == 17


def test_other_fields_of_a_text_block_stay() -> None:
    kept = shape_of([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]).replaced(NOTICE)

    assert kept == [{"type": "text", "text": str(NOTICE), "cache_control": {"type": "ephemeral"}}]


def test_the_text_of_an_embedded_resource_counts_and_its_address_stays() -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///log", "mimeType": "text/plain", "text": "a"}}
    found = shape_of([resource, {"type": "resource", "resource": {"uri": "file:///x", "blob": "aGk="}}])

    assert found.body == "a"
    assert found.replaced(NOTICE)[0]["resource"] == {
        "uri": "file:///log",
        "mimeType": "text/plain",
        "text": str(NOTICE),
    }


def test_bare_strings_among_blocks_are_text() -> None:
    found = shape_of(["a", IMAGE])

    assert found.body == "a"
    assert found.replaced(NOTICE) == [str(NOTICE), IMAGE]


def test_a_tuple_of_blocks_stays_a_tuple() -> None:
    assert shape_of((text_block("a"),)).replaced(NOTICE) == (text_block(str(NOTICE)),)


@pytest.mark.parametrize("make", [Plain, Block])
def test_blocks_may_be_objects(make: Any) -> None:
    (kept,) = shape_of([make(type="text", text="a")]).replaced(NOTICE)

    assert (kept.type, kept.text) == ("text", str(NOTICE))


def test_blocks_may_be_frozen_records() -> None:
    struct = msgspec.defstruct("TextBlock", [("type", str), ("text", str)], frozen=True)

    assert shape_of([struct("text", "a")]).replaced(NOTICE) == [struct("text", str(NOTICE))]


# --- results that carry blocks --------------------------------------------------------------------


def test_an_mcp_result_keeps_its_error_flag() -> None:
    result = {"content": [text_block("boom")], "isError": True, "_meta": {"k": 1}}

    assert shape_of(result).replaced(NOTICE) == {
        "content": [text_block(str(NOTICE))],
        "isError": True,
        "_meta": {"k": 1},
    }


def test_structured_content_that_repeats_the_text_is_captured_once() -> None:
    found = shape_of({"content": [text_block('{"a":[1,2]}')], "structuredContent": {"a": [1, 2]}})

    assert found.body == '{"a":[1,2]}'
    assert found.replaced(NOTICE)["structuredContent"] == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (["a text\nof a tool"], {"result": "a text\nof a tool"}),
        (["a", "b", "c"], {"result": ["a", "b", "c"]}),
        (['{"id": 1}', '{"id": 2}'], {"result": [{"id": 1}, {"id": 2}]}),
        (["42"], {"result": 42}),
        (['{"result": 1}'], {"result": 1}),
        (["only"], {"result": ["only"]}),
    ],
)
def test_what_a_function_returned_is_captured_once(texts: list[str], value: Any) -> None:
    """As the servers of the Python SDK answer for `-> str`, `-> list[str]`, `-> list[Model]`, `-> int`."""
    found = shape_of({"content": [text_block(text) for text in texts], "structuredContent": value})

    assert found.body == joined(texts)


@pytest.mark.parametrize("value", [{"result": ["a", "b", "d"]}, {"result": ["a", "b"]}, {"result": "a"}])
def test_what_says_something_else_is_captured_too(value: Any) -> None:
    found = shape_of({"content": [text_block(text) for text in "abc"], "structuredContent": value})

    assert str(found.body).startswith("a\nb\nc\n{")


def test_a_wrapped_result_that_repeats_the_text_is_captured_once() -> None:
    assert shape_of({"content": [text_block("[1]")], "structuredContent": {"result": [1]}}).body == "[1]"


def test_structured_content_of_its_own_is_captured_behind_the_text() -> None:
    found = shape_of({"content": [text_block("two rows")], "structuredContent": {"a": 1}})

    assert found.body == 'two rows\n{\n  "a": 1\n}'


def test_structured_content_alone_becomes_a_dict() -> None:
    found = shape_of({"content": [], "structuredContent": {"a": 1}, "isError": False})

    assert found.replaced(NOTICE) == {
        "content": [],
        "structuredContent": {"a": 1, "overspill": str(NOTICE)},
        "isError": False,
    }


def test_a_result_object_stays_one_of_its_class() -> None:
    image = Block(type="image", data="aGk=")
    result = Result(content=[Block(type="text", text="a"), image], structuredContent={"b": 1}, isError=True)
    kept = shape_of(result).replaced(NOTICE)

    assert kept == Result(
        content=[Block(type="text", text=str(NOTICE)), image], structuredContent={"b": 1}, isError=True
    )
    assert result.structuredContent == {"b": 1}


@pytest.mark.parametrize(
    "message",
    [{"role": "tool", "content": "out", "tool_call_id": "c"}, {"type": "tool_result", "content": "out"}],
)
def test_a_tool_message_around_text_keeps_its_other_fields(message: Any) -> None:
    assert shape_of(message).replaced(NOTICE) == {**message, "content": str(NOTICE)}


# --- notices are not spilled again ----------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        "x",
        [text_block("x"), text_block("y" * 200)],
        {"a": 1},
        {"content": [text_block("x")]},
        {"role": "tool", "content": "x"},
    ],
)
def test_what_was_replaced_is_recognised(result: Any) -> None:
    replaced = shape_of(result).replaced(NOTICE)

    assert shape_of(replaced).notices()
    assert not shape_of(result).notices()


@pytest.mark.parametrize("capture", [ID, None])
def test_a_notice_as_a_dict_is_recognised(capture: Any) -> None:
    made = notice_forms.as_dict(replace(NOTICE, id=capture or ""))

    assert shape_of(made).notices()
    assert shape_of({**dict(reversed(made.items())), "isError": True}).notices()
    assert not shape_of({**made, "capture": "cap_" + "a" * 20}).notices()
    assert not shape_of({**made, "more": "text"}).notices()
    assert not shape_of({"capture": ID, "notice": f"[overspill {ID}"}).notices()
