"""Captures of terminals as text: what `\\r` has overwritten is left out, and kept in the bytes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from overspill.reading import lines, text
from overspill.wire import TERMINAL_LABEL

from tests.web.conftest import Api, path_of

PROGRESS = (
    b"build\n"
    + b"".join(b"\r\x1b[K%3d%% of 100 files" % share for share in range(101))
    + b"\r\n\r\x1b[32mready\x1b[0m\r\nold text\rnew\n"
)
FINAL = "build\n100% of 100 files\r\nready\r\nnew\n"
TERMINAL = {f"Overspill-Label-{TERMINAL_LABEL}": "build"}


async def read(api: Api, view: str, **headers: str) -> Any:
    path = path_of(PROGRESS)
    await api.send("PUT", path, data=PROGRESS, headers=headers)
    response = await api.send("GET", f"{path}/{view}")
    assert response.status == 200, await response.text()
    return await response.json()


@pytest.mark.parametrize("view", ["head?lines=9", "tail?lines=9", "lines?start=1&end=9"])
async def test_text_shows_what_a_terminal_showed_in_the_end(api: Api, view: str) -> None:
    answer = await read(api, view, **TERMINAL)

    assert (answer["content"], answer["rewritten"], answer["total_lines"]) == (FINAL, True, 4)


@pytest.mark.parametrize("view", ["head?lines=9", "tail?lines=9", "lines?start=1&end=9"])
async def test_with_ansi_nothing_is_left_out(api: Api, view: str) -> None:
    answer = await read(api, f"{view}&ansi=true", **TERMINAL)

    assert answer["content"].encode() == PROGRESS
    assert "rewritten" not in answer


async def test_what_a_terminal_has_shown_is_drawn_outside_of_the_event_loop(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing, decode = set[int](), text.decode

    def decoded(*args: Any, **options: Any) -> Any:
        drawing.add(threading.get_ident())
        return decode(*args, **options)

    monkeypatch.setattr(lines, "decode", decoded)
    await read(api, "tail?lines=9", **TERMINAL)

    assert drawing
    assert threading.get_ident() not in drawing


async def test_what_no_terminal_has_shown_is_text_as_it_is(api: Api) -> None:
    answer = await read(api, "tail?lines=1")

    assert answer["content"] == "old text\rnew\n"
    assert "rewritten" not in answer


async def test_the_bytes_stay(api: Api) -> None:
    await read(api, "head?lines=1", **TERMINAL)
    response = await api.send("GET", f"{path_of(PROGRESS)}/content")

    assert await response.read() == PROGRESS


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("pattern=ready&context=1", "2-100% of 100 files\n3:ready\n4-new\n"),
        ("pattern=old", "4:old text\n"),
        ("pattern=.&max_matches=2", "1:build\n2:  0% of 100 files\n"),
        ("pattern=new", "4:new\n"),
        ("pattern=%2042%25", "2: 42% of 100 files\n"),
        ("pattern=e&invert=true", "1:build\n"),
        ("pattern=build&invert=true&max_matches=1", "2:100% of 100 files\n"),
    ],
)
async def test_a_grep_shows_what_it_has_found_in_a_line(api: Api, query: str, content: str) -> None:
    answer = await read(api, f"grep?{query}", **TERMINAL)

    assert answer["content"] == content
    assert answer.get("rewritten", False) == (content != "1:build\n")


async def test_a_grep_with_ansi_shows_the_whole_line(api: Api) -> None:
    answer = await read(api, "grep?pattern=old&ansi=true", **TERMINAL)

    assert answer["content"] == "4:old text\rnew\n"


async def test_a_summary_shows_the_last_writings(api: Api) -> None:
    answer = await read(api, "summary", **TERMINAL)

    assert answer["last_lines"] == ["build", "100% of 100 files", "ready", "new"]
