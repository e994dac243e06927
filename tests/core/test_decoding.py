from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
import tracemalloc
import zlib
from contextlib import suppress
from unittest.mock import patch

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from overspill_service.errors import DamagedEncoding, UnsupportedEncoding
from overspill_service.store_format import decoding
from overspill_service.store_format.decoding import PIECE_SIZE, WINDOW_LOG, BodyDecoder

from tests.core.contents import CONTENTS, log, store

every_content = pytest.mark.parametrize("content", CONTENTS, indirect=True)
zstd_program = pytest.mark.skipif(shutil.which("zstd") is None, reason="the zstd program is not on the PATH")
LOG = log(300_000)
SKIPPABLE = struct.pack("<II", 0x184D2A53, 5) + b"aside"


def zstd_stream(content: bytes, level: int = 3) -> bytes:
    """One frame that says nothing of its content's size."""
    stream = zstandard.ZstdCompressor(level, write_checksum=True).compressobj()
    return stream.compress(content) + stream.flush()


def decode(encoding: str | None, body: bytes, step: int = 64 * 1024) -> bytes:
    decoder = BodyDecoder.of(encoding)
    pieces = [
        piece for start in range(0, len(body), step) for piece in decoder.feed(body[start : start + step])
    ]
    decoder.finish()
    assert all(0 < len(piece) <= max(step, decoding.PIECE_SIZE) for piece in pieces)
    return b"".join(pieces)


# --- what is understood ----------------------------------------------------------------------------


@every_content
@pytest.mark.parametrize("encoding", [None, "", "identity", "Identity"])
def test_without_an_encoding_the_body_is_the_content(encoding: str | None, content: bytes) -> None:
    assert decode(encoding, content) == content


@every_content
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", " GZip "])
def test_gzip_decodes(encoding: str, content: bytes) -> None:
    assert decode(encoding, gzip.compress(content)) == content


@every_content
def test_zstd_decodes(content: bytes) -> None:
    assert decode("zstd", zstandard.compress(content)) == decode("ZSTD", zstd_stream(content)) == content


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("encoding", "body"),
    [("gzip", gzip.compress(LOG) * 2), ("zstd", zstd_stream(LOG) + zstandard.compress(LOG))],
)
def test_a_body_may_come_in_any_steps(encoding: str, body: bytes, step: int) -> None:
    assert decode(encoding, body, step) == LOG * 2


def test_a_gzip_body_may_have_many_members() -> None:
    parts = [b"one\n", b"", LOG, b"four"]

    assert decode("gzip", b"".join(map(gzip.compress, parts))) == b"".join(parts)


def test_a_zstd_body_may_have_many_frames_and_skippable_ones() -> None:
    parts = [b"one\n", b"", LOG, b"four"]
    body = SKIPPABLE + SKIPPABLE.join(map(zstandard.compress, parts)) + SKIPPABLE

    assert decode("zstd", body) == b"".join(parts)


@every_content
def test_a_stored_object_decodes_as_a_body(content: bytes) -> None:
    assert decode("zstd", store(content)[1]) == content


@zstd_program
@pytest.mark.parametrize(
    "options",
    [["-1"], ["-19"], ["--ultra", "-20", "--zstd=wlog=23"], ["--no-check"], ["--long=23"], ["--rsyncable"]],
)
def test_what_the_zstd_program_writes_decodes(options: list[str]) -> None:
    content = log(500_000)
    body = subprocess.run(["zstd", "-qc", *options], input=content, capture_output=True, check=True).stdout

    assert decode("zstd", body) == content


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=50).map(lambda data: data * 9), min_size=1, max_size=5),
    st.integers(1, 500),
    st.integers(1, 500),
)
def test_any_row_of_members_decodes_in_pieces_of_any_size(parts: list[bytes], step: int, piece: int) -> None:
    with patch.object(decoding, "PIECE_SIZE", piece):
        assert decode("gzip", b"".join(map(gzip.compress, parts)), step) == b"".join(parts)
        assert decode("zstd", b"".join(map(zstandard.compress, parts)), step) == b"".join(parts)


# --- what is not -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding", ["br", "deflate", "gzip, zstd", "zstd,zstd", "identity, gzip", "*", "gzip;q=1"]
)
def test_another_encoding_is_refused_with_those_allowed(encoding: str) -> None:
    with pytest.raises(UnsupportedEncoding) as refusal:
        BodyDecoder.of(encoding)

    assert str(refusal.value) == (
        f"the body has Content-Encoding {encoding!r}; send one of zstd, gzip or identity"
    )


BODIES = {
    "gzip": gzip.compress(b"one\n") + gzip.compress(b"two\n"),
    "zstd": zstd_stream(b"one\n") + SKIPPABLE + zstandard.compress(b"two\n"),
}
BOUNDARIES = {
    "gzip": {len(gzip.compress(b"one\n"))},
    "zstd": {len(zstd_stream(b"one\n")), len(zstd_stream(b"one\n") + SKIPPABLE)},
}


@pytest.mark.parametrize("encoding", BODIES)
def test_a_body_that_ends_inside_a_member_is_damaged(encoding: str) -> None:
    body = BODIES[encoding]
    for length in {*range(len(body))} - BOUNDARIES[encoding]:
        with pytest.raises(DamagedEncoding, match="ends before its content does"):
            decode(encoding, body[:length])


@pytest.mark.parametrize("encoding", BODIES)
@pytest.mark.parametrize("garbage", [b"\0", b"\x1f", b"(", b"garbage behind the end", bytes(512)])
def test_garbage_behind_the_last_member_is_damage(encoding: str, garbage: bytes) -> None:
    with pytest.raises(DamagedEncoding):
        decode(encoding, BODIES[encoding] + garbage)


@pytest.mark.parametrize("encoding", BODIES)
def test_a_body_in_another_encoding_than_it_says_is_damage(encoding: str) -> None:
    for body in (LOG, BODIES["zstd" if encoding == "gzip" else "gzip"], zlib.compress(LOG)):
        with pytest.raises(DamagedEncoding, match=f"the {encoding} body does not decode: "):
            decode(encoding, body)


@pytest.mark.parametrize("encoding", BODIES)
def test_a_wrong_checksum_is_damage(encoding: str) -> None:
    last = len(gzip.compress(LOG)) - 6 if encoding == "gzip" else len(zstd_stream(LOG)) - 2
    body = bytearray(gzip.compress(LOG) if encoding == "gzip" else zstd_stream(LOG))
    body[last] ^= 1

    with pytest.raises(DamagedEncoding, match="does not decode"):
        decode(encoding, bytes(body))


@given(st.sampled_from(["gzip", "zstd"]), st.integers(0, 60), st.integers(1, 255), st.integers(1, 70))
def test_a_wrong_byte_raises_nothing_else(encoding: str, position: int, difference: int, step: int) -> None:
    body = bytearray(BODIES[encoding])
    body[position % len(body)] ^= difference
    with suppress(DamagedEncoding, UnsupportedEncoding):
        decode(encoding, bytes(body), step)


@given(st.sampled_from(["gzip", "zstd"]), st.binary(min_size=1, max_size=200))
def test_any_bytes_raise_nothing_else(encoding: str, body: bytes) -> None:
    with suppress(DamagedEncoding, UnsupportedEncoding):
        decode(encoding, body)


# --- what would cost too much ----------------------------------------------------------------------


def zstd_bomb(blocks: int) -> bytes:
    """A frame of `blocks` run-length blocks (RFC 8878, section 3.1.1.2): 128 KiB from every 4 bytes."""
    magic, window_of_128_kib = b"\x28\xb5\x2f\xfd", b"\x00\x38"
    block = ((1 << 17) << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    last = ((1 << 17) << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"x"
    return magic + window_of_128_kib + block * (blocks - 1) + last


BOMB_BYTES = 1 << 28
BOMBS = {
    "gzip": lambda: gzip.compress(bytes(BOMB_BYTES // 32)) * 32,
    "zstd": lambda: zstd_bomb(BOMB_BYTES >> 17),
}


@pytest.mark.parametrize("encoding", BOMBS)
def test_a_bomb_comes_in_pieces_and_never_stands_in_memory(encoding: str) -> None:
    bomb = BOMBS[encoding]()
    decoder = BodyDecoder.of(encoding)
    tracemalloc.start()
    size = sum(len(piece) for piece in decoder.feed(bomb))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    decoder.finish()

    assert size == BOMB_BYTES
    assert peak < 8 * PIECE_SIZE


def test_a_bomb_may_be_left_after_any_piece() -> None:
    pieces = BodyDecoder.of("zstd").feed(zstd_bomb(1000))

    assert len(next(pieces)) <= PIECE_SIZE


TINY = {
    "gzip": [gzip.compress(b"", mtime=0), gzip.compress(b"a", mtime=0)],
    "zstd": [struct.pack("<II", 0x184D2A50, 0), zstandard.compress(b""), zstandard.compress(b"a" * 32)],
}


@pytest.mark.parametrize(("encoding", "member"), [(name, each) for name in TINY for each in TINY[name]])
@pytest.mark.parametrize("step", [100, 64 * 1024])
def test_a_body_of_many_members_without_content_is_refused(encoding: str, member: bytes, step: int) -> None:
    body = member * 15_000

    with pytest.raises(DamagedEncoding, match=rf"the {encoding} body has more than \d+ parts") as refusal:
        decode(encoding, body, step)

    assert 4096 < int(str(refusal.value).split()[6]) < 12_000


@pytest.mark.parametrize("encoding", TINY)
def test_a_body_may_have_some_members_without_content(encoding: str) -> None:
    assert decode(encoding, TINY[encoding][0] * 4096) == b""


@pytest.mark.parametrize("encoding", TINY)
@pytest.mark.parametrize("part", [bytes(1024), LOG[:1024], LOG[:40]], ids=["zeros", "log", "lines"])
def test_a_body_may_have_any_number_of_members_with_content(encoding: str, part: bytes) -> None:
    member = zstandard.compress(part) if encoding == "zstd" else gzip.compress(part)

    assert decode(encoding, member * 20_000) == part * 20_000


@pytest.mark.parametrize("log", [24, 27, 31])
def test_a_zstd_window_over_8_mib_is_refused_with_what_to_do(log: int) -> None:
    header = b"\x28\xb5\x2f\xfd\x00" + bytes([(log - 10) << 3])

    with pytest.raises(UnsupportedEncoding) as refusal:
        decode("zstd", header + b"\x01\x00\x00")

    assert str(refusal.value) == (
        "the zstd body needs a window of more than 8 MiB; compress it at level 19 or below, "
        "and without --long or with --long=23 at most"
    )


def test_a_zstd_window_of_8_mib_decodes() -> None:
    header = b"\x28\xb5\x2f\xfd\x00" + bytes([(WINDOW_LOG - 10) << 3])

    assert decode("zstd", header + b"\x09\x00\x00x") == b"x"


@zstd_program
def test_what_zstd_writes_with_a_long_window_is_refused_with_what_to_do() -> None:
    options = ["zstd", "-qc", "--long=27"]
    body = subprocess.run(options, input=log(300_000), capture_output=True, check=True).stdout

    with pytest.raises(UnsupportedEncoding, match="window of more than 8 MiB"):
        decode("zstd", body)
