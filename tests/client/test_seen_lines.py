"""The lines that a notice's preview shows whole, as the capture's label tells them."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill import Guard, Policy, SyncClient, wire
from overspill.previews.excerpt import excerpt_of_body, excerpt_of_text
from overspill.previews.preview import preview
from overspill.previews.seen_lines import seen_lines
from overspill.text.measure import extent_of
from overspill.text.sanitize import sanitize

if TYPE_CHECKING:
    from tests.servers.overspill import ServiceProcess

LOG = "".join(
    f"{'ERROR: disk full' if number in {700, 1500} else 'info'} {number} {number * 7919 % 1000}\n"
    for number in range(1, 9_000)
)
LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "same", "ERROR: boom", "\x1b[31mred\x1b[0m"]), st.text("abc …[", max_size=60)
    ),
    max_size=400,
)


def numbers(label: str) -> list[int]:
    """Return the lines of a label one by one."""
    found: list[int] = []
    for part in filter(None, label.split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


@given(LINES, st.integers(200, 3_000))
def test_each_line_that_is_told_of_is_in_the_preview(lines: list[str], size: int) -> None:
    text = "\n".join(lines)
    shown = preview(text, size)
    told = numbers(seen_lines(shown, excerpt_of_text(text)))
    known = shown.split("\n")

    assert told == sorted(set(told))
    assert all(sanitize(lines[number - 1]) in known for number in told)


def test_both_ends_and_lines_that_stand_out_are_told_of() -> None:
    chosen = random.Random(1)
    words = ["cart", "session", "invoice", "refund", "ledger", "webhook"]
    lines = [
        f"{chosen.choice(['INFO', 'DEBUG', 'WARN'])} {chosen.choice(words)} took={chosen.random():.3f}"
        for _ in range(5_000)
    ]
    for number, word in zip((1_087, 2_087, 3_087), words, strict=False):
        lines[number - 1] = f"ERROR {word} {number}"
    text = "\n".join(lines)

    assert re.fullmatch(
        r"1-\d+,1087,2087,3087,\d+-5000", seen_lines(preview(text, 2_000), excerpt_of_text(text))
    )


def test_a_line_that_is_cut_is_not_told_of() -> None:
    assert seen_lines("first\nlong…\n", excerpt_of_text(f"first\n{'long' * 50}\nlast\n")) == "1"


def test_the_end_of_a_body_of_which_only_both_ends_were_read_has_its_own_numbers() -> None:
    body = b"".join(b"line %d\n" % number for number in range(1, 1_000_001))
    found = excerpt_of_body(body, extent_of(body), 0)
    assert found is not None

    assert not found.is_whole
    assert seen_lines("line 1\nline 2\n… [gap] …\nline 1000000\n", found) == "1-2,1000000"


def test_what_many_single_lines_have_is_cut_and_the_end_stays() -> None:
    lines = [f"{'odd' if number % 2 else 'even'} {number}" for number in range(400)]
    shown = "\n".join(line for line in lines if line.startswith("odd"))
    label = seen_lines(shown, excerpt_of_text("\n".join(lines)))

    assert len(label.split(",")) == 40
    assert label.endswith(",400")


@pytest.mark.parametrize("strategy", ["PREVIEW", "HEAD", "TAIL", "ENDS"])
def test_a_capture_says_which_lines_the_model_saw(own_service: ServiceProcess, strategy: str) -> None:
    with SyncClient(own_service.url) as client, Guard(client, Policy(strategy=strategy)) as guard:
        made = guard.process_sync(LOG, tool="make", session="seen")
        assert made.capture is not None
        told = numbers(client.get(made.capture).labels[wire.SEEN_LABEL])
    shown = str(made.value).split("\n")

    assert told
    assert all(LOG.split("\n")[number - 1] in shown for number in told)
    assert sum(line.startswith(("info", "ERROR")) for line in shown) == len(told)


def test_of_an_output_that_was_shown_before_nothing_is_told(own_service: ServiceProcess) -> None:
    with SyncClient(own_service.url) as client, Guard(client) as guard:
        first, again = (guard.process_sync(LOG, tool="make", session="known") for _ in range(2))
        labels = [client.get(str(each.capture)).labels for each in (first, again)]

    assert [wire.SEEN_LABEL in each for each in labels] == [True, False]
