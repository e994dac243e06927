from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill_service.errors import CaptureDamaged
from overspill_service.store_format import seek_table

sizes = st.integers(0, 2**32 - 1)
entries = st.lists(st.tuples(sizes, sizes, sizes), max_size=20)
# From the format's specification: two frames with checksums, 10 and 11 stored bytes, of 100 and 0 bytes.
SPECIFIED = bytes.fromhex(
    "5e2a4d18 21000000 0a000000 64000000 cdab0000 0b000000 00000000 99e9d851 02000000 80 b1ea928f"
)


def test_a_table_has_the_bytes_that_the_specification_gives() -> None:
    assert seek_table.encode([(10, 100, 0xABCD), (11, 0, seek_table.NO_CONTENT)]) == SPECIFIED


@given(entries)
def test_a_table_decodes_to_what_was_encoded(table: list[seek_table.TableEntry]) -> None:
    assert seek_table.decode(seek_table.encode(table)) == table


@given(entries)
def test_its_size_follows_from_the_number_of_entries(table: list[seek_table.TableEntry]) -> None:
    assert len(seek_table.encode(table)) == seek_table.size_of(len(table))


def test_the_end_of_a_table_tells_its_count_and_last_entry() -> None:
    tail = b"before" + SPECIFIED

    assert (seek_table.count(tail), seek_table.last_entry(tail)) == (2, (11, 0, seek_table.NO_CONTENT))


@pytest.mark.parametrize("length", range(len(SPECIFIED)))
def test_a_truncated_table_is_damaged(length: int) -> None:
    with pytest.raises(CaptureDamaged):
        seek_table.decode(SPECIFIED[:length])


def test_a_table_with_bytes_before_it_is_damaged() -> None:
    with pytest.raises(CaptureDamaged):
        seek_table.decode(b"\0" + SPECIFIED)


@pytest.mark.parametrize("position", [*range(8), *range(len(SPECIFIED) - 9, len(SPECIFIED))])
def test_every_wrong_byte_around_the_entries_is_damage(position: int) -> None:
    wrong = bytearray(SPECIFIED)
    wrong[position] ^= 0x01

    with pytest.raises(CaptureDamaged):
        seek_table.decode(bytes(wrong))


def test_a_table_without_checksums_is_refused_by_its_descriptor() -> None:
    table = struct.pack("<II II IBI", seek_table.MAGIC, 17, 10, 100, 1, 0, seek_table.SEEKABLE_MAGIC)

    with pytest.raises(CaptureDamaged, match="descriptor is 0x00"):
        seek_table.decode(table)
