import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.text.sanitize import cut_after, cut_before, may_cut, sanitize

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)")
ANY_TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x1b[]0;m\x07\r\n\x9b"))


@given(ANY_TEXT)
def test_no_control_character_or_surrogate_is_left(text: str) -> None:
    assert CONTROL.search(sanitize(text)) is None


@given(ANY_TEXT)
def test_lines_stay_lines(text: str) -> None:
    assert sanitize(text).count("\n") == text.count("\n")


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)


def test_plain_text_comes_back_as_the_same_object() -> None:
    text = "naïve 漢字 👩‍👩‍👧 a\tb\r\nc\n"

    assert sanitize(text) is text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bx", "x"),
        ("\x9b2Jx", "x"),
        ("a\x00b", "a␀b"),
        ("50%\r100%\n", "50%␍100%\n"),
        ("a\x7f", "a␡"),
        ("a\x1b", "a␛"),
        ("\u202egpj.exe", "�gpj.exe"),
        ("\ud83d!", "�!"),
        ("\x1b[3\x1b[1m1m", "␛[31m"),
    ],
)
def test_escapes_go_and_controls_become_visible(text: str, shown: str) -> None:
    assert sanitize(text) == shown


@pytest.mark.parametrize(
    "whole",
    [
        "\r\n",
        "e\u0301",
        "👩\u200d👩\u200d👧",
        "👍🏽",
        "❤\ufe0f",
        "🇩🇪",
        "\ud83d\ude00",
        "\x1b[31m",
        "\u1100\u1161\u11a8",
        "न\u093f",
    ],
)
def test_what_a_reader_sees_as_one_is_never_cut(whole: str) -> None:
    assert not any(may_cut(f"a{whole}b", at) for at in range(2, 1 + len(whole)))
    assert may_cut(f"a{whole}b", 1)
    assert may_cut(f"a{whole}b", 1 + len(whole))


def test_two_flags_may_be_cut_between_but_not_inside() -> None:
    assert [may_cut("🇩🇪🇫🇷", at) for at in range(5)] == [True, False, True, False, True]


@given(ANY_TEXT, st.integers(0, 50))
def test_a_cut_moves_to_a_place_in_the_text(text: str, at: int) -> None:
    at = min(at, len(text))

    assert 0 <= cut_before(text, at) <= at <= cut_after(text, at) <= len(text)


def test_a_cluster_without_end_is_cut_all_the_same() -> None:
    text = "a" + "\u0301" * 1_000

    assert (cut_before(text, 500), cut_after(text, 500)) == (500, 500)
