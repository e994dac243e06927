"""`text`: decoding, escape sequences, cuts."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.reading.text import cut_after, cut_before, decode, strip_escapes


@pytest.mark.parametrize(
    ("data", "plain"),
    [
        (b"\x1b[1;31mred\x1b[0m", b"red"),
        (b"\x1b[38;2;1;2;3mx\x1b[m", b"x"),
        (b"\x1b[2K\x1b[1Gline", b"line"),
        (b"\x1b[?25lhidden cursor\x1b[?25h", b"hidden cursor"),
        (b"\x1b]0;title\x07text", b"text"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", b"link"),
        (b"\x1bP1$r0m\x1b\\after", b"after"),
        (b"\x1b(Bascii\x1b)0", b"ascii"),
        (b"\x1b7saved\x1b8\x1bM\x1b=", b"saved"),
        (b"a\x1b", b"a"),
        (b"a\x1b[", b"a"),
        ("a\x1b[31é".encode(), "a31é".encode()),
        (b"\x1b]0;never closed\nnext line", b"0;never closed\nnext line"),
        (b"\x1b[31\nm", b"31\nm"),
        (b"\x1b\x1b[31mx", b"x"),
        ("ünïcödé".encode(), "ünïcödé".encode()),
    ],
)
def test_escape_sequences_go_and_text_stays(data: bytes, plain: bytes) -> None:
    assert strip_escapes(data) == plain


@given(
    st.lists(
        st.sampled_from([b"\x1b", b"[", b"]", b"3", b";", b"m", b"\x07", b"\\", b"\n", b"a", b"(", b"P"])
    )
)
def test_no_line_end_is_ever_taken_along(parts: list[bytes]) -> None:
    data = b"".join(parts)

    assert strip_escapes(data).count(b"\n") == data.count(b"\n")


@pytest.mark.parametrize("part", [b"\x1b]", b"\x1b[", b"\x1b[1", b"\x1b]8;;x", b"\x1bP", b"\x1b(", b"\x1b"])
def test_a_broken_sequence_takes_only_a_bounded_part_of_the_text(part: bytes) -> None:
    text = b"\xc3\xa9" * 100_000

    assert strip_escapes(part + text).endswith(text)


def test_escape_sequences_stay_when_asked_for() -> None:
    assert decode(b"\x1b[31mred", ansi=True).text == "\x1b[31mred"


def test_bytes_that_are_not_utf8_are_replaced_and_said() -> None:
    assert decode(b"caf\xe9 \xff")[:2] == ("caf\ufffd \ufffd", True)
    assert decode("café".encode())[:2] == ("café", False)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b" 10%\r 50%\r100%\n", "100%\n"),
        (b"\r1\n", "1\n"),
        (b"a\r\nb\r\r\nc\r", "a\r\nb\r\r\nc\r"),
        (b"one\n50%\r\x1b[K\x1b[32mdone\x1b[0m\r\ntwo", "one\ndone\r\ntwo"),
        (b"100%\r    \r\n", "    \r\n"),
        (b"\r\n\r\n", "\r\n\r\n"),
        (b"$ \x1b[32me\x1b[39m\x08echo\x08\x08\x08\x08ls  \x08\x08\n", "$ ls\n"),
        ("caf\u00e9\x08\x08fe\x08\n\x08\x08x".encode(), "cafe\nx"),
        (b"|\x08/\x08-\x08done", "done"),
        (b"a" * 70 + b"\x08" * 69 + b"b\x1b[K", "ab"),
        ("x\u00e9\u4e2d\U0001f600\x08\x08\x08\x08y\x1b[K".encode(), "x\u00e9y"),
        (
            b"result\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m" + b" " * 79 + b"\r \r\r\x1b[0mvm% ",
            "result\u23ce vm% ",
        ),
        (
            b"\nresult\x1b[2m\xe2\x8f\x8e\x1b(B\x1b[m" + b" " * 79 + b"\r\xe2\x8f\x8e \r\x1b[Kvm# ",
            "\nresult\u23ce vm# ",
        ),
        (b"50%\rresult#" + b" " * 79 + b"\r \rvm# \rvm# l", "result\u23ce vm# l"),
        (b"one\n%" + b" " * 79 + b"\r \rvm% ", "one\nvm% "),
    ],
)
def test_of_a_line_of_a_terminal_stays_what_was_written_last(written: bytes, shown: str) -> None:
    given = decode(written, columns=80)

    assert given.text == shown
    assert given.rewritten == (shown != strip_escapes(written).decode())
    assert decode(written).text == strip_escapes(written).decode()
    assert decode(written, ansi=True, columns=80).text == written.decode()


@pytest.mark.parametrize("written", [b"done\x07\n", b"a\x00b\r\n", b"\x0eline\x0f\x1b[32m green\n"])
def test_a_terminals_text_is_not_written_over_by_bells_and_what_else_is_not_seen(written: bytes) -> None:
    assert not decode(written, columns=80).rewritten


def test_a_backspace_after_bytes_that_are_not_utf8_takes_what_is_shown_as_one() -> None:
    assert decode(b"a\xe4\xb8\x08b", columns=80).text == "ab"
    assert decode(b"\x80\x80\xff\x08x", columns=80).text == "\ufffd\ufffdx"


def test_a_backspace_that_erases_nothing_takes_no_longer_than_one_that_does() -> None:
    behind = b"x" * 2**20

    assert cpu_seconds(b"\xff\x08" + behind) < 10 * cpu_seconds(b"a\x08" + behind)


def cpu_seconds(written: bytes) -> float:
    begun = time.process_time()
    decode(written, columns=80)
    return time.process_time() - begun


@given(st.lists(st.sampled_from(["a", "bc ", "\r", "\r", "\n", "\x1b[1m"])).map("".join))
def test_lines_of_a_terminal_stay_lines(written: str) -> None:
    shown = decode(written.encode(), columns=80).text

    assert shown.count("\n") == written.count("\n")
    for line in shown.split("\n"):
        assert "\r" not in line.rstrip("\r")


@given(st.text(), st.integers(0, 60))
def test_a_cut_splits_no_character(text: str, limit: int) -> None:
    data = text.encode()
    end, start = cut_before(data, limit), cut_after(data, limit)

    assert end <= max(limit, 4)
    assert start >= min(limit, len(data))
    assert (data[:end] + data[end:]).decode() == data[:end].decode() + data[end:].decode()
    assert data[start:].decode(errors="strict") or start == len(data)


@given(st.binary(max_size=40), st.integers(1, 60))
def test_a_cut_moves_by_less_than_a_character_whatever_the_bytes(data: bytes, limit: int) -> None:
    if b"\x1b" not in data:
        assert min(limit, len(data)) - 3 <= cut_before(data, limit) <= limit + 3
    assert min(limit, len(data)) <= cut_after(data, limit) <= limit + 3


def test_a_cut_keeps_a_control_sequence_whole() -> None:
    assert cut_before(b"text\x1b[1;31mred", 8) == 4
