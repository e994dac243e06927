"""Captured text on a terminal: nothing in it is a sequence that the terminal would obey."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.cli.printable import PrintableDecoder, printable, printable_json, printable_line
from rich.cells import cell_len

from tests.client.shell import Shell, Terminal, command
from tests.servers.overspill import ServiceProcess

HOSTILE = "plain \x1b[31mred\x1b]0;title\x07 \x9b2J \u202egnp.exe\u2069 \x00\x7f\rover\r\n\ttab größe\n"
SHOWN = "plain ␛[31mred␛]0;title␇ \\x9b2J \\u202egnp.exe\\u2069 ␀␡␍over\r\n\ttab größe\n"
UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)"
)


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


@pytest.fixture(scope="module")
def hostile(overspill: Shell) -> str:
    return overspill.put(HOSTILE.encode())


def test_control_characters_are_shown() -> None:
    assert printable(HOSTILE) == SHOWN


@given(st.text(), st.lists(st.integers(min_value=0, max_value=40), max_size=8))
def test_in_whatever_pieces_bytes_come_they_are_shown_the_same(text: str, cuts: list[int]) -> None:
    data = (text + HOSTILE).encode("utf-8", "surrogatepass")
    places = sorted({0, *cuts, len(data)})
    shown = PrintableDecoder()
    pieces = [shown.feed(data[start:stop]) for start, stop in pairwise(places)]

    assert "".join([*pieces, shown.feed(b"", last=True)]) == printable(data.decode("utf-8", "replace"))


@given(st.text())
def test_nothing_unsafe_remains(text: str) -> None:
    assert not UNSAFE.search(printable(text))
    assert not re.search(r"[\t\r\n]", printable_line(text))


@given(st.text())
def test_harmless_json_means_the_same(text: str) -> None:
    written = printable_json(json.dumps({"text": text}, ensure_ascii=False))

    assert json.loads(written) == {"text": text}
    assert not re.search("[\x7f-\x9f\u202a-\u202e]", written)


@pytest.mark.parametrize("words", [["head"], ["tail"], ["lines", "1:"], ["grep", "plain"]])
def test_text_is_harmless_in_a_pipe_too(overspill: Shell, hostile: str, words: list[str]) -> None:
    printed = overspill(words[0], hostile, *words[1:]).out

    assert "plain red" in printed
    assert not UNSAFE.search(printed)


def test_raw_text_is_what_was_captured(overspill: Shell, hostile: str) -> None:
    assert overspill("head", "--raw", hostile).data == HOSTILE.encode()


def test_cat_is_harmless_on_a_terminal(overspill: Shell, hostile: str) -> None:
    terminal = overspill.terminal("cat", hostile)

    assert terminal.ended() == 0
    assert terminal.shown.decode() == SHOWN.replace("\n", "\r\n")


def test_cat_obeys_who_asks_for_raw_bytes_on_a_terminal(overspill: Shell, hostile: str) -> None:
    terminal = overspill.terminal("cat", "--raw", hostile)

    assert terminal.ended() == 0
    assert "\x1b[31mred\x1b]0;title\x07 \x9b2J".encode() in terminal.shown


def test_a_long_transfer_shows_a_bar_on_a_terminal_and_nowhere_else(overspill: Shell, tmp_path: Path) -> None:
    content = b"0123456789abcde\n" * 600_000
    (tmp_path / "long").write_bytes(content)
    quiet = overspill("put", str(tmp_path / "long"))
    terminal = overspill.terminal("put", str(tmp_path / "long"))

    assert terminal.ended() == 0
    assert b"storing" in terminal.shown
    assert (quiet.code, quiet.err) == (0, "")


def test_no_bar_is_drawn_while_another_program_reads(overspill: Shell, tmp_path: Path) -> None:
    content = b"0123456789abcde\n" * 600_000
    (tmp_path / "long").write_bytes(content)
    capture = overspill.put(content)
    script = f"{shlex.join(command('cat', capture))} | cat >/dev/null"
    piped = overspill.script_on_terminal(script)
    filed = overspill.terminal("cat", capture, "-o", str(tmp_path / "copy"))

    assert (piped.ended(), piped.shown) == (0, b"")
    assert filed.ended() == 0
    assert b"reading" in filed.shown
    assert (tmp_path / "copy").read_bytes() == content


LISTED = ("cli-terminal", "日本語の道具" * 5, "a\u0301" * 40)


@pytest.fixture(scope="module")
def listed(overspill: Shell) -> list[str]:
    """Captures with names that no terminal has room for."""
    session, tool, call_id = LISTED
    return [
        overspill.put(bytes(8_000_000), "--session", session, "--tool", tool, "--call-id", call_id),
        overspill.put(b"x\n" * 1_234_567, "--session", session, "--tool", "\x1b[31m\ttool"),
    ]


def rows_of(terminal: Terminal) -> list[str]:
    assert terminal.ended() == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", terminal.shown.decode()).replace("\r\n", "\n").splitlines()


def test_a_narrow_terminal_shows_what_is_needed_to_tell_captures_apart(
    overspill: Shell, listed: list[str]
) -> None:
    header, *rows = rows_of(overspill.terminal("ls", "--session", LISTED[0], columns=40))

    assert header.split() == ["CAPTURE", "AGE", "SIZE"]
    assert all(cell_len(row) <= 40 for row in [header, *rows])


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_of_ls_is_wider_than_the_terminal(overspill: Shell, listed: list[str], columns: int) -> None:
    header, *rows = rows_of(overspill.terminal("ls", "--session", LISTED[0], columns=columns))

    assert header.split()[:6] == ["CAPTURE", "AGE", "SIZE", "LINES", "EXPIRES", "TOOL"]
    assert [row.split()[0] for row in rows] == listed[::-1]
    assert all(cell_len(row) <= columns for row in [header, *rows])
    assert re.search(r" \d+[smh]  +2.5 MB  1,234,567 ", rows[0])


def test_a_wide_terminal_has_room_for_every_column(overspill: Shell, listed: list[str]) -> None:
    header, row, older = rows_of(overspill.terminal("ls", "--session", LISTED[0], columns=250))

    assert header.endswith("CALL ID")
    assert "␛[31m␉tool" in row
    assert LISTED[1] in older
    assert LISTED[2] in older


def test_notes_stand_behind_the_table_that_they_are_of(overspill: Shell, listed: list[str]) -> None:
    """Python writes to a terminal line by line, but for bytes."""
    header, row, note = rows_of(overspill.terminal("ls", "--session", LISTED[0], "--limit", "1", columns=100))

    assert (header.split()[0], row.split()[0]) == ("CAPTURE", listed[-1])
    assert note == "overspill: there are more: --limit shows more, --all all of them"


def test_lines_of_a_summary_fit_a_terminal_and_are_whole_in_a_pipe(overspill: Shell) -> None:
    capture = overspill.put(f"{'wide ' * 30}\n{'日本 ' * 20}\n".encode())
    shown = rows_of(overspill.terminal("summary", capture))

    assert all(cell_len(row) <= 80 for row in shown)
    assert "wide " * 30 in overspill("summary", capture).out


def test_the_table_is_in_colour_on_a_terminal_alone(overspill: Shell, listed: list[str]) -> None:
    terminal = overspill.terminal("ls", "--session", LISTED[0])

    assert terminal.ended() == 0
    assert terminal.shown.startswith(b"\x1b[1mCAPTURE ")
    assert b"\x1b" not in overspill("ls", "--session", LISTED[0]).data
