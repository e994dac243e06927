from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import wire
from overspill.text import encoding, measure, quantities
from overspill.text.body import FileBody
from overspill.text.buffer import Buffer
from overspill.text.limits import UNLIMITED, Limits, exceeds, surely_fitting_chars

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_any_text_encodes_even_with_lone_surrogates(text: str) -> None:
    assert len(encoding.encode(text)) == measure.size(text)


@given(st.binary())
def test_bytes_that_python_smuggled_through_a_string_come_back_as_they_were(data: bytes) -> None:
    assert encoding.encode(data.decode("utf-8", "surrogateescape")) == data


def test_a_surrogate_that_stands_for_no_byte_becomes_its_own_three() -> None:
    assert encoding.encode("a\ud83d") == b"a\xed\xa0\xbd"


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1), ("\n\n", 2), ("a\r\nb\r\n", 2), ("a\rb", 1)],
)
def test_a_last_line_without_newline_counts(text: str, lines: int) -> None:
    assert (measure.count_lines(text), measure.count_lines(text.encode())) == (lines, lines)


@given(st.lists(st.sampled_from(["", "x", "é", "\r"])).map("\n".join))
def test_lines_are_those_of_wc_and_an_open_last_one(text: str) -> None:
    expected = len(text.encode().split(b"\n")) - (text == "" or text.endswith("\n"))

    assert measure.count_lines(text) == expected


def test_newlines_of_a_text_longer_than_one_step_are_all_counted() -> None:
    text = "ab\n" * 1_000_000

    assert measure.count_newlines(text) == 1_000_000
    assert measure.count_newlines(text, 3, len(text) - 3) == 999_998


@given(ANY_TEXT, st.integers(0, 40), st.integers(0, 5), st.none() | st.integers(0, 20))
def test_lazy_and_exact_measure_agree(
    text: str, max_bytes: int, max_lines: int, max_chars: int | None
) -> None:
    limits = Limits(max_bytes, max_lines, max_chars)
    exact = (
        len(encoding.encode(text)) > max_bytes
        or measure.count_lines(text) > max_lines
        or (max_chars is not None and len(text) > max_chars)
    )

    assert exceeds(text, limits) == exact


@given(ANY_TEXT, st.integers(0, 200), st.integers(0, 50))
def test_what_surely_fits_never_exceeds(text: str, max_bytes: int, max_lines: int) -> None:
    limits = Limits(max_bytes, max_lines)

    assert len(text) > surely_fitting_chars(limits) or not exceeds(text, limits)


@pytest.mark.parametrize(("size", "more"), [(50_000, False), (50_001, True)])
def test_only_strictly_more_bytes_exceed(size: int, more: bool) -> None:
    assert exceeds("x" * size, Limits(50_000, 2_000)) is more
    assert exceeds(b"x" * size, Limits(50_000, 2_000)) is more


@pytest.mark.parametrize(("lines", "more"), [(2_000, False), (2_001, True)])
def test_only_strictly_more_lines_exceed(lines: int, more: bool) -> None:
    assert exceeds("x\n" * lines, Limits(50_000, 2_000)) is more
    assert exceeds(b"x\n" * lines, Limits(50_000, 2_000)) is more


def test_characters_beyond_ascii_count_with_all_their_bytes() -> None:
    assert not exceeds("漢" * 100, Limits(300, 10))
    assert exceeds("漢" * 101, Limits(300, 10))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 KB"),
        (50_100, "50.1 KB"),
        (999_949, "999.9 KB"),
        (999_950, "1.0 MB"),
        (4_194_304, "4.2 MB"),
        (12_345_678_901, "12.3 GB"),
    ],
)
def test_sizes_read_as_people_write_them(size: int, text: str) -> None:
    assert quantities.readable_size(size) == text


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (33, 10), (34, 11), (3_300, 1_000)])
def test_tokens_are_estimated_from_bytes(size: int, tokens: int) -> None:
    assert wire.approx_tokens(size) == tokens


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (33, 10), (4_194_304, 1_300_000)])
def test_shown_to_people_the_estimate_has_two_digits(size: int, tokens: int) -> None:
    assert quantities.approx_tokens(size) == tokens


@given(st.lists(st.sampled_from(["", "x", "é" * 3, "long " * 200]), max_size=40), st.integers(0, 45))
def test_lines_are_counted_alike_whether_long_or_short(parts: list[str], max_lines: int) -> None:
    text = "\n".join(parts)

    assert exceeds(text, Limits(1_000_000, max_lines)) == (measure.count_lines(text) > max_lines)


@given(ANY_TEXT, st.integers(0, 200))
def test_the_sizes_of_parts_add_up_to_that_of_the_whole(text: str, at: int) -> None:
    assert encoding.encode(text[:at]) + encoding.encode(text[at:]) == encoding.encode(text)


def test_smuggled_bytes_and_other_surrogates_beside_each_other_are_each_kept() -> None:
    assert encoding.encode("a\udcff\ud83d\udc80é") == b"a\xff\xed\xa0\xbd\x80\xc3\xa9"


@given(st.text(), st.integers(0, 40), st.integers(0, 5), st.none() | st.integers(0, 20))
def test_a_body_exceeds_as_text_bytes_or_file_alike(
    text: str, max_bytes: int, max_lines: int, max_tokens: int | None
) -> None:
    limits = Limits(max_bytes, max_lines, None, max_tokens)
    gathering = Buffer(memory_bytes=0)
    gathering.write(text)
    filed = gathering.finish()

    answers = {exceeds(body, limits) for body in (text, text.encode(), filed)}
    assert len(answers) == 1


@given(st.text(max_size=60), st.integers(0, 70))
def test_bytes_have_as_many_characters_as_their_text(text: str, limit: int) -> None:
    limits = Limits(UNLIMITED, max_chars=limit)

    assert exceeds(text.encode(errors="replace"), limits) == (len(text) > limit)


def test_what_is_in_a_file_has_as_many_characters_as_its_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("aé€😀" * 1_000)
    body = FileBody(tmp_path / "text", size=10_000, lines=1, sha256=b"")

    exceeding = [exceeds(body, Limits(UNLIMITED, max_chars=most)) for most in (3_999, 4_000)]
    assert exceeding == [True, False]


@pytest.mark.parametrize("line", ["a line\n", "eine Zeile mit Umlaut ä\n", "\n"])
def test_newlines_that_were_counted_once_are_known_before_any_place(line: str) -> None:
    text = line * 20_000 + "end"
    found = measure.NewlineIndex(text)

    assert found.lines == 20_001
    for place in (0, 1, 32 * 1024 - 1, 32 * 1024, 32 * 1024 + 1, len(text) // 2, len(text)):
        assert found.before(min(place, len(text))) == text.count("\n", 0, place)
