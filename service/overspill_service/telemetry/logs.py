"""Structured logs on standard error: one line for each record, as text for people or JSON for machines.

A record has a message and fields: its own (`extra=fields(…)`), and those of the current request
(`bound_fields`, `bind_fields`). In text they follow the message as `name=value`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from aiohttp.http_exceptions import HttpProcessingError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"
MAX_CAUSES: Final = 4
_BOUND: Final[ContextVar[dict[str, Any] | None]] = ContextVar("fields", default=None)


@contextmanager
def bound_fields(**fields: object) -> Iterator[None]:
    """Add these fields to every record in the block, and those that `bind_fields` adds meanwhile."""
    token = _BOUND.set(fields)
    try:
        yield
    finally:
        _BOUND.reset(token)


def bind_fields(**fields: object) -> None:
    """Add fields to all later records of the current request. Outside of `bound_fields` nothing happens."""
    current = _BOUND.get()
    if current is not None:
        current |= fields


def current_fields() -> dict[str, Any]:
    """Return the fields of the current request."""
    return dict(_BOUND.get() or {})


def bound_field(name: str) -> str:
    """Return a field of the current request as text, empty if there is none."""
    return str((_BOUND.get() or {}).get(name, ""))


def fields(**fields: object) -> dict[str, Any]:
    """Return the `extra` of a record with these fields."""
    return {"fields": fields}


def causes(error: BaseException) -> str:
    """Return the causes of an error, nearest first, each with its class. Empty if there are none."""
    found: list[str] = []
    cause = error.__cause__
    while isinstance(cause, Exception) and len(found) < MAX_CAUSES:  # a cancellation explains nothing
        text = str(cause)
        found.append(f"{type(cause).__name__}: {text}" if text else type(cause).__name__)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "; ".join(found)


_SECRETS: Final = re.compile(
    r"\b(ov[sl]_)[a-z2-7]+|\b((?:bearer|basic|token)[ :]+)[^\s'\"\\]+", re.IGNORECASE
)
_SECRET_MARKS: Final = "ovs_", "ovl_", "bearer", "basic", "token"
"""What `_SECRETS` needs to match at all, in lower case. Each is looked for faster than the pattern is."""


def without_secrets(text: str) -> str:
    """Return a line of the log with keys and credentials masked, wherever they come from."""
    lowered = text.lower()
    if not any(mark in lowered for mark in _SECRET_MARKS):
        return text
    return _SECRETS.sub(lambda found: (found[1] or found[2]) + "***", text)


class MalformedRequests(logging.Filter):
    """Says of a malformed request only what kind of mistake it has: aiohttp would quote all of the line."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            what = error.message.partition("\n")[0].rstrip(":") or type(error).__name__
            record.msg, record.args, record.exc_info = "a malformed request was refused: %s", (what,), None
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return True


MALFORMED: Final = MalformedRequests()


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = _fields(record) | {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": os.getpid(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, ensure_ascii=False, default=str))


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (the library's name)
        fields = _fields(record)
        record.request_id = fields.pop("request_id", "-")
        shown = [
            super().formatMessage(record),
            *(f"{name}={_quoted_if_needed(fields[name])}" for name in fields),
        ]
        return " ".join(shown)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record: those of the current request, then its own."""
    return {**(_BOUND.get() or {}), **getattr(record, "fields", {})}


def _quoted_if_needed(value: object) -> str:
    """Return a value as text, quoted if it has spaces, quotes or unprintable characters."""
    text = str(value)
    is_word = text.isprintable() and not any(mark in text for mark in ' "=')
    return text if text and is_word else json.dumps(text, ensure_ascii=False)


def configure(level: str, format_name: str) -> None:
    """Send every record of the service to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if format_name == "json" else TextFormatter(TEXT_FORMAT))
    logging.getLogger("aiohttp.server").addFilter(MALFORMED)
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line shows them
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("overspill_service").setLevel(level.upper())
