"""Lines of the log: a record and its fields as text for people, or as JSON for machines.

Every request has a line, so they are made for speed. No line has a key or a credential.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from overspill_service.audit.visible_text import visible, visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    Fields = dict[str, Any]

_SECRETS: Final = re.compile(
    r"\b(ov[sl]_)[a-z2-7]+|\b((?:bearer|basic|token)[ :]+)[^\s'\"\\]+", re.IGNORECASE
)
_SECRET_MARKS: Final = "ovs_", "ovl_", "bearer", "basic", "token"
"""Texts in lower case of which `_SECRETS` needs one to match.

Searching for them is faster than the pattern.
"""
_is_word: Final = re.compile(r"[!#-<>-~]+").fullmatch
"""Printable ASCII without spaces, quotes and `=`: what needs no quotes, nearly always."""
_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)


def without_secrets(text: str) -> str:
    """Return a line of the log with keys and credentials masked, wherever they come from."""
    lowered = text.lower()
    for mark in _SECRET_MARKS:
        if mark in lowered:
            return _SECRETS.sub(lambda found: (found[1] or found[2]) + "***", text)
    return text


class Seconds:
    """The text of an instant up to its second. It is made once in a second."""

    def __init__(self, pattern: str, split: Callable[[float], time.struct_time]) -> None:
        self._pattern, self._split = pattern, split
        self._known: tuple[int, str] = (-1, "")

    def of(self, second: int) -> str:
        known, text = self._known
        if known != second:
            text = time.strftime(self._pattern, self._split(second))
            self._known = second, text
        return text


class LineFormatter(logging.Formatter, ABC):
    """The base of both formats. `current` returns the fields of the current request."""

    def __init__(self, current: Callable[[], Fields | None]) -> None:
        super().__init__()
        self._current = current

    @abstractmethod
    def line(self, at: float, level: str, logger: str, message: str, fields: Fields) -> str:
        """Return a line. `at`: seconds since the epoch. It changes the fields."""

    def fields(self, own: Fields) -> Fields:
        """Return all fields of a record: those of the current request, then its own."""
        return {**(self._current() or {}), **own}

    def format(self, record: logging.LogRecord) -> str:
        fields = self.fields(getattr(record, "fields", {}))
        exception = self.formatException(record.exc_info) if record.exc_info else ""
        if exception and self.has_exception_field:
            fields["exception"] = exception
        line = self.line(record.created, record.levelname, record.name, record.getMessage(), fields)
        if exception and not self.has_exception_field:
            line += "\n" + without_secrets(visible_lines(exception))
        return line

    has_exception_field: ClassVar[bool]
    """Whether an exception is a field. Else it follows the line."""


class JsonFormatter(LineFormatter):
    _seconds = Seconds("%Y-%m-%dT%H:%M:%S", time.gmtime)
    has_exception_field = True

    def line(self, at: float, level: str, logger: str, message: str, fields: Fields) -> str:
        second = int(at)
        fields["time"] = f"{self._seconds.of(second)}.{int((at - second) * 1000):03d}+00:00"
        fields["level"] = level.lower()
        fields["logger"] = logger
        fields["process"] = os.getpid()
        fields["message"] = message
        return without_secrets(visible(_json(fields)))


def _json(line: Fields) -> str:
    try:
        return _ENCODER.encode(line).decode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(LineFormatter):
    _seconds = Seconds("%Y-%m-%d %H:%M:%S", time.localtime)
    has_exception_field = False

    def line(self, at: float, level: str, logger: str, message: str, fields: Fields) -> str:
        second = int(at)
        time_ = f"{self._seconds.of(second)},{int((at - second) * 1000):03d}"
        request_id = fields.pop("request_id", "-")
        words = [f"{time_} {level} {logger} [{request_id}] {visible_lines(message)}"]
        words += [f"{name}={_quoted_word(value)}" for name, value in fields.items()]
        return without_secrets(" ".join(words))


def _quoted_word(value: object) -> object:
    """Return a value as one word of a line: quoted if it has spaces, quotes or unprintable characters."""
    if value.__class__ is int or value.__class__ is float:
        return value
    text = value if isinstance(value, str) else str(value)
    if _is_word(text):
        return text
    is_word = text.isprintable() and not any(mark in text for mark in ' "=')
    return text if text and is_word else visible(json.dumps(text, ensure_ascii=False))


class RequestRecord(logging.LogRecord):
    """The record of a request, for handlers and filters of others."""

    def __init__(self, logger: str, message: str, fields: Fields) -> None:
        now = time.time()
        self.__dict__ = _TEMPLATE | {"name": logger, "msg": message, "created": now, "fields": fields}
        self.msecs = now % 1 * 1000


_TEMPLATE: Final = logging.LogRecord("", logging.INFO, "", 0, "", None, None).__dict__
