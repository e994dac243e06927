"""`summary`: its figures, against plain Python over the whole content."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill.reading import summary as summaries
from overspill.reading.json_shape import HEAD_BYTES, WHOLE_BYTES, shape_of
from overspill.reading.repeats import MAX_GROUPS, mask
from overspill.reading.summary import SCAN_LIMIT_BYTES, Summarizer
from overspill.wire import Severity, Summary

from tests.reading.stored import capture, split

WORDS = st.lists(
    st.sampled_from(
        [
            *[
                b"error 5\n",
                b"error 6\n",
                b"warning\n",
                b"\n",
                b"\r\n",
                b"x" * 700,
                b"\n7 errors",
                b"ok",
                b"1f\n",
            ],
            *[b"\r", b"\x1b[31m", b"12345678" * 90, b"y" * 5000],
        ]
    ),
    max_size=60,
).map(b"".join)
CUTS = st.lists(st.integers(0, 3000), max_size=8)


def summarize(content: bytes, *cuts: int, kind: str = "text", limit: int = SCAN_LIMIT_BYTES) -> Summary:
    stored = capture(content, *cuts)
    return stored.read(Summarizer(stored.extent, content_type="text/plain", kind=kind, limit=limit))


@given(WORDS, CUTS)
@settings(deadline=None)
def test_the_figures_are_those_of_the_whole_content(content: bytes, cuts: list[int]) -> None:
    summary = summarize(content, *cuts)
    lines = [
        line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line
        for line in split(content)
    ]
    errors = [number for number, line in enumerate(lines, 1) if b"error" in line]

    assert summary.total_lines == len(lines)
    assert summary.longest_line == max(map(len, lines), default=0)
    assert summary.mean_line == (round(sum(map(len, lines)) / len(lines), 1) if lines else 0)
    assert summary.empty_lines == lines.count(b"")
    assert summary.errors == Severity(count=len(errors), line_numbers=errors[:20])
    assert not summary.truncated


def test_a_summary_tells_as_many_lines_as_it_is_asked_for() -> None:
    stored = capture(b"error and warning\n" * 1_200, 500, 7_000)
    summary = stored.read(Summarizer(stored.extent, content_type="text/plain", kind="log", numbers=1_000))

    for found in (summary.errors, summary.warnings):
        assert found == Severity(count=1_200, line_numbers=[*range(1, 1_001)])


def test_the_next_summary_compiles_no_pattern_again(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"error: one\nwarning: two\n"
    first = summarize(content)
    monkeypatch.delattr(summaries, "compile_pattern")
    monkeypatch.delattr(summaries, "PlainPattern")

    assert summarize(content) == first


@given(WORDS, CUTS)
@settings(deadline=None)
def test_lines_that_differ_in_numbers_only_are_one_group(content: bytes, cuts: list[int]) -> None:
    lines = [line.removesuffix(b"\n") for line in split(content)]
    numbers: dict[bytes, list[int]] = {}
    for number, line in enumerate(lines, 1):
        seen = re.sub(rb"\x1b\[31m|\r", b"", line[:4096])
        numbers.setdefault(re.sub(rb"[a-f]{0,6}\d[\da-f]*", b"#", seen)[:256], []).append(number)
    groups = {group[0]: len(group) for key, group in numbers.items() if key.strip() and len(group) > 1}

    assert {group.first_line: group.count for group in summarize(content, *cuts).repeated} == groups


def test_what_cannot_be_seen_parts_no_group() -> None:
    lines = [
        b"it failed",
        b"\x1b[31mit failed\x1b[0m",
        b"it failed\r",
        b"it failed  ",
        b"it \x00failed",
        b"it failed",
    ]
    (group,) = summarize(b"\n".join(lines), 30).repeated

    assert (group.line, group.count, group.first_line) == ("it failed", 6, 1)


def test_a_group_is_shown_without_escape_sequences_even_where_they_are_long() -> None:
    line = b"\x1b]8;;https://" + b"u" * 300 + b"\x1b\\" + b"\x1b[38;2;1;2;3mword\x1b[0m" * 20
    (group,) = summarize((line + b"\n") * 2).repeated

    assert group.line == "word" * 20


def test_a_return_that_no_newline_follows_is_content() -> None:
    summary = summarize(b"ab\r\nabc\r")

    assert (summary.longest_line, summary.mean_line) == (4, 3)
    assert (summary.first_lines, summary.last_lines) == (["ab", "abc\r"], ["ab", "abc\r"])


HOSTILE = {
    "open brackets": b"[" * 1_000_000,
    "a comma at every depth": b"[0," * 300_000,
    "deep alternation": b'{"a":[1,' * 120_000,
    "a huge key": b'{"' + b"k" * 1_000_000 + b'":1,',
    "backslashes": b'["' + b"\\\\" * 400_000,
    "empty arrays": b"[],[" * 250_000,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("size", [HEAD_BYTES, WHOLE_BYTES])
def test_hostile_json_costs_about_one_pass_over_it(name: str, size: int) -> None:
    data = HOSTILE[name][:size]

    def spent(work: Callable[[], object]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    one_pass = min(spent(lambda: sum(1 for _ in re.finditer(rb"[^x]", data))) for _ in range(3))

    assert any(spent(lambda: shape_of(data, is_whole=False)) < 20 * one_pass for _ in range(2))


def test_a_group_is_shown_by_its_first_line() -> None:
    (group,) = summarize(b"start\n" + b"".join(b"step %d of 90\n" % n for n in range(90))).repeated

    assert (group.line, group.count, group.first_line) == ("step 0 of 90", 90, 2)


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        (b"took 12 ms at 10:31:07.123", b"took # ms at #:#:#.#"),
        (b"id 3f2a9c01-77aa", b"id #-#"),
        (b"0xbeef1", b"#x#"),
        (b"no numbers, a face, a cafe", b"no numbers, a face, a cafe"),
        (b"", b""),
        (b"1\n\n22\n", b"#\n\n#\n"),
    ],
)
def test_numbers_are_masked(line: bytes, masked: bytes) -> None:
    assert mask(line) == masked


def test_the_first_and_the_last_lines_are_shown() -> None:
    summary = summarize(b"".join(b"line %d\r\n" % n for n in range(1, 1001)), 300, 5000)

    assert summary.first_lines == ["line 1", "line 2", "line 3", "line 4", "line 5"]
    assert summary.last_lines == ["line 996", "line 997", "line 998", "line 999", "line 1000"]


def test_one_long_line_shows_its_beginning_and_its_end() -> None:
    summary = summarize(b"begin" + b"x" * 100_000 + b"end", 50_000)

    assert summary.first_lines[0].startswith("begin")
    assert summary.last_lines[0].endswith("end")
    assert len(summary.first_lines[0]) + len(summary.last_lines[0]) < 600


def test_a_scan_that_reaches_its_limit_says_so_and_still_shows_the_end() -> None:
    summary = summarize(b"error\n" * 1000 + b"the end\n", *range(0, 6000, 600), limit=1000)

    assert (summary.truncated, summary.scanned_bytes, summary.errors.count) == (True, 1200, 200)
    assert summary.last_lines[-1] == "the end"


def test_a_scan_that_runs_out_of_time_says_so() -> None:
    stored = capture(b"error\n" * 1000, *range(0, 6000, 600))
    summary = stored.read(Summarizer(stored.extent, content_type="", kind="text", expired=lambda: True))

    assert (summary.truncated, summary.scanned_bytes) == (True, 600)


def test_what_a_scan_holds_does_not_grow_with_distinct_lines() -> None:
    names = (
        bytes([97 + n % 26, 103 + n // 26 % 20, 103 + n // 520 % 20, 103 + n // 10400]) for n in range(30_000)
    )
    content = b"".join(name + b" unlike\n" for name in names) + b"again\n" * 3
    stored = capture(content, *range(0, len(content), 20_000))
    summarizer = Summarizer(stored.extent, content_type="", kind="text")
    (group,) = stored.read(summarizer).repeated

    assert (group.line, group.count) == ("again", 3)
    assert len(summarizer._lines.repeats._groups) <= MAX_GROUPS + 2000


def test_an_empty_capture_has_a_summary() -> None:
    summary = summarize(b"")

    assert (summary.total_lines, summary.first_lines, summary.repeated, summary.truncated) == (
        0,
        [],
        [],
        False,
    )


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (
            {"id": 1, "name": "a", "tags": ["x", "y"], "none": None},
            "object {id: number, name: string, tags: array of 2 strings, none: null}",
        ),
        ([1, "a", 2.5, True, None], "array of 5 values (number|string|boolean|…)"),
        ([], "array of 0 values"),
        ({}, "object {}"),
        ("text", "string"),
        ([{"a": 1}, {"a": "b", "c": 2}], "array of 2 objects {a: number|string, c?: number}"),
        ({"a": {"b": {"c": {"d": {"e": 1}}}}}, "object {a: object {b: object {c: object {d: object {…}}}}}"),
    ],
)
def test_the_shape_of_json_has_keys_and_types(value: object, shape: str) -> None:
    assert shape_of(json.dumps(value).encode(), is_whole=True) == shape


def test_the_shape_of_json_lines_is_that_of_their_values() -> None:
    lines = b'{"a": 1}\n{"a": 2, "b": 3}\n'

    assert shape_of(lines, is_whole=True) == "lines of object {a: number, b?: number}"
    assert shape_of(lines.rstrip(), is_whole=True) == "lines of object {a: number}"


@given(st.integers(1, 5000))
def test_the_shape_of_a_beginning_is_found_wherever_it_was_cut(cut: int) -> None:
    data = json.dumps({"items": [{"id": n, "text": 'quoted "} ],\\'} for n in range(100)]}).encode()
    shape = shape_of(data[: cut + 40], is_whole=False)

    assert shape is None or re.fullmatch(
        r"object \{items: array of \d+\+ objects? \{id: number(, text\??: string)?\}\}", shape
    )


def test_what_is_not_json_has_no_shape() -> None:
    assert shape_of(b"{nothing", is_whole=True) is None
    assert shape_of(b"[" * HEAD_BYTES, is_whole=False) is None
    assert shape_of(b"]]", is_whole=False) is None


def test_a_large_json_text_is_told_by_its_beginning() -> None:
    data = json.dumps([{"n": number} for number in range(WHOLE_BYTES // 8)]).encode()

    shape = summarize(data, 600_000, kind="json").json_shape

    assert re.fullmatch(r"array of \d,\d+\+ objects \{n: number\}", shape or "")
