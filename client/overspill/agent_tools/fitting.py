"""Makes the whole answer to a request short enough for its reader. Hosts cut or spill longer ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from overspill import wire
from overspill.agent_tools.inspect_answer import answer_to
from overspill.agent_tools.inspect_request import OTHER_FIELDS_CHARS
from overspill.text import token_estimate

if TYPE_CHECKING:
    from overspill.agent_tools.agent_tool import Answer
    from overspill.agent_tools.inspect_request import InspectRequest
    from overspill.agent_tools.repeated_looks import RepeatedLooks

_MIN_BYTES: Final = 256
"""The least bytes of text to read, however small the limit is."""
_MAX_BYTES: Final = 64 * 1024
_SPARE: Final = 0.95
"""Aim a little below the limit: the next answer's text may need more escapes than this one's."""
_MANY_TOKENS: Final = 999_999
"""A number with as many digits as the tokens of an answer can have."""


class AnswerFitter:
    """Makes the whole answer to a request fit its limit: reads less, until it does."""

    def __init__(self, request: InspectRequest, session: str | None, looks: RepeatedLooks) -> None:
        self._request, self._session, self._looks = request, session, looks
        self.max_bytes: int = _bounded(request.max_chars - OTHER_FIELDS_CHARS)
        """Bytes of text to read next."""

    def answer(self, found: wire.Text | wire.Summary | wire.Waited) -> Answer | None:
        """Return the answer, or None if it is too long and less has to be read."""
        answer = answer_to(self._request, found)
        answer = self._looks.with_advice(self._request, self._session, found, answer)
        size, room = _size(answer), self._request.max_chars
        if size > room and isinstance(found, wire.Summary):
            return _counted(_without_end(answer, size - room))
        while size > room and isinstance(found, wire.Waited):  # a second wait would wait for something else
            answer = _without_beginning(answer, size - room)
            size = _size(answer)
        if size > room and self.max_bytes > _MIN_BYTES:
            other_fields = size - _size({"content": answer["content"], "matches": answer["matches"]})
            share = max(0.0, room - other_fields) / (size - other_fields)
            self.max_bytes = _bounded(int(min(share * _SPARE, _SPARE) * self.max_bytes))
            return None
        return _counted(answer)


def _bounded(max_bytes: int) -> int:
    return max(_MIN_BYTES, min(_MAX_BYTES, max_bytes))


def _size(answer: Answer) -> int:
    """Characters of `answer` as JSON, in which every character outside ASCII is escaped."""
    return len(json.dumps({**answer, "approx_tokens": _MANY_TOKENS}))


def _counted(answer: Answer) -> Answer:
    """Return the answer with the tokens of the whole answer in it."""
    whole = json.dumps({**answer, "approx_tokens": 0}, ensure_ascii=False)
    return {**answer, "approx_tokens": token_estimate.likely(whole)}


def _without_beginning(answer: Answer, surplus: int) -> Answer:
    """Return the answer to a wait, at least `surplus` characters shorter.

    The last lines stay: they are news.
    """
    content = answer["content"]
    rest = content[min(len(content), surplus) :]
    rest = rest.partition("\n")[2] if "\n" in rest else rest
    gone = content[: len(content) - len(rest)].count("\n")
    return {**answer, "content": rest, "start_line": answer["start_line"] + gone, "truncated": True}


def _without_end(answer: Answer, surplus: int) -> Answer:
    """Return a summary without the end of its text, shorter by `surplus` characters of JSON."""
    content = answer["content"]
    while content and surplus > 0:
        cut = max(1, surplus // len("\\u0000"))
        surplus -= _size({"": content[-cut:]}) - _size({"": ""})
        content = content[:-cut]
    return {**answer, "content": content, "truncated": True}
