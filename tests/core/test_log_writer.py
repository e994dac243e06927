"""The log: lines of requests are written soon, in their order, and hold up nobody."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator

import pytest
from overspill_service.telemetry import log_writer, logs
from overspill_service.telemetry.log_lines import RequestRecord
from overspill_service.telemetry.log_writer import LogWriter


class Stream(io.StringIO):
    """A reader that takes nothing until it is let go. `pieces` are what was written at once."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.pieces: list[str] = []
        self.has_come = threading.Event()

    def write(self, text: str) -> int:
        if self.closed:
            raise ValueError("closed")
        self.has_come.set()
        assert self.go_on.wait(30)
        self.pieces.append(text)
        return len(text)


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def writer(stream: Stream) -> Iterator[LogWriter]:
    made = LogWriter(stream, logs.formatter_of("text"))
    yield made
    stream.go_on.set()
    made.close()


def request(number: int) -> RequestRecord:
    return RequestRecord("access", f"GET /{number}", {"status": 200})


def warning() -> logging.LogRecord:
    return logging.LogRecord("other", logging.WARNING, "", 0, "a warning", None, None)


def said(stream: Stream) -> list[str]:
    """The messages of all lines."""
    return [line.partition("] ")[2] for line in "".join(stream.pieces).splitlines()]


def test_a_request_waits_for_no_reader_and_its_line_comes_by_itself(
    writer: LogWriter, stream: Stream
) -> None:
    writer.emit(request(1))
    assert stream.has_come.wait(30)
    writer.emit(request(2))
    stream.go_on.set()
    while len(said(stream)) < 2:
        pass

    assert said(stream) == ["GET /1 status=200", "GET /2 status=200"]


def test_another_line_comes_behind_those_of_the_requests_before_it(writer: LogWriter, stream: Stream) -> None:
    stream.go_on.set()
    for number in range(1000):
        writer.emit(request(number))
    writer.emit(warning())

    assert said(stream) == [*(f"GET /{number} status=200" for number in range(1000)), "a warning"]
    assert len(stream.pieces) < 500
    assert max(map(len, stream.pieces)) <= log_writer.PIECE_BYTES


def test_nothing_is_missing_at_the_end(writer: LogWriter, stream: Stream) -> None:
    stream.go_on.set()
    for number in range(1000):
        writer.emit(request(number))
    writer.close()

    assert len(said(stream)) == 1000


def test_lines_that_nobody_takes_are_bounded_and_the_lost_ones_counted(
    writer: LogWriter, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_writer, "MAX_WAITING", 10)
    writer.emit(request(0))
    assert stream.has_come.wait(30)  # the thread holds the first one
    for number in range(1, 31):
        writer.emit(request(number))
    stream.go_on.set()
    writer.flush()

    assert len(said(stream)) == 12
    assert said(stream)[-1] == "20 lines of requests were not written: the log was not read in time"


def test_a_log_that_nobody_reads_any_more_fails_nothing(writer: LogWriter, stream: Stream) -> None:
    stream.close()
    writer.emit(request(1))
    writer.emit(warning())
    writer.flush()

    assert stream.pieces == []
