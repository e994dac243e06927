"""Structured logs on standard error: a line a record, as text for people or JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN = "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "request_id": getattr(record, "request_id", "-"),
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure(level: str, form: str, request_id: Callable[[], str]) -> None:
    """Send every record of the service to standard error; `request_id` tells whose it is."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(PLAIN))

    def stamp(record: logging.LogRecord) -> bool:
        record.request_id = request_id()
        return True

    handler.addFilter(stamp)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("overspill_service").setLevel(level.upper())
