"""Tells whether an exception says that a request was too large for the model, or for a gateway before it.

It looks at class names, statuses, codes, bodies and texts, and into causes and groups; it imports no
provider's package. Errors are not trusted: whatever their attributes do, nothing is raised, nothing is read
from a network, and only the beginning of a text is searched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from overspill.errors import OverspillError
from overspill.histories.provider_errors import (
    Overflow,
    OverflowKind,
    is_rate_limit,
    overflow_in,
    overflow_of_code,
    single_request,
    sized,
)
from overspill.shapes.fields import get

__all__ = ["Overflow", "OverflowKind", "is_overflow", "overflow"]

_MAX_ERRORS: Final = 32
_MAX_BODY: Final = 64 * 1024
_MAX_DEPTH: Final = 5
_MAX_FIELDS: Final = 200
_TOO_LARGE: Final = 413
_RATES: Final = frozenset({429})
_REFUSALS: Final = frozenset({401, 402, 403, 404})
_STATUSES: Final = range(400, 600)

_STATUS_FIELDS: Final = ("status_code", "status", "http_status", "statusCode", "HTTPStatusCode", "code")
_CODE_FIELDS: Final = ("code", "Code", "type", "error_code", "status", "reason")
_TEXT_FIELDS: Final = (
    *("message", "Message", "msg", "detail", "details", "error", "Error", "errors", "raw"),
    *("body", "server_message", "errorMessage", "error_message", "ResponseMetadata", "metadata"),
)
_SIZE_FIELDS: Final = ("n_ctx", "n_prompt_tokens")  # llama.cpp
_FIELDS: Final = tuple(dict.fromkeys((*_CODE_FIELDS, *_STATUS_FIELDS, *_TEXT_FIELDS, *_SIZE_FIELDS)))
_CONTEXT_NAME: Final = re.compile(
    r"Context(?:Window|Length|Size|Limit)?(?:Overflow|Exceed|TooLong|TooLarge)|PromptTooLong"
)
_PAYLOAD_NAME: Final = re.compile(r"(?:Request|Payload|Entity|Content|Body)TooLarge")
_RATE_NAME: Final = re.compile(r"RateLimit|Throttl|TooManyRequests|ResourceExhausted|Quota")
_REFUSAL_NAME: Final = re.compile(r"Authentication|Unauthorized|PermissionDenied|Forbidden|PaymentRequired")


def is_overflow(error: object) -> bool:
    """Return whether a smaller request might have been accepted; see `overflow`."""
    return overflow(error) is not None


def overflow(error: object) -> Overflow | None:
    """Return what was too large, and by how much if the provider says so. None for every other error.

    `error` is an exception, or the body of an error answer as text or dict. Rate limits do not count, with
    one exception: a single request above the limit of a whole minute, for which waiting is no use.
    """
    found: Overflow | None = None
    waiting, seen = [error], list[object]()
    while waiting and len(seen) < _MAX_ERRORS:
        current = waiting.pop(0)
        if any(current is other for other in seen):
            continue
        seen.append(current)
        evidence = _Evidence.of(current)
        this = evidence.overflow()
        if this is not None and (found is None or this.limit is not None):
            found = this
        if found is not None and found.limit is not None:
            return found
        if isinstance(current, BaseException) and not evidence.is_other:
            waiting += _inner(current, evidence)
    return found


def _inner(error: BaseException, evidence: _Evidence) -> list[object]:
    """Return the errors behind `error`.

    An answer with a status speaks for itself: the error that was handled when it came is not its reason.
    """
    inner: list[object] = []
    if isinstance(error, BaseExceptionGroup):
        inner += error.exceptions[:_MAX_ERRORS]
    if error.__cause__ is not None:
        inner.append(error.__cause__)
    elif error.__context__ is not None and not error.__suppress_context__ and evidence.status is None:
        inner.append(error.__context__)
    return inner


@dataclass(slots=True)
class _Evidence:
    """The details of one error, such as its status, codes, texts and sizes."""

    names: list[str] = field(default_factory=list)
    status: int | None = None
    codes: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    limit: int | None = None
    actual: int | None = None
    is_foreign: bool = False
    """Errors of this package and of the operating system: never those of a model provider."""
    fields: int = 0

    @classmethod
    def of(cls, error: object) -> _Evidence:
        evidence = cls()
        if not isinstance(error, BaseException):
            evidence.add_body(error)
            return evidence
        evidence.names = [kind.__name__ for kind in type(error).__mro__]
        evidence.texts.append(_text(error))
        for name in _FIELDS:
            evidence.add_field(name, get(error, name))
        evidence.add_response(get(error, "response"))
        is_local = isinstance(error, OSError) and evidence.status is None
        evidence.is_foreign = isinstance(error, OverspillError) or is_local
        return evidence

    def add_response(self, response: object) -> None:
        """Add an HTTP response, as far as it was read.

        botocore's response is a dict. httpx and requests keep what was read in `_content`; their properties
        would read from the network, or raise.
        """
        if isinstance(response, Mapping):
            self.add_body(response)
        elif response is not None:
            for name in ("status_code", "status"):
                self.add_field(name, get(response, name))
            self.add_body(get(response, "_content"))

    def add_body(self, body: object, depth: int = 0) -> None:
        """Add an error body in any form. JSON in a text is parsed."""
        self.fields += 1
        if depth > _MAX_DEPTH or self.fields > _MAX_FIELDS:
            return
        if isinstance(body, (bytes, bytearray)):
            body = bytes(body[:_MAX_BODY]).decode(errors="replace")
        if isinstance(body, str):
            if body not in self.texts:
                self.texts.append(body)
            body = _parsed(body)
        if isinstance(body, Mapping):
            for name in _FIELDS:
                self.add_field(name, get(body, name), depth)
        elif isinstance(body, (list, tuple)):
            for item in body[:_MAX_FIELDS]:
                self.add_body(item, depth + 1)

    def add_field(self, name: str, value: object, depth: int = 0) -> None:
        if value is None or isinstance(value, bool):
            return
        number: int | None = None
        if isinstance(value, int) or (isinstance(value, str) and _is_status(value)):
            number = int(value)
        if number is not None and name in _STATUS_FIELDS and number in _STATUSES:
            self.status = self.status or number
        elif name == "n_ctx":
            self.limit = number
        elif name == "n_prompt_tokens":
            self.actual = number
        if name in _CODE_FIELDS and isinstance(value, (str, int)):
            self.codes.append(str(value)[:100])
        elif name in _TEXT_FIELDS:
            self.add_body(value, depth + 1)

    @property
    def is_other(self) -> bool:
        """Whether the error is certainly no overflow."""
        return self.is_foreign or ((self.is_rate or self.is_refusal) and self.overflow() is None)

    @property
    def is_rate(self) -> bool:
        return (
            self.status in _RATES
            or self._named(_RATE_NAME)
            or any(is_rate_limit(text) for text in (*self.codes, *self.texts))
        )

    @property
    def is_refusal(self) -> bool:
        return self.status in _REFUSALS or self._named(_REFUSAL_NAME)

    def overflow(self) -> Overflow | None:
        if self.is_foreign or self.is_refusal:
            return None
        kind = next(filter(None, map(overflow_of_code, self.codes)), None)
        if kind is None and self.is_rate:
            return next(filter(None, map(single_request, self.texts)), None)
        stated = self._from_texts()
        if kind is not None:
            numbers = (self.limit, self.actual) if stated is None else (stated.limit, stated.actual)
            return stated if stated is not None and stated.limit is not None else sized(kind, *numbers)
        return stated or self._from_name_or_status()

    def _from_texts(self) -> Overflow | None:
        """Return what the texts say; a text with numbers is preferred."""
        found = list(filter(None, map(overflow_in, self.texts)))
        best = next((each for each in found if each.limit is not None), found[0] if found else None)
        if best is not None and best.limit is None and self.limit is not None:
            return sized(best.kind, self.limit, self.actual)
        return best

    def _from_name_or_status(self) -> Overflow | None:
        """Return what the class's name or the status alone says."""
        if self._named(_CONTEXT_NAME):
            return Overflow(OverflowKind.CONTEXT)
        if self.status == _TOO_LARGE or self._named(_PAYLOAD_NAME):
            return Overflow(OverflowKind.PAYLOAD)
        return None

    def _named(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(name) for name in self.names)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (an error whose `__str__` raises)
        return ""


def _is_status(text: str) -> bool:
    return len(text) == len("413") and text.isdecimal() and text.isascii()


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] not in {"{", "["} or len(text) > _MAX_BODY:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
