"""Bounded reads over HTTP: head, tail, lines, grep and summary, with `grep -n` and `sed -n` as oracles."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import Api

LINES = [
    f"{number:06d} {'ERROR' if number % 997 == 0 else 'info'} value={number * 7919 % 1000}"
    for number in range(40_000)
]
LOG = "\n".join(LINES).encode() + b"\n"


async def read(api: Api, capture: str, mode: str, **query: Any) -> dict[str, Any]:
    response = await api.get(
        f"/v1/captures/{capture}/{mode}", params={name: str(value) for name, value in query.items()}
    )
    assert response.status == 200, await response.text()
    answer: dict[str, Any] = await response.json()
    return answer


async def test_every_text_reader_answers_with_the_same_fields(api: Api) -> None:
    entry = await api.put(LOG)
    answers = [
        await read(api, entry.id, "head"),
        await read(api, entry.id, "tail"),
        await read(api, entry.id, "lines", start=5, end=9),
        await read(api, entry.id, "grep", pattern="ERROR"),
    ]

    common = {
        "content", "start_line", "end_line", "total_lines", "total_bytes", "mode", "truncated", "next",
        "approx_tokens", "replaced",
    }  # fmt: skip
    assert [set(answer) - {"matches", "match_count"} for answer in answers] == [common] * 4
    assert [answer["mode"] for answer in answers] == ["head", "tail", "lines", "grep"]


async def test_head_and_tail_are_the_first_and_last_lines(api: Api) -> None:
    entry = await api.put(LOG)
    head = await read(api, entry.id, "head", lines=3)
    tail = await read(api, entry.id, "tail", lines=3)

    assert head["content"] == "\n".join(LINES[:3]) + "\n"
    assert (head["start_line"], head["end_line"], head["total_lines"]) == (1, 3, 40_000)
    assert tail["content"] == "\n".join(LINES[-3:]) + "\n"
    assert (tail["start_line"], tail["end_line"]) == (39_998, 40_000)


async def test_random_line_ranges_are_exactly_those_of_sed(api: Api, tmp_path: Path) -> None:
    entry = await api.put(LOG)
    file = tmp_path / "log"
    file.write_bytes(LOG)
    dice = random.Random(3)
    for _ in range(15):
        start = dice.randrange(1, 40_000)
        end = start + dice.randrange(0, 500)
        answer = await read(api, entry.id, "lines", start=start, end=end)
        expected = subprocess.run(["sed", "-n", f"{start},{end}p", file], capture_output=True, check=True)

        assert answer["content"].encode() == expected.stdout


async def test_following_next_reads_everything_once(api: Api) -> None:
    entry = await api.put(LOG)
    content, query = "", {"start": "1"}
    while query:
        answer = await read(api, entry.id, "lines", **query)
        content += answer["content"]
        query = answer["next"]

    assert content.encode() == LOG


async def test_following_next_goes_through_one_endless_line(api: Api) -> None:
    line = "".join(chr(0x4E00 + number % 5000) for number in range(400_000)).encode()
    entry = await api.put(line)
    content, query = "", {"start": "1"}
    while query:
        answer = await read(api, entry.id, "lines", **query)
        content += answer["content"]
        query = answer["next"]

    assert content.encode() == line


@pytest.mark.parametrize("pattern", ["ERROR", "value=77$", "^03999", "info.*=5", "no such thing"])
async def test_grep_finds_what_grep_finds(api: Api, tmp_path: Path, pattern: str) -> None:
    entry = await api.put(LOG)
    file = tmp_path / "log"
    file.write_bytes(LOG)
    answer = await read(api, entry.id, "grep", pattern=pattern, max_matches=1000)
    expected = subprocess.run(["grep", "-nE", pattern, file], capture_output=True, text=True, check=False)

    found = [f"{match['line_number']}:{match['line']}" for match in answer["matches"]]
    assert found == expected.stdout.splitlines()[:1000]


async def test_following_the_cursor_finds_every_match_once(api: Api) -> None:
    entry = await api.put(LOG)
    for direction in ("false", "true"):
        found, query = [], {"pattern": "ERROR", "max_matches": "7", "from_end": direction}
        while query:
            answer = await read(api, entry.id, "grep", **query)
            found += [match["line_number"] for match in answer["matches"]]
            query = query | answer["next"] if answer["next"] else {}

        assert sorted(found) == [number + 1 for number in range(40_000) if number % 997 == 0]


async def test_plain_text_is_the_text_alone(api: Api) -> None:
    entry = await api.put(LOG)
    response = await api.get(f"/v1/captures/{entry.id}/tail?lines=2", headers={"Accept": "text/plain"})

    assert response.content_type == "text/plain"
    assert await response.text() == "\n".join(LINES[-2:]) + "\n"


async def test_escape_sequences_go_unless_they_are_asked_for(api: Api) -> None:
    entry = await api.put(b"\x1b[31mred\x1b[0m\n")

    assert (await read(api, entry.id, "head"))["content"] == "red\n"
    assert (await read(api, entry.id, "head", ansi="true"))["content"] == "\x1b[31mred\x1b[0m\n"


async def test_bytes_that_are_not_utf8_are_replaced_and_it_is_said(api: Api) -> None:
    entry = await api.put(b"caf\xe9\n")
    answer = await read(api, entry.id, "head")

    assert (answer["content"], answer["replaced"]) == ("caf\ufffd\n", True)


async def test_an_empty_capture_reads_as_nothing(api: Api) -> None:
    entry = await api.put(b"")
    for mode, query in (("head", {}), ("tail", {}), ("lines", {}), ("grep", {"pattern": "x"})):
        answer = await read(api, entry.id, mode, **query)

        assert (answer["content"], answer["total_lines"], answer["truncated"]) == ("", 0, False)


async def test_the_summary_tells_what_a_capture_is(api: Api) -> None:
    entry = await api.put(LOG)
    summary = await read(api, entry.id, "summary")

    assert (summary["total_lines"], summary["total_bytes"], summary["mode"]) == (40_000, len(LOG), "summary")
    assert summary["errors"]["count"] == len([line for line in LINES if "ERROR" in line])
    assert summary["first_lines"][0] == LINES[0]
    assert summary["last_lines"][-1] == LINES[-1]


async def test_all_reads_take_a_call_id(api: Api) -> None:
    await api.put(LOG, "toolu_1")

    assert (await read(api, "call:toolu_1", "tail", lines=1))["content"] == LINES[-1] + "\n"
    assert (await read(api, "call:toolu_1", "grep", pattern="039999"))["match_count"] == 1


async def test_next_is_the_whole_query_that_goes_on(api: Api) -> None:
    entry = await api.put(LOG)
    found = await read(api, entry.id, "grep", pattern="error", ignore_case="true", context=1, max_matches=3)
    following = await read(api, entry.id, "grep", **found["next"])
    head = await read(api, entry.id, "head", lines=5000, ansi="true")

    assert [match["line_number"] for match in following["matches"]] == [2992, 3989, 4986]
    assert head["next"] == {"ansi": "true", "start": str(head["end_line"] + 1), "end": "5000"}


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/plain", "text/plain"),
        ("text/plain, application/json;q=0.5", "text/plain"),
        ("application/json, text/plain;q=0.5", "application/json"),
        ("text/plain;q=0, application/json", "application/json"),
        ("*/*", "application/json"),
    ],
)
async def test_the_text_alone_comes_where_it_is_preferred(api: Api, accept: str, kind: str) -> None:
    entry = await api.put(LOG)
    response = await api.get(f"/v1/captures/{entry.id}/tail", headers={"Accept": accept})

    assert response.content_type == kind
