from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill_service.errors import CaptureDamaged
from overspill_service.store_format.frame_map import FrameMap, Span, pack, packed_with
from overspill_service.store_format.frames import FRAME_SIZE, Frame, compress, decode_frame

from tests.core.contents import CONTENTS, frames_of, log

frames = st.builds(
    lambda stored_size, size, newlines, utf8, checksum: Frame(
        stored_size, size, min(newlines, size), utf8, checksum
    ),
    st.integers(1, 50),
    st.integers(1, 30),
    st.integers(0, 5),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
segments = st.lists(st.lists(frames, max_size=6), max_size=5)


def spans(frame_map: FrameMap, frames: range, size: int = 10**9, *, is_reversed: bool = False) -> list[Span]:
    """All spans that these frames are read in, in the order in which they are read."""
    found = []
    while frames:
        span = frame_map.span(frames, size, is_reversed=is_reversed)
        found.append(span)
        count = len(span.frames)
        frames = frames[:-count] if is_reversed else frames[count:]
    return found


def flat(capture: list[list[Frame]]) -> list[Frame]:
    return [frame for segment in capture for frame in segment]


# Three segments, the middle one empty. Frame 1 is part of one long line.
SEGMENTS = [
    [Frame(10, 100, 5, utf8=True, checksum=0xFFFFFFFF), Frame(20, 200, 0, utf8=False, checksum=1)],
    [],
    [Frame(30, 300, 7, utf8=True, checksum=0xABCD)],
]
MAP = FrameMap.of(SEGMENTS)
EMPTY = FrameMap.of([[]])


@given(segments, st.lists(frames, max_size=6))
def test_a_packed_map_grows_by_a_segment(capture: list[list[Frame]], last: list[Frame]) -> None:
    assert packed_with(pack(capture), last) == pack([*capture, last])


def test_what_is_no_packed_map_does_not_grow() -> None:
    with pytest.raises(CaptureDamaged):
        packed_with(compress(b"no map"), [])


def test_a_map_adds_up_its_frames() -> None:
    assert (len(MAP), MAP.size, MAP.newlines) == (3, 600, 12)


def test_a_map_gives_its_frames_back() -> None:
    assert [MAP[frame] for frame in range(len(MAP))] == flat(SEGMENTS)


def test_frames_begin_where_those_before_them_end() -> None:
    assert [MAP.raw_start(frame) for frame in range(4)] == [0, 100, 300, 600]
    assert [MAP.first_newline(frame) for frame in range(4)] == [0, 5, 5, 12]


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, 1, range(1)),
        (0, 100, range(1)),
        (99, 101, range(2)),
        (100, 300, range(1, 2)),
        (299, 301, range(1, 3)),
        (0, 600, range(3)),
        (599, 600, range(2, 3)),
        (599, 10**18, range(2, 3)),
    ],
)
def test_bytes_lie_in_frames(start: int, stop: int, expected: range) -> None:
    assert MAP.frames_of_bytes(start, stop) == expected


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 0), (5, 5), (7, 5), (600, 601), (600, 600), (10**18, 10**19)]
)
def test_no_bytes_lie_in_no_frame(start: int, stop: int) -> None:
    assert not MAP.frames_of_bytes(start, stop)


def test_newlines_are_found_past_frames_that_have_none() -> None:
    assert [MAP.frame_at_newline(n) for n in (1, 5, 6, 12)] == [0, 0, 2, 2]


@pytest.mark.parametrize("n", [-1, 0, 13])
def test_a_newline_that_is_not_there_is_an_index_error(n: int) -> None:
    with pytest.raises(IndexError, match=f"newline {n} of 12"):
        MAP.frame_at_newline(n)


def test_every_touched_segment_gives_one_span() -> None:
    assert spans(MAP, range(3)) == [Span(0, 0, 30, range(2)), Span(2, 0, 30, range(2, 3))]


def test_a_frame_in_the_middle_is_one_small_span() -> None:
    assert spans(MAP, range(1, 2)) == [Span(0, 10, 20, range(1, 2))]


def test_no_frames_give_no_span() -> None:
    assert spans(MAP, range(0)) == spans(MAP, range(2, 2)) == []


def test_a_span_has_as_few_frames_as_make_up_its_size() -> None:
    assert [span.length for span in spans(MAP, range(3), 1)] == [10, 20, 30]
    assert [span.length for span in spans(MAP, range(3), 10)] == [10, 20, 30]
    assert [span.length for span in spans(MAP, range(3), 11)] == [30, 30]


def test_a_span_has_few_frames_however_small_they_are() -> None:
    many = FrameMap.of([[Frame(1, 1, 0, utf8=True, checksum=0)] * 1000])

    assert {len(span.frames) for span in spans(many, range(512))} == {256}
    assert {len(span.frames) for span in spans(many, range(512), is_reversed=True)} == {256}


def test_the_largest_of_some_frames_are_no_larger_than_all_of_them() -> None:
    assert (MAP.largest(range(3)), MAP.largest(range(1)), MAP.largest(range(0))) == (
        (30, 300),
        (10, 100),
        (0, 0),
    )


def test_an_empty_capture_has_an_empty_map() -> None:
    assert (len(EMPTY), EMPTY.size, EMPTY.newlines, spans(EMPTY, range(0))) == (0, 0, 0, [])
    assert not EMPTY.frames_of_bytes(0, 1)


@pytest.mark.parametrize("name", ["log", "CJK", "one line of 5 MB", "newlines only"])
def test_spans_cut_from_objects_decode_to_the_bytes_asked_for(name: str) -> None:
    content = CONTENTS[name]
    written = frames_of(content)
    half = len(written) // 2
    parts = [written[:half], written[half:]]
    objects = [b"".join(stored for _, stored in part) for part in parts]
    frame_map = FrameMap.of([[frame for frame, _ in part] for part in parts])
    start, stop = len(content) // 3, len(content) * 3 // 4
    wanted = frame_map.frames_of_bytes(start, stop)

    read = bytearray()
    for span in spans(frame_map, wanted):
        at = span.start
        for frame in map(frame_map.__getitem__, span.frames):
            read += decode_frame(objects[span.segment][at : at + frame.stored_size], frame)
            at += frame.stored_size
        assert at == span.start + span.length
    skip = start - frame_map.raw_start(wanted.start)
    assert read[skip : skip + stop - start] == content[start:stop]


@given(segments, st.integers(0, 200), st.integers(0, 200))
def test_frames_of_bytes_are_those_that_a_plain_loop_finds(
    capture: list[list[Frame]], start: int, stop: int
) -> None:
    frame_map = FrameMap.of(capture)
    owners = [number for number, frame in enumerate(flat(capture)) for _ in range(frame.size)]

    assert list(frame_map.frames_of_bytes(start, stop)) == sorted(set(owners[start:stop]))


@given(segments)
def test_newlines_are_where_a_plain_loop_finds_them(capture: list[list[Frame]]) -> None:
    frame_map = FrameMap.of(capture)
    owners = [number for number, frame in enumerate(flat(capture)) for _ in range(frame.newlines)]

    assert [frame_map.frame_at_newline(n + 1) for n in range(len(owners))] == owners


@given(segments, st.integers(1, 60) | st.just(10**9), st.booleans(), st.data())
def test_spans_cover_the_frames_once_and_in_order(
    capture: list[list[Frame]], size: int, is_reversed: bool, data: st.DataObject
) -> None:
    frame_map = FrameMap.of(capture)
    stop = data.draw(st.integers(0, len(frame_map)))
    wanted = range(data.draw(st.integers(0, stop)), stop)
    read = spans(frame_map, wanted, size, is_reversed=is_reversed)

    ordered = read[::-1] if is_reversed else read
    assert [frame for span in ordered for frame in span.frames] == list(wanted)
    for span in read:
        place = [(segment, frame) for segment, part in enumerate(capture) for frame in part]
        listed = [place[frame] for frame in span.frames]
        assert {segment for segment, _ in listed} == {span.segment}
        assert span.length == sum(frame.stored_size for _, frame in listed)
        last = span.frames[0] if is_reversed else span.frames[-1]
        assert span.length - flat(capture)[last].stored_size < size
        following = span.frames[0] - 1 if is_reversed else span.frames[-1] + 1
        assert span.length >= size or following not in wanted or place[following][0] != span.segment


# --- packing ---------------------------------------------------------------------------------------


@given(segments)
def test_a_packed_map_unpacks_to_itself(capture: list[list[Frame]]) -> None:
    packed = pack(capture)
    unpacked = FrameMap.unpack(packed)

    assert [unpacked[frame] for frame in range(len(unpacked))] == flat(capture)
    assert spans(unpacked, range(len(unpacked))) == spans(FrameMap.of(capture), range(len(unpacked)))


def test_the_map_of_200_mb_of_log_takes_under_4_kib() -> None:
    sample = [frame for frame, _ in frames_of(log(20 * FRAME_SIZE))][:20]
    varied = [
        msgspec.structs.replace(
            frame,
            stored_size=frame.stored_size + n * n * 7919 % 30_011,
            size=frame.size - n % 90,
            checksum=frame.checksum * (n + 1) % 2**32,
        )
        for n, frame in enumerate(sample * 20)
    ]

    assert len(pack([varied[start : start + 100] for start in range(0, 400, 100)])) < 4096


@given(st.integers(0, len(pack(SEGMENTS)) - 1), st.integers(1, 255))
def test_a_wrong_byte_in_a_packed_map_is_damage_or_changes_nothing(position: int, difference: int) -> None:
    wrong = bytearray(pack(SEGMENTS))
    wrong[position] ^= difference
    try:
        unpacked = FrameMap.unpack(bytes(wrong))
    except CaptureDamaged:
        return
    assert [unpacked[frame] for frame in range(len(unpacked))] == flat(SEGMENTS)


@given(st.binary(max_size=200))
def test_any_bytes_are_no_map(data: bytes) -> None:
    with pytest.raises(CaptureDamaged):
        FrameMap.unpack(data)


def test_a_map_cut_short_is_damaged() -> None:
    for length in range(len(pack(SEGMENTS))):
        with pytest.raises(CaptureDamaged):
            FrameMap.unpack(pack(SEGMENTS)[:length])


ROW = bytes([5, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 7, 7, 7])


@pytest.mark.parametrize(
    "lie",
    [
        {},
        [],
        [2],
        [2, [1]],
        [2, [1], "text"],
        [2, ["1"], ROW],
        [2, 1, ROW],
        [1, [1], ROW],
        [2, [2], ROW],
        [2, [-1], ROW],
        [2, [2, -1], ROW],
        [2, [1], ROW[:-1]],
        [2, [1], bytes(20)],
        [2, [1], b"\xff" * 20],
        [2, [1], bytes([5, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, 7, 7, 7, 7])],
        [2, [1], ROW, 1],
        [2, [2**63], ROW],
    ],
    ids=repr,
)
def test_a_map_that_cannot_be_is_damaged(lie: object) -> None:
    with pytest.raises(CaptureDamaged):
        FrameMap.unpack(compress(msgspec.msgpack.encode(lie)))


@given(st.binary(min_size=1, max_size=100))
def test_any_packed_bytes_raise_nothing_else(data: bytes) -> None:
    with suppress(CaptureDamaged):
        assert isinstance(FrameMap.unpack(compress(data)), FrameMap)
