"""What a terminal is shown of captured text: nothing that it would obey."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.cli.visible import Visible, harmless_json, visible, visible_line

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
    assert visible(HOSTILE) == SHOWN


@given(st.text(), st.lists(st.integers(min_value=0, max_value=40), max_size=8))
def test_in_whatever_pieces_bytes_come_they_are_shown_the_same(text: str, cuts: list[int]) -> None:
    data = (text + HOSTILE).encode("utf-8", "surrogatepass")
    places = sorted({0, *cuts, len(data)})
    shown = Visible()
    pieces = [shown.feed(data[start:stop]) for start, stop in pairwise(places)]

    assert "".join([*pieces, shown.feed(b"", last=True)]) == visible(data.decode("utf-8", "replace"))


@given(st.text())
def test_nothing_unsafe_remains(text: str) -> None:
    assert not UNSAFE.search(visible(text))
    assert not re.search(r"[\t\r\n]", visible_line(text))


@given(st.text())
def test_harmless_json_means_the_same(text: str) -> None:
    written = harmless_json(json.dumps({"text": text}, ensure_ascii=False))

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
    piped = Terminal(["/bin/sh", "-c", script], overspill.environment)
    filed = overspill.terminal("cat", capture, "-o", str(tmp_path / "copy"))

    assert (piped.ended(), piped.shown) == (0, b"")
    assert filed.ended() == 0
    assert b"reading" in filed.shown
    assert (tmp_path / "copy").read_bytes() == content


def test_ls_has_a_header_on_a_terminal(overspill: Shell, hostile: str) -> None:
    terminal = overspill.terminal("ls", "--limit", "1")

    assert terminal.ended() == 0
    assert terminal.shown.startswith(b"CAPTURE ")
