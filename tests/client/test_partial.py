"""Partial updates: cut within their shape, and not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Guard
from overspill.guard.policy import Policy
from overspill.shapes.partial import clamp_partial, clamp_text
from overspill.text.limits import UNLIMITED, Limits, exceeds
from overspill.text.measure import extent_of

from tests.lazy import LazyModule

if TYPE_CHECKING:
    from langchain_core import messages as chain
    from mcp import types as mcp
else:
    mcp = LazyModule("mcp.types")
    chain = LazyModule("langchain_core.messages")

LIMITS = Limits(600, 20)
TEXT = st.text(st.sampled_from("ab é😀\n\r"), max_size=3_000)


def block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


IMAGE = {"type": "image", "data": "aGk=" * 1_000, "mimeType": "image/png"}


# --- texts ----------------------------------------------------------------------------------------


def test_a_long_update_keeps_its_head_and_tail() -> None:
    lines = "".join(f"line {number}\n" for number in range(100))

    assert clamp_partial(lines, Limits(50_000, 10)) == (
        "line 0\nline 1\nline 2\nline 3\n"
        "... [730 bytes, 92 lines cut: over 50,000 bytes or 10 lines; "
        "the result follows] ...\n"
        "line 96\nline 97\nline 98\nline 99\n"
    )


def test_one_long_line_is_cut_inside() -> None:
    shown = clamp_partial("x" * 10_000, Limits(400))

    assert shown.startswith("x" * 100)
    assert shown.endswith("x" * 100)
    assert "bytes, 1 line cut: over 400 bytes; the result follows" in shown


@given(TEXT, st.integers(400, 2_000), st.integers(4, 50), st.none() | st.integers(400, 2_000))
def test_no_limit_is_exceeded_and_both_ends_are_the_updates(
    text: str, size: int, lines: int, chars: int | None
) -> None:
    limits = Limits(size, lines, chars)
    shown = clamp_text(text, limits)

    assert not exceeds(shown, limits)
    if shown != text:
        head, rest = shown.split("... [", 1)
        head = head.removesuffix("\n") if not text.startswith(head) else head
        tail = rest.split("] ...\n", 1)[1]
        assert text.startswith(head)
        assert text.endswith(tail)


@given(TEXT, st.integers(0, 400), st.integers(0, 5))
def test_where_there_is_room_for_no_text_there_is_a_short_remark(text: str, size: int, lines: int) -> None:
    limits = Limits(size, lines)
    shown = clamp_text(text, limits)

    assert shown == text or len(shown) < max(size, 150)


# --- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "update",
    [
        "x" * 600,
        b"x" * 600,
        None,
        7,
        [block("a"), IMAGE],
        {"role": "tool", "content": "a"},
        {"progress": 0.5},
        ValueError("a"),
        object(),
    ],
)
def test_a_small_update_is_the_same_object(update: Any) -> None:
    assert clamp_partial(update, LIMITS) is update


def test_texts_share_the_limits_in_order() -> None:
    short, long = "a" * 100, "b" * 2_000
    first, image, second, third, last = clamp_partial(
        [block(short), IMAGE, block(long), block(long), block("exit 1")], LIMITS
    )

    assert first == block(short)
    assert image is IMAGE
    assert second["text"].startswith("b" * 100)
    assert len(second["text"]) <= 500
    assert third == block("... [2,000 bytes, 1 line cut: over 600 bytes or 20 lines; the result follows] ...")
    assert last == block("exit 1")


def test_thousands_of_texts_do_not_become_thousands_of_remarks() -> None:
    assert len(clamp_partial([block("x" * 1_000)] * 1_000, LIMITS)) == 17


def test_results_of_frameworks_stay_what_they_are() -> None:
    result = mcp.CallToolResult(content=[mcp.TextContent(type="text", text="x" * 5_000)], is_error=True)
    message = chain.ToolMessage(content="x" * 5_000, tool_call_id="c", artifact=IMAGE)
    shown, said = clamp_partial(result, LIMITS), clamp_partial(message, LIMITS)

    assert isinstance(shown, mcp.CallToolResult)
    assert shown.is_error
    assert len(shown.model_dump()["content"][0]["text"]) <= 600
    assert isinstance(said, chain.ToolMessage)
    assert said.tool_call_id == "c"
    assert said.artifact is IMAGE
    assert len(said.content) <= 600


def test_small_data_with_a_long_text_keeps_its_keys() -> None:
    shown = clamp_partial({"step": 3, "log": "x" * 5_000, "done": False}, Limits(2_000, 50))

    assert list(shown) == ["step", "log", "done"]
    assert (shown["step"], shown["done"]) == (3, False)
    assert len(shown["log"]) <= 2_000


def test_large_data_is_shown_as_its_json() -> None:
    shown = clamp_partial({"rows": list(range(100_000))}, LIMITS)

    assert shown["rows"][:3] == [0, 1, 2]
    assert shown["rows"][-1].startswith('{\n  "rows": [\n    0,\n')
    assert len(shown["rows"][-1]) <= 600


def test_an_exception_is_one_of_its_type() -> None:
    shown = clamp_partial(KeyError("x" * 5_000), LIMITS)

    assert isinstance(shown, KeyError)
    assert len(str(shown)) <= 600


def test_bytes_are_shown_as_text_or_described() -> None:
    assert clamp_partial(b"\xff" * 5_000, LIMITS) == b"(5,000 bytes of application/octet-stream, not text)"
    assert clamp_partial(b"x" * 5_000, LIMITS).startswith(b"x" * 100)


def test_what_lets_nothing_be_put_in_stays_as_it_is() -> None:
    class ReadOnly:
        type = "tool"
        content = property(lambda _: "x" * 5_000)

    update = ReadOnly()

    assert clamp_partial(update, LIMITS) is update


def test_whatever_is_in_an_update_it_comes_out() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    cyclic: dict[str, Any] = {"text": "x" * 5_000}
    cyclic["me"] = cyclic

    assert len(clamp_partial(cyclic, LIMITS)["text"]) <= 600
    assert isinstance(clamp_partial([Hostile()] * 1_000, LIMITS), list)
    assert extent_of(clamp_text("\n" * 100_000, Limits(UNLIMITED, 10))).lines <= 10


# --- the words of the profiles --------------------------------------------------------------------


def test_an_update_is_cut_in_the_words_of_the_clamp() -> None:
    guard = Guard(policy=Policy.clamped())
    lines = "".join(f"line {number}\n" for number in range(1, 10_001))

    assert guard.partial(lines) == guard.process_sync(lines, tool="t").value
    assert guard.partial(lines).endswith(
        "[tool output truncated: exceeded 50KB or 2000 lines; "
        "request smaller chunks (offset/limit) or specific sections]"
    )


@pytest.mark.parametrize(
    "policy", [Policy.clamped(max_bytes=3_000), Policy.capped(3_000), Policy.clamped_to_share(1)]
)
def test_an_update_of_blocks_keeps_to_the_limits_of_its_profile(policy: Policy) -> None:
    update = {"content": [block("a\n" * 600), IMAGE, block("b\n" * 3_000), block("c\n" * 3_000)]}
    shown = Guard(policy=policy).partial(update)

    assert [each["type"] for each in shown["content"]] == ["text", "image", "text", "text"]
    assert shown["content"][0] == update["content"][0]
    assert "truncated" in shown["content"][2]["text"]
    assert len("".join(each.get("text", "") for each in shown["content"])) < 3_200
