"""deepagents' own eviction into captures, and the backend beside the one that keeps files on a disk."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from langchain_core.tools import tool as as_tool
from overspill import SyncClient, call
from overspill.integrations.deepagents import CaptureBackend, capture_backend

from tests.integrations.kit import tools
from tests.integrations.kit.harness import Call
from tests.integrations.langchain.harness import model_of, results_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

URL = os.environ["OVERSPILL_URL"]
MANY = 30_000
FILES = {
    "/call_1": "".join(f"line {number}\n" for number in range(500)),
    "/call_2": "no end of a line",
    "/call_3": "",
    "/toolu_é-4.txt": "needle\n\n  needle twice: needle\nüber\r\nlast needle",
    "/call_5": "\n\n\n",
}


@pytest.fixture
def client() -> Iterator[SyncClient]:
    with SyncClient(URL, session=f"deep-{uuid.uuid4()}", retries=0) as client:
        yield client


@pytest.fixture
def both(client: SyncClient, tmp_path: Path) -> tuple[CaptureBackend, FilesystemBackend]:
    ours, theirs = CaptureBackend(client), FilesystemBackend(tmp_path, virtual_mode=True)
    for path, content in FILES.items():
        assert ours.write(path, content).path == theirs.write(path, content).path == path
    return ours, theirs


# --- beside the backend of the disk -------------------------------------------------------------


@pytest.mark.parametrize("window", [(0, 2000), (0, 1), (1, 2), (2, 100), (499, 5), (0, 0), (3, -1), (-2, 2)])
@pytest.mark.parametrize("path", [path for path, content in FILES.items() if content.strip()])
def test_a_window_of_lines_is_that_of_a_file(both: Any, path: str, window: tuple[int, int]) -> None:
    ours, theirs = (backend.read(path, *window) for backend in both)

    assert (ours.error is None) == (theirs.error is None)
    if theirs.error is None:
        assert ours.file_data["content"].splitlines() == theirs.file_data["content"].splitlines()
        assert (ours.start_line, ours.end_line, ours.next_offset) == (
            theirs.start_line,
            theirs.end_line,
            theirs.next_offset,
        )


def test_a_file_without_a_word_is_read_as_it_is(both: Any) -> None:
    ours, _ = both  # a disk's backend has words to the model in the place of blank lines

    assert ours.read("/call_3").file_data["content"] == ""
    assert ours.read("/call_5").file_data["content"] == "\n\n\n"


@pytest.mark.parametrize("pattern", ["needle", "line 49", "über", "nowhere", "(", "."])
@pytest.mark.parametrize("path", [None, "/", "/call_1"])
def test_a_search_finds_what_it_finds_in_files(both: Any, pattern: str, path: str | None) -> None:
    ours, theirs = (
        sorted((m["path"], m["line"], m["text"].rstrip("\r")) for m in backend.grep(pattern, path).matches)
        for backend in both
    )

    assert ours == theirs


@pytest.mark.parametrize("count", [1, 5, 111, 112])
def test_a_search_stops_where_it_is_told_to(both: Any, count: int) -> None:
    ours, theirs = (backend.grep("line 4", "/call_1", max_count=count) for backend in both)

    assert (len(ours.matches), ours.truncated) == (len(theirs.matches), theirs.truncated)


@pytest.mark.parametrize("pattern", ["*", "*.txt", "call_*", "/call_1", "{call_1,call_2}", "none*", "**/*"])
def test_a_pattern_names_the_files_that_it_names_on_a_disk(both: Any, pattern: str) -> None:
    ours, theirs = (sorted(each["path"] for each in backend.glob(pattern).matches) for backend in both)

    assert ours == theirs


def test_files_are_listed_with_their_sizes(both: Any) -> None:
    ours, theirs = ({each["path"]: each["size"] for each in backend.ls("/").entries} for backend in both)

    assert ours == theirs


def test_bytes_go_up_and_come_down_as_they_are(client: SyncClient) -> None:
    backend, data = CaptureBackend(client), bytes(range(256)) * 100
    [up] = backend.upload_files([("/picture", data)])
    down, missing = backend.download_files(["/picture", "/none"])

    assert up.error is None
    assert down.content == data
    assert missing.error == "file_not_found"


def test_the_last_text_of_a_path_counts_and_deleting_removes_all(client: SyncClient) -> None:
    backend = CaptureBackend(client)
    backend.write("/call_1", "first\n")
    backend.write("/call_1", "second\n")

    assert backend.read("/call_1").file_data["content"] == "second\n"
    assert len(backend.ls("/").entries or []) == 1
    assert "never changes" in str(backend.edit("/call_1", "second", "third").error)
    assert backend.delete("/call_1").error is None
    assert "not found" in str(backend.read("/call_1").error)
    assert "not found" in str(backend.delete("/call_1").error)


def test_a_line_without_end_is_read_in_bounds(client: SyncClient) -> None:
    backend = CaptureBackend(client)
    backend.write("/call_1", f"{'x' * 5_000_000}\nthe end\n")
    first, second = backend.read("/call_1", 0, 10), backend.read("/call_1", 1, 10)

    assert 100_000 < len(first.file_data["content"]) < 300_000
    assert (first.end_line, first.next_offset) == (1, 1)
    assert second.file_data["content"] == "the end\n"


def test_without_the_service_every_answer_is_an_error() -> None:
    with SyncClient("http://127.0.0.1:1", session="s", retries=0, connect_timeout=0.2) as away:
        backend = CaptureBackend(away)
        answers = [
            backend.write("/a", "x"),
            backend.read("/a"),
            backend.grep("x"),
            backend.ls("/"),
            backend.glob("*"),
            backend.delete("/a"),
            *backend.upload_files([("/a", b"x")]),
            *backend.download_files(["/a"]),
        ]

    assert all(answer.error for answer in answers)


# --- in an agent ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
def test_a_result_that_deepagents_puts_away_is_read_on_another_machine(client: SyncClient, way: str) -> None:
    thread = f"thread-{uuid.uuid4()}"
    first = [[Call("lines", {"count": MANY}, "call_1")]]
    agent = create_deep_agent(model_of(first), [as_tool(tools.lines)], backend=capture_backend(client))
    shown = results_of(agent, way, thread)["call_1"].text
    path = "/large_tool_results/call_1"
    second = [
        [
            Call("read_file", {"file_path": path, "offset": MANY - 1, "limit": 5}, "call_2"),
            Call("grep", {"pattern": "needle", "path": path, "output_mode": "content"}, "call_3"),
            Call("ls", {"path": "/large_tool_results/"}, "call_4"),
        ]
    ]
    with SyncClient(URL) as elsewhere:
        agent = create_deep_agent(model_of(second), [], backend=capture_backend(elsewhere))
        read = results_of(agent, way, thread)

    assert path in shown
    assert client.content(call("call_1"), session=thread).decode() == tools.lines(MANY)
    assert f"line {MANY - 1}" in read["call_2"].text
    assert tools.NEEDLE in read["call_3"].text
    assert path in read["call_4"].text


def test_without_the_service_the_result_stays() -> None:
    with SyncClient("http://127.0.0.1:1", retries=0, connect_timeout=0.2) as away:
        turns = [[Call("lines", {"count": MANY}, "call_1")]]
        agent = create_deep_agent(model_of(turns), [as_tool(tools.lines)], backend=capture_backend(away))
        shown = results_of(agent, "sync", "thread")["call_1"].text

    assert shown == tools.lines(MANY)
