"""`overspill grep`, held against grep and ripgrep wherever they print the same."""

from __future__ import annotations

import itertools
import random
import re
import shlex
import shutil
import subprocess
import sys
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import pytest
from overspill.cli.commands.grep import grep
from overspill.cli.parameters import parameters_of
from overspill.cli.search.query import Query
from overspill.cli.search.spans import SpanFinder, combined
from overspill.spools.partition import Partition
from overspill.spools.spool import Spool

from tests.client.shell import Shell
from tests.client.spooling import spilled

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

LINES: Final = 3_000
ABSENT: Final = "cap_aaaaaaaaaaaaaaaaaaaa"
PLACE: Final = frozenset({"patterns", "max_matches", "everything", "cursor"})
"""Options that say what to search for and how far: the command that goes on has others."""
UTF_8: Final = {"LC_ALL": "C.UTF-8"}
WORDS: Final = (
    *(
        "alpha",
        "beta",
        "error",
        "Error:",
        "größe",
        "日本語",
        "main.rs",
        "main_rs",
        "\N{LEFT SINGLE QUOTATION MARK}main.rs\N{RIGHT SINGLE QUOTATION MARK}",
        "-5",
        "a.b",
        "error,",
    ),
    *("errors", "x" * 30, "(error)", "Ångström", "été", "…error…"),
)


@pytest.fixture(scope="module")
def content() -> bytes:
    chosen = random.Random(11)
    lines = (f"{number} {' '.join(chosen.choices(WORDS, k=4))}" for number in range(1, LINES + 1))
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


@pytest.fixture(scope="module")
def capture(overspill: Shell, content: bytes) -> str:
    return overspill.put(content, "--session", "cli-grep", "--call-id", "grep 1")


def printed_by(program: str, *words: str, stdin: bytes) -> bytes:
    """What an outside program prints, in UTF-8 whatever the locale of these tests."""
    return subprocess.run([program, *words], input=stdin, capture_output=True, check=False, env=UTF_8).stdout


def rg() -> str:
    """ripgrep as the wheel brings it."""
    beside = Path(sys.executable).with_name("rg")
    return str(beside) if beside.exists() else str(shutil.which("rg"))


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "^12.*error"],
        ["-w", "error"],
        ["-wF", "main.rs"],
        ["-w", "été|größe"],
        ["-wi", "ERROR"],
        ["-wv", "error|alpha"],
        ["-wc", "beta"],
        ["-e", "^1 ", "-e", "^2 "],
        ["-e", "-5 -5"],
        ["-F", "-e", "a.b a.b", "-e", "-5 (error)"],
        ["-o", "[a-z]+:? 日"],
        ["-ow", "error|alpha"],
        ["-oi", "ERROR.?"],
        ["-owF", "main.rs"],
        ["-o", "x*"],
        ["-A", "1", "-B", "2", "^1000 "],
        ["-C2", "^(7|9|3000) "],
        ["-C1", "error|alpha"],
        ["-A3", "9 .*beta"],
        ["-B4", "größe.*größe"],
        ["-vC1", "^[0-9]*[02468] "],
        ["-3", "^1500 "],
        ["-vc", "error"],
        ["-i", "ÅNGSTRÖM ÉTÉ"],
        ["-m", "7", "alpha"],
        ["-c", "-m", "7", "alpha"],
        ["-m", "2500", "a"],
    ],
    ids=shlex.join,
)
def test_options_mean_what_they_mean_to_grep(
    overspill: Shell, capture: str, content: bytes, words: list[str]
) -> None:
    every = [] if "-m" in shlex.join(words) else ["--all"]
    engine = [] if "F" in words[0] else ["-E"]
    result = overspill("grep", *every, *words, capture)

    assert result.data == printed_by(
        "grep", *(["-n"] if "c" not in words[0] else []), *engine, *words, stdin=content
    )
    assert result.code == 0


@pytest.mark.parametrize(
    "words", [["-o", "größe|日本"], ["-w", "Ångström"], ["-ow", "[a-z]+"], ["-owF", "main.rs"]]
)
def test_what_matches_is_what_ripgrep_says(
    overspill: Shell, capture: str, content: bytes, words: list[str]
) -> None:
    result = overspill("grep", "--all", *words, capture)

    assert result.data == printed_by(rg(), "-n", *words, stdin=content)


def test_without_numbers_lines_are_printed_as_grep_prints_them(
    overspill: Shell, capture: str, content: bytes
) -> None:
    plain = overspill("grep", "-N", "-C", "1", "^2.*alpha alpha", capture)
    only = overspill("grep", "--all", "-oN", "error.?", capture)

    assert plain.data == printed_by("grep", "-C", "1", "^2.*alpha alpha", stdin=content)
    assert only.data == printed_by("grep", "-oE", "error.?", stdin=content)


@pytest.mark.parametrize(
    "given", [["call:grep 1", "^7 "], ["^7 ", "call:grep 1"], ["-e", "^7 ", "call:grep 1"]]
)
def test_the_handle_and_the_pattern_stand_in_either_order(
    overspill: Shell, content: bytes, capture: str, given: list[str]
) -> None:
    by_id = [capture if word.startswith("call:") else word for word in given]
    expected = printed_by("grep", "-n", "^7 ", stdin=content)

    assert overspill("grep", "--session", "cli-grep", *given).data == expected
    assert overspill("grep", *by_id).data == expected


def test_a_handle_is_searched_for_in_the_first_of_two_captures(overspill: Shell) -> None:
    capture = overspill.put(f"see {ABSENT}\n".encode())

    assert overspill("grep", capture, ABSENT).out == f"1:see {ABSENT}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["error", "build.log"], "neither 'error' nor 'build.log' is a handle"),
        ([ABSENT], "give a handle and a pattern"),
        (["-e", "x", "y", ABSENT], "give a handle alone, since -e gives the pattern"),
        (["-ov", "x", ABSENT], "-o prints what matches"),
    ],
)
def test_wrong_words_are_told_what_is_right(overspill: Shell, words: list[str], said: str) -> None:
    result = overspill("grep", *words)

    assert (result.code, result.data) == (2, b"")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_a_search_that_stops_says_the_same_search_further_on(
    overspill: Shell, capture: str, content: bytes
) -> None:
    printed, err, pages = b"", "", 0
    words = ["grep", "-owi", "-m", "300", "-e", "error", "-e", "-5", "-N", capture]
    while words:
        result = overspill(*words)
        printed, err, pages = printed + result.data, result.err, pages + 1
        words = shlex.split(err.partition("go on: ")[2])[1:]

    assert pages > 2
    assert printed == printed_by("grep", "-owi", "-e", "error", "-e", "-5", stdin=content)


def test_the_command_that_goes_on_has_every_option_of_the_search() -> None:
    others: dict[type, Any] = {bool: True, int: 7, str: "run-42", datetime: datetime(2026, 5, 1, tzinfo=UTC)}
    searched = [each for each in parameters_of(Query) if each.name not in PLACE]
    given: dict[str, Any] = {each.name: others[kind_of(each.annotation)] for each in searched}
    given["numbers"] = False  # it is on by default
    typed = grep.make_context("grep", [ABSENT, *Query(**given).words()]).params

    assert {name: typed[name] for name in given} == given


def kind_of(annotation: Any) -> type:
    """Return the type of an option's value, which may also be None."""
    kind = annotation.__origin__
    return kind if isinstance(kind, type) else get_args(kind)[0]


def test_what_matches_at_the_end_of_a_long_line_is_found_whole(overspill: Shell) -> None:
    line = b"begin " + b"x" * 50_000 + b" needle1 " + b"y" * 50_000 + b" needle2"
    capture = overspill.put(b"first\n" + line + b"\nlast\n")

    assert overspill("grep", "-o", "needle.", capture).out == "2:needle1\n2:needle2\n"


def test_a_pattern_that_would_backtrack_for_ever_is_answered() -> None:
    matcher = SpanFinder(["(a+)+$"], fixed=False, word=False, ignore_case=False)

    assert matcher.spans("a" * 10_000 + "b") == []


@pytest.mark.parametrize("word", [False, True])
def test_matches_are_where_ripgrep_finds_them(word: bool) -> None:
    lines = ["größe größe", "(größe)größe", "größen größe größe", "日本größe größe!", "xgröße größe"]
    matcher = SpanFinder(["gr.ße", "größen"], fixed=False, word=word, ignore_case=False)
    flags = ["-w"] if word else []
    found = [line[start:end] for line in lines for start, end in matcher.spans(line)]

    told = printed_by(rg(), "-o", *flags, "-e", "gr.ße", "-e", "größen", stdin="\n".join(lines).encode())
    assert found == told.decode().splitlines()


def test_whole_words_are_those_of_grep_beside_any_character() -> None:
    codes = itertools.chain(
        range(0x20, 0x7F), range(0xA0, 0x400), range(0x2000, 0x2070), range(0x3000, 0x3100)
    )
    known = [character for character in map(chr, codes) if unicodedata.category(character) != "Cn"]
    text = "".join(f"{mark}a{mark}\n" for mark in [*known, *"一龠漢ﬁＡ９｡ｱ€→✓😀𝒜𠀀"])
    pattern, _ = combined(["a"], fixed=False, word=True)
    expected = printed_by(rg(), "-w", "a", stdin=text.encode()).decode()
    spans = SpanFinder(["a"], fixed=False, word=True, ignore_case=False).spans
    found = "".join(f"{line}\n" for line in text.split("\n")[:-1] if spans(line))

    assert found == expected
    assert pattern.count("[^") == 2


@pytest.fixture
def waiting(tmp_path: Path) -> tuple[Shell, Partition]:
    url = "http://127.0.0.1:1"
    spool = Spool(tmp_path / "spool")
    return Shell(url, OVERSPILL_SPOOL=str(spool.path)), spool.partition(url, "")


@pytest.mark.parametrize(
    "words", [["-w", "error"], ["-owF", "main.rs"], ["-o", "-e", "été", "-e", "^[0-9]+"]], ids=shlex.join
)
def test_what_waits_on_this_machine_is_searched_alike(
    waiting: tuple[Shell, Partition], content: bytes, words: list[str]
) -> None:
    shell, partition = waiting
    kept = partition.keep(spilled(content.decode()), "down")
    engine = [] if "F" in words[0] else ["-E"]

    assert shell("grep", "--all", *words, kept.id).data == printed_by(
        "grep", "-n", *engine, *words, stdin=content
    )


def test_a_terminal_sees_matches_in_colour_and_a_pipe_does_not(overspill: Shell, capture: str) -> None:
    words = ("grep", "-m", "1", "^7 ", capture)
    terminal = overspill.terminal(*words)
    assert terminal.ended() == 0

    assert terminal.shown.startswith(b"\x1b[32m7\x1b[0m\x1b[36m:\x1b[0m\x1b[1;31m7 \x1b[0m")
    assert b"\x1b" not in overspill(*words).data


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_is_turned_off_by_the_environment(
    service: ServiceProcess, capture: str, name: str, value: str
) -> None:
    terminal = Shell(service.url, **{name: value}).terminal("grep", "-m", "1", "^7 ", capture)
    assert terminal.ended() == 0

    assert b"\x1b" not in terminal.shown


def test_colour_comes_and_goes_as_it_is_asked_for(overspill: Shell, capture: str, content: bytes) -> None:
    asked = overspill("grep", "--all", "-C", "1", "--color", "always", "error|alpha", capture)
    terminal = overspill.terminal("--color", "never", "grep", "-m", "1", "^7 ", capture)
    assert terminal.ended() == 0
    plain = re.sub(rb"\x1b\[[0-9;]*m", b"", asked.data)

    assert asked.data.count(b"\x1b[1;31m") > 100
    assert plain == printed_by("grep", "-nE", "-C", "1", "error|alpha", stdin=content)
    assert b"\x1b" not in terminal.shown


def test_hostile_lines_are_harmless_in_colour_too(overspill: Shell) -> None:
    capture = overspill.put("one \u202etwo \x1b]0;title\x07 three\x08\n".encode())
    printed = overspill("grep", "--color", "always", "two.*three.", capture)
    bare = re.sub(r"\x1b\[[0-9;]*m", "", printed.out)

    assert "\x1b" not in bare
    assert not re.search("[\x00-\x08\x0e-\x1f\u202e]", bare)
