"""The blocks of a file and the frames of the service, fed to the same readers: the same answers."""

from __future__ import annotations

import random
import tempfile
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest
from overspill.reading import lines
from overspill.reading.chunks import DEFAULT_CAPS, Extent
from overspill.reading.grep import Search
from overspill.reading.summary import Summarizer
from overspill.spools import file_chunks
from overspill.spools.file_chunks import FileChunks
from overspill.wire import GrepQuery

from tests.reading.stored import Capture, capture
from tests.reading.test_grep_pages import CALM, PATTERNS, WILD

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = 160
BARS = [b"\x1b[2Aone\x1b[K\r\n", b"two\x1b[K\r\n", b"\x1b[A\rthree\x1b[B\r", b"\x1b[Hfour\r\n", b"five\r\n"]
"""What terminals show is drawn over."""


def contents(seeds: range) -> Iterator[tuple[random.Random, bytes]]:
    for seed in seeds:
        rng = random.Random(seed)
        pieces = rng.choice([CALM, WILD, CALM + WILD, BARS])
        content = b"".join(rng.choices(pieces, k=rng.choice([0, 3, 10, 40, 150, 500])))
        if rng.random() < 0.1:
            content += b"z" * 70_000 + rng.choice([b"", b"\n", b"ab\r\n"]) + content[:300]
        yield rng, content


@contextmanager
def opened(content: bytes) -> Iterator[tuple[Capture, FileChunks]]:
    stored = capture(content, 100, 1_000)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield stored, FileChunks(file, stored.extent)


def query(rng: random.Random) -> GrepQuery:
    return GrepQuery(
        pattern=rng.choice(PATTERNS),
        fixed=rng.random() < 0.1,
        ignore_case=rng.random() < 0.2,
        invert=rng.random() < 0.3,
        before=rng.randrange(4),
        after=rng.randrange(4),
        from_end=rng.random() < 0.5,
        count=rng.random() < 0.2,
        max_matches=rng.choice([1, 2, 5, 1000]),
        ansi=rng.random() < 0.3,
        max_bytes=rng.choice([None, 16_000, 30_000]),  # room for one match with all lines around it
    )


@pytest.mark.parametrize("block", [64, 1_000, 256 * 1024])
def test_the_blocks_of_a_file_give_the_answers_that_frames_give(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_chunks, "BLOCK", block)
    for rng, content in contents(range(block, block + CASES // 2)):
        with opened(content) as (stored, file):
            check_grep(query(rng), stored, file)
            check_others(rng, stored, file)


def check_grep(asked: GrepQuery, stored: Capture, file: FileChunks) -> None:
    caps = DEFAULT_CAPS.within(asked.max_bytes)
    for _ in range(4):
        answer = file.search(Search(asked, stored.extent, caps=caps))

        assert answer == stored.search(Search(asked, stored.extent, caps=caps)), (asked, stored.content)
        if answer.next is None:
            break
        asked = msgspec.structs.replace(asked, cursor=answer.next["cursor"])


def check_others(rng: random.Random, stored: Capture, file: FileChunks) -> None:
    extent = stored.extent._replace(columns=rng.choice([None, 0, 80]))
    count, ansi = rng.choice([1, 2, 5, 2000]), rng.random() < 0.5
    caps = DEFAULT_CAPS.within(rng.choice([None, 256, 300, 5_000]))
    start = rng.randrange(1, extent.lines + 2)

    def head() -> lines.LineRead:
        return lines.head(count, extent, caps=caps, ansi=ansi)

    def between() -> lines.LineRead:
        return lines.between(start, start + count, extent, caps=caps, ansi=ansi)

    def tail() -> lines.TailRead:
        return lines.tail(count, extent, caps=caps, ansi=ansi)

    def summary() -> Summarizer:
        return Summarizer(extent, content_type="text/plain", kind="text")

    for begin in (head, between, tail, summary):
        assert file.inspect(begin()) == stored.read(begin()), (begin, stored.content)


@pytest.mark.parametrize("newlines", [1, 2_000])
def test_the_end_of_a_large_file_is_read_without_its_beginning(newlines: int) -> None:
    content = b"x" * 4_000_000 + b"line\n" * newlines
    with opened(content) as (stored, file):
        file.inspect(lines.tail(10, stored.extent))

        assert len(file._before) + len(file._behind) < 6


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("claimed", [Extent(0, 1), Extent(500, 900), Extent(500, 10**12)], ids=range(3))
def test_a_file_with_other_lines_than_its_entry_says_is_an_error_or_answered(
    claimed: Extent, backwards: bool
) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"line\n" * 100)
        file.flush()
        chunks = FileChunks(file, claimed)

        for begin in (
            partial(lines.head, 100),
            partial(lines.tail, 100),
            partial(lines.between, 300, 400),
            partial(Summarizer, content_type="text/plain", kind="text"),
        ):
            with suppress(OSError):
                chunks.inspect(begin(chunks.extent))
        with suppress(OSError):
            chunks.search(Search(GrepQuery(pattern="none", fixed=True, from_end=backwards), chunks.extent))


def test_a_file_that_has_become_shorter_is_an_error() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"line\n" * 100)
        file.flush()
        chunks = FileChunks(file, Extent(500, 100))
        file.truncate(200)

        with pytest.raises(OSError, match="ends at 200"):
            chunks.inspect(lines.head(100, chunks.extent))
