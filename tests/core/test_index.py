from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from overspill_service.errors import CaptureDamaged
from overspill_service.store_format import seek_table
from overspill_service.store_format.frames import FRAME_SIZE, Frame
from overspill_service.store_format.index import (
    HEADER,
    MAX_FRAMES,
    MAX_INDEX_SIZE,
    MAX_OFFSET,
    TAIL_SIZE,
    Index,
    TailTooShort,
    parse,
    trailer,
)
from overspill_service.store_format.seek_table import NO_CONTENT

from tests.core.contents import CONTENTS, log, store

if TYPE_CHECKING:
    from pathlib import Path

every_content = pytest.mark.parametrize("content", CONTENTS, indirect=True)
zstd_program = pytest.mark.skipif(shutil.which("zstd") is None, reason="the zstd program is not on the PATH")

frames = st.builds(
    lambda stored_size, size, share, utf8, checksum: Frame(
        stored_size, size, int(size * share), utf8, checksum
    ),
    st.integers(1, FRAME_SIZE),
    st.integers(1, FRAME_SIZE),
    st.floats(0, 1),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
indexes = st.builds(
    lambda offset, share, **fields: Index(first_offset=offset, first_newline=int(offset * share), **fields),
    st.integers(0, 2**50),
    st.floats(0, 1),
    upload=st.text(max_size=20),
    number=st.integers(0, 99_999),
    last=st.booleans(),
    frames=st.lists(frames, max_size=6),
    entry=st.binary(max_size=100),
)
INDEX, OBJECT = store(log(3 * FRAME_SIZE))
TRAILER = trailer(INDEX)


def size_of_object(index: Index) -> int:
    return sum(frame.stored_size for frame in index.frames) + len(trailer(index))


# --- round trips -----------------------------------------------------------------------------------


@given(indexes)
def test_a_trailer_parses_to_its_index(index: Index) -> None:
    assert parse(trailer(index), size_of_object(index)) == index


@every_content
def test_an_object_parses_from_its_tail(content: bytes) -> None:
    index, stored = store(content)

    assert parse(stored[-TAIL_SIZE:], len(stored)) == index


@every_content
def test_an_index_adds_up_to_the_content_and_the_object(content: bytes) -> None:
    index, stored = store(content)

    assert (index.size, index.newlines, size_of_object(index)) == (
        len(content),
        content.count(b"\n"),
        len(stored),
    )


def test_the_size_of_the_object_may_be_unknown() -> None:
    assert parse(OBJECT) == INDEX


def test_an_index_and_its_seek_table_take_few_bytes() -> None:
    frame = Frame(100_000, FRAME_SIZE, 5_000, utf8=True, checksum=7)

    one, many = (len(trailer(msgspec.structs.replace(INDEX, frames=[frame] * n))) for n in (1, 1001))

    assert one < 250
    assert (many - one) / 1000 <= 20


# --- outside readers -------------------------------------------------------------------------------


@zstd_program
@every_content
def test_zstd_decodes_a_whole_object(content: bytes) -> None:
    _, stored = store(content)

    assert subprocess.run(["zstd", "-dc"], input=stored, capture_output=True, check=True).stdout == content


@zstd_program
@every_content
def test_zstd_finds_an_object_whole_and_lists_its_size(content: bytes, tmp_path: Path) -> None:
    index, stored = store(content)
    file = tmp_path / "object.zst"
    file.write_bytes(stored)
    subprocess.run(["zstd", "-t", file], check=True, capture_output=True)
    listed_frames = subprocess.run(["zstd", "-lv", file], check=True, capture_output=True, text=True).stdout

    assert re.search(r"# Skippable Frames: 2\n", listed_frames)
    assert int(re.search(r"# Zstandard Frames: (\d+)", listed_frames)[1]) == len(index.frames)  # type: ignore[index]
    assert re.search(rf"Decompressed Size: .*\({len(content)} B\)", listed_frames)


@zstd_program
@every_content
def test_the_seek_table_has_the_checksums_that_zstd_computes(content: bytes) -> None:
    index, _ = store(content)
    start = 0
    for frame in index.frames:
        part = content[start : (start := start + frame.size)]
        made = subprocess.run(["zstd", "-c", "--check"], input=part, capture_output=True, check=True).stdout

        assert frame.checksum == int.from_bytes(made[-4:], "little")


@every_content
def test_pyzstd_reads_and_seeks_in_an_object(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "object.zst"
    file.write_bytes(store(content)[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pyzstd's advice to use the standard library
        from pyzstd import SeekableZstdFile  # noqa: PLC0415  (importing it warns)

        with SeekableZstdFile(file, "rb") as reader:
            assert reader.read() == content
            for start in (len(content) * 2 // 3, len(content) // 3, 0):
                reader.seek(start)
                assert reader.read(1000) == content[start : start + 1000]


@every_content
def test_indexed_zstd_reads_and_seeks_in_an_object(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "object.zst"
    file.write_bytes(store(content)[1])
    indexed_zstd = pytest.importorskip("indexed_zstd", reason="indexed_zstd has no wheel for this Python")
    reader = indexed_zstd.IndexedZstdFile(str(file))
    for start in (len(content) * 2 // 3, len(content) // 3, 0):
        reader.seek(start)

        assert reader.read(1000) == content[start : start + 1000]

    reader.close()


# --- short tails -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 20, 64])
def test_a_tail_without_the_end_of_the_table_asks_for_enough_to_go_on(length: int) -> None:
    with pytest.raises(TailTooShort) as more:
        parse(OBJECT[len(OBJECT) - length :])

    assert length < more.value.length <= len(TRAILER)


@pytest.mark.parametrize("missing", [1, 20, len(TRAILER) - 65])
def test_a_short_tail_asks_for_exactly_the_trailer(missing: int) -> None:
    with pytest.raises(TailTooShort) as more:
        parse(TRAILER[missing:], len(OBJECT))

    assert more.value.length == len(TRAILER)


def test_a_trailer_over_the_first_read_is_found_by_the_second() -> None:
    index = msgspec.structs.replace(INDEX, frames=INDEX.frames * 3000)
    stored = bytes(100_000) + trailer(index)
    with pytest.raises(TailTooShort) as more:
        parse(stored[-TAIL_SIZE:])

    assert parse(stored[-more.value.length :]) == index


def test_an_object_shorter_than_its_trailer_is_damaged() -> None:
    with pytest.raises(CaptureDamaged, match="too short"):
        parse(TRAILER[5:], len(TRAILER) - 5)


# --- damage ----------------------------------------------------------------------------------------


@given(st.integers(0, len(TRAILER) - 1), st.integers(1, 255))
@example(len(TRAILER) - 6, 0x80)
def test_a_wrong_byte_in_the_trailer_is_never_believed(position: int, difference: int) -> None:
    wrong = bytearray(OBJECT)
    wrong[len(OBJECT) - len(TRAILER) + position] ^= difference

    with pytest.raises((CaptureDamaged, TailTooShort)):
        parse(bytes(wrong))

    with pytest.raises(CaptureDamaged):
        parse(bytes(wrong), len(wrong))


@given(st.integers(1, len(OBJECT)))
def test_an_object_cut_short_is_never_believed(missing: int) -> None:
    cut = OBJECT[: len(OBJECT) - missing]

    with pytest.raises((CaptureDamaged, TailTooShort)):
        parse(cut)

    with pytest.raises(CaptureDamaged):
        parse(cut, len(cut))


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_bytes_added_to_an_object_are_never_believed(before: bytes, behind: bytes) -> None:
    if before:
        with pytest.raises(CaptureDamaged):
            parse(before + OBJECT, len(before + OBJECT))
    if behind:
        with pytest.raises((CaptureDamaged, TailTooShort)):
            parse(OBJECT + behind, len(OBJECT + behind))


@given(st.binary(max_size=300))
def test_any_bytes_are_damage_or_too_short(tail: bytes) -> None:
    with pytest.raises((CaptureDamaged, TailTooShort)):
        parse(tail)


# --- lies under a right digest ---------------------------------------------------------------------


def sealed(
    body: bytes, entries: list[seek_table.TableEntry] | None = None, header: bytes = b"OVSI\2\0\0\0"
) -> bytes:
    """A trailer of this body with its digest computed anew, as its reader would."""
    data = entries or [(frame.stored_size, frame.size, frame.checksum) for frame in INDEX.frames]
    table = seek_table.encode([*data, (HEADER.size + len(body), 0, seek_table.NO_CONTENT)])
    digest = hashlib.sha256(body + table).digest()[:16]
    return (
        (0x184D2A5D).to_bytes(4, "little")
        + (24 + len(body)).to_bytes(4, "little")
        + header
        + digest
        + body
        + table
    )


def body(**fields: object) -> bytes:
    """A body as a writer of our version packs it, with some fields replaced; None leaves one out."""
    marks = b"".join(frame.newlines.to_bytes(4, "little") for frame in INDEX.frames)
    facts = {
        "upload": "abcdefghijklmnop",
        "number": 0,
        "last": True,
        "first_offset": 0,
        "first_newline": 0,
        "newlines": marks,
        "entry": INDEX.entry,
    }
    return msgspec.msgpack.encode({k: v for k, v in {**facts, **fields}.items() if v is not None})


def test_a_trailer_sealed_by_hand_is_the_same_bytes() -> None:
    assert sealed(body()) == TRAILER


@pytest.mark.parametrize(
    "lie",
    [
        {"number": -1},
        {"number": "0"},
        {"last": 1},
        {"last": None},
        {"entry": None},
        {"entry": "text"},
        {"newlines": b""},
        {"newlines": bytes(4 * len(INDEX.frames) + 1)},
        {"newlines": bytes(4 * len(INDEX.frames) + 4)},
        {"newlines": b"\xff\xff\xff\x7f" * len(INDEX.frames)},
        {"first_offset": -1},
        {"first_offset": MAX_OFFSET},
        {"first_offset": 2**64 - 1},
        {"first_newline": -1},
        {"first_newline": 1},
        {"surprise": 1},
    ],
    ids=repr,
)
def test_a_body_that_cannot_be_is_damage(lie: dict[str, object]) -> None:
    with pytest.raises(CaptureDamaged):
        parse(sealed(body(**lie)))


@pytest.mark.parametrize(
    "garbage", [b"\xc1", b"\x80", b"\x90", b"\x81\xa1\xff\x00", b"\x91" * 10_000, body() + b"\0"]
)
def test_a_body_that_is_no_index_is_damage(garbage: bytes) -> None:
    with pytest.raises(CaptureDamaged):
        parse(sealed(garbage))


@given(st.integers(0, len(body()) - 1), st.integers(0, 255))
def test_a_wrong_byte_under_a_right_digest_raises_nothing_else(position: int, value: int) -> None:
    wrong = bytearray(body())
    wrong[position] = value
    with suppress(CaptureDamaged):
        assert isinstance(parse(sealed(bytes(wrong))), Index)


@pytest.mark.parametrize("entry", [(0, 5), (5, 0), (2**32 - 1, 5), (5, FRAME_SIZE + 1)])
def test_a_frame_of_impossible_size_is_damage(entry: tuple[int, int]) -> None:
    with pytest.raises(CaptureDamaged, match="frame 1 cannot be: "):
        parse(sealed(body(newlines=bytes(8)), [(5, 5, 0), (*entry, 0)]))


def test_a_seek_table_that_does_not_add_up_to_the_object_is_damage() -> None:
    with pytest.raises(CaptureDamaged, match="adds up"):
        parse(OBJECT, len(OBJECT) + 1)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"OVSI\1\0\0\0", "version 1; this service reads 2"),
        (b"OVSX\2\0\0\0", "no index frame"),
        (b"OVSI\2\0\1\0", "no index frame"),
    ],
)
def test_another_header_is_refused_by_name(header: bytes, message: str) -> None:
    with pytest.raises(CaptureDamaged, match=message):
        parse(sealed(body(), header=header))


@pytest.mark.parametrize(
    ("count", "last"),
    [
        (0, (100, 0, NO_CONTENT)),
        (MAX_FRAMES + 2, (100, 0, NO_CONTENT)),
        (2**32 - 1, (100, 0, NO_CONTENT)),
        (2, (100, 7, NO_CONTENT)),
        (2, (100, 0, 0)),
        (2, (0, 0, NO_CONTENT)),
        (2, (HEADER.size, 0, NO_CONTENT)),
        (2, (MAX_INDEX_SIZE + 1, 0, NO_CONTENT)),
        (2, (2**32 - 1, 0, NO_CONTENT)),
    ],
)
def test_an_absurd_seek_table_is_damage_and_asks_for_nothing(count: int, last: seek_table.TableEntry) -> None:
    footer = seek_table.FOOTER.pack(count, seek_table.DESCRIPTOR, seek_table.SEEKABLE_MAGIC)
    footer = seek_table.ENTRY.pack(*last) + footer

    with pytest.raises(CaptureDamaged, match="is not ours"):
        parse(bytes(1000) + footer)


def test_another_kind_of_seekable_file_is_damage() -> None:
    with pytest.raises(CaptureDamaged):
        parse(bytes(1000) + seek_table.encode([(1000, 2000, 0)]))


def test_an_index_of_too_many_frames_is_not_written() -> None:
    with pytest.raises(ValueError, match="too large"):
        trailer(msgspec.structs.replace(INDEX, frames=INDEX.frames[:1] * (MAX_FRAMES + 1)))


def test_an_entry_too_large_for_an_index_is_not_written() -> None:
    with pytest.raises(ValueError, match="too large"):
        trailer(msgspec.structs.replace(INDEX, entry=bytes(MAX_INDEX_SIZE)))
