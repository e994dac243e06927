"""Structured logs on standard error: one line for each record, as text for people or JSON for machines.

A record has a message and fields: its own (`extra=fields(…)`), and those of the current request
(`bound_fields`, `bind_fields`). In text they follow the message as `name=value`.
"""

from __future__ import annotations

import logging
import re
import sys
from contextvars import ContextVar
from typing import Any, Final

from aiohttp.http_exceptions import HttpProcessingError, InvalidURLError

from overspill_service.telemetry.log_lines import JsonFormatter, LineFormatter, RequestRecord, TextFormatter
from overspill_service.telemetry.log_writer import LogWriter

MAX_CAUSES: Final = 4
_QUOTED: Final = re.compile(r""":?\n|(?: when reading)?: b?['"]| line b?['"]""")
_BOUND: Final[ContextVar[dict[str, Any] | None]] = ContextVar("fields", default=None)


class bound_fields:  # noqa: N801  (used as a `with` block, as contextlib's own)
    """Add these fields to every record in the block, and those that `bind_fields` adds meanwhile."""

    __slots__ = ("_token", "fields")

    def __init__(self, **fields: object) -> None:
        self.fields: dict[str, Any] = fields

    def __enter__(self) -> dict[str, Any]:
        self._token = _BOUND.set(self.fields)
        return self.fields

    def __exit__(self, *_: object) -> None:
        _BOUND.reset(self._token)


def bind_fields(**fields: object) -> None:
    """Add fields to all later records of the current request. Outside of `bound_fields` nothing happens."""
    current = _BOUND.get()
    if current is not None:
        current |= fields


def current_fields() -> dict[str, Any]:
    """Return the fields of the current request."""
    return dict(_BOUND.get() or {})


def log_request(log: logging.Logger, message: str, **fields: object) -> None:
    """Log that a request has ended, at the level INFO."""
    if not log.isEnabledFor(logging.INFO):
        return
    writer = logging.root.handlers[0] if len(logging.root.handlers) == 1 else None
    if isinstance(writer, LogWriter) and not (log.handlers or log.filters):
        writer.write_request(log.name, message, fields)
    else:
        log.handle(RequestRecord(log.name, message, fields))


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


def mistake_of(error: HttpProcessingError) -> str:
    """Return the kind of mistake of a malformed request, without the line or target that aiohttp quotes."""
    if isinstance(error, InvalidURLError):
        return "Invalid target of the request"
    return _QUOTED.split(error.message, maxsplit=1)[0] or type(error).__name__


class MalformedRequests(logging.Filter):
    """Logs only the kind of mistake of a malformed request. aiohttp would quote all of the line."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            mistake = mistake_of(error)
            record.msg, record.args, record.exc_info = "a malformed request was refused: %s", (mistake,), None
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return True


MALFORMED: Final = MalformedRequests()


def formatter_of(format_name: str) -> LineFormatter:
    """Return the formatter for `json` or `text`."""
    return (JsonFormatter if format_name == "json" else TextFormatter)(_BOUND.get)


def configure(level: str, format_name: str) -> None:
    """Send every record of the service to standard error."""
    handler = LogWriter(sys.stderr, formatter_of(format_name))
    logging.getLogger("aiohttp.server").addFilter(MALFORMED)
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line shows them
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("overspill_service").setLevel(level.upper())
