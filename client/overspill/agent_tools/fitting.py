"""Makes the whole answer to a question as short as its reader takes: hosts cut longer ones, or spill them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.text import token_estimate

if TYPE_CHECKING:
    from overspill.agent_tools.inspection import Answer, Question

_LEAST_BYTES: Final = 256
"""Bytes of text that an answer has room for in any case."""
_MOST_BYTES: Final = 64 * 1024
_BESIDE: Final = 1_500
"""Characters of an answer beside its text, about."""
_SPARE: Final = 0.95
_MANY_TOKENS: Final = 999_999
"""As long as any number of tokens that an answer may have."""


class Fitting:
    """Makes the whole answer to a question fit its limit: reads less, until it does."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.max_bytes: int = _bounded(question.max_chars - _BESIDE)
        """Bytes of text to read next."""

    def answer(self, found: wire.Text | wire.Summary) -> Answer | None:
        """Return the answer, or None where it is too long and less has to be read."""
        answer = self._question.answer(found)
        size, room = _size(answer), self._question.max_chars
        if size > room and isinstance(found, wire.Summary):
            return _counted(_shortened(answer, size - room))
        if size > room and self.max_bytes > _LEAST_BYTES:
            beside = size - _size({"content": answer["content"], "matches": answer["matches"]})
            share = max(0.0, room - beside) / (size - beside)
            self.max_bytes = _bounded(int(min(share * _SPARE, _SPARE) * self.max_bytes))
            return None
        return _counted(answer)


def _bounded(max_bytes: int) -> int:
    return max(_LEAST_BYTES, min(_MOST_BYTES, max_bytes))


def _size(answer: Answer) -> int:
    """Characters of `answer` as JSON, in which every character outside ASCII is escaped."""
    return len(json.dumps({**answer, "approx_tokens": _MANY_TOKENS}))


def _counted(answer: Answer) -> Answer:
    """The answer with the tokens of all of it."""
    whole = json.dumps({**answer, "approx_tokens": 0}, ensure_ascii=False)
    return {**answer, "approx_tokens": token_estimate.likely(whole)}


def _shortened(answer: Answer, surplus: int) -> Answer:
    """A summary without the end of its text; escaped characters count for as many as they become."""
    content = answer["content"]
    while content and surplus > 0:
        cut = max(1, surplus // len("\\u0000"))
        surplus -= _size({"": content[-cut:]}) - _size({"": ""})
        content = content[:-cut]
    return {**answer, "content": content, "truncated": True}
