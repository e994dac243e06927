"""A bounded fuzz of the object parser and of the decoders of bodies, from objects and bodies of every kind.

An object whose bytes are not those that were stored is damaged, or what it says is still what was stored. One
that somebody made on purpose, with right digests, may say anything, but breaks nothing.
"""

from __future__ import annotations

import gzip
import os
import random
import struct
from collections.abc import Callable
from functools import cache
from typing import Final

import pytest
import zstandard
from overspill_service.errors import CaptureDamaged, DamagedEncoding, UnsupportedEncoding
from overspill_service.store_format import seek_table
from overspill_service.store_format.decoding import BodyDecoder
from overspill_service.store_format.frames import FRAME_SIZE, decode_frame
from overspill_service.store_format.index import HEADER, Index, TailTooShort, parse

from tests.core.contents import CONTENTS, store

ROUNDS: Final = int(os.environ.get("OVERSPILL_FUZZ_ROUNDS", "150"))
"""Objects and bodies a seed; more for a longer search."""
DIGEST_SIZE: Final = 16
NUMBERS: Final = [0, 1, 0x7F, 0xFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF]
COMPRESSED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "zstd": zstandard.compress,
}


@cache
def objects() -> list[tuple[Index, bytes]]:
    return [store(content[: FRAME_SIZE + 5_000]) for content in CONTENTS.values()]


@cache
def bodies(encoding: str) -> list[bytes]:
    return [COMPRESSED[encoding](content[:3_000]) for content in CONTENTS.values()]


def mutated(random_: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return the bytes with parts gone, doubled, replaced by numbers or by parts of others."""
    for _ in range(random_.randint(1, 4)):
        # Most of what there is to believe stands at the end.
        low = random_.choice([0, max(len(data) - 200, 0)])
        at, end = sorted(random_.randint(low, len(data)) for _ in range(2))
        other = random_.choice(others)
        start = random_.randrange(len(other) + 1)
        middle = random_.choice(
            [
                b"",
                data[at:end] * 2,
                random_.choice(NUMBERS).to_bytes(4, random_.choice(["little", "big"])),
                random_.randbytes(random_.randrange(9)),
                other[start : start + random_.randrange(300)],
            ]
        )
        data = data[:at] + middle + data[random_.choice([at + len(middle), end]) :]
    return data


def signed_again(data: bytes) -> bytes:
    """Return the object with the digest that its last bytes need, if a trailer is where it says."""
    from hashlib import sha256  # noqa: PLC0415

    try:
        table_size = seek_table.size_of(seek_table.count(data))
        index_size = seek_table.last_entry(data)[0]
    except (CaptureDamaged, struct.error):
        return data
    start = len(data) - table_size - index_size
    if start < 0 or index_size < HEADER.size:
        return data
    body, table = data[start + HEADER.size : -table_size], data[-table_size:]
    digest_at = start + HEADER.size - DIGEST_SIZE
    return data[:digest_at] + sha256(body + table).digest()[:DIGEST_SIZE] + data[start + HEADER.size :]


def read(data: bytes, stored_size: int | None) -> Index | None:
    """Read an object as the service does, its frames too. None if it is damaged."""
    try:
        index = parse(data, stored_size)
    except (CaptureDamaged, TailTooShort):
        return None
    assert len(index.frames) * seek_table.ENTRY.size <= len(data)
    at = 0
    for frame in index.frames[:20]:
        assert 0 < frame.size <= FRAME_SIZE
        try:
            assert len(decode_frame(data[at : at + frame.stored_size], frame)) == frame.size
        except CaptureDamaged:
            return None
        at += frame.stored_size
    return index


@pytest.mark.parametrize("seed", range(4))
def test_an_object_with_other_bytes_is_damaged_or_says_what_was_stored(seed: int) -> None:
    random_, wholes = random.Random(seed), [whole for _, whole in objects()]
    known = [index for index, _ in objects()]
    for _ in range(ROUNDS):
        data = mutated(random_, random_.choice(wholes), wholes)
        index = read(data, random_.choice([None, len(data)]))

        assert index is None or index in known


@pytest.mark.parametrize("seed", range(4))
def test_an_object_that_was_made_on_purpose_breaks_nothing(seed: int) -> None:
    random_, wholes = random.Random(seed), [whole for _, whole in objects()]
    for _ in range(ROUNDS):
        data = signed_again(mutated(random_, random_.choice(wholes), wholes))

        read(data, random_.choice([None, len(data)]))


def test_an_object_is_signed_here_as_the_service_signs_it() -> None:
    assert all(signed_again(whole) == whole for _, whole in objects())


def decoded(encoding: str, pieces: list[bytes]) -> tuple[bytes, str]:
    """Return what a decoder made of a body, and how it ended."""
    decoder, found = BodyDecoder.of(encoding), bytearray()
    try:
        for piece in pieces:
            for part in decoder.feed(piece):
                found += part
        decoder.finish()
    except (DamagedEncoding, UnsupportedEncoding) as error:
        return bytes(found), type(error).__name__
    return bytes(found), ""


@pytest.mark.parametrize("step", [1, 3, 9])
def test_a_frame_that_announces_more_than_its_empty_last_block_is_damaged_in_any_pieces(step: int) -> None:
    frame = bytes.fromhex("28b52ffd 20 20 010000")  # 32 bytes, it says, and has none

    assert decoded("zstd", [frame[at : at + step] for at in range(0, len(frame), step)]) == (
        b"",
        "DamagedEncoding",
    )


@pytest.mark.parametrize("encoding", COMPRESSED)
@pytest.mark.parametrize("seed", range(3))
def test_a_body_decodes_alike_however_the_network_cuts_it(encoding: str, seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(ROUNDS):
        body = mutated(random_, random_.choice(bodies(encoding)), bodies(encoding))
        step = random_.choice([1, 3, 50, 1_000])
        whole, how = decoded(encoding, [body])
        parts, how_in_parts = decoded(encoding, [body[at : at + step] for at in range(0, len(body), step)])

        assert how_in_parts == how
        assert how or parts == whole
