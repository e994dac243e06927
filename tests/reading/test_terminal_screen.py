"""The final text of terminal lines that were drawn over. tmux is the oracle."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.reading.chunks import Chunk, Extent
from overspill.reading.lines import head, tail
from overspill.reading.text import decode

from tests.reading.test_terminal_line import COLUMNS, tmux
from tests.servers.redis import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.reading.lines import LineRead, TailRead
    from overspill.wire import Text

__all__ = ["tmux"]

BARS: Final = ("one", "two", "three")
FRAMES: Final = 300


def frame(share: int) -> str:
    return "".join(f"\x1b[2K{bar} {share}%\r\n" for bar in BARS)


BUILD: Final = "start\r\n" + "\x1b[3A".join(frame(share) for share in range(FRAMES)) + "end\r\n"
"""A build that draws three rows anew again and again, as BuildKit does."""
PULL: Final = "".join(f"{bar}: waiting\r\n" for bar in BARS) + "".join(
    f"\x1b[{3 - at}A\x1b[2K\r{bar}: {share}%\r\x1b[{3 - at}B"
    for share in range(100)
    for at, bar in enumerate(BARS)
)
"""A pull that goes to each of its rows and back, as `docker pull` does: no line of it ends."""
WRAPPED: Final = "ready> echo " + "abcdefghij" * 6

DRAWN: Final = {
    "a build": (BUILD, "start\none 299%\ntwo 299%\nthree 299%\nend\n"),
    "a pull": (f"{PULL}done\r\n", "one: 99%\ntwo: 99%\nthree: 99%\ndone\n"),
    "bars of tqdm": (
        "outer 0%\r\n\rinner 0%\x1b[A\r\n\rinner 50%\x1b[A\router 99%\r\n\rinner 99%\r\ndone\r\n",
        "outer 99%\ninner 99%\ndone\n",
    ),
    "rows taken away": ("a\r\nb\r\nc\r\n\x1b[3A\x1b[Jall done\r\n", "all done\n"),
    "lines up and down": ("a\r\nb\r\nc\x1b[2Fx\x1b[2Ez\r\n", "x\nb\nz\n"),
    "drawn above, and come back": ("above\r\nsearch: x\x1b[A\rdrawn\x1b[1B\r\x1b[Kdone\r\n", "drawn\ndone\n"),
    "a command of several rows, edited by fish": (
        f"{WRAPPED}\x1b[A\r\x1b[20CX\r\r\n\x1b[5CY\r\n",
        f"{WRAPPED[:20]}X{WRAPPED[21:45]}Y{WRAPPED[46:]}\n",
    ),
    "a command of several rows, edited by bash 5.3": (
        f"{WRAPPED}\b\b\b\r\x1b[A\x1b[12CX\x1b[9C\r\n\x1b[4CY\r\r\nout\r\n",
        f"{WRAPPED[:12]}X{WRAPPED[13:44]}Y{WRAPPED[45:]}\nout\n",
    ),
    "a program with a screen of its own": (
        "$ vim\r\n\x1b7\x1b[?1049h\x1b[2J\x1b[1;1H~\x1b[5;1H~ 5\x1b[3dx\x1b[?1049l\x1b8$ \r\n",
        "$ vim\n$\n",
    ),
    "frames from the first row on": (
        "\x1b[H\x1b[2Jload 1\x1b[K\r\nidle 1\x1b[K\r\n\x1b[Hload 22\x1b[K\r\nidle 3\x1b[K\r\nend\r\n",
        "load 22\nidle 3\nend\n",
    ),
    "a row that grows over the next": (
        f"a\r\nbelow it\r\n\x1b[2A{'y' * 45}\r\nend\r\n",
        f"{'y' * 45} it\nend\n",
    ),
    "saved, gone up, and restored": ("a\r\nb\r\nc\x1b7\x1b[2A\rx\x1b8d\r\n", "x\nb\ncd\n"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_row_is_shown_as_it_was_left(name: str) -> None:
    written, shown = DRAWN[name]

    assert lines_of(decode(written.encode(), columns=COLUMNS).text) == lines_of(shown)


def lines_of(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


@pytest.mark.parametrize("name", DRAWN)
def test_tmux_shows_the_same(tmp_path: Path, tmux: list[str], name: str) -> None:
    Path(tmp_path, "shown").write_bytes(DRAWN[name][0].encode())
    size = ["-x", str(COLUMNS), "-y", "20"]
    subprocess.run([*tmux, "new-session", "-d", *size, f"cat '{tmp_path}/shown'; cat"], check=True)

    def screen() -> list[str]:
        done = subprocess.run([*tmux, "capture-pane", "-pJ"], check=True, capture_output=True, text=True)
        return lines_of(done.stdout)

    wait_until(lambda: screen() == lines_of(DRAWN[name][1]), "the same as tmux shows")


def read(reader: Callable[..., LineRead | TailRead], lines: int, written: str) -> Text:
    data = written.encode()
    begun = reader(lines, Extent(len(data), data.count(b"\n"), COLUMNS))
    begun.feed(Chunk(data, start=0, newlines=0))
    return begun.answer()


def test_a_tail_has_as_many_lines_as_were_asked_for_however_often_they_were_drawn() -> None:
    answer = read(tail, 5, BUILD)

    assert answer.content == "start\none 299%\ntwo 299%\nthree 299%\nend\n".replace("\n", "\r\n")
    assert (answer.start_line, answer.end_line, answer.rewritten) == (1, BUILD.count("\n"), True)


def test_a_tail_has_no_more_lines_than_were_asked_for() -> None:
    assert read(tail, 2, BUILD).content == "three 299%\r\nend\r\n"


def test_a_head_shows_what_its_own_lines_have_drawn() -> None:
    answer = read(head, 7, BUILD)

    assert answer.content == "start\r\none 1%\r\ntwo 1%\r\nthree 1%\r\n"
    assert (answer.start_line, answer.end_line) == (1, 7)


def test_a_screen_of_a_program_that_still_runs_is_shown() -> None:
    written = b"$ less\r\n\x1b[?1049h\x1b[H\x1b[2Jpage 1\r\n:\r\x1b[K\x1b[H\x1b[2Jpage 2\r\n:"

    assert lines_of(decode(written, columns=COLUMNS).text) == ["$ less", "", "page 2", ":"]


def test_what_was_cleared_stays_above() -> None:
    written = b"$ one\n$ clear\n\x1b[H\x1b[2J\x1b[3J$ two\n$ clear\n\x1b[H\x1b[J$ three\n"

    assert decode(written, columns=COLUMNS).text == "$ one\n$ clear\n$ two\n$ clear\n$ three\n"


FULL_SCREEN: Final = (
    "\x1b[2J",
    "\x1b[H",
    "\x1b[4;9H",
    "\x1b[9d",
    "\x1b7",
    "\x1b8",
    "\x1b[?1049h",
    "\x1b[?1049l",
)


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "bc ",
                "\r",
                "\n",
                "\x1b[9C",
                "\x1b[A",
                "\x1b[9A",
                "\x1b[99B",
                "\x1bM",
                "\x1b[J",
                *FULL_SCREEN,
            ]
        )
    )
)
def test_no_escape_stays_and_each_line_was_begun_in_its_order(pieces: list[str]) -> None:
    written = "".join(pieces)

    for columns in (0, 5):
        shown = decode(written.encode(), columns=columns)
        assert "\x1b" not in shown.text
        assert shown.numbers is not None
        assert list(shown.numbers) == sorted(shown.numbers)
        lines = shown.text.split("\n")[: -1 if written.endswith("\n") else None]
        assert len(shown.numbers) == len(lines) * bool(written)


def test_a_cursor_that_was_saved_before_the_screen_was_cleared_is_not_restored_above_it() -> None:
    written = b"\x1b[Hold\x1b7\n\x1b[A\x1b[2J\x1b8new\x1b[J\x1b[2;1Hbelow\n"

    assert decode(written, columns=COLUMNS).text == "old\nnew\nbelow\n"


@pytest.mark.parametrize(
    "written",
    [
        b"\x1b[999A" * 2**13,
        b"\n" * 200 + b"\x1b[99A\x1b[99B" * 2**12,
        b"x" * 2**15 + b"\x1b[99A\x1b[99B" * 2**11,
        b"\x1b[99;999Hx\x1b[H" * 2**12,
        b"\x1b[H\x1b[99d\x1bM" * 2**12,
        b"\x1b[?1049h\x1b[?1049l" * 2**12,
        b"\x1b[Hx\x1b[2J" * 2**12,
        b"\x1b[H" + b"\n" * 2**13 + b"\x1b[A" + b"\x1b[2J" * 2**12,
        b"\x1b[H" + b"\x1b[999C \x1b[A\x1b[B\n" * 90 + b"\x1b[99A" + b"\x1b[2J" * 2**12,
        b"\x1b[H" + b"\n" * 2**15 + b"\x1b[A" + b"\x1b7\x1b8" * 2**12,
    ],
)
def test_no_screen_takes_longer_than_a_line_of_many_backspaces(written: bytes) -> None:
    assert cpu_seconds(written) < 20 * cpu_seconds(b"a\x08" * 2**15)


def cpu_seconds(written: bytes) -> float:
    begun = time.process_time()
    decode(written, columns=COLUMNS)
    return time.process_time() - begun
