r"""Limits in bytes, lines, characters and tokens, whether a text exceeds them, and limits made of others.

There is one question, `exceeds(body, limits)`, for texts, bytes and files. It reads no more than it
needs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.text import token_estimate
from overspill.text.body import FileBody
from overspill.text.encoding import STEP_CHARS
from overspill.text.measure import MAX_BYTES_PER_CHARACTER, count_lines, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill.text.body import Body
    from overspill.text.tokens import TokenCounter

UNLIMITED: Final = sys.maxsize
PREVIEW_BYTES_PER_TOKEN: Final = 2.4
"""Bytes of preview per token of a limit: nineteen of twenty logs and programs have more bytes in a token."""
CHARS_PER_TOKEN: Final = 4
_CONTINUATION_BYTES: Final = bytes(range(0x80, 0xC0))
_COPIED_CHARS: Final = 128 * 1024
"""Up to this length, lines are counted in a copy: that is faster than to look at each character."""


class Limits(NamedTuple):
    """The most that a text may have. `max_chars` and `max_tokens` are None if there is no such limit.

    `counter` counts tokens. Without one, `token_estimate` estimates them.
    """

    max_bytes: int
    max_lines: int = UNLIMITED
    max_chars: int | None = None
    max_tokens: int | None = None
    counter: TokenCounter | None = None


def exceeds(body: Body, limits: Limits) -> bool:
    """Return whether a body has more bytes, lines, characters or tokens than its limits allow.

    Each step costs more than the one before: the length alone, a flag of the string, encoding, counting
    lines, counting tokens. A text of `n` characters has at most `n` lines. Tokens of bytes are estimated.
    Raises `OSError` if a file cannot be read.
    """
    if not isinstance(body, str):
        return _data_exceeds(body, limits)
    length = len(body)
    if length > limits.max_bytes or (limits.max_chars is not None and length > limits.max_chars):
        return True
    if length * MAX_BYTES_PER_CHARACTER > limits.max_bytes and size(body) > limits.max_bytes:
        return True
    if length > limits.max_lines and has_more_lines(body, limits.max_lines):
        return True
    return limits.max_tokens is not None and _has_more_tokens(body, limits.max_tokens, limits.counter)


def _has_more_tokens(text: str, limit: int, counter: TokenCounter | None) -> bool:
    return (
        token_estimate.exceeds(text, size(text), limit) if counter is None else counter.exceeds(text, limit)
    )


def _data_exceeds(data: bytes | FileBody, limits: Limits) -> bool:
    if len(data) > limits.max_bytes:
        return True
    if limits.max_chars is not None and _has_more_characters(data, limits.max_chars):
        return True
    if (data.lines if isinstance(data, FileBody) else count_lines(data)) > limits.max_lines:
        return True
    if limits.max_tokens is None:
        return False
    if limits.counter is None:
        return token_estimate.data_exceeds(data, limits.max_tokens)
    return limits.counter.exceeds_data(data, limits.max_tokens)


def _has_more_characters(data: bytes | FileBody, limit: int) -> bool:
    """Count the bytes that begin a UTF-8 character, unless the size alone decides."""
    if not limit < len(data) <= limit * MAX_BYTES_PER_CHARACTER:
        return len(data) > limit
    pieces = (
        data.pieces()
        if isinstance(data, FileBody)
        else (data[at : at + STEP_CHARS] for at in range(0, len(data), STEP_CHARS))
    )
    return sum(len(piece.translate(None, _CONTINUATION_BYTES)) for piece in pieces) > limit


def has_more_lines(text: str, limit: int) -> bool:
    """Return whether `text` has more than `limit` lines: whether anything follows that many newlines.

    `replace` goes from newline to newline at the speed of memory, while `count` looks at each character.
    """
    if limit <= 0:
        return bool(text)
    if len(text) > _COPIED_CHARS:
        return _has_more_lines_in_steps(text, limit)
    at = text.replace("\n", " ", limit - 1).find("\n", limit - 1)
    return -1 < at < len(text) - 1


def _has_more_lines_in_steps(text: str, limit: int) -> bool:
    lines = int(not text.endswith("\n"))
    return any(
        (lines := lines + text.count("\n", at, at + _COPIED_CHARS)) > limit
        for at in range(0, len(text), _COPIED_CHARS)
    )


def least_token_limit(text: str, counter: TokenCounter | None) -> int:
    """Return the smallest limit in tokens that `text` does not exceed."""
    return token_estimate.at_most(text) if counter is None else counter.least_limit(text)


def surely_fitting_bytes(limits: Limits) -> int:
    """Return the bytes up to which neither bytes nor tokens exceed the limits; 0 if tokens are counted."""
    if limits.max_tokens is None:
        return limits.max_bytes
    if limits.counter is not None:
        return 0
    return min(limits.max_bytes, limits.max_tokens)  # no token is shorter than a byte


def surely_fitting_chars(limits: Limits) -> int:
    """Return the length in characters up to which no text exceeds the limits, whatever is in it."""
    return min(limits.max_lines, surely_fitting_chars_on_lines(limits))


def surely_fitting_chars_on_lines(limits: Limits) -> int:
    """Do the same as `surely_fitting_chars`, for a text that has no more lines than the limits allow."""
    lengths = [limits.max_bytes // MAX_BYTES_PER_CHARACTER]
    if limits.max_chars is not None:
        lengths.append(limits.max_chars)
    if limits.max_tokens is not None:
        lengths.append(
            limits.max_tokens // MAX_BYTES_PER_CHARACTER
            if limits.counter is None
            else limits.counter.surely_fitting_chars(limits.max_tokens)
        )
    return min(lengths)


def allowed_bytes(limits: Limits, body: Body) -> int:
    """Return the most bytes of `body` that the limits allow, at 4 characters a token."""
    width = 1 if isinstance(body, str) and body.isascii() else MAX_BYTES_PER_CHARACTER
    sizes = [limits.max_bytes]
    if limits.max_chars is not None:
        sizes.append(limits.max_chars * width)
    if limits.max_tokens is not None:
        sizes.append(limits.max_tokens * CHARS_PER_TOKEN * width)
    return min(sizes)


def scaled(limits: Limits, share: float, rounded: Callable[[float], int] = int) -> Limits:
    """Return `limits` times `share`, rounded down unless said otherwise."""
    size, lines, chars, tokens = (
        limit if limit in {None, UNLIMITED} else rounded((limit or 0) * share) for limit in limits[:4]
    )
    return Limits(size or 0, lines or 0, chars, tokens, limits.counter)


def stricter(one: Limits, other: Limits) -> Limits:
    """Return limits that allow only texts that both allow. Tokens are counted as `one` counts them."""
    size, lines, chars, tokens = (
        b if a is None else a if b is None else min(a, b) for a, b in zip(one[:4], other[:4], strict=True)
    )
    return Limits(size or 0, lines or 0, chars, tokens, one.counter)


def left_beside(limits: Limits, text: str, lines: int | None = None) -> Limits:
    """Return the rest of `limits` after `text`, which has `lines` lines (counted unless given)."""
    chars, tokens, counter = limits.max_chars, limits.max_tokens, limits.counter
    lines = count_lines(text) if lines is None else lines
    return Limits(
        max_bytes=_reduced(limits.max_bytes, size(text)),
        max_lines=_reduced(limits.max_lines, lines),
        max_chars=None if chars is None else max(0, chars - len(text)),
        max_tokens=None if tokens is None else max(0, tokens - least_token_limit(text, counter)),
        counter=counter,
    )


def with_room_for(limits: Limits, texts: list[str]) -> Limits:
    """Return limits that leave room for these texts too, even where JSON escapes them."""
    text = "\n".join([*texts, ""])
    chars, tokens = limits.max_chars, limits.max_tokens
    escaped = text.count("\n") + text.count('"') + text.count("\\")
    return limits._replace(
        max_bytes=_grown(limits.max_bytes, size(text) + escaped),
        max_lines=_grown(limits.max_lines, count_lines(text)),
        max_chars=None if chars is None else _grown(chars, len(text) + escaped),
        max_tokens=None if tokens is None else tokens + least_token_limit(text, limits.counter),
    )


def _grown(limit: int, number: int) -> int:
    return UNLIMITED if limit == UNLIMITED else limit + number


def _reduced(limit: int, number: int) -> int:
    return UNLIMITED if limit == UNLIMITED else max(0, limit - number)
