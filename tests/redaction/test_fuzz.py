"""A bounded fuzz of the redactor, from the corpus of secrets: cut, doubled, spliced and damaged texts.

For any chunks, in `str` and in bytes: never a secret that a whole-text pass would have masked.
"""

from __future__ import annotations

import os
import random

import pytest
from overspill.redaction.redactor import Redactor

from tests.redaction.corpus import planted

ROUNDS = int(os.environ.get("OVERSPILL_FUZZ_ROUNDS", "40"))
"""Texts a seed; more for a longer search."""
CORPUS = [each.text for each in planted(7)]
REDACTOR = Redactor(patterns={"acme": "acme-[0-9]{8}"}, values=["tr0ub4dor-&3"])

TAILS = ["", "tr0ub4dor-&3", "acme-12345678", "\N{SNOWMAN}", "a" * 6_000]


def mutated(random_: random.Random) -> str:
    """Return a text of the corpus with others put into it, or parts of it gone, doubled or changed."""
    text = random_.choice(CORPUS) + random_.choice(TAILS)
    for _ in range(random_.randrange(6)):
        at, end = sorted(random_.randrange(len(text) + 1) for _ in range(2))
        part, other = text[at:end], chr(random_.randrange(32, 0x250))
        middle = random_.choice(["", part * 2, part[::-1], random_.choice(CORPUS), other])
        text = text[:at] + middle + text[end:]
    return text[:60_000]


def chunks(random_: random.Random, text: str) -> list[str]:
    # A long text in short chunks takes long, and the corpus has enough that are shorter.
    largest = random_.choice([1, 7, 300, 5_000] if len(text) < 1_500 else [300, 5_000])
    found, at = [], 0
    while at < len(text):
        size = random_.randint(1, largest)
        found.append(text[at : at + size])
        at += size
    return found[:50_000]


@pytest.mark.parametrize("seed", range(8))
def test_any_text_in_any_chunks_is_masked_as_the_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random_ = random.Random(seed)
    for _ in range(ROUNDS):
        text = mutated(random_)
        monkeypatch.setattr("overspill.redaction.redactor._BATCH_CHARS", random_.choice([1, 500, 9_000]))
        whole = REDACTOR.redact(text)
        of_bytes = REDACTOR.redact(text.encode())
        stream, byte_stream = REDACTOR.stream(str), REDACTOR.stream(bytes)
        found = [stream.feed(each) for each in chunks(random_, text)]
        data = [byte_stream.feed(each.encode()) for each in chunks(random_, text)]

        assert ("".join([*found, stream.finish()]), stream.counts) == (whole.text, whole.counts)
        assert (b"".join([*data, byte_stream.finish()]), byte_stream.counts) == tuple(of_bytes)
        assert REDACTOR.has_none(text) is not bool(stream.counts)


@pytest.mark.parametrize("seed", range(4))
def test_pauses_at_the_ends_of_words_change_nothing(seed: int) -> None:
    random_ = random.Random(seed)
    redactor = Redactor(values=["tr0ub4dor-&3", "two words of one value"])
    for _ in range(ROUNDS):
        text = random_.choice(CORPUS) + random_.choice([*TAILS, " is two words of one value."])
        stream, given = redactor.stream(str), ""
        for chunk in chunks(random_, text):
            given += stream.feed(chunk)
            given += stream.settle()

        assert (given + stream.finish(), stream.counts) == redactor.redact(text)
