"""A service accepts no part of a secret in a text that comes in appends, for any cuts."""

from __future__ import annotations

import random

import pytest
from overspill.redaction.redactor import Redactor
from overspill_service.errors import SecretsFound
from overspill_service.live.screening import BEFORE_BYTES
from overspill_service.store_format.screening import decided_size

from tests.redaction.corpus import Planted, planted


def accepted(content: bytes, cuts: list[int]) -> tuple[int, bool]:
    """Return how many bytes are accepted of appends that end at these cuts, and whether one is refused."""
    size = 0
    for cut in cuts:
        before = content[max(0, size - BEFORE_BYTES) : size]
        try:
            size += decided_size("refuse", before, content[size:cut], is_last=cut == len(content))
        except SecretsFound:
            return size, True
    return size, False


def test_every_kind_of_secret_is_refused_before_any_part_of_it_is_accepted() -> None:
    random_ = random.Random(21)
    first_of_each = {(each.kind, number % 6): each for number, each in enumerate(planted(5))}

    for each in first_of_each.values():
        content = f"a line before it\n{each.text}\nand one behind\n".encode()
        cuts = sorted({*random_.sample(range(1, len(content)), min(30, len(content) - 1)), len(content)})
        size, is_refused = accepted(content, cuts)

        assert is_refused, (each, cuts)
        assert is_safe(each, content[:size]), (each, content[:size])


def is_safe(planted_one: Planted, beginning: bytes) -> bool:
    """Return whether a beginning of the text has less than a word of the secret."""
    whole = Redactor().redact(beginning)
    return not whole.counts and planted_one.secret[:12].encode() not in beginning


@pytest.mark.parametrize("is_last", [False, True])
def test_a_long_word_that_is_no_secret_is_accepted_but_for_its_end(is_last: bool) -> None:
    data = b"x" * 100_000

    assert (decided_size("tag", b"", data, is_last=is_last) == len(data)) is is_last
    assert decided_size("tag", b"", data, is_last=is_last) > len(data) - 10_000
