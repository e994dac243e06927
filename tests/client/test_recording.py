"""The recording of a command's output: all of it in memory or in a file, or its two ends."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import wire
from overspill.agent_tools.masked_recording import MaskedRecording
from overspill.agent_tools.recording import Recording
from overspill.text import encoding, quantities
from overspill.text.body import FileBody

if TYPE_CHECKING:
    from pathlib import Path

OUTPUT = bytes(range(256)) * 20


def recorded(pieces: list[bytes], recording: Recording) -> Recording:
    for piece in pieces:
        recording.take(piece)
    return recording


def all_of(recording: Recording) -> bytes:
    return b"".join(recording.pieces())


@given(st.lists(st.integers(min_value=0, max_value=len(OUTPUT)), max_size=12))
def test_in_whatever_pieces_it_comes_all_of_it_is_kept(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(OUTPUT)]
    pieces = [OUTPUT[start:stop] for start, stop in pairwise(places)]
    with Recording(in_memory=1000) as filed, Recording(in_memory=len(OUTPUT)) as held:
        recorded(pieces, filed)
        recorded(pieces, held)

        assert (all_of(filed), filed.size, filed.is_filed, filed.is_short) == (
            OUTPUT,
            len(OUTPUT),
            True,
            False,
        )
        assert (all_of(held), held.size, held.is_filed, held.is_short) == (OUTPUT, len(OUTPUT), False, True)
        assert (filed.missing, held.missing) == ("", "")


def test_what_is_more_than_may_be_kept_has_its_two_ends_and_the_gap_between() -> None:
    with Recording(in_memory=500, start=1000, last=500, max_bytes=2000) as recording:
        recorded([OUTPUT[at : at + 100] for at in range(0, len(OUTPUT), 100)], recording)
        recording._checked_at = -(2**30)  # as after as many bytes as pass between two looks
        recorded([b"the end"] * 100, recording)
        data = all_of(recording)

    gap = re.search(
        rb"\n\(([\d,]+) bytes of the output are missing here: no more than 2.0 KB are kept\)\n", data
    )
    assert gap is not None
    assert data[: gap.start()] == OUTPUT[:1000]
    assert data[gap.end() :] == (OUTPUT + b"the end" * 100)[-500:]
    assert int(gap[1].replace(b",", b"")) == len(OUTPUT) + 700 - 1500


def test_a_disk_that_is_nearly_full_is_left_to_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill.agent_tools.recording._free", lambda _: 1024)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Recording(in_memory=10, start=10, last=5) as recording:
        recorded([b"0123456789abcdefghij"], recording)

        assert "less than 67.1 MB are free" in recording.missing
        assert all_of(recording).startswith(b"0123456789\n(5 bytes of the output are missing here: ")
        assert all_of(recording).endswith(b")\nfghij")
        assert list(tmp_path.iterdir()) == []


def test_without_a_folder_for_temporary_files_the_ends_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    with Recording(in_memory=10, start=10, last=5) as recording:
        recorded([b"0123456789", b"abcdefghij"], recording)

    assert recording.missing == "No usable temporary directory found"
    assert all_of(recording).endswith(b")\nfghij")


def test_where_a_copy_has_no_room_the_end_is_read_back_from_the_file() -> None:
    with Recording(in_memory=10, start=10, last=5) as recording:
        recorded([b"0123456789", b"abcdefghij"], recording)
        before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0  # noqa: PTH110, PTH208
        recording.give_up_middle("full")
        after = len(os.listdir("/proc/self/fd")) if before else -1  # noqa: PTH208

    assert all_of(recording) == b"0123456789\n(5 bytes of the output are missing here: full)\nfghij"
    assert after == before - 1


@given(
    st.lists(st.integers(min_value=0, max_value=len(OUTPUT)), max_size=12),
    st.integers(min_value=0, max_value=12),
    st.integers(min_value=0, max_value=2 * len(OUTPUT)),
)
def test_wherever_the_disk_gives_out_the_two_ends_are_exact_and_the_gap_is_counted(
    cuts: list[int], pieces_before: int, start: int
) -> None:
    places = [0, *sorted(cuts), len(OUTPUT)]
    pieces = [OUTPUT[start:stop] for start, stop in pairwise(places)]
    with Recording(in_memory=100, start=max(100, start), last=300) as recording:
        recorded(pieces[:pieces_before], recording)
        recording.give_up_middle("full")
        recorded(pieces[pieces_before:], recording)
        data, gap = all_of(recording), recording.gap

    kept = max(100, start)
    mark = f"\n({quantities.plural(gap, 'byte')} of the output are missing here: full)\n".encode()
    assert data == (OUTPUT[:kept] + mark + OUTPUT[-300:] if gap else OUTPUT)
    assert gap == max(0, len(OUTPUT) - kept - 300)
    assert recording.missing == ("full" if gap else "")


def stored_entry(data: bytes) -> wire.Entry:
    """What the service says of an output that it has."""
    now = datetime.now(UTC)
    return wire.Entry(
        id="cap_x",
        state=wire.State.COMPLETE,
        size=len(data),
        stored_size=len(data),
        lines=data.count(b"\n") + 1,
        sha256=hashlib.sha256(data).hexdigest(),
        content_type="",
        kind="log",
        tool="",
        session="",
        call_id="",
        status="",
        labels={},
        created=now,
        expires=now,
    )


@pytest.mark.parametrize("is_stored", [True, False])
def test_what_has_no_secrets_is_kept_once(is_stored: bool) -> None:
    with Recording(in_memory=100) as recording:
        copy = MaskedRecording(recording)
        for start in range(0, len(OUTPUT), 700):
            recording.take(OUTPUT[start : start + 700])
            copy.keep(OUTPUT[start : start + 700], is_masked=False)
        body = copy.finish(stored_entry(OUTPUT) if is_stored else None)

        assert isinstance(body, FileBody)
        assert recording._file is not None
        assert body.path.stat().st_ino == os.fstat(recording._file.fileno()).st_ino
        assert (b"".join(body.pieces()), body.size, body.lines, body.sha256) == (
            OUTPUT,
            len(OUTPUT),
            OUTPUT.count(b"\n") + 1,
            hashlib.sha256(OUTPUT).digest(),
        )
    body.close()
    assert not body.path.exists()


@pytest.mark.parametrize("before", [0, 1, 3000, 5_000_000])
def test_from_the_first_secret_on_there_are_two(before: int) -> None:
    plain = b"nothing secret\n" * (before // 15)
    with Recording(in_memory=100) as recording:
        copy = MaskedRecording(recording)
        recording.take(plain + b"a secret\n" + OUTPUT)
        copy.keep(plain, is_masked=False)
        copy.keep(b"a ******\n", is_masked=True)
        copy.keep(OUTPUT, is_masked=True)
        body = copy.finish(None)

        assert body is not None
        assert encoding.part(body, 0, 10**9) == plain + b"a ******\n" + OUTPUT
        assert all_of(recording) == plain + b"a secret\n" + OUTPUT


def test_a_file_without_a_name_is_read_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no such thing here")

    monkeypatch.setattr(os, "link", refuse)
    with Recording(in_memory=100) as recording:
        copy = MaskedRecording(recording)
        recording.take(OUTPUT)
        copy.keep(OUTPUT, is_masked=False)

        assert copy.finish(stored_entry(OUTPUT)) is None


def test_what_is_gone_when_the_first_secret_comes_is_missing() -> None:
    with Recording(in_memory=100) as recording:
        copy = MaskedRecording(recording)
        recording.take(OUTPUT)
        copy.keep(OUTPUT, is_masked=False)
    copy.keep(b"******", is_masked=True)

    assert copy.missing
    assert copy.finish(None) is None
