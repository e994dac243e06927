"""Tool outputs in user interfaces."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from overspill.shapes.display import for_display
from overspill.shapes.examination import examine
from overspill.text.sanitize import may_cut, sanitize

from tests.lazy import LazyModule

if TYPE_CHECKING:
    from langchain_core import messages as chain
    from mcp import types as mcp
else:
    chain = LazyModule("langchain_core.messages")
    mcp = LazyModule("mcp.types")

PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(34_492)
DATA: Final = base64.b64encode(PNG).decode()
URL: Final = f"data:image/png;base64,{DATA}"
SHOWN: Final = "[image/png, 34.5 KB]"


def texts(value: Any) -> list[str]:
    """All strings in a value that can be JSON, names included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in texts(part)]
    return [text for item in value for text in texts(item)] if isinstance(value, (list, tuple)) else []


# --- text -----------------------------------------------------------------------------------------


def test_text_that_fits_is_the_same_object() -> None:
    text = "all good\n"

    assert for_display(text) is text


def test_long_text_shows_its_head_and_tail_and_how_much_is_not_shown() -> None:
    text = "".join(f"line {number}\n" for number in range(2_000))

    assert for_display(text, max_chars=100) == (
        "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\n"
        "… [18,828 characters not shown] …\n"
        "line 1998\nline 1999\n"
    )


@pytest.mark.parametrize(("size", "is_whole"), [(8_000, True), (8_001, False)])
def test_the_cap_is_eight_thousand_characters(size: int, is_whole: bool) -> None:
    shown = for_display("漢" * size)

    assert (shown == "漢" * size) is is_whole
    assert len(shown) <= 8_000


def test_terminal_escapes_and_control_characters_go() -> None:
    assert (
        for_display("\x1b[31mred\x1b[0m\x07 \u202egnp\x1b]0;title\x07\n")
        == "red␇ \N{REPLACEMENT CHARACTER}gnp\n"
    )


def test_a_cut_breaks_no_character() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    shown = for_display(family * 1_000, max_chars=200)
    head, tail = shown.split("\n… [")[0], shown.split("] …\n")[1]

    assert head.replace(family, "") == tail.replace(family, "") == ""


def test_the_end_of_a_line_is_no_place_to_cut_where_a_mark_belongs_to_it() -> None:
    text = "abcdefgh\n\u0301" * 200
    shown = for_display(text, max_chars=100)
    head, tail = shown[: shown.index("… [")], shown.split("] …\n")[1]
    head = head if text.startswith(head) else head[:-1]

    assert may_cut(text, len(head))
    assert may_cut(text, len(text) - len(tail))


# --- errors ---------------------------------------------------------------------------------------


def test_an_exception_shows_its_type_and_first_line() -> None:
    error = ValueError("no such file: /tmp/x\nsecond line\nthird line")

    assert for_display(error) == "ValueError: no such file: /tmp/x … [23 characters not shown]"


def test_a_long_line_of_an_error_is_cut_at_four_hundred_characters() -> None:
    shown = for_display(RuntimeError("x" * 5_000))

    assert len(shown) <= 400
    assert shown.startswith("RuntimeError: xxxx")
    assert shown.endswith("x … [4,645 characters not shown]")


def test_a_line_that_is_cut_behind_a_space_loses_the_space_at_once() -> None:
    failed = {"content": "no such word here", "isError": True}

    assert for_display(failed, max_error_chars=8)["content"] == "no such"


def test_an_exceptions_line_fits_into_the_whole_cap() -> None:
    assert len(for_display(RuntimeError("x" * 500), max_chars=100)) <= 100


def test_an_exception_that_cannot_say_what_it_is_shows_its_type() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert "Silent" in for_display(Silent())


def test_a_result_that_is_an_error_shows_the_first_line_of_what_it_says() -> None:
    failed = {"content": [{"type": "text", "text": "it failed\n" + "trace\n" * 500}], "isError": True}

    assert for_display(failed) == {
        "content": [{"type": "text", "text": "it failed … [3,000 characters not shown]"}],
        "isError": True,
    }


def test_messages_with_an_errors_status_are_errors() -> None:
    message = chain.ToolMessage("it failed\n" + "trace\n" * 500, tool_call_id="call_1", status="error")
    shown = for_display(message)

    assert shown["content"] == "it failed … [3,000 characters not shown]"
    assert (shown["status"], shown["tool_call_id"]) == ("error", "call_1")


def test_a_short_error_is_the_same_object() -> None:
    failed = {"content": [{"type": "text", "text": "it failed"}], "isError": True}

    assert for_display(failed) is failed


# --- images and other data ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": DATA, "mimeType": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
        {"type": "image_url", "image_url": URL},
        {"type": "input_image", "image_url": URL},
        {"type": "image", "base64": DATA, "mime_type": "image/png"},
        {"type": "image", "source_type": "base64", "data": DATA, "mime_type": "image/png"},
        {"type": "image", "data": DATA},
        {"type": "image", "data": PNG},
        {"type": "input_file", "filename": "x", "file_data": URL},
        {"type": "resource", "resource": {"uri": "file:///x", "mimeType": "image/png", "blob": DATA}},
        lambda: mcp.ImageContent(type="image", data=DATA, mime_type="image/png"),
        lambda: mcp.EmbeddedResource(
            type="resource",
            resource=mcp.BlobResourceContents(uri="file:///x", blob=DATA, mime_type="image/png"),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_block_of_image_data_says_how_many_bytes_are_omitted(block: Any) -> None:
    before = {"type": "text", "text": "see:"}
    block = block() if callable(block) else block
    kind = block["type"] if isinstance(block, dict) else block.type

    assert for_display([before, block]) == [
        before,
        {"type": kind, "mimeType": "image/png", "bytes": 34_500, "omitted": True},
    ]


def test_audio_is_omitted_too() -> None:
    sound = base64.b64encode(bytes(2_000_000)).decode()
    blocks = [
        mcp.AudioContent(type="audio", data=sound, mime_type="audio/ogg"),
        {"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}},
    ]

    assert for_display(blocks) == [
        {"type": "audio", "mimeType": "audio/ogg", "bytes": 2_000_000, "omitted": True},
        {"type": "input_audio", "mimeType": "audio/wav", "bytes": 2_000_000, "omitted": True},
    ]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "resource", "resource": {"uri": "file:///x", "mimeType": "text/plain", "text": "hello"}},
    ],
    ids=lambda block: str(block["type"]),
)
def test_links_stay(block: Any) -> None:
    blocks = [{"type": "text", "text": "see:"}, block]

    assert for_display(blocks) is blocks


def test_data_in_other_places_is_named_where_it_stands() -> None:
    value = {
        "plot": {"mimeType": "image/png", "data": DATA, "title": "Sales"},
        "page": f"<img src='{URL}'> and ![x]({URL})",
        "raw": PNG,
        "bare": DATA,
        "text": b"plain text",
        "note": {"mimeType": "text/plain", "data": "hello"},
    }

    assert for_display(value) == {
        "plot": {"mimeType": "image/png", "data": SHOWN, "title": "Sales"},
        "page": f"<img src='{SHOWN}'> and ![x]({SHOWN})",
        "raw": SHOWN,
        "bare": SHOWN,
        "text": "plain text",
        "note": {"mimeType": "text/plain", "data": "hello"},
    }


def test_bytes_are_named_or_shown_as_the_text_that_they_are() -> None:
    assert for_display(PNG) == SHOWN
    assert for_display(b"\xff\xfe\x00") == "[application/octet-stream, 3 bytes]"
    assert for_display("größe".encode()) == "größe"


@pytest.mark.parametrize("text", ["a" * 1_000, "deadbeef" * 100, "/usr/lib/x" * 50, DATA[100:300]])
def test_what_merely_looks_like_base64_stays(text: str) -> None:
    assert for_display(text) is text


# --- containers -----------------------------------------------------------------------------------


def test_a_container_that_fits_is_the_same_object() -> None:
    value = {"rows": [{"id": 1, "name": "ä"}], "next": None, "ok": True, "mean": 0.5}

    assert for_display(value) is value


def test_a_container_in_which_something_changes_keeps_its_form() -> None:
    assert for_display({"log": ["\x1b[1mok\x1b[0m"], "code": 0}) == {"log": ["ok"], "code": 0}


def test_a_container_that_does_not_fit_becomes_json_text() -> None:
    rows = {"rows": [{"id": number} for number in range(1_000)]}
    whole = json.dumps(rows, indent=2)
    shown = for_display(rows, max_chars=200)

    assert shown.startswith(whole[:100])
    assert shown.endswith(whole[-50:])
    assert len(shown) <= 200


def test_each_block_has_so_many_characters_and_keeps_its_place() -> None:
    link = {"type": "resource_link", "uri": "file:///x", "name": "x"}
    short = {"type": "text", "text": "short"}
    blocks = [{"type": "text", "text": "first\n" * 100, "id": "a"}, link, short, "last\n" * 100]
    shown = for_display(blocks, max_chars=160)

    assert [type(block) for block in shown] == [dict, dict, dict, str]
    assert (shown[0]["id"], shown[1], shown[2]) == ("a", link, short)
    assert all(100 < len(text) <= 160 for text in (shown[0]["text"], shown[3]))
    assert "characters not shown] …" in shown[0]["text"]
    assert for_display(shown, max_chars=160) is shown


def test_a_result_of_blocks_that_fit_each_is_the_same_object() -> None:
    result = {"content": [{"type": "text", "text": "x" * 8_000} for _ in range(3)], "isError": False}

    assert for_display(result) is result


def test_a_message_keeps_its_fields_but_for_long_ones() -> None:
    message = {"role": "tool", "tool_call_id": "call_1", "content": "x" * 9_000, "artifact": ["y" * 9_000]}
    shown = for_display(message)

    assert shown["role"] == "tool"
    assert shown["artifact"] == "[9,001 characters not shown]"
    assert shown["content"].startswith("xxx")
    assert sum(map(len, texts(shown))) <= 8_000


def test_mcps_results_are_shown_as_dicts_of_their_fields() -> None:
    result = mcp.CallToolResult(content=[mcp.TextContent(type="text", text="x" * 9_000)], is_error=False)
    (block,) = for_display(result)["content"]

    assert block["type"] == "text"
    assert 7_000 < len(block["text"]) <= 8_000


def test_records_are_shown_as_dicts_where_something_changes() -> None:
    @dataclasses.dataclass
    class Row:
        name: str
        data: bytes

    row = Row("a", b"b")

    assert for_display(row) == {"name": "a", "data": "b"}
    assert for_display(object) == str(object)


@pytest.mark.parametrize("value", [None, True, 7, 0.5, "", [], {}, ()], ids=repr)
def test_small_values_are_the_same_objects(value: Any) -> None:
    assert for_display(value) is value


def test_numbers_without_end_are_described() -> None:
    assert for_display([1 << 100_000]) == ["[integer of 100,001 bits]"]


def test_values_that_refer_to_themselves_or_grow_without_end_are_shown() -> None:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    laughs: list[Any] = ["ha"]
    for _ in range(40):
        laughs = [laughs] * 10

    assert for_display(cycle) == [1, "[…]"]
    assert sum(map(len, texts(for_display(laughs)))) <= 8_000


def test_containers_with_too_many_parts_say_how_many_are_missing() -> None:
    rows = for_display(list(range(100_000)))
    fields = for_display({str(number): number for number in range(100_000)})

    assert rows.endswith('"[80,000 more not shown]"\n]')
    assert fields.endswith('"…": "[80,000 more not shown]"\n}')


def test_hostile_objects_are_shown_as_what_they_are() -> None:
    class Hostile:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __repr__(self) -> str:
            raise RuntimeError("no")

    class Broken(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("no")

    assert "Hostile" in for_display({"value": Hostile()})["value"]
    assert "Broken" in for_display([Broken(a=1)])[0]


# --- whatever it is -------------------------------------------------------------------------------

pieces = st.text(max_size=60) | st.sampled_from(
    [URL[:60], "\x1b[31m", "\U0001f468\u200d\U0001f469", "e\u0301", "\r\n", "[/overspill", "a" * 80]
)
strings = st.lists(pieces, max_size=6).map("".join)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | strings | st.binary(max_size=80)
)
blocks = st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, strings)
    | st.builds(
        lambda data: {"type": "image", "mimeType": "image/png", "data": data},
        st.sampled_from([DATA[:40], "?"]),
    )
    | st.builds(lambda uri: {"type": "resource_link", "uri": uri}, strings),
    max_size=5,
)
values = st.recursive(
    scalars | blocks,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(strings, inner, max_size=4)
        | st.fixed_dictionaries({"content": inner | blocks, "isError": st.booleans(), "other": inner})
    ),
    max_leaves=12,
)


def holds_blocks(value: Any) -> bool:
    """Whether the cap is for each block."""
    items = value.get("content") if isinstance(value, dict) else value
    return isinstance(items, list) and any(isinstance(item, dict) and "type" in item for item in items)


@given(values, st.integers(40, 400), st.integers(0, 100))
@example([{"type": "text", "text": ""}, {"type": "text", "text": "0" * 17}], 40, 0)
def test_whatever_it_is_the_cap_holds_and_showing_again_changes_nothing(
    value: Any, max_chars: int, max_error_chars: int
) -> None:
    before = copy.deepcopy(value)
    shown = for_display(value, max_chars=max_chars, max_error_chars=max_error_chars)

    assert value == before
    lengths = list(map(len, texts(shown)))
    assert (max if holds_blocks(value) else sum)([0, *lengths]) <= max(max_chars, max_error_chars)
    assert for_display(value, max_chars=max_chars, max_error_chars=max_error_chars) == shown
    assert for_display(shown, max_chars=max_chars, max_error_chars=max_error_chars) == shown
    assert all(sanitize(text) == text for text in texts(shown))


@given(
    st.text("ab \t\n\r\u0301\u3000", min_size=20, max_size=80),
    st.integers(40, 80),
    st.integers(0, 60),
    st.booleans(),
)
def test_the_line_of_an_error_that_was_shown_once_stays_as_it_is(
    said: str, max_chars: int, max_error_chars: int, is_raised: bool
) -> None:
    failed = RuntimeError(said) if is_raised else {"content": said, "isError": True}
    shown = for_display(failed, max_chars=max_chars, max_error_chars=max_error_chars)

    assert for_display(shown, max_chars=max_chars, max_error_chars=max_error_chars) == shown


@given(
    st.lists(st.text(max_size=60) | st.sampled_from(["e\u0301", "\r\n", "\n", "a" * 80]), max_size=9),
    st.integers(60, 200),
)
def test_a_shown_text_is_its_head_and_tail(parts: list[str], limit: int) -> None:
    text = sanitize("".join(parts) * 10)
    shown = for_display(text, max_chars=limit)
    if len(text) <= limit:
        assert shown is text
        return
    head, rest = shown.split("… [", 1)
    number, tail = rest.split(" characters not shown] …\n", 1)
    missing = int(number.replace(",", ""))
    head = head if text.startswith(head) and len(head) + missing + len(tail) == len(text) else head[:-1]

    assert text == head + text[len(head) : len(head) + missing] + tail
    assert may_cut(text, len(head))
    assert may_cut(text, len(text) - len(tail))


def test_the_models_view_is_left_alone() -> None:
    value = {"content": [{"type": "image", "data": DATA, "mimeType": "image/png"}]}
    before = examine(value)
    for_display(value)

    assert value["content"][0]["data"] is DATA
    assert (before is None) == (examine(value) is None)
