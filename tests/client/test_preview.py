import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import measure
from overspill.plain import clean
from overspill.preview import clip, describe, preview

ANY_TEXT = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\n\r\x1b[m👩\u200d\u0301"), max_size=200
)
LONG_TEXT = st.builds(
    lambda parts, times: "".join(parts) * times,
    st.lists(ANY_TEXT | st.sampled_from(["ERROR it broke\n", "x" * 500, "\n" * 50]), max_size=5),
    st.integers(1, 40),
)
NUMBERED = "".join(f"line {number}\n" for number in range(1, 1_001))


@given(LONG_TEXT, st.integers(0, 4_000), st.integers(0, 60))
def test_no_budget_is_ever_exceeded(text: str, max_bytes: int, max_lines: int) -> None:
    shown = preview(text, max_bytes, max_lines).text

    assert len(shown.encode()) <= max_bytes
    assert measure.lines(shown) <= max_lines


@given(LONG_TEXT, st.integers(0, 2_000))
def test_the_same_text_gives_the_same_preview(text: str, max_bytes: int) -> None:
    assert preview(text, max_bytes) == preview(text, max_bytes)


@given(LONG_TEXT, st.integers(200, 2_000))
def test_what_is_left_out_and_what_is_shown_make_up_the_whole(text: str, max_bytes: int) -> None:
    result = preview(text, max_bytes)
    if not result.omitted_bytes:
        assert result.text == clean(text)
        return

    parts = re.fullmatch(r"(.*?)\n?(… \[[^\n]* not shown[^\n]*\] …)\n(.*)", result.text, re.DOTALL)
    assert parts is not None
    head, gap, tail = parts.groups()
    assert f"{result.omitted_bytes:,} bytes" in gap
    assert clean(text).startswith(head)
    assert clean(text).endswith(re.sub(r"\A(line [\d,]+: [^\n]*\n)+…\n", "", tail))


def test_a_text_within_the_budget_is_shown_whole() -> None:
    result = preview("one\ntwo\n", 8)

    assert (result.text, result.omitted_lines, result.omitted_bytes) == ("one\ntwo\n", 0, 0)


def test_an_empty_text_has_an_empty_preview() -> None:
    assert preview("", 100).text == ""


def test_head_and_tail_are_whole_lines_around_what_is_left_out() -> None:
    assert preview(NUMBERED, 150, 20).text == (
        "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\n"
        "… [987 lines, 8,791 bytes not shown] …\n"
        "line 996\nline 997\nline 998\nline 999\nline 1000\n"
    )


def test_the_lines_shown_are_limited_too() -> None:
    assert (
        preview("\n" * 3_000, 2_048, 10).text
        == "\n\n\n\n… [2,991 lines, 2,991 bytes not shown] …\n\n\n\n\n\n"
    )


def test_one_huge_line_is_cut_inside() -> None:
    result = preview("0123456789" * 1_000, 100)

    assert result.text == (
        "0123456789012345678901234567890\n… [9,947 bytes of this line not shown] …\n8901234567890123456789"
    )
    assert result.omitted_lines == 1


def test_a_huge_line_after_a_short_one_is_still_shown_in_part() -> None:
    text = "title\n" + "x" * 100_000 + "\nlast\n"
    shown = preview(text, 1_000).text

    assert shown.startswith("title\nxxxx")
    assert shown.endswith("xxxx\nlast\n")
    assert len(shown) > 800


def test_an_error_in_the_middle_is_shown_with_its_line_number() -> None:
    lines = [f"request {number} served\n" for number in range(1, 5_001)]
    lines[2_499] = "request 2500: ERROR the database is down\n"
    shown = preview("".join(lines), 2_048).text

    assert "not shown but for what looks like an error:] …\nline 2,500: request 2500: ERROR the data" in shown


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: bad",
        "Traceback (most recent call last):",
        "FAILED tests/test_a.py::test_b",
        "thread 'main' panicked at src/main.rs:2",
        "Segmentation fault (core dumped)",
        '{"level":"fatal"}',
        "CRITICAL disk full",
        "unhandled exception",
    ],
)
def test_common_ways_to_say_error_are_recognised(line: str) -> None:
    text = "fine\n" * 2_000 + line + "\n" + "fine\n" * 2_000

    assert f"line 2,001: {line}\n" in preview(text, 2_048).text


@pytest.mark.parametrize(
    "line", ["0 errors", "no failures", "errors=0", '"failed": 0', "0 tests failed", "terrific"]
)
def test_the_absence_of_errors_is_no_error(line: str) -> None:
    text = "fine\n" * 2_000 + line + "\n" + "fine\n" * 2_000

    assert "error:]" not in preview(text, 2_048).text


def test_of_many_errors_the_first_and_the_last_are_shown() -> None:
    text = "start\n" * 500 + "".join(f"error {number}\n" for number in range(1_000)) + "end\n" * 500
    numbers = re.findall(r"^line [\d,]+: error (\d+)$", preview(text, 2_048).text, re.MULTILINE)

    assert numbers == ["0", "1", "996", "997", "998", "999"]


def test_an_error_far_from_both_ends_of_a_large_part_is_looked_for_within_bounds() -> None:
    text = "fine\n" * 2_000_000 + "ERROR at last\n" + "fine\n" * 2_000

    assert "\nline 2,000,001: ERROR at last\n" in preview(text, 2_048).text


@given(
    st.lists(
        st.sampled_from(["fine\n", "an error here\n", "x" * 300 + " error " + "y" * 300 + "\n"]), max_size=60
    )
)
def test_each_error_line_is_shown_once_and_with_its_own_number(lines: list[str]) -> None:
    text = "start\n" * 200 + "".join(lines) + "end\n" * 200
    shown = [
        int(number) for number in re.findall(r"^line ([\d,]+):", preview(text, 2_048).text, re.MULTILINE)
    ]

    assert shown == sorted(set(shown))
    assert all("error" in text.split("\n")[number - 1] for number in shown)


def test_an_error_inside_one_huge_line_is_shown_with_what_surrounds_it() -> None:
    text = "a " * 100_000 + "code=ERROR_DISK_FULL " + "b " * 100_000
    shown = preview(text, 2_048).text

    assert "code=ERROR_DISK_FULL" in shown
    assert "\nline 1: " in shown


def test_terminal_escapes_do_not_reach_the_reader() -> None:
    shown = preview("\x1b[2J\x1b[31mred\x1b[0m\n" * 1_000, 500).text

    assert "\x1b" not in shown
    assert shown.startswith("red\nred\n")


def test_windows_line_ends_stay_whole() -> None:
    shown = preview("abc\r\n" * 1_000, 300).text

    assert "␍" not in shown
    assert shown.startswith("abc\r\nabc\r\n")


def test_an_emoji_family_at_the_cut_stays_whole() -> None:
    family = "👩\u200d👩\u200d👧\u200d👦"
    for budget in range(140, 180):
        shown = preview(family * 1_000, budget).text
        head, tail = re.split(r"\n… \[[^\n]+\] …\n", shown)
        assert head.replace(family, "") == ""
        assert tail.replace(family, "") == ""


def test_bytes_that_are_no_text_are_described() -> None:
    assert describe(b"\x89PNG\xff" * 300, "image/png") == "(1,500 bytes of image/png, not text)"


def test_a_text_of_fifty_megabytes_is_previewed_within_the_budget() -> None:
    text = "0123456789abcdef0123456789abcde\n" * 1_600_000
    result = preview(text, 2_048)

    assert len(result.text) <= 2_048
    assert result.omitted_lines > 1_599_900


# --- the byte ceiling of a registry ---------------------------------------------------------------


@given(LONG_TEXT, st.integers(0, 3_000))
def test_a_clip_never_exceeds_its_ceiling_and_never_grows(text: str, ceiling: int) -> None:
    result = clip(text, ceiling)

    assert measure.size(result.text) <= ceiling
    assert result.size == measure.size(text)


@given(LONG_TEXT, st.integers(100, 3_000))
def test_the_count_in_a_clip_is_exact(text: str, ceiling: int) -> None:
    result = clip(text, ceiling)
    if result.omitted_bytes:
        marker = f"\n... [{result.omitted_bytes} bytes truncated; head + tail kept] ...\n"
        head, _, tail = result.text.partition(marker)

        assert text.startswith(head)
        assert text.endswith(tail)
        assert measure.size(head) + result.omitted_bytes + measure.size(tail) == result.size


def test_a_text_at_the_ceiling_is_untouched() -> None:
    text = "x" * 131_072

    assert clip(text).text is text


def test_a_text_one_byte_over_the_ceiling_is_cut_correctly() -> None:
    result = clip("a" * 65_536 + "b" * 65_537)

    assert result.text == "a" * 65_510 + "\n... [53 bytes truncated; head + tail kept] ...\n" + "b" * 65_510
    assert result.size == 131_073


@pytest.mark.parametrize("character", ["é", "漢", "😀", "e\u0301"])
def test_both_cuts_of_a_clip_fall_between_characters(character: str) -> None:
    for ceiling in range(200, 210):
        text = clip(character * 1_000, ceiling).text
        head, tail = re.split(r"\n\.\.\. \[\d+ bytes truncated; head \+ tail kept\] \.\.\.\n", text)

        assert head.replace(character, "") == tail.replace(character, "") == ""


def test_a_ceiling_too_low_for_a_marker_keeps_the_head() -> None:
    assert clip("0123456789", 4).text == "0123"
