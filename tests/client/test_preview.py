import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.previews.excerpt import describe_binary
from overspill.previews.preview import preview
from overspill.previews.remembered import Previews
from overspill.reading.chunks import Extent
from overspill.text import measure
from overspill.text.body import Body, FileBody
from overspill.text.limits import Limits
from overspill.text.measure import extent_of
from overspill.text.sanitize import sanitize

ANY_TEXT = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\n\r\x1b[m👩\u200d\u0301"), max_size=200
)
LONG_TEXT = st.builds(
    lambda parts, times: "".join(parts) * times,
    st.lists(ANY_TEXT | st.sampled_from(["ERROR it broke\n", "x" * 500, "\n" * 50]), max_size=5),
    st.integers(1, 40),
)
LINES = st.lists(
    st.builds(
        lambda line, number, times: [f"{line} {number + step}\n" for step in range(times)],
        st.sampled_from(["served request", "WARN retrying", "ERROR it broke", "x" * 400, "é" * 30, ""]),
        st.integers(0, 2_000),
        st.integers(1, 60),
    ),
    min_size=5,
    max_size=25,
).map(lambda groups: [line for group in groups for line in group])
NUMBERED = "".join(f"line {number}\n" for number in range(1, 1_001))
GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau"
WORDS = GREEK.split()
PROSE = "".join(f"{one} {other} {third}\n" for one in WORDS for other in WORDS for third in WORDS)
"""5,832 lines, no two neighbours alike."""


def between(line: str) -> str:
    """`line` in the middle of a long text."""
    return PROSE + line + "\n" + PROSE


@given(LONG_TEXT, st.integers(0, 4_000), st.integers(0, 60))
def test_no_budget_is_ever_exceeded(text: str, max_bytes: int, max_lines: int) -> None:
    shown = preview(text, max_bytes, max_lines)

    assert len(shown.encode()) <= max_bytes
    assert measure.count_lines(shown) <= max_lines


@given(LONG_TEXT, st.integers(0, 2_000))
def test_the_same_text_gives_the_same_preview(text: str, max_bytes: int) -> None:
    assert preview(text, max_bytes) == preview(text, max_bytes)


@given(LONG_TEXT.filter(lambda text: "…" not in text), st.integers(200, 2_000))
def test_head_and_tail_are_the_outputs_own(text: str, max_bytes: int) -> None:
    shown = preview(text, max_bytes)
    first, last = shown.split("…")[0], shown.rsplit("…")[-1]

    assert sanitize(text).startswith(first.removesuffix("\n"))
    assert sanitize(text).endswith(last.removeprefix("\n"))


@given(LINES, st.integers(300, 3_000))
def test_what_is_shown_folded_and_left_out_makes_up_the_whole(lines: list[str], max_bytes: int) -> None:
    text = "".join(lines)
    result = preview(text, max_bytes)
    own = [line for line in result.splitlines() if not re.match(r"… \[[\d,]+ |…$|line [\d,]+: ", line)]
    gone = [
        int(count.replace(",", ""))
        for count in re.findall(r"… \[([\d,]+) (?:more )?(?:empty )?lines?", result)
    ]

    assert len(own) + sum(gone) == len(lines)


@given(LINES)
def test_each_line_that_stands_out_has_its_own_number(lines: list[str]) -> None:
    shown = re.findall(
        r"^line ([\d,]+): (.*?)(?: \(and .*\))?$",
        preview(PROSE + "".join(lines) + PROSE, 2_048),
        re.MULTILINE,
    )

    assert [int(number.replace(",", "")) for number, _ in shown] == sorted(
        {int(number.replace(",", "")) for number, _ in shown}
    )
    assert all(lines[int(number.replace(",", "")) - 5_833].strip() == line for number, line in shown)


def test_a_text_within_the_budget_is_shown_whole() -> None:
    assert preview("one\ntwo\n", 8) == "one\ntwo\n"


def test_an_empty_text_has_an_empty_preview() -> None:
    assert preview("", 100) == ""


def test_head_and_tail_are_whole_lines_around_what_is_left_out() -> None:
    assert preview(PROSE, 250, 20) == (
        "alpha alpha alpha\n"
        "alpha alpha beta\n"
        "alpha alpha gamma\n"
        "alpha alpha delta\n"
        "alpha alpha epsilon\n"
        "… [5,818 lines, 87,278 bytes not shown] …\n"
        "tau tau kappa\n"
        "tau tau lambda\n"
        "tau tau mu\n"
        "tau tau nu\n"
        "tau tau xi\n"
        "tau tau pi\n"
        "tau tau rho\n"
        "tau tau sigma\n"
        "tau tau tau\n"
    )


def test_lines_that_differ_in_their_numbers_alone_are_folded() -> None:
    assert preview(NUMBERED[:-10] + PROSE, 300, 12) == (
        "line 1\n"
        "line 2\n"
        "line 3\n"
        "… [996 more lines like it, to line 999] …\n"
        "alpha alpha alpha\n"
        "… [5,825 lines, 87,391 bytes not shown] …\n"
        "tau tau nu\n"
        "tau tau xi\n"
        "tau tau pi\n"
        "tau tau rho\n"
        "tau tau sigma\n"
        "tau tau tau\n"
    )


@pytest.mark.parametrize("lines", [100, 1_000, 9_000])
def test_where_nearly_all_lines_are_alike_the_budget_is_used_for_them(lines: int) -> None:
    text = "title\n" + "".join(f"row {number} of the table\n" for number in range(lines))
    shown = preview(text + "total\n", 1_024)

    assert shown.startswith("title\nrow 0 of the table\nrow 1 of the table\n")
    assert len(shown) > 900
    assert "like" not in shown


def test_lines_with_a_number_and_empty_ones_are_not_told_to_be_empty() -> None:
    assert "empty" not in preview("begin\n" + "\n7\n" * 100 + PROSE, 600)


def test_lines_that_are_the_same_are_folded_wherever_they_are() -> None:
    assert preview("title\n" + "the same\n" * 500, 300) == (
        "title\nthe same\n… [498 more lines like it, to line 500] …\nthe same\n"
    )


def test_the_lines_shown_are_limited_too() -> None:
    assert preview("\n".join(WORDS * 100), 2_048, 6) == (
        "alpha\nbeta\n… [1,795 lines, 8,975 bytes not shown] …\nrho\nsigma\ntau"
    )


def test_one_huge_line_is_cut_inside() -> None:
    assert preview("0123456789" * 1_000, 100) == (
        "01234567890123456789012345\n… [9,947 bytes of this line not shown] …\n345678901234567890123456789"
    )


def test_a_huge_line_after_a_short_one_is_still_shown_in_part() -> None:
    text = "title\n" + "x" * 100_000 + "\nlast\n"
    shown = preview(text, 1_000)

    assert shown.startswith("title\nxxxx")
    assert shown.endswith("xxxx\nlast\n")
    assert len(shown) > 800


def test_a_long_line_leaves_room_for_others() -> None:
    shown = preview("title\n" + "x" * 1_500 + "\nsecond\n" + PROSE, 1_000)

    assert re.match(r"title\nx{20,}… \[1,[\d]{3} bytes of this line\] …x{10,}\nsecond\n", shown)


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: bad",
        "FAILED tests/test_a.py::test_b",
        "thread 'main' panicked at src/main.rs:2",
        "Segmentation fault (core dumped)",
        '{"level":"fatal"}',
        "CRITICAL disk full",
        "unhandled exception",
        "WARN the last resort",
    ],
)
def test_common_ways_to_say_error_are_recognised(line: str) -> None:
    assert f"line 5,833: {line}\n" in preview(between(line), 2_048)


@pytest.mark.parametrize(
    "line",
    [
        "0 errors",
        "no failures",
        "errors=0",
        '"failed": 0',
        '"error": null,',
        "0 tests failed",
        "terrific",
        "copying src/errors.py",
        "tests/test_errors.py::test_failure_is_reported PASSED",
        "process exited with code 0",
    ],
)
def test_the_absence_of_errors_is_no_error(line: str) -> None:
    assert "stand out" not in preview(between(line), 2_048)


def test_lines_that_are_alike_are_shown_once_with_a_count() -> None:
    text = PROSE + "".join(f"WARN retry {number}\n{PROSE[:500]}\n" for number in range(300)) + PROSE

    assert "\nline 5,833: WARN retry 0 (and 299 more lines like it, to line 15,102)\n" in preview(text, 2_048)


def test_the_one_error_stands_out_among_thousands_of_warnings() -> None:
    flood = [f"WARN {word} {other} is slow\n" for word in WORDS for other in WORDS for _ in range(20)]
    flood[3_000] = "ERROR the disk is full\n"

    assert "line 3,001: ERROR the disk is full\n" in preview("".join(flood), 2_048)


def test_an_error_far_from_both_ends_of_a_large_part_is_looked_for_within_bounds() -> None:
    text = PROSE * 100 + "ERROR at last\n" + PROSE

    assert "\nline 583,201: ERROR at last\n" in preview(text, 2_048)


def test_an_error_inside_one_huge_line_is_shown_with_what_surrounds_it() -> None:
    text = "a " * 100_000 + "code=ERROR_DISK_FULL " + "b " * 100_000
    shown = preview(text, 2_048)

    assert "code=ERROR_DISK_FULL" in shown
    assert "\nline 1: " in shown


@pytest.mark.parametrize("word", ["step", "task", "number", "the worker"])
def test_no_line_stands_out_because_the_search_begins_or_ends_inside_it(word: str) -> None:
    text = "".join(f"{word} {number} is over\n" for number in range(60_000))

    assert "stand out" not in preview(text, 2_048)


def test_terminal_escapes_do_not_reach_the_reader() -> None:
    shown = preview("\x1b[2J\x1b[31mred\x1b[0m\n" * 1_000, 500)

    assert "\x1b" not in shown
    assert shown.startswith("red\n")


@pytest.mark.parametrize("states", [20, 2_000])
def test_of_a_progress_bar_the_last_state_is_shown_and_what_stands_beside_it(states: int) -> None:
    bar = "".join(
        f"\r{state * 100 // states}%|{'#' * 40}| {state}/{states}" for state in range(1, states + 1)
    )
    for end in ("", "\r\x1b[K"):
        shown = preview(f"{PROSE}step one\n{bar}{end}\nloss=0.1\n{NUMBERED}", 2_048)
        shown += preview(f"{NUMBERED}loss=0.1\n{bar}{end}\ndone\n", 2_048)

        assert shown.replace("\r\n", "\n").endswith(f"100%|{'#' * 40}| {states}/{states}\ndone\n")
        assert f" {states - 1}/{states}" not in shown


def test_a_line_with_the_returns_of_an_old_mac_says_how_much_of_it_is_not_shown() -> None:
    shown = preview("".join(f"row {number}\r" for number in range(50)) + "\n" + NUMBERED, 1_024)

    assert shown.startswith("… [49 earlier states of this line] …row 49\nline 1\n")


def test_windows_line_ends_stay_whole() -> None:
    shown = preview(PROSE.replace("\n", "\r\n"), 300)

    assert "␍" not in shown
    assert shown.startswith("alpha alpha alpha\r\nalpha alpha beta\r\n")


def test_an_emoji_family_at_the_cut_stays_whole() -> None:
    family = "👩\u200d👩\u200d👧\u200d👦"
    for budget in range(140, 180):
        shown = preview(family * 1_000, budget)
        head, tail = re.split(r"\n… \[[^\n]+\] …\n", shown)
        assert head.replace(family, "") == ""
        assert tail.replace(family, "") == ""


def test_bytes_that_are_no_text_are_described() -> None:
    assert describe_binary(b"\x89PNG\xff" * 300, "image/png") == "(1,500 bytes of image/png, not text)"


def test_a_text_of_fifty_megabytes_is_previewed_within_the_budget() -> None:
    text = "0123456789abcdef0123456789abcde\n" * 1_600_000
    result = preview(text, 2_048)

    assert len(result) <= 2_048
    assert "… [1,599,9" in result


# --- bodies ---------------------------------------------------------------------------------------


def filed(tmp_path: Path, data: bytes) -> FileBody:
    path = tmp_path / "body"
    path.write_bytes(data)
    return FileBody(path, size=len(data), lines=measure.count_lines(data), sha256=b"")


def preview_body(body: Body, content_type: str, max_bytes: int, max_lines: int, extent: Extent) -> str:
    return Previews().preview(body, content_type, Limits(max_bytes, max_lines), extent, has_failed=False)


@given(LONG_TEXT.filter(str.isprintable), st.integers(0, 3_000))
def test_text_and_its_bytes_have_the_same_preview(text: str, max_bytes: int) -> None:
    extent = extent_of(text)

    assert preview_body(text.encode(), "text/plain", max_bytes, 100, extent) == preview(text, max_bytes)


def test_a_long_file_is_previewed_from_its_ends_with_the_numbers_of_its_lines(tmp_path: Path) -> None:
    data = (PROSE + "FAILED early\n" + PROSE * 200 + "FAILED late\n" + PROSE).encode()
    body = filed(tmp_path, data)
    shown = preview_body(body, "text/plain", 2_048, 100, Extent(body.size, body.lines))

    assert shown.startswith("alpha alpha alpha\n")
    assert shown.endswith("tau tau tau\n")
    assert "\nline 5,833: FAILED early\n" in shown
    assert "\nline 1,172,234: FAILED late\n" in shown
    gap = re.search(r"\[([\d,]+) lines, ([\d,]+) bytes not shown", shown)
    assert gap is not None
    head, tail = shown.partition("…")[0], shown.rpartition("…\n")[2]
    assert int(gap[2].replace(",", "")) == len(data) - len(head) - len(tail)
    assert int(gap[1].replace(",", "")) == body.lines - head.count("\n") - tail.count("\n")


def test_a_long_file_of_one_line_is_cut_inside(tmp_path: Path) -> None:
    body = filed(tmp_path, "é漢".encode() * 2_000_000)
    result = preview_body(body, "text/plain", 500, 100, Extent(body.size, body.lines))

    gap = re.fullmatch(r"(é漢)+é?\n… \[(9,999,[\d]{3}) bytes of this line not shown\] …\n漢?(é漢)+", result)
    assert gap is not None
    assert int(gap[2].replace(",", "")) == body.size - len(re.sub(r"\n… .*\n", "", result).encode())


def test_a_long_file_that_is_no_text_is_described(tmp_path: Path) -> None:
    body = filed(tmp_path, b"\x7fELF\x00\x00\x00\x00\xff" * 1_000_000)

    assert preview_body(body, "application/octet-stream", 500, 100, Extent(body.size, 1)) == (
        "(9,000,000 bytes of application/octet-stream, not text)"
    )


def test_a_wrong_byte_in_a_text_is_shown_as_one() -> None:
    data = b"caf\xe9\n" + PROSE.encode()

    assert preview_body(data, "text/plain", 500, 100, extent_of(data)).startswith(
        "caf\N{REPLACEMENT CHARACTER}\nalpha"
    )


def test_a_description_keeps_within_the_budget() -> None:
    data = bytes(range(256)) * 100

    assert preview_body(data, "image/png", 20, 100, extent_of(data)) == ""


def test_the_one_error_in_the_middle_of_five_megabytes_is_shown() -> None:
    rows = [f"2026-11-22 INFO request {number} served\n" for number in range(130_000)]
    rows[65_000] = "2026-11-22 ERROR the database is gone\n"

    shown = preview("".join(rows), 2_048)
    assert "line 65,001: 2026-11-22 ERROR the database is gone\n" in shown
