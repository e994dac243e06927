"""Pages of a grep: each goes on further than the last, and together they are the unpaged answer."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest
from overspill.reading import grep, long_line, matching, search_bounds, split_line
from overspill.reading.chunks import Caps
from overspill.reading.grep import Search
from overspill.reading.text import strip_escapes
from overspill.wire import GrepQuery, Match, Text

from tests.reading.stored import capture
from tests.reading.test_grep import WIDE, engine_of, found

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = 1_000
CALM = [b"a", b"b", b"ab", b"abc", b" ", b"x" * 7, b"x" * 50, b"\n", "é".encode(), b"7", b"42", b"y" * 200]
WILD = [
    *[b"a", b"ab", b"\n", b"\n", b"\r\n", b"\r", "€".encode(), "É".encode(), b"\xff", b"\xe2\x82", b"x" * 30],
    *[b"\x1b[31m", b"\x1b[0m", b"\x1b]0;title ab\x07", b"\x1b", b"\x1b]8;;u\x1b\\", b"\x1b["],
]
PATTERNS = [
    *["a", "ab", "b$", "^a", "^$", "", "a.*b", "a.*b.*7", "^.{30,}$", "^.{3,}$", "^[^a]*$", "x+b", "a|^b"],
    *["7.*a|b.*42$", r"\d+", r"\ba", r"a\b", r"$\b", "$^", "^.*$", "x{20}", "(a.*b)", "a.+b", "[^b]$", "€$"],
    *["a[^b]*7", r"\p{Lu}", "(?:ab)+c", "ab.{10,}ab", "^a.*b$", "x.*^a", "^x|b.*7.*a", r"\r", "[^x]{40}"],
]


class Case(NamedTuple):
    content: bytes
    cuts: list[int]
    query: GrepQuery
    caps: Caps
    expired: Callable[[], bool]


def made(seed: int) -> Case:
    rng = random.Random(seed)
    content = b"".join(rng.choices(rng.choice([CALM, WILD, CALM + WILD]), k=rng.choice([0, 3, 10, 40, 150])))
    query = GrepQuery(
        pattern=rng.choice(PATTERNS),
        ignore_case=rng.random() < 0.2,
        invert=rng.random() < 0.3,
        before=rng.randrange(6),
        after=rng.randrange(6),
        from_end=rng.random() < 0.5,
        count=rng.random() < 0.2,
        max_matches=rng.choice([1, 2, 5, 1000]),
        ansi=rng.random() < 0.3,
    )
    caps = rng.choice([WIDE, WIDE, WIDE._replace(size=rng.randrange(1, 200)), WIDE._replace(lines=3)])
    clock = random.Random(seed)
    expired: Callable[[], bool] = rng.choice([lambda: False, lambda: True, lambda: clock.random() < 0.5])
    return Case(
        content, [rng.randrange(len(content) + 1) for _ in range(rng.randrange(20))], query, caps, expired
    )


def pages(case: Case) -> list[Text]:
    """All answers from the first to the last; each cursor lies further than the one before."""
    stored = capture(case.content, *case.cuts)
    texts: list[Text] = []
    query, reached = case.query, None
    while not texts or texts[-1].next is not None:
        if texts and texts[-1].next:
            query = msgspec.structs.replace(query, cursor=texts[-1].next["cursor"])
            place = place_of(str(query.cursor))
            assert reached is None or place > reached
            reached = place
        texts.append(stored.search(Search(query, stored.extent, caps=case.caps, expired=case.expired)))
        assert len(texts) < 3 * len(case.content) + 20
    return texts


def place_of(cursor: str) -> tuple[int, float]:
    """Of a cursor, in the direction of reading: a line, and how far in it."""
    line, _, offset = cursor[1:].partition(".")
    sign = -1 if cursor.startswith("r") else 1
    return sign * int(line), sign * int(offset.partition(".")[0]) if offset else float("-inf")


def lines_of(content: bytes, *, ansi: bool) -> list[str]:
    *ended, last = [line if ansi else strip_escapes(line) for line in content.split(b"\n")]
    lines = [line.removesuffix(b"\r") for line in ended] + ([last] if content.rpartition(b"\n")[2] else [])
    return [line.decode(errors="replace") for line in lines]


def expected_numbers(case: Case, lines: list[str]) -> list[int]:
    engine = engine_of(case.query)
    numbers = []
    for number, line in enumerate(lines, 1):
        is_ended = number < len(lines) or case.content.endswith(b"\n")
        texts = {line} if is_ended else {line, line.removesuffix("\r")}
        if any(engine.search(text) for text in texts) != case.query.invert:
            numbers.append(number)
    return numbers[::-1] if case.query.from_end else numbers


@pytest.fixture(params=["as it is", "tiny parts"])
def line_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """What is shown of a line; with tiny parts, lines of a hundred bytes are long already."""
    if request.param == "tiny parts":
        for module, name, value in (
            (long_line, "SLICE_BYTES", 8),
            (matching, "SLICE_BYTES", 8),
            (long_line, "_MIN_WINDOW_BYTES", 16),
            (split_line, "MAX_HELD_BYTES", 200),
            (split_line, "LOOKBEHIND_BYTES", 12),
            (search_bounds, "LOOKBEHIND_BYTES", 12),
            (split_line, "_STEPS", (16, 1)),
            (split_line, "_EXCERPT_BYTES", 40),
            (split_line, "SAMPLE_BYTES", 60),
            (grep, "SAMPLE_BYTES", 60),
        ):
            monkeypatch.setattr(module, name, value)
        return 8
    return WIDE.line_size


@pytest.mark.parametrize("seeds", [range(start, start + CASES // 4) for start in range(0, CASES, CASES // 4)])
def test_pages_go_on_to_the_end_and_are_together_the_unpaged_answer(seeds: range, line_size: int) -> None:
    for seed in seeds:
        case = made(seed)
        case = case._replace(caps=case.caps._replace(line_size=line_size))
        lines = lines_of(case.content, ansi=case.query.ansi)
        texts = pages(case)
        unsure = {number for text in texts for number in listed(text.incomplete)}
        numbers = [number for number in expected_numbers(case, lines) if number not in unsure]

        assert sum(count for text in texts if isinstance(count := text.match_count, int)) == len(numbers), (
            seed
        )
        if not case.query.count:
            assert [match.line_number for match in found(texts)] == numbers, seed
            for text in texts:
                check_page(text, case, lines)


def listed(numbers: object) -> list[int]:
    return numbers if isinstance(numbers, list) else []


def check_page(text: Text, case: Case, lines: list[str]) -> None:
    """What is shown is the capture's; where lines around a match are missing, the answer says so."""
    is_cut = False
    for match in found([text]):
        number = match.line_number
        before = lines[max(0, number - 1 - (case.query.before or 0)) : number - 1]
        after = lines[number : number + (case.query.after or 0)]
        is_cut = is_cut or (len(match.before), len(match.after)) != (len(before), len(after))

        near = zip(match.before, before[len(before) - len(match.before) :], strict=True)
        pairs = [(match.line, lines[number - 1]), *near, *zip(match.after, after, strict=False)]

        assert all(is_shown(shown, line, case) for shown, line in pairs)
    shown = "".join(line for match in found([text]) for line in [match.line, *match.before, *match.after])

    assert case.caps[:2] != WIDE[:2] or not is_cut
    assert text.truncated == (text.next is not None or is_cut)
    assert text.replaced == ("\ufffd" in shown)


def is_shown(shown: str, line: str, case: Case) -> bool:
    """Whether this is how a line is shown: all of it or, of a long one, a part.

    With tiny parts, a sample may be all escape sequences.
    """
    if len(line.encode()) <= case.caps.line_size:
        return shown == line
    is_sample = case.caps.line_size < WIDE.line_size and b"\x1b" in case.content
    return shown.strip("…") in line and ("…" in shown or is_sample)


def test_time_that_runs_out_in_a_line_read_for_context_only_ends_no_page_there() -> None:
    """Cursors once went back from line 3 into line 2, for ever."""
    content = b"one\n" + b"x" * 20_000_000 + b"\nhit\n" + b"y" * 20_000_000 + b"\nhit\n"
    cuts = list(range(500_000, len(content), 500_000))
    for from_end in (False, True):
        query = GrepQuery(pattern="hit", context=3, from_end=from_end)
        texts = pages(Case(content, cuts, query, WIDE, lambda: True))
        by_number = {match.line_number: match for match in found(texts)}

        assert sorted(by_number) == [3, 5]
        assert by_number[3].before == ["one", "x" * 2048 + "…"]
        assert by_number[3].after == ["y" * 2048 + "…", "hit"]
        assert by_number[5].before == ["x" * 2048 + "…", "hit", "y" * 2048 + "…"]


def test_a_long_line_that_is_only_shown_is_not_read_to_its_end() -> None:
    content = b"hit\n" + b"x" * 20_000_000 + b"\nend\n"
    stored = capture(content, *range(500_000, len(content), 500_000))
    query = GrepQuery(pattern="hit", after=2, max_matches=1)
    (match,) = found([stored.search(Search(query, stored.extent))])

    assert match == Match(line_number=1, line="hit", before=[], after=["x" * 2048 + "…", "end"])
    assert stored.given == 2


@pytest.mark.parametrize("from_end", [False, True])
def test_lines_around_the_last_match_that_have_no_room_are_said_to_be_missing(from_end: bool) -> None:
    stored = capture(b"hit\n" + b"after\n" * 3 if from_end else b"before\n" * 3 + b"hit\n")
    query = GrepQuery(pattern="hit", context=3, from_end=from_end)
    text = stored.search(Search(query, stored.extent, caps=Caps(size=30)))

    assert (text.truncated, text.next) == (True, None)
    assert len(found([text])[0].before) + len(found([text])[0].after) == 1


def test_a_match_whose_surroundings_have_no_room_is_left_to_the_next_page() -> None:
    content = b"".join(b"line %d\n" % number for number in range(1, 101))
    query = GrepQuery(pattern="0$", context=2)
    texts = pages(Case(content, [100, 300], query, Caps(size=200), lambda: False))

    assert len(texts) > 1
    assert all(len(match.before) == 2 for match in found(texts))
    assert [len(match.after) for match in found(texts)] == [2] * 9 + [0]


def test_replaced_speaks_of_what_is_shown_only() -> None:
    stored = capture(b"bad \xff\nhit\nno\nhit\n\xef\xbf\xbd genuine\n")
    alone = stored.search(Search(GrepQuery(pattern="hit"), stored.extent))
    genuine = stored.search(Search(GrepQuery(pattern="genuine"), stored.extent))
    around = stored.search(Search(GrepQuery(pattern="hit", before=1, max_matches=1), stored.extent))

    assert (alone.replaced, genuine.replaced, around.replaced) == (False, False, True)


def test_cursors_of_another_search_are_refused() -> None:
    stored = capture(b"a" * 100 + b"\n")
    for cursor in ("f1.50.1-0", "f1.50.0-0_0-0", "f1.50.1-"):
        with pytest.raises(Exception, match="cursor="):
            stored.search(Search(GrepQuery(pattern="a", cursor=cursor), stored.extent))
