import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from overspill.guard.band import Band
from overspill.guard.decisions import Earlier
from overspill.guard.policy import Policy
from overspill.guard.spill import Spill
from overspill.previews.excerpt import Excerpt
from overspill.previews.notice_facts import StoreResult
from overspill.previews.remembered import Previews
from overspill.reading.chunks import Extent
from overspill.shapes import data_view
from overspill.shapes.examination import examine
from overspill.spools.store_request import Origin
from overspill.text import hashing, measure
from overspill.text.body import FileBody
from overspill.text.limits import Limits
from overspill.wire import Outcome, capture_id

ORIGIN = Origin("run_command", "c1", "s1")
LOST = StoreResult(outcome=Outcome.TRUNCATED, reason="down")


def spill(text: str, policy: Policy | None = None, *, identify: bool = True, why: str = "") -> Spill:
    content = examine(text)
    assert content is not None
    return Spill.of(content, policy or Policy(), ORIGIN, identify=identify, why=why)


def test_a_spill_is_identified_by_session_call_and_content() -> None:
    found = spill("é\n" * 50_000)
    digest = hashlib.sha256("é\n".encode() * 50_000).digest()

    assert (found.body, found.size, found.lines) == ("é\n".encode() * 50_000, 150_000, 50_000)
    assert (found.sha256, found.id) == (digest, capture_id("s1", "c1", digest))


def test_a_spill_with_nowhere_to_go_is_neither_encoded_nor_hashed() -> None:
    text = "é\n" * 50_000
    found = spill(text, identify=False)

    assert found.body is text
    assert (found.size, found.lines, found.id, found.sha256) == (150_000, 50_000, "", b"")


def test_a_very_long_text_is_encoded_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_IN_MEMORY_CHARS", 2 * 1024 * 1024)
    text = "0123456789abcdefghijklmnopqrstu\n" * (64 * 1024) + "é"
    found = spill(text)

    assert isinstance(found.body, FileBody)
    assert (found.size, found.lines) == (measure.size(text), measure.count_lines(text))
    assert found.sha256 == hashlib.sha256(text.encode()).digest()
    assert found.body.read(found.size - 2, 2) == "é".encode()


def test_a_band_says_how_much_of_its_outputs_is_shown() -> None:
    lines = "".join(f"{number} {hashlib.sha256(bytes(number)).hexdigest()}\n" for number in range(2_000))
    policy = Policy(bands=(Band(above=1_000, preview_bytes=300),))
    kept = StoreResult(outcome=Outcome.SPOOLED)

    assert len(spill(lines, policy).notice(kept).preview.encode()) <= 300
    assert 300 < len(spill(lines).notice(kept).preview.encode()) <= 2_048


def test_what_is_shown_keeps_to_a_limit_in_tokens_too() -> None:
    policy = Policy(max_tokens=100)

    assert len(spill("word " * 5_000, policy).notice(LOST).preview) <= 240


def test_the_sentence_about_an_identical_output_can_be_turned_off() -> None:
    found, kept = spill("x" * 60_000), StoreResult(outcome=Outcome.SPOOLED)
    quiet = replace(found, policy=Policy(identical=False))

    assert "byte for byte an earlier output" in str(found.notice(kept, earlier=Earlier("cap_a", 0)))
    assert "byte for byte" not in str(quiet.notice(kept, earlier=Earlier("cap_a", 0)))


def test_plain_data_is_measured_at_once_as_it_is_by_its_parts() -> None:
    class OwnDict(dict[str, Any]):
        pass

    rows = [{"id": n, "name": 'é\n"x', "share": 0.5, "is_open": True, "more": None} for n in range(50)]

    assert data_view.view({"rows": rows, "": ["x" * 300]}) == data_view.view(
        OwnDict({"rows": rows, "": ["x" * 300]})
    )


def test_the_data_of_a_picture_is_not_measured_with_plain_data() -> None:
    block = {"type": "image", "data": "A" * 1_000, "name": "x" * 10}

    assert data_view.view([block]).frame == '[{"type":"image","data":"","name":"xxxxxxxxxx"}]'


def test_a_preview_is_made_once_however_often_a_notice_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(found: Excerpt, *_: Any, **__: Any) -> str:
        made.append(found.text)
        return "text"

    monkeypatch.setattr("overspill.previews.remembered.preview_of", make)
    previews, extent = Previews(), Extent(3, 1)

    for body in ("one", "one", "another"):
        previews.preview(body, "text/plain", Limits(100), extent, has_failed=False)

    assert made == ["one", "another"]


def test_an_excerpt_is_taken_once_until_it_is_released(tmp_path: Path) -> None:
    read: list[int] = []

    class CountedBody(FileBody):
        def read(self, offset: int, length: int) -> bytes:
            read.append(length)
            return super().read(offset, length)

    path, data = tmp_path / "output", b"a line\n" * 1_000
    path.write_bytes(data)
    body = CountedBody(path, size=len(data), lines=1_000, sha256=b"")
    previews, extent = Previews(), Extent(len(data), 1_000)

    first = previews.excerpt(body, extent, 0)

    assert first is not None
    assert previews.excerpt(body, extent, 1_000) is first
    assert len(read) == 1
    previews.release()
    assert previews.excerpt(body, extent, 0) == first
    assert len(read) == 2
