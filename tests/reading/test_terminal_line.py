"""The final text of terminal lines on which the cursor went back. tmux is the oracle."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.reading.chunks import Chunk, Extent
from overspill.reading.lines import head
from overspill.reading.text import decode

from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS: Final = 40
LONG: Final = "echo abcdefghijabcdefghijabcdefg"
"""The part of a command that fits behind `ready> ` in a row."""

EDITED: Final = {
    "inserted by bash": ("$ echo abcdef\b\b\bXdef\b\b\b", "$ echo abcXdef"),
    "inserted by zsh": ("$ e\becho abcdef\b\b\bXdef\b\b\b", "$ echo abcXdef"),
    "at the start, in bash": ("$ echo a\r\x1b[C\x1b[Ctrue; echo a\r\x1b[8C", "$ true; echo a"),
    "a word deleted in the middle": (
        "$ echo one two three" + "\b" * 9 + "\x1b[4P\x1b[5C",
        "$ echo one three",
    ),
    "a word inserted as blanks": ("$ ls tmp\x1b[3D\x1b[4@/usr\x1b[3C", "$ ls /usrtmp"),
    "suggested by fish": (
        "$ e\r\x1b[3C\x1b[38;5;240mxit\r\x1b[3C\x1b[30m\x1b(B\x1b[mcho\x1b[K new\r\x1b[10C",
        "$ echo new",
    ),
    "deleted in words that are not ASCII": ("$ echo cafés\b\b\x1b[Pé \b\b", "$ echo cafs"[:-1] + "é"),
    "wrapped by bash": (f"ready>  {LONG} \rhij\b\b\bXhij\b\b\b", f"ready>  {LONG}Xhij"),
    "wrapped by bash, and gone up": (
        f"ready>  {LONG} \rhij\x1b[A\r\x1b[8Cshow\x1b[4D",
        f"ready>  show{LONG[4:]}hij",
    ),
    "wrapped and nothing else": (f"ready>  {LONG} \rhij", f"ready>  {LONG}hij"),
    "a spinner of Node": (
        "\x1b[1G\x1b[36m|\x1b[39m Loading\x1b[1G\x1b[0K/ Loading\x1b[1G\x1b[0K\x1b[32mok\x1b[39m Installed",
        "ok Installed",
    ),
    "a bar of Node": ("\x1b[2K\x1b[1G[#   ] 25%\x1b[0K\x1b[2K\x1b[1G[####] 100%\x1b[0K", "[####] 100%"),
    "progress that apt draws below": (
        "Unpacking a ...\x1b7\x1b[24;0f\x1b[42mProgress: [ 50%]\x1b[49m [###...] \x1b8",
        "Unpacking a ...",
    ),
    "a wide character half overwritten": ("x\u00e9\u4e2d!\b\by", "x\u00e9 y!"),
    "a mark written by itself": (
        "caf\u00e9 e\x1b[m\u0301x\b\by\u4e2d\x1b[m\u0301z",
        "caf\u00e9 y\u4e2d\u0301z",
    ),
    "colours of tmux": ("a\x1b[m\x0fb\x1b[1m\x1b[m\x0f\x07c\bd", "abd"),
    "tabs": ("a\tb\b\bc", "a      cb"),
    "a backspace only goes back": ("$ abc\b", "$ abc"),
    "typed anew": ("abc\b \b\b \bx", "ax"),
    "wrapped by bash, and gone up within tmux": (
        f"ready>  {LONG} \rhij\x1bM\r\x1b[8Cshow\x1b[4D",
        f"ready>  show{LONG[4:]}hij",
    ),
}


@pytest.mark.parametrize("name", EDITED)
def test_a_line_is_shown_as_it_was_left(name: str) -> None:
    written, shown = EDITED[name]

    assert decode(written.encode(), columns=COLUMNS).text == shown


def test_tmux_shows_the_same(tmp_path: Path, tmux: list[str]) -> None:
    lines = [written.encode() for written, _ in EDITED.values()]
    Path(tmp_path, "shown").write_bytes(b"\n\n".join([b"", *lines, b"the end\n"]))
    size = ["-x", str(COLUMNS), "-y", "100"]
    subprocess.run([*tmux, "new-session", "-d", *size, f"cat '{tmp_path}/shown'; cat"], check=True)

    def screen() -> str:
        return subprocess.run(
            [*tmux, "capture-pane", "-pJ"], check=True, capture_output=True, text=True
        ).stdout

    wait_until(lambda: "the end" in screen(), "the last line")

    shown = {line.rstrip() for line in screen().split("\n")}
    assert [line for _, line in EDITED.values() if line.expandtabs() not in shown] == []


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[list[str]]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    words = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "tmux")]
    yield words
    subprocess.run([*words, "kill-server"], check=False, capture_output=True)


def test_where_the_columns_are_not_known_a_line_is_one_row() -> None:
    written = b"$ " + b"x" * 100 + b"\x08" * 100 + b"yy\n"

    assert decode(written, columns=0).text == "$ yy" + "x" * 98 + "\n"


@pytest.mark.parametrize("name", EDITED)
def test_a_line_that_says_how_many_columns_there_are_is_of_so_many(name: str) -> None:
    written, shown = EDITED[name]
    told = f"\x1b]633;P;Columns=80\x07\x1b]633;P;Columns={COLUMNS}\x1b\\{written}\n"

    assert decode(told.encode(), columns=80).text == f"{shown}\n"


def test_a_bar_that_blanks_itself_before_the_one_above_is_drawn_leaves_no_blanks() -> None:
    written = b"inner 99%\r" + b" " * 30 + b"\r\x1b[Aouter 33%\n"

    assert decode(written, columns=80).text == "outer 33%\n"


@given(
    st.lists(
        st.sampled_from(["a", "bc ", "\r", "\b", "\n", "\x1b[3D", "\x1b[9C", "\x1b[2@", "\x1b[K", "\x1b7"])
    )
)
def test_lines_stay_lines_if_the_cursor_stays_in_them(pieces: list[str]) -> None:
    written = "".join(pieces)

    for columns in (0, 5):
        shown = decode(written.encode(), columns=columns).text
        assert shown.count("\n") == written.count("\n")
        assert "\b" not in shown
        assert "\x1b" not in shown


@pytest.mark.parametrize(
    "written",
    [
        b"\r" * 2**16 + b"x",
        b"\r\x1b[K" * 2**14,
        b"x" * 2**15 + b"\x1b[1J" * 2**13,
        b"x" * 2**15 + b"\x1b[A" * 500 + b" \r" * 2**14,
        b"x" * 2**15 + b"\x08" * 900 + b"\x1b[P" * 2**13,
    ],
)
def test_no_line_takes_longer_than_one_of_many_backspaces(written: bytes) -> None:
    assert cpu_seconds(written) < 10 * cpu_seconds(b"a\x08" * 2**15)


def cpu_seconds(written: bytes) -> float:
    begun = time.process_time()
    decode(written, columns=COLUMNS)
    return time.process_time() - begun


def test_an_answer_has_its_bound_however_far_the_cursor_jumps() -> None:
    data = b"\x1b[999Cx\n" * 1_000
    read = head(1_000, Extent(len(data), 1_000, 500))
    read.feed(Chunk(data, start=0, newlines=0))

    assert len(read.answer().content) <= 64 * 1024
