"""Tokens are counted by tiktoken itself, with a vocabulary of the tests' own: real, and without a network."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from overspill.text import measure, token_estimate, tokens
from overspill.text.limits import Limits, exceeds
from overspill.text.tokenizers import Tiktoken, Tokenizer, TokenizerUnusable
from overspill.text.tokens import Basis, TokenCount, TokenCounter

WORDS = ["er", "or", "err", "error", " error", "in", " in", " line", "\n\n", "  ", "    ", "th", " the", "=="]
ENCODING = tiktoken.Encoding(
    "test",
    pat_str=r"""[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    mergeable_ranks={bytes([byte]): byte for byte in range(256)}
    | {word.encode(): 256 + number for number, word in enumerate(WORDS)},
    special_tokens={},
)
EXACT = TokenCounter(ENCODING.encode_ordinary)
LOG = "".join(f"{number} the error in line {number * 7} ==\n" for number in range(1, 40_001))
ANY_TEXT = st.text(max_size=300)


def number_of(text: str) -> int:
    return len(ENCODING.encode_ordinary(text))


@given(ANY_TEXT)
def test_a_tokenizer_counts_exactly(text: str) -> None:
    assert EXACT.count(text, measure.size(text)) == (number_of(text), Basis.EXACT, 0.0)


def test_a_long_text_is_counted_in_pieces_that_no_token_spans() -> None:
    text = LOG[: tokens.COUNTED_CHARS]
    seen: list[str] = []

    def watched(piece: str) -> list[int]:
        seen.append(piece)
        return ENCODING.encode_ordinary(piece)

    assert TokenCounter(watched).count(text, len(text)) == (number_of(text), Basis.EXACT, 0.0)
    assert max(map(len, seen)) <= tokens.MAX_CALL_CHARS
    assert "".join(seen) == text


def test_of_a_very_long_text_a_sample_is_counted() -> None:
    text = LOG[:600_000]
    found = EXACT.count(text, len(text))

    assert (found.basis, found.error) == (Basis.SAMPLED, 0.03)
    assert abs(found.tokens / number_of(text) - 1) < 0.03


def test_where_the_pieces_have_no_clean_edge_the_count_is_not_called_exact() -> None:
    assert EXACT.count("a" * 100_000, 100_000).basis is Basis.SAMPLED


def test_without_a_tokenizer_tokens_are_estimated_and_the_error_is_known() -> None:
    estimate = token_estimate.likely(LOG)

    assert TokenCounter().count(LOG, len(LOG)) == (estimate, Basis.ESTIMATED, 0.35)
    assert TokenCounter().count_data(LOG.encode()) == (estimate, Basis.ESTIMATED, 0.35)
    assert tokens.estimate_from_size(3_300) == (1_000, Basis.ESTIMATED, 0.36)


def test_the_estimate_may_be_by_characters() -> None:
    assert TokenCounter(chars_per_token=4).count("漢" * 4_001, 12_003) == (1_000, Basis.ESTIMATED, 0.37)


class PanicException(BaseException):
    """As Rust code raises it into Python: no `Exception`."""


def failing(error: BaseException) -> Tokenizer:
    def tokenizer(text: str) -> int:
        raise error

    return tokenizer


@pytest.mark.parametrize(
    "tokenizer",
    [
        failing(RuntimeError("no")),
        failing(PanicException("a million spaces")),
        lambda text: -1,
        lambda text: None,
        lambda text: True,
        lambda text: 1.5,
    ],
)
def test_a_tokenizer_that_fails_is_replaced_by_the_estimate(tokenizer: Tokenizer) -> None:
    broken, plain = TokenCounter(tokenizer), TokenCounter()

    assert broken.count("x" * 3_300, 3_300) == plain.count("x" * 3_300, 3_300)
    assert [broken.exceeds(LOG, limit) for limit in (plain.least_limit(LOG), plain.least_limit(LOG) - 1)] == [
        False,
        True,
    ]
    assert broken.prefix(LOG, 10) == plain.prefix(LOG, 10) > 0
    assert broken.suffix(LOG, 10) == plain.suffix(LOG, 10) > 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_what_ends_a_program_or_a_task_comes_through_a_tokenizer(error: type[BaseException]) -> None:
    with pytest.raises(error):
        TokenCounter(failing(error())).count("text", 4)


@pytest.mark.parametrize("counter", [EXACT, TokenCounter(), TokenCounter(chars_per_token=4)])
@given(text=ANY_TEXT, limit=st.integers(0, 100))
def test_prefix_and_suffix_keep_to_the_limit_and_what_surely_fits_does(
    counter: TokenCounter, text: str, limit: int
) -> None:
    head, tail = counter.prefix(text, limit), counter.suffix(text, limit)

    assert not counter.exceeds(text[:head], limit)
    assert not counter.exceeds(text[len(text) - tail :], limit)
    assert not counter.exceeds(text[: counter.surely_fitting_chars(limit)], limit)
    assert not counter.exceeds(text, counter.least_limit(text))


def test_of_a_long_text_nearly_as_much_is_kept_as_the_limit_allows() -> None:
    for limit in (100, 10_000, 100_000):
        head, tail = EXACT.prefix(LOG, limit), EXACT.suffix(LOG, limit)

        assert limit * 0.95 < number_of(LOG[:head]) <= limit
        assert limit * 0.95 < number_of(LOG[len(LOG) - tail :]) <= limit


def test_a_limit_is_decided_without_counting_more_than_it_needs() -> None:
    calls: list[str] = []

    def watched(piece: str) -> list[int]:
        calls.append(piece)
        return ENCODING.encode_ordinary(piece)

    assert TokenCounter(watched).exceeds(LOG, 1_000)
    assert len(calls) == 1


@pytest.mark.parametrize("spare", [0, -1])
def test_without_a_tokenizer_a_limit_in_tokens_is_held_by_the_estimate(spare: int) -> None:
    text = LOG[:1_000]
    limits = Limits(10_000, max_tokens=token_estimate.at_most(text) + spare)

    assert exceeds(text, limits) is (spare < 0)
    assert exceeds(text.encode(), limits) is (spare < 0)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (TokenCount(1, Basis.EXACT, 0.0), "1 token"),
        (TokenCount(68_123, Basis.EXACT, 0.0), "68,123 tokens"),
        (TokenCount(68_123, Basis.SAMPLED, 0.03), "about 68,000 tokens"),
        (TokenCount(68_123, Basis.ESTIMATED, 0.35), "about 68,000 tokens"),
    ],
)
def test_only_an_exact_count_is_shown_exactly(count: TokenCount, text: str) -> None:
    assert str(count) == text


def test_tiktoken_without_its_file_is_no_tokenizer_and_asks_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    counter = TokenCounter(Tiktoken())

    with pytest.raises(TokenizerUnusable):
        Tiktoken()("text")
    assert counter.count("x" * 3_300, 3_300).basis is Basis.ESTIMATED
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_another_content_is_not_taken_for_tiktokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    cached = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
    cached.write_bytes(b"IQ== 0\n")

    with pytest.raises(TokenizerUnusable):
        Tiktoken()("text")
    assert cached.exists()


def test_an_encoding_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="encoding must be one of o200k_base, cl100k_base, not 'gpt-5'"):
        Tiktoken("gpt-5")


def test_tokens_cost_no_import_of_a_tokenizer() -> None:
    code = (
        "import sys, overspill.guard.policy; sys.exit('tiktoken' in sys.modules or 'requests' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("answer", [3, [1, 2, 3], (1, 2, 3), "abc"])
def test_a_tokenizer_may_answer_with_anything_that_has_a_length(answer: Any) -> None:
    assert TokenCounter(lambda _text: answer).count("x", 1).tokens == 3


def test_a_tokenizer_that_fails_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken_for_this_test(text: str) -> int:
        raise LookupError(text)

    counter = TokenCounter(broken_for_this_test)
    for _ in range(3):
        counter.count("secret text", 11)
        counter.exceeds("secret text", 1)
    told = [record.getMessage() for record in caplog.records if "broken_for_this_test" in record.getMessage()]

    assert len(told) == 1
    assert told[0].endswith("fails with LookupError: tokens are estimated")
    assert "secret" not in told[0]
