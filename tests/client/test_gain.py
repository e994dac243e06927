"""The replacement of an output is never longer, and nothing spills unless the conversation gains by it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill import Guard, Workspace
from overspill.guard.policy import Policy
from overspill.guard.policy_defaults import MIN_GAIN
from overspill.shapes.examination import examine
from overspill.text import measure
from overspill.text.limits import Limits
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES = "".join(f"line {number}\n" for number in range(5_000))
NARROW = {
    "bytes": Policy(max_bytes=50),
    "lines": Policy(max_lines=3),
    "characters": Policy(max_chars=50),
    "tokens": Policy(max_tokens=20),
    "terse": Policy(max_bytes=50, style="TERSE"),
    "a preview of all": Policy(max_bytes=50, preview_bytes=1_000_000, lost_preview_bytes=1_000_000),
    "file-based": Policy.file_based(inline_chars=50, inline_lines=3),
    "clamped": Policy.clamped(max_bytes=100, max_lines=3),
    "to a share": replace(Policy.clamped_to_share(1), tools={}).uniform(Limits(100, 3)),
    "capped": Policy.capped(100),
    "words": Policy.token_limited(50, tokenizer=str.split),
}
SIZES = st.integers(0, 3_000)
SHAPES: dict[str, Any] = {
    "text": lambda text: text,
    "bytes": str.encode,
    "a block": lambda text: [{"type": "text", "text": text}],
    "a message": lambda text: {"role": "tool", "tool_call_id": "c", "content": text},
    "data": lambda text: {"rows": text.splitlines()},
    "an exception": ValueError,
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NARROW)
@settings(max_examples=15, deadline=None)
@given(size=SIZES, width=st.sampled_from([1, 2, 7, 60, 10_000]), is_kept=st.booleans())
def test_no_stand_in_is_longer_than_what_it_stands_for(
    workspace: Path, name: str, shape: str, size: int, width: int, is_kept: bool
) -> None:
    result = SHAPES[shape]("".join("\n" if at % width == width - 1 else "x" for at in range(size)))
    guard = Guard(policy=NARROW[name], spool=Workspace(workspace) if is_kept else False)
    value = guard.process_sync(result, tool="t", call_id="call_1").value
    before, after = examine(result), examine(value)
    if value is result or before is None or after is None:
        return

    assert after.size <= before.size


@pytest.mark.parametrize("size", [100, 200, 300, 1_000])
def test_what_brings_less_than_a_third_stays(size: int, workspace: Path) -> None:
    guard = Guard(policy=Policy(max_bytes=50), spool=Workspace(workspace))
    guarded = guard.process_sync("x" * size, tool="t", call_id="call_1")

    if guarded.outcome is Outcome.INLINE:
        assert size < 400
        assert guarded.value == "x" * size
    else:
        assert guarded.bytes_after <= size * (1 - MIN_GAIN)


def test_a_documented_limit_is_strict_where_the_gain_is_plain() -> None:
    guard = Guard(policy=Policy(max_bytes=2_000))

    assert guard.process_sync("x" * 2_000, tool="t").outcome is Outcome.INLINE
    assert guard.process_sync("x" * 2_001, tool="t").outcome is Outcome.TRUNCATED


def test_many_short_lines_are_not_too_long_to_show_in_fewer_bytes_than_the_notice() -> None:
    text = "ab\n" * 150
    guarded = Guard(policy=Policy.file_based()).process_sync(text, tool="t")

    assert guarded.bytes_after <= len(text)
    assert measure.count_lines(guarded.value) <= 150


def test_a_short_stream_that_gains_nothing_comes_out_whole() -> None:
    def chunks() -> Iterator[str]:
        yield from ["x" * 40] * 3

    guard = Guard(policy=Policy(max_bytes=100))

    assert "".join(guard.wrap(chunks)()) == "x" * 120
    assert guard.process_sync(chunks(), tool="t").value == "x" * 120


def test_a_profile_that_persists_keeps_its_own_rule() -> None:
    policy = Policy.persisted(tools={"t": 20})

    assert Guard(policy=policy).process_sync("x" * 20, tool="t").outcome is Outcome.INLINE
    assert Guard(policy=policy).process_sync("x" * 21, tool="t").value.startswith("Output too large (0.0 KB)")


def test_output_in_parts_is_cut_wherever_its_threshold_is() -> None:
    output = Guard().capture_output_sync("x" * 21, "t", inline_threshold=20)

    assert (output.truncated, output.total_bytes) == (True, 21)


@pytest.mark.parametrize("most", [30, 50, 100, 200, 400, 1_000])
def test_a_clamp_with_a_place_to_store_keeps_to_its_own_limit(most: int, workspace: Path) -> None:
    guard = Guard(policy=Policy.clamped(max_bytes=most), spool=Workspace(workspace))
    value = guard.process_sync(LINES, tool="t", call_id="call_1").value

    assert 0 < len(value.encode()) <= most


def test_what_a_profile_shows_of_lost_outputs_obeys_preview_bytes() -> None:
    policy = replace(Policy.persisted(), preview_bytes=100)
    text = Guard(policy=policy).process_sync("x" * 60_000, tool="t").value

    assert text.count("x") == 100
    assert "Preview (first 100 bytes):" in text


def test_data_that_spills_is_shorter_as_json() -> None:
    rows = {"rows": [{"id": number, "name": f"name {number}"} for number in range(400)]}
    guarded = Guard(policy=Policy(max_bytes=500)).process_sync(rows, tool="t")

    assert len(json.dumps(guarded.value)) < len(json.dumps(rows))
