from __future__ import annotations

import random
import shutil
import struct
import subprocess
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill_service.errors import CaptureDamaged
from overspill_service.store_format.frames import (
    FRAME_SIZE,
    STORED_SIZE_LIMIT,
    Frame,
    FrameWriter,
    accept_frame,
    check_stored,
    compress,
    decode_frame,
)

from tests.core.contents import CONTENTS, frames_of, log, windowed

every_content = pytest.mark.parametrize("content", CONTENTS, indirect=True)
SMALL = b"one\ntwo\n\xc3\xa9 three\n" * 20
[(FRAME, STORED)] = frames_of(SMALL)


def lying(**fields: object) -> Frame:
    return msgspec.structs.replace(FRAME, **fields)


def listing(data: bytes, **fields: object) -> Frame:
    """What an index would say of `data` that was taken for the frame `STORED`."""
    return lying(stored_size=len(data), checksum=int.from_bytes(data[-4:], "little"), **fields)


# --- writing ---------------------------------------------------------------------------------------


@every_content
def test_frames_decode_to_the_content(content: bytes) -> None:
    assert b"".join(decode_frame(stored, frame) for frame, stored in frames_of(content)) == content


@every_content
@pytest.mark.parametrize("step", [997, 65_536, FRAME_SIZE, 64 << 20])
def test_the_cuts_do_not_depend_on_how_the_content_is_dealt_out(content: bytes, step: int) -> None:
    assert frames_of(content, step) == frames_of(content)


def test_content_may_come_byte_by_byte() -> None:
    content = log(FRAME_SIZE + 999)

    assert frames_of(content, 1) == frames_of(content)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 700_000), max_size=8), st.integers(0, 60_000), st.integers(0, 5))
def test_any_mix_of_writes_gives_frames_within_bounds(steps: list[int], line: int, extra: int) -> None:
    writer = FrameWriter(level=1)
    piece = b"a" * line + b"\n" + "ü".encode() * extra
    written = [(piece * (step // len(piece) + 1))[:step] for step in steps]
    frames = [frame for data in written for frame in writer.write(data)] + writer.finish()

    assert all(0 < frame.size <= FRAME_SIZE for frame, _ in frames)
    assert b"".join(decode_frame(stored, frame) for frame, stored in frames) == b"".join(written)


@every_content
def test_a_frame_says_what_its_bytes_are(content: bytes) -> None:
    start = 0
    for frame, stored in frames_of(content):
        part = content[start : start + frame.size]
        start += frame.size

        assert (frame.stored_size, frame.newlines) == (len(stored), part.count(b"\n"))
        assert frame.utf8 == (part.decode(errors="ignore").encode() == part)


def test_a_frame_ends_behind_the_last_newline_of_its_second_half() -> None:
    content = b"a" * (FRAME_SIZE // 2) + b"\n" + b"b" * 100 + b"\n" + b"c" * FRAME_SIZE

    assert frames_of(content)[0][0].size == FRAME_SIZE // 2 + 102


def test_a_newline_in_the_first_half_is_no_place_to_cut() -> None:
    content = b"a" * (FRAME_SIZE // 2 - 1) + b"\n" + b"b" * FRAME_SIZE

    assert frames_of(content)[0][0].size == FRAME_SIZE


def test_content_of_exactly_one_frame_is_one_frame() -> None:
    assert [frame.size for frame, _ in frames_of(b"x" * FRAME_SIZE)] == [FRAME_SIZE]


@pytest.mark.parametrize("character", ["é", "溢", "🧵"])
@pytest.mark.parametrize("shift", range(4))
def test_a_hard_cut_leaves_characters_whole(character: str, shift: int) -> None:
    content = b"x" * shift + character.encode() * (FRAME_SIZE // 2)
    frames = [frame for frame, _ in frames_of(content)]

    assert all(frame.utf8 for frame in frames)
    assert frames[0].size > FRAME_SIZE - 4


@pytest.mark.parametrize("byte", [0x80, 0xC0, 0xFF])
def test_a_hard_cut_in_invalid_utf8_fills_the_frame(byte: int) -> None:
    assert frames_of(bytes([byte]) * (FRAME_SIZE + 1))[0][0].size == FRAME_SIZE


def test_no_content_gives_no_frame() -> None:
    assert frames_of(b"") == []


def test_noise_stays_under_the_limit_of_a_stored_frame() -> None:
    assert max(frame.stored_size for frame, _ in frames_of(CONTENTS["noise"])) <= STORED_SIZE_LIMIT


def test_the_level_decides_how_hard_it_compresses() -> None:
    content = log(FRAME_SIZE)
    [fast, *_], [small, *_] = FrameWriter(1).write(content * 2), FrameWriter(12).write(content * 2)

    assert small[0].stored_size < fast[0].stored_size


def test_a_writer_holds_less_than_a_few_frames() -> None:
    piece = log(300_000)
    writer = FrameWriter(level=1)
    tracemalloc.start()
    for _ in range(100):
        writer.write(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 * FRAME_SIZE


def test_writers_in_many_threads_do_not_disturb_each_other() -> None:
    contents = [log(2 * FRAME_SIZE, seed) for seed in range(4)] * 4
    with ThreadPoolExecutor(8) as threads:
        frames = list(threads.map(frames_of, contents))
        decoded = list(
            threads.map(lambda each: [decode_frame(stored, frame) for frame, stored in each], frames)
        )

    assert [b"".join(parts) for parts in decoded] == contents


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the zstd program is not on the PATH")
@every_content
def test_zstd_decodes_every_frame_by_itself(content: bytes) -> None:
    for frame, stored in frames_of(content):
        decoded = subprocess.run(["zstd", "-dc"], input=stored, capture_output=True, check=True).stdout

        assert decoded == decode_frame(stored, frame)


# --- reading ---------------------------------------------------------------------------------------


def test_a_frame_decodes_from_a_view() -> None:
    assert decode_frame(memoryview(b"before" + STORED)[6:], FRAME) == SMALL


@given(st.integers(0, len(STORED) - 1), st.integers(1, 255))
def test_a_wrong_byte_is_damage_or_changes_nothing(position: int, difference: int) -> None:
    wrong = bytearray(STORED)
    wrong[position] ^= difference
    try:
        content = decode_frame(bytes(wrong), FRAME)
    except CaptureDamaged:
        return
    assert content == SMALL


@given(st.binary(min_size=1, max_size=300))
def test_any_bytes_are_a_frame_or_damaged(data: bytes) -> None:
    with pytest.raises(CaptureDamaged):
        decode_frame(data, listing(data))


@pytest.mark.parametrize("length", range(len(STORED)))
def test_a_truncated_frame_is_damaged(length: int) -> None:
    with pytest.raises(CaptureDamaged):
        decode_frame(STORED[:length], listing(STORED[:length]))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (lying(stored_size=len(STORED) + 1), "stored bytes came with"),
        (lying(size=len(SMALL) + 1), "where its index says"),
        (lying(checksum=FRAME.checksum ^ 1), "checksum .* where its index says"),
        (lying(size=len(SMALL) - 1), "says that it holds"),
        (lying(newlines=FRAME.newlines + 1), "newlines where its index says"),
    ],
)
def test_an_index_that_lies_about_a_frame_is_found_out(frame: Frame, message: str) -> None:
    with pytest.raises(CaptureDamaged, match=message):
        decode_frame(STORED, frame)


def with_dictionary(content: bytes) -> bytes:
    dictionary = zstandard.train_dictionary(4096, [b"line %d of some text\n" % n * 9 for n in range(2000)])
    return zstandard.ZstdCompressor(write_checksum=True, dict_data=dictionary).compress(content)


def unsized(content: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return compressor.compress(content) + compressor.flush()


@pytest.mark.parametrize(
    "data",
    [
        STORED + STORED,
        STORED + b"\0",
        b"\0" + STORED,
        STORED + struct.pack("<II", 0x184D2A50, 0),
        struct.pack("<II", 0x184D2A50, len(SMALL)) + SMALL,
        zstandard.ZstdCompressor(write_checksum=False).compress(SMALL),
        unsized(SMALL),
        zstandard.ZstdCompressor(write_checksum=True).compress(b""),
        windowed(STORED, len(SMALL), 21),
        with_dictionary(SMALL),
    ],
    ids=[
        "two frames",
        "a byte behind",
        "a byte before",
        "a skippable frame behind",
        "a skippable frame",
        "no checksum",
        "no content size",
        "an empty frame",
        "a window over 1 MiB",
        "a dictionary",
    ],
)
def test_anything_but_one_frame_with_size_and_checksum_is_damaged(data: bytes) -> None:
    with pytest.raises(CaptureDamaged):
        decode_frame(data, listing(data))


def test_a_frame_of_another_content_is_known_without_decoding_it() -> None:
    [(_, other)] = frames_of(SMALL[::-1])
    with pytest.raises(CaptureDamaged, match="checksum"):
        check_stored(other, lying(stored_size=len(other)))


FAR = random.Random(3).randbytes(400_000)
"""Its second half of a frame, if it is doubled, refers 400,000 bytes back."""


@pytest.mark.parametrize(
    "data",
    [
        windowed(compress(FAR[:500]), 500, 21),
        windowed(compress(FAR[:500]), 500, 28),
        windowed(compress(FAR + FAR[:100_000]), 500_000, 17),
        zstandard.ZstdCompressor(write_checksum=False).compress(SMALL),
        unsized(SMALL),
        with_dictionary(SMALL),
        STORED + STORED,
        b"",
    ],
    ids=[
        "a window of 2 MiB",
        "a window of 256 MiB",
        "a window smaller than its content",
        "no checksum",
        "no content size",
        "a dictionary",
        "two frames",
        "nothing",
    ],
)
def test_a_frame_that_a_decoder_might_refuse_is_not_stored_as_it_is(data: bytes) -> None:
    assert accept_frame(data) is None


@pytest.mark.parametrize("level", [3, 9, 19, 22])
def test_a_whole_frame_is_stored_as_it_is_at_these_levels(level: int) -> None:
    content = log(FRAME_SIZE)[:FRAME_SIZE]
    data = zstandard.ZstdCompressor(level, write_checksum=True).compress(content)
    adopted = accept_frame(data)

    assert adopted is not None
    assert adopted[1] == decode_frame(data, adopted[0]) == content


def test_a_frame_of_nothing_is_never_one_of_ours() -> None:
    data = zstandard.ZstdCompressor(write_checksum=True).compress(b"") + b"garbage"

    with pytest.raises(CaptureDamaged):
        decode_frame(data, listing(data, size=0, newlines=0))


def test_a_frame_that_claims_a_gigabyte_costs_no_memory() -> None:
    header = zstandard.ZstdCompressor(write_checksum=True).compressobj(size=1 << 30)
    data = header.compress(bytes(1 << 20)) + header.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    tracemalloc.start()
    with pytest.raises(CaptureDamaged, match="1073741824 bytes"):
        decode_frame(data, listing(data, size=1 << 30))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1 << 20
