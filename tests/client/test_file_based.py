"""The answers of file-based output management under their design's own names, and its files by call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill import Guard, SyncClient, Workspace, calling, inspection_tool
from overspill.guard.file_based import answer_fields, output_fields, response_fields
from overspill.guard.policy import Policy
from overspill.spools.location import MAX_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.overspill import ServiceProcess

LINES = "".join(f"line {number}\n" for number in range(1_000))
OTHER = LINES.replace("line 7", "LINE 7")


def test_an_output_has_the_designs_fields(service: ServiceProcess, tmp_path: Path) -> None:
    with SyncClient(service.url) as client:
        stored = Guard(client).capture_output_sync(LINES, "build")
    filed = Guard(spool=Workspace(tmp_path)).capture_output_sync(LINES, "build")
    short = output_fields(Guard().capture_output_sync("ok", "build"))

    assert output_fields(stored) == {
        "content": stored.content,
        "truncated": True,
        "file_path": stored.capture,
        "total_lines": 1_000,
        "total_bytes": len(LINES),
        "content_type": "text",
    }
    assert (tmp_path / str(output_fields(filed)["file_path"])).read_text() == LINES
    assert (short["content"], short["truncated"], short["file_path"]) == ("ok", False, None)


def test_a_response_has_the_designs_fields(tmp_path: Path) -> None:
    guard = Guard(policy=Policy.file_based(), spool=Workspace(tmp_path))
    rows = {"rows": list(range(10))}
    long = response_fields(guard.process_sync(LINES, tool="query"))
    lost = response_fields(Guard(policy=Policy.file_based()).process_sync(LINES, tool="query"))

    assert response_fields(guard.process_sync(rows, tool="query")) == {"status": "inline", "data": rows}
    assert (long["status"], long["total_lines"], long["total_bytes"]) == ("captured", 1_000, len(LINES))
    assert (tmp_path / long["full_output_file"]).read_text() == LINES
    assert long["preview"].startswith("line 0\n")
    assert (lost["status"], lost["full_output_file"], "read_more" in lost) == ("truncated", None, False)


def test_a_search_has_the_designs_fields(service: ServiceProcess) -> None:
    with SyncClient(service.url) as client:
        capture = client.put(LINES).id
        answer = inspection_tool(client)(capture, "grep", pattern="line 500$", context_lines=1)
        head = inspection_tool(client)(capture, "head", lines=1)

    found = {"line_number": 501, "line": "line 500", "before": ["line 499"], "after": ["line 501"]}

    assert answer["match_count"] == 1
    assert answer_fields({**answer, "matches": [found]})["matches"] == [
        {
            "line_number": 501,
            "match": "line 500",
            "context_before": ["line 499"],
            "context_after": ["line 501"],
        }
    ]
    assert answer_fields(head)["content"] == "line 0\n"


def test_a_workspace_can_name_files_by_call_and_show_the_whole_path(tmp_path: Path) -> None:
    guard = Guard(spool=Workspace(tmp_path, by_call_id=True, absolute=True))
    first = guard.process_sync(LINES * 10, tool="build", call_id="toolu_1")
    path = tmp_path / ".overspill" / "toolu_1.txt"

    assert f"in the file {path} until" in first.value
    assert f"read parts of {path} with" in first.value
    assert path.read_text() == LINES * 10
    assert guard.process_sync(LINES * 10, tool="build", call_id="toolu_1").value == first.value


def test_another_output_of_a_call_id_does_not_take_the_file_of_the_first(tmp_path: Path) -> None:
    guard = Guard(spool=Workspace(tmp_path, by_call_id=True))
    first = guard.process_sync(LINES * 10, tool="build", call_id="call_0")
    second = guard.process_sync(OTHER * 10, tool="build", call_id="call_0")
    assert first.notice is not None
    assert second.notice is not None

    assert first.notice.path == ".overspill/call_0.txt"
    assert second.notice.path == f".overspill/call_0-{str(second.capture)[4:12]}.txt"
    assert (tmp_path / first.notice.path).read_text() == LINES * 10
    assert (tmp_path / second.notice.path).read_text() == OTHER * 10


def test_ids_that_are_no_names_and_ids_of_nobody_name_no_file(tmp_path: Path) -> None:
    guard = Guard(spool=Workspace(tmp_path, by_call_id=True))
    for call_id in (None, "", "../../etc/passwd", "a/b", ".hidden", "x" * 5_000, "é"):
        made = guard.process_sync(f"{call_id}{LINES * 10}", tool="build", call_id=call_id).notice
        assert made is not None
        assert made.path == f".overspill/{made.id}.txt"
        assert (tmp_path / made.path).is_file()


def test_links_go_with_the_files_that_had_to_go(tmp_path: Path) -> None:
    guard = Guard(spool=Workspace(tmp_path, max_bytes=200_000, by_call_id=True))
    for number in range(12):
        with calling(f"call_{number}"):
            guard.process_sync(f"{number}\n{LINES * 5}", tool="build")
    links = [path for path in (tmp_path / ".overspill").iterdir() if path.is_symlink()]

    assert MAX_BYTES > 200_000
    assert 0 < len(links) < 12
    assert sum(not path.exists() for path in links) <= 1
