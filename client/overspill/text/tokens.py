"""Counts the tokens of a text with a tokenizer, or estimates them without one. The answer says which.

If a tokenizer fails in any way, the estimate takes its place. Nothing is ever fetched from a network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill import wire
from overspill.text import measure, quantities, token_estimate
from overspill.text.measure import MAX_BYTES_PER_CHARACTER
from overspill.text.tokenizers import Tokenizer, TokenizerUnusable, is_tokenizer_failure, note_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from overspill.text.body import FileBody


MAX_CALL_CHARS: Final = 64 * 1024
"""The most characters that a tokenizer gets at once. With more, some take unbounded time or memory."""
COUNTED_CHARS: Final = 8 * MAX_CALL_CHARS
"""Up to this length all of a text is counted, at 7 to 17 MB a second. Of a longer one samples are counted."""
SAMPLE_CHARS: Final = 8 * 1024
SAMPLES: Final = 16
SAMPLE_ERROR: Final = 0.03
"""The worst error of samples that was measured. Half of all texts are within 1 %."""
ESTIMATE_ERROR: Final = 0.35
"""The worst error of `token_estimate.likely` that was measured, for English, code, logs, JSON, and Chinese,
Japanese and Korean. Nine texts of ten are within 15 %."""
SIZE_ERROR: Final = 0.36
"""The same for 3.3 bytes a token, without extremes."""
CHARACTERS_ERROR: Final = 0.37
"""The same for 4 characters a token: -37 to +12 %, logs worst."""
_SPECIAL_TOKENS: Final = 2
"""Tokens that a tokenizer may add to any text: begin and end of text."""
_MAX_TRIES: Final = 12
_LOOKBACK_CHARS: Final = 4 * 1024
"""How far before the end of a piece a clean place to cut is searched for."""


class Basis(StrEnum):
    """The source of a number of tokens: a tokenizer, a tokenizer on samples, or an estimate."""

    EXACT = "exact"
    SAMPLED = "sampled"
    ESTIMATED = "estimated"


class TokenCount(NamedTuple):
    """A number of tokens. `error` is the worst that was measured, as a share of `tokens`."""

    tokens: int
    basis: Basis
    error: float

    @property
    def is_exact(self) -> bool:
        """Return whether a tokenizer counted the whole text."""
        return self.basis is Basis.EXACT

    def __str__(self) -> str:
        """Return `68,123 tokens` for an exact count. Other counts have two digits: `about 68,000 tokens`."""
        if self.is_exact:
            return quantities.plural(self.tokens, "token")
        return f"about {int(float(f'{self.tokens:.1e}')):,} tokens"


def estimate_from_size(size: int) -> TokenCount:
    """Estimate from the bytes alone, if the text is not at hand: 3.3 bytes a token, off by -24 to +36 %."""
    return TokenCount(wire.approx_tokens(size), Basis.ESTIMATED, SIZE_ERROR)


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """Counts with `tokenizer`. Without one, or if it fails, by `chars_per_token`, else by estimate.

    No text has more tokens than the estimate for limits: see `token_estimate`.
    """

    tokenizer: Tokenizer | None = None
    chars_per_token: float | None = None

    def count(self, text: str, size: int) -> TokenCount:
        """Count the tokens of `text`, which has `size` bytes."""
        try:
            return self._counted(text, size)
        except TokenizerUnusable:
            return self._estimated(text)

    def count_data(self, data: bytes | FileBody) -> TokenCount:
        """Estimate the tokens of bytes, which are not at hand as text. Raises `OSError`."""
        return TokenCount(token_estimate.likely_of_data(data), Basis.ESTIMATED, ESTIMATE_ERROR)

    def exceeds(self, text: str, limit: int) -> bool:
        """Return whether `text` has more than `limit` tokens. Counts no further than it has to."""
        try:
            return any(total > limit for total in self._totals(text))
        except TokenizerUnusable:
            return self._may_exceed(text, limit)

    def exceeds_data(self, data: bytes | FileBody, limit: int) -> bool:
        """Return whether these bytes have more than `limit` tokens, or may have. Raises `OSError`."""
        if self.chars_per_token is not None:
            return len(data) > limit * self.chars_per_token
        return token_estimate.data_exceeds(data, limit)

    def surely_fitting_chars(self, limit: int) -> int:
        """Return a number of characters up to which no text has more than `limit` tokens."""
        fits = max(0, limit - _SPECIAL_TOKENS) // MAX_BYTES_PER_CHARACTER
        if self.tokenizer is not None:
            return fits
        if self.chars_per_token is not None:
            return int(limit * self.chars_per_token)
        return limit // MAX_BYTES_PER_CHARACTER

    def least_limit(self, text: str) -> int:
        """Return the smallest limit that `text` does not exceed."""
        try:
            return max(self._totals(text), default=0)
        except TokenizerUnusable:
            if self.chars_per_token is None:
                return token_estimate.at_most(text)
            return math.ceil(len(text) / self.chars_per_token)

    def prefix(self, text: str, limit: int) -> int:
        """Return the characters of the longest prefix that is known to have at most `limit` tokens."""
        try:
            return self._prefix(text, limit)
        except TokenizerUnusable:
            return self._longest(text, limit, token_estimate.prefix)

    def suffix(self, text: str, limit: int) -> int:
        """Do the same as `prefix`, for a suffix."""
        try:
            return self._suffix(text, limit)
        except TokenizerUnusable:
            return self._longest(text, limit, token_estimate.suffix)

    def _counted(self, text: str, size: int) -> TokenCount:
        if len(text) > COUNTED_CHARS:
            return self._sampled(text, size)
        pieces = list(_pieces(text))
        total = sum(self._tokens(text[begin:end]) for begin, end in pieces)
        is_exact = all(_is_clean(text, end) for _, end in pieces[:-1])
        return (
            TokenCount(total, Basis.EXACT, 0.0)
            if is_exact
            else TokenCount(total, Basis.SAMPLED, SAMPLE_ERROR)
        )

    def _sampled(self, text: str, size: int) -> TokenCount:
        step = (len(text) - SAMPLE_CHARS) / (SAMPLES - 1)
        slices = [text[int(at * step) : int(at * step) + SAMPLE_CHARS] for at in range(SAMPLES)]
        found = sum(map(self._tokens, slices))
        return TokenCount(round(found * size / sum(map(measure.size, slices))), Basis.SAMPLED, SAMPLE_ERROR)

    def _estimated(self, text: str) -> TokenCount:
        if self.chars_per_token is None:
            return TokenCount(token_estimate.likely(text), Basis.ESTIMATED, ESTIMATE_ERROR)
        return TokenCount(int(len(text) / self.chars_per_token), Basis.ESTIMATED, CHARACTERS_ERROR)

    def _may_exceed(self, text: str, limit: int) -> bool:
        if self.chars_per_token is not None:
            return len(text) > limit * self.chars_per_token
        return token_estimate.exceeds(text, measure.size(text), limit)

    def _totals(self, text: str) -> Iterator[int]:
        total = 0
        for begin, end in _pieces(text):
            total += self._tokens(text[begin:end])
            yield total

    def _prefix(self, text: str, limit: int) -> int:
        used = 0
        for begin, end in _pieces(text):
            tokens = self._tokens(text[begin:end])
            if used + tokens > limit:
                return begin + self._within(text[begin:end], limit - used, tokens, is_suffix=False)
            used += tokens
        return len(text)

    def _suffix(self, text: str, limit: int) -> int:
        used, end = 0, len(text)
        while end > 0:
            begin = max(0, end - MAX_CALL_CHARS)
            tokens = self._tokens(text[begin:end])
            if used + tokens > limit:
                return len(text) - end + self._within(text[begin:end], limit - used, tokens, is_suffix=True)
            used, end = used + tokens, begin
        return len(text)

    def _within(self, piece: str, limit: int, tokens: int, *, is_suffix: bool) -> int:
        """Return how many characters at one end of `piece`, which has `tokens`, have at most `limit` tokens.

        Interpolates between a length that fits and one that does not, since each try costs a count.
        """
        fits, low_tokens = 0, 0
        too_many, high_tokens = len(piece), tokens
        for _ in range(_MAX_TRIES):
            gap = too_many - fits
            if gap <= 1 or low_tokens >= limit:
                break
            share = (limit - low_tokens) / max(1, high_tokens - low_tokens)
            length = fits + min(gap - 1, max(1, int(gap * share)))
            found = self._tokens(piece[len(piece) - length :] if is_suffix else piece[:length])
            if found <= limit:
                fits, low_tokens = length, found
            else:
                too_many, high_tokens = length, found
        return fits

    def _longest(self, text: str, limit: int, fitting: Callable[[str, int], int]) -> int:
        """Estimate the length of the prefix or suffix that does not exceed the limit."""
        if self.chars_per_token is None:
            return fitting(text, limit)
        return min(len(text), int(limit * self.chars_per_token))

    def _tokens(self, text: str) -> int:
        """Return the tokens of a text by the tokenizer. Raises `TokenizerUnusable`."""
        if self.tokenizer is None:
            raise TokenizerUnusable
        try:
            found = self.tokenizer(text)
            tokens = found if isinstance(found, int) else len(found)
        except BaseException as error:
            if is_tokenizer_failure(error):
                note_failure(self.tokenizer, error)
                raise TokenizerUnusable from error
            raise
        if isinstance(found, bool) or tokens < 0:
            note_failure(self.tokenizer, ValueError(f"it answered {found!r}"))
            raise TokenizerUnusable
        return tokens


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield where pieces begin and end. No token spans two pieces, if there is such a place to cut."""
    begin = 0
    while begin < len(text):
        end = _cut(text, begin, begin + MAX_CALL_CHARS) if len(text) - begin > MAX_CALL_CHARS else len(text)
        yield begin, end
        begin = end


def _cut(text: str, begin: int, end: int) -> int:
    for mark, is_clean in (("\n", _is_line_start), (" ", _is_word_start)):
        at = end
        while (at := text.rfind(mark, max(begin + 1, end - _LOOKBACK_CHARS), at)) > 0:
            if is_clean(text, at):
                return at + (mark == "\n")
    return end


def _is_line_start(text: str, at: int) -> bool:
    return text[at + 1].isalnum()


def _is_word_start(text: str, at: int) -> bool:
    """Return whether the space at `at` begins a token: a space belongs to the word after it."""
    return text[at - 1].isalnum() and text[at + 1].isalpha()


def _is_clean(text: str, at: int) -> bool:
    if text[at - 1] == "\n":
        return _is_line_start(text, at - 1)
    return text[at] == " " and at + 1 < len(text) and _is_word_start(text, at)
