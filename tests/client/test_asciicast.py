"""Recordings of terminals as asciicast: into live captures, and out of captures with their times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import SyncClient, wire
from overspill.cli.asciicast import reader
from overspill.cli.asciicast.reader import CastReader
from overspill.cli.asciicast.writer import EVENT_BYTES, recording

from tests.client.shell import Shell

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

V3 = (
    b'{"version": 3, "term": {"cols": 100, "rows": 50}, "command": "make", "title": "build"}\n'
    b"# a comment\n"
    b'[0.25, "o", "h\xc3\xa9llo\\r\\n"]\n'
    b'[1.0, "i", "secret"]\n'
    b'[0.5, "r", "80x24"]\n'
    b"\n"
    b'[0, "o", "$ \\u001b[1mbye\\u001b[0m"]\n'
    b'[0.1, "m", ""]\n'
    b'[2, "x", "3"]\n'
)
V2 = (
    b'{"version": 2, "width": 90, "height": 30, "timestamp": 1504467315}\n'
    b'[0.1, "o", "one\\r\\n"]\n[0.1, "o", "two\\r\\n"]\n[9.5, "i", "x"]'
)
SHOWN = "héllo\r\n$ \x1b[1mbye\x1b[0m".encode()


def read(data: bytes, *cuts: int) -> tuple[bytes, CastReader]:
    cast, shown = CastReader(), b""
    for first, last in zip([0, *cuts], [*cuts, len(data)], strict=True):
        shown += cast.feed(data[first:last])
    return shown + cast.finish(), cast


@given(st.lists(st.integers(0, len(V3)), max_size=8).map(sorted))
def test_a_recording_shows_its_output_in_whatever_pieces_it_comes(cuts: list[int]) -> None:
    shown, cast = read(V3, *cuts)

    assert (shown, cast.problem, cast.exit_code) == (SHOWN, "", 3)
    assert cast.header is not None
    assert (cast.header.size, cast.header.command, cast.header.title) == ("100x50", "make", "build")


def test_a_recording_of_version_2_is_read_too() -> None:
    shown, cast = read(V2)

    assert (shown, cast.problem) == (b"one\r\ntwo\r\n", "")
    assert cast.header is not None
    assert cast.header.size == "90x30"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"make: *** no rule", "line 3: "),
        (b'[-0.5, "o", "x"]', "line 3: the time goes back to -0.5"),
        (b'[1, "o"]', "line 3: "),
        (b'{"version": 3}', "line 3: "),
        (b'[1, "o", "cut', "line 3: "),
        (b'[1, "o", "\xff"]', "line 3: "),
    ],
)
@pytest.mark.parametrize("end", [b"", b"\n", b'\n[1, "o", "more"]\nand more'])
def test_from_a_bad_line_on_all_is_taken_as_it_came(line: bytes, problem: str, end: bytes) -> None:
    good = b'{"version": 3, "term": {"cols": 80, "rows": 24}}\n[1, "o", "good\\n"]\n'
    data = good + line + end
    for cut in (0, len(good), len(good) + 3, len(data) - 1):
        shown, cast = read(data, cut)

        assert shown == b"good\n" + line + end
        assert cast.problem.startswith(problem)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"version": 1, "width": 80, "height": 24, "stdout": []}\n', "line 1: version 1 is not read"),
        (b"no recording\nat all", "line 1: "),
        (b'[1, "o", "x"]\n', "line 1: "),
        (b"", "there is no header: the recording is empty"),
    ],
)
def test_without_a_header_all_is_taken_as_it_came(data: bytes, problem: str) -> None:
    shown, cast = read(data)

    assert shown == data
    assert cast.problem.startswith(problem)


def test_time_does_not_go_back_in_version_2() -> None:
    shown, cast = read(V2 + b'\n[9.4, "o", "late"]\n')

    assert shown.endswith(b'[9.4, "o", "late"]\n')
    assert cast.problem == "line 5: the time goes back to 9.4"


def test_a_line_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE", 1000)
    huge = b'[1, "o", "' + b"x" * 2000
    good = b'{"version": 3}\n[1, "o", "good"]\n'

    whole, in_one_piece = read(good + huge + b'"]\n')
    shown, cast = read(good + huge + b'"]\n', 1500)

    assert (whole, in_one_piece.problem) == (b"good" + b"x" * 2000, "")  # it was in memory anyway
    assert shown == b"good" + huge + b'"]\n'
    assert cast.problem == "line 3: more than 1000 bytes"


def entry_of(size: int, **labels: str) -> wire.Entry:
    began = datetime(2026, 11, 23, tzinfo=UTC)
    named = {"overspill." + name: value for name, value in labels.items()}
    return wire.Entry(
        id="cap_" + "a" * 20,
        state=wire.State.COMPLETE,
        size=size,
        stored_size=size,
        lines=0,
        sha256="",
        content_type="",
        kind="text",
        tool="",
        session="",
        call_id="",
        status="",
        labels=named,
        created=began,
        expires=began,
    )


def marks_of(*marks: tuple[float, int]) -> list[wire.Mark]:
    began = datetime(2026, 11, 23, tzinfo=UTC)
    return [wire.Mark(time=began + timedelta(seconds=seconds), offset=at) for seconds, at in marks]


def events_of(lines: list[bytes]) -> list[Any]:
    return [json.loads(line) for line in lines]


def test_a_capture_becomes_a_recording_with_the_times_of_its_marks() -> None:
    entry = entry_of(18, terminal="build", command="make", terminal_size="132x43", exit_code="2")
    content = "one\ntwö\r\n\nthree".encode()
    made = list(
        recording(entry, marks_of((0, 0), (0.25, 4), (2, 6)), [content[:5], content[5:7], content[7:]])
    )
    header, *events = events_of(made)

    assert header == {
        "version": 3,
        "term": {"cols": 132, "rows": 43},
        "timestamp": 1795392000,
        "title": "build",
        "command": "make",
    }
    assert events == [
        [0.0, "o", "one\r\n"],
        [0.25, "o", "t"],
        [0.0, "o", "w"],
        [1.75, "o", "ö\r\n\r\nthree"],
        [0.0, "x", "2"],
    ]
    shown, cast = read(b"".join(made))
    assert (shown.decode(), cast.exit_code) == ("one\r\ntwö\r\n\r\nthree", 2)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5), st.lists(st.integers(0, 300)))
def test_every_recording_shows_its_capture(data: bytes, cuts: list[int], offsets: list[int]) -> None:
    pieces = [data[a:b] for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True)]
    marks = marks_of(*((number, offset) for number, offset in enumerate(sorted(set(offsets)))))
    shown, cast = read(b"".join(recording(entry_of(len(data)), marks, pieces)))

    assert cast.problem == ""
    assert shown.decode().replace("\r\n", "\n") == data.decode(errors="replace").replace("\r\n", "\n")


def test_an_event_has_a_bound() -> None:
    made = list(recording(entry_of(10 * EVENT_BYTES), [], [b"x" * 10 * EVENT_BYTES]))

    assert [len(event[2]) for event in events_of(made)[1:]] == [EVENT_BYTES] * 10


@pytest.fixture(scope="module")
def overspill(service: ServiceProcess) -> Shell:
    return Shell(service.url)


def test_a_recording_comes_in_live_and_goes_out_again(overspill: Shell, service: ServiceProcess) -> None:
    handle = overspill("put", "--live", "--format", "asciicast", stdin=V3).capture
    with SyncClient(service.url) as client:
        entry, content = client.get(handle), client.content(handle)
        timeline = client.timeline(handle)
    header, *events = events_of(overspill("cat", "--format", "asciicast", handle).data.splitlines())

    assert (content, entry.state) == (SHOWN, wire.State.COMPLETE)
    assert entry.labels == {
        "overspill.terminal": "build",
        "overspill.command": "make",
        "overspill.terminal_size": "100x50",
        "overspill.exit_code": "3",
    }
    assert (timeline.size, timeline.marks[0].offset) == (len(SHOWN), 0)
    assert header["term"] == {"cols": 100, "rows": 50}
    assert "".join(event[2] for event in events if event[1] == "o") == SHOWN.decode()
    assert events[-1][1:] == ["x", "3"]


def test_what_is_no_recording_is_stored_whole_and_said_to_be_none(overspill: Shell) -> None:
    done = overspill("put", "--live", "--format", "asciicast", stdin=b"make: nothing to do\n")

    assert done.code == 6
    assert "this is not an asciicast recording: line 1: " in done.err
    assert overspill("cat", done.capture).out == "make: nothing to do\n"


@pytest.mark.parametrize(
    "words", [("put", "--format", "asciicast"), ("cat", "--format", "asciicast", "--range", "0-9", "call:x")]
)
def test_options_that_do_not_go_together_are_refused(overspill: Shell, words: tuple[str, ...]) -> None:
    done = overspill(*words)

    assert (done.code, "Invalid value for" in done.err) == (2, True)
