"""`overspill cat`, `head`, `tail`, `lines`, `grep`: held against the tools that they are named for."""

import json
import random
import shlex
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.client.shell import Shell
from tests.servers.overspill import ServiceProcess

LINES = 4_000


@pytest.fixture(scope="module")
def content() -> bytes:
    words = ["alpha", "beta", "error", "Error:", "größe", "日本語", "x" * 90]
    chosen = random.Random(7)
    lines = (f"{number} {' '.join(chosen.choices(words, k=6))}" for number in range(1, LINES + 1))
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


@pytest.fixture(scope="module")
def capture(overspill: Shell, content: bytes) -> str:
    return overspill.put(content, "--session", "cli-reads")


def told_by(tool: str, *words: str, stdin: bytes) -> bytes:
    return subprocess.run([tool, *words], input=stdin, capture_output=True, check=False).stdout


def test_cat_gives_a_pipe_the_exact_bytes(overspill: Shell) -> None:
    content = bytes(range(256)) * 5000

    assert overspill("cat", overspill.put(content)).data == content


@pytest.mark.parametrize(
    ("asked", "bounds"), [("0-9", slice(0, 10)), ("100-", slice(100, None)), ("-7", slice(-7, None))]
)
def test_cat_gives_the_bytes_of_a_range(
    overspill: Shell, capture: str, content: bytes, asked: str, bounds: slice
) -> None:
    assert overspill("cat", capture, "--range", asked).data == content[bounds]


def test_a_range_that_does_not_exist_is_a_wrong_argument(overspill: Shell, capture: str) -> None:
    result = overspill("cat", capture, "--range", "999999999-")

    assert (result.code, result.data) == (2, b"")
    assert "no byte of the range exists" in result.err


@pytest.mark.parametrize("count", ["2", str(LINES - 1)])
@pytest.mark.parametrize("tool", ["head", "tail"])
def test_head_and_tail_give_what_the_tools_of_these_names_give(
    overspill: Shell, capture: str, content: bytes, tool: str, count: str
) -> None:
    assert overspill(tool, "-n", count, capture).data == told_by(tool, "-n", count, stdin=content)


@pytest.mark.parametrize(
    "words", [["head", "-20"], ["tail", "-20"], ["tail", "-n", "+3990"], ["tail", "-n+1"]]
)
def test_head_and_tail_take_the_numbers_that_their_namesakes_take(
    overspill: Shell, capture: str, content: bytes, words: list[str]
) -> None:
    assert overspill(*words, capture).data == told_by(*words, stdin=content)
    assert overspill(words[0], capture, *words[1:]).data == told_by(*words, stdin=content)


@pytest.mark.parametrize("wrong", ["0", "+0", "x", "-5", "1e3", "9" * 20])
def test_what_is_no_number_of_lines_is_a_usage_error(overspill: Shell, capture: str, wrong: str) -> None:
    assert [overspill(tool, "-n", wrong, capture).code for tool in ("head", "tail")] == [2, 2]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["cat"], slice(None)),
        (["cat", "--range", "0-9"], slice(10)),
        (["lines", "1:"], slice(None)),
        (["tail", "-9999"], slice(None)),
        (["head", "-9999"], slice(None)),
    ],
)
def test_content_goes_into_a_file(
    overspill: Shell, capture: str, content: bytes, tmp_path: Path, words: list[str], part: slice
) -> None:
    (tmp_path / "file").write_text("an older one")
    result = overspill(words[0], capture, *words[1:], "-o", str(tmp_path / "file"))

    assert result == (0, b"", "")
    assert (tmp_path / "file").read_bytes() == content[part]
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_file_that_cannot_be_written_is_told_and_an_older_one_stays(
    overspill: Shell, capture: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("an older one")
    nowhere = overspill("cat", capture, "-o", str(tmp_path / "no" / "folder"))
    absent = overspill("cat", "cap_aaaaaaaaaaaaaaaaaaaa", "-o", str(tmp_path / "file"))

    assert (nowhere.code, absent.code) == (6, 3)
    assert str(tmp_path / "no") in nowhere.err
    assert (tmp_path / "file").read_text() == "an older one"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_named_pipe_is_written_to_and_stays_one(overspill: Shell, capture: str, content: bytes) -> None:
    assert overspill.script(f"overspill cat {capture} -o >(cat >&2); wait $!").err.encode() == content
    assert overspill("cat", capture, "-o", "-").data == content


@pytest.mark.parametrize(("device", "redirected"), [("stdout", ">>"), ("stdout", ">"), ("stderr", "2>>")])
def test_the_file_that_a_stream_goes_to_is_written_to_and_not_replaced(
    overspill: Shell, capture: str, tmp_path: Path, device: str, redirected: str
) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"before\n")
    appended = b"" if redirected == ">" else log.read_bytes()
    overspill.script(
        f"{{ overspill cat {capture} --range 0-4 -o /dev/{device}; echo; echo 1>&2; }} {redirected}{log}",
        forked=True,
    )

    content = overspill("cat", capture, "--range", "0-4").data
    assert log.read_bytes() == appended + content + b"\n"


def test_a_file_that_is_replaced_keeps_its_mode(overspill: Shell, capture: str, tmp_path: Path) -> None:
    file = tmp_path / "private"
    file.touch(mode=0o600)

    assert overspill("head", capture, "-o", str(file)).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.stat().st_size > 0


def test_a_file_on_a_terminal_has_the_exact_bytes(overspill: Shell, tmp_path: Path) -> None:
    terminal = overspill.terminal("cat", overspill.put(b"\x1b[31m\xff\n"), "-o", str(tmp_path / "file"))

    assert (terminal.ended(), terminal.shown) == (0, b"")
    assert (tmp_path / "file").read_bytes() == b"\x1b[31m\xff\n"


def test_a_tail_that_begins_inside_a_long_line_is_whole_nevertheless(overspill: Shell) -> None:
    content = b"first\n" + b"y" * 300_000 + b"\nlast\n"

    assert overspill("tail", "-n", "2", overspill.put(content)).data == content[6:]


@pytest.mark.parametrize(
    ("asked", "script"),
    [
        ("5:7", "5,7p"),
        ("3998:", "3998,$p"),
        (":3", "1,3p"),
        ("9", "9p"),
        ("2:3500", "2,3500p"),
        ("9999:", ""),
    ],
)
def test_lines_gives_what_sed_gives(
    overspill: Shell, capture: str, content: bytes, asked: str, script: str
) -> None:
    assert overspill("lines", capture, asked).data == told_by("sed", "-n", script, stdin=content)


@pytest.mark.parametrize("wrong", ["0:3", "7:5", "-1", ""])
def test_a_wrong_range_of_lines_is_a_usage_error_that_says_what_is_right(
    overspill: Shell, wrong: str
) -> None:
    result = overspill("lines", "cap_aaaaaaaaaaaaaaaaaaaa", "--", wrong)

    assert result.code == 2
    assert "range of lines" in result.err or "lines count from 1" in result.err


@pytest.mark.parametrize(
    "flags",
    [
        ["^[0-9]*7 .*error"],
        ["-i", "^12.*ERROR:"],
        ["-v", "alpha|beta|error|Error"],
        ["-F", "error Error: error"],
        ["-C", "2", "^12.0 .*error"],
        ["-B", "1", "-A", "3", "^3[12].*größe.*größe.*größe"],
    ],
)
def test_grep_prints_what_grep_n_prints(
    overspill: Shell, capture: str, content: bytes, flags: list[str]
) -> None:
    printed = overspill("grep", *flags[:-1], "-m", "1000", capture, flags[-1])
    engine = [] if "-F" in flags else ["-E"]

    assert printed.data == told_by("grep", "-n", *engine, *flags, stdin=content)
    assert (printed.code, printed.err) == (0, "")


def test_grep_stops_where_it_was_told_to_and_says_the_command_that_goes_on(
    overspill: Shell, capture: str, content: bytes
) -> None:
    printed, err, pages = b"", "", 0
    result = overspill("grep", "-m", "100", capture, "größe.*größe.*größe")
    while True:
        printed, err, pages = printed + result.data, result.err, pages + 1
        if "go on: " not in err:
            break
        _, *words = shlex.split(err.partition("go on: ")[2])
        result = overspill(*words)

    assert pages > 1
    assert printed == told_by("grep", "-n", "größe.*größe.*größe", stdin=content)


def test_grep_counts_every_matching_line(overspill: Shell, capture: str, content: bytes) -> None:
    assert overspill("grep", "--count", capture, "error").data == told_by(
        "grep", "-c", "error", stdin=content
    )


def test_grep_from_the_end_finds_the_last_first(overspill: Shell, capture: str) -> None:
    assert overspill("grep", "--from-end", "-m", "1", capture, "^").out.startswith(f"{LINES}:")


def test_grep_without_a_match_prints_nothing_and_exits_with_1(overspill: Shell, capture: str) -> None:
    assert overspill("grep", capture, "nowhere") == (1, b"", "")


def test_a_pattern_that_the_engine_refuses_is_a_usage_error(overspill: Shell, capture: str) -> None:
    result = overspill("grep", capture, r"(a)\1")

    assert result.code == 2
    assert result.err.startswith("overspill: ")


def test_summary_tells_the_totals(overspill: Shell, capture: str, content: bytes) -> None:
    printed = overspill("summary", capture).out

    assert f"{len(content):,} bytes, {LINES:,} lines" in printed


def test_a_capture_is_found_by_its_tool_call_id(overspill: Shell, content: bytes) -> None:
    overspill.put(content, "--session", "cli-reads", "--call-id", "call 7/ü")

    assert overspill("cat", "call:call 7/ü", "--session", "cli-reads").data == content


@pytest.mark.parametrize(
    "words", [["head", "-n", "2"], ["tail", "-n", "3"], ["lines", "2:3"], ["grep", "beta"]]
)
def test_json_is_what_the_service_answers(
    overspill: Shell, service: ServiceProcess, capture: str, words: list[str]
) -> None:
    name, *rest = words
    query = {
        "head": "head?lines=2",
        "tail": "tail?lines=3",
        "lines": "lines?start=2&end=3",
        "grep": "grep?pattern=beta",
    }[name]
    options = rest if rest[0].startswith("-") else []
    last = [] if options else rest
    with urlopen(f"{service.url}/v1/captures/{capture}/{query}") as answer:
        expected = json.load(answer)

    assert json.loads(overspill(name, "--json", *options, capture, *last).data) == expected


def test_bytes_that_are_no_text_are_told(overspill: Shell) -> None:
    result = overspill("head", overspill.put(b"ok\n\xff\xfe\n"))

    assert result.out == "ok\n��\n"
    assert "not UTF-8" in result.err
