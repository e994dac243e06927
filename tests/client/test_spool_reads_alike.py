"""Readers of spooled captures and those of the service, over the same bytes: the same answers."""

from __future__ import annotations

import random
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest
from overspill.reading import lines
from overspill.reading.chunks import DEFAULT_CAPS
from overspill.reading.grep import Search
from overspill.reading.summary import Summarizer
from overspill.spools.local.grep import grep
from overspill.spools.local.lines import Span, Whole, between, tail
from overspill.spools.local.matching import HOLD
from overspill.spools.local.places import Bytes
from overspill.spools.local.summary import summarised
from overspill.wire import GrepQuery

from tests.reading.stored import Capture, capture
from tests.reading.test_grep_pages import CALM, PATTERNS, WILD

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = 400


def contents(seeds: range) -> Iterator[tuple[random.Random, bytes]]:
    for seed in seeds:
        rng = random.Random(seed)
        pieces = rng.choice([CALM, WILD, CALM + WILD])
        content = b"".join(rng.choices(pieces, k=rng.choice([0, 3, 10, 40, 150, 1000])))
        if rng.random() < 0.1:
            content += b"z" * 70_000 + rng.choice([b"", b"\n", b"ab\r\n"]) + content[:300]
        yield rng, content


@contextmanager
def opened(content: bytes) -> Iterator[tuple[Capture, Whole]]:
    stored = capture(content, 100, 1_000)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield stored, Whole(Bytes(file, len(content)), stored.extent.lines)


def query(rng: random.Random) -> GrepQuery:
    return GrepQuery(
        pattern=rng.choice([pattern for pattern in PATTERNS if "p{" not in pattern]),
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


@pytest.mark.parametrize("seeds", [range(start, start + CASES // 2) for start in (0, CASES // 2)])
def test_every_reader_answers_as_the_services_own(seeds: range) -> None:
    for rng, content in contents(seeds):
        with opened(content) as (stored, whole):
            check_grep(query(rng), stored, whole)
            check_others(rng, stored, whole)


def check_grep(asked: GrepQuery, stored: Capture, whole: Whole) -> None:
    for _ in range(4):
        answer = grep(asked, whole, is_late=lambda: False)

        assert answer == stored.search(
            Search(asked, stored.extent, caps=DEFAULT_CAPS.within(asked.max_bytes))
        ), (asked, stored.content)
        if answer.next is None:
            break
        asked = msgspec.structs.replace(asked, cursor=answer.next["cursor"])


def check_others(rng: random.Random, stored: Capture, whole: Whole) -> None:
    extent, count, ansi = stored.extent, rng.choice([1, 2, 5, 2000]), rng.random() < 0.5
    size = rng.choice([None, 256, 300, 5_000])
    caps = DEFAULT_CAPS.within(size)
    head = between(whole, Span(1, count), mode="head", ansi=ansi, max_bytes=size)
    summary = summarised(whole, content_type="text/plain", kind="text")

    assert head == stored.read(lines.head(count, extent, caps=caps, ansi=ansi))
    ending = tail(whole, count, ansi=ansi, max_bytes=size)
    assert ending == stored.read(lines.tail(count, extent, caps=caps, ansi=ansi))
    assert summary == stored.read(Summarizer(extent, content_type="text/plain", kind="text")), stored.content


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("from_end", [False, True])
def test_a_line_too_long_to_hold_is_searched_or_said_not_to_be(from_end: bool, invert: bool) -> None:
    content = b"one\n" + b"x" * (HOLD + 100_000) + b"\nthree\n"

    def found(whole: Whole, pattern: str) -> tuple[list[int], object]:
        asked = GrepQuery(pattern=pattern, from_end=from_end, invert=invert)
        text = grep(asked, whole, is_late=lambda: False)
        return sorted(match.line_number for match in text.matches or []), text.incomplete or []

    with opened(content) as (_, whole):
        assert found(whole, "y[a-z]{2}") == ([1, 2, 3] if invert else [], [])
        assert found(whole, "^x{9}") == ([1, 3] if invert else [2], [])
        assert found(whole, '"[^"]*"') == ([1, 3] if invert else [], [2])


@pytest.mark.parametrize("place", [HOLD - 3, HOLD - 2, HOLD, HOLD + 1])
@pytest.mark.parametrize("from_end", [False, True])
def test_a_search_that_runs_out_of_time_in_a_long_line_misses_nothing_at_the_seam(
    place: int, from_end: bool
) -> None:
    line = bytearray(b"x" * (2 * HOLD))
    line[place : place + 6] = b"needle"
    with opened(bytes(line)) as (_, whole):
        asked = GrepQuery(pattern="needle", from_end=from_end)
        texts = [grep(asked, whole, is_late=lambda: True)]
        while texts[-1].next:
            asked = msgspec.structs.replace(asked, cursor=texts[-1].next["cursor"])
            texts.append(grep(asked, whole, is_late=lambda: True))

    assert sum(len(text.matches or []) for text in texts) == 1
