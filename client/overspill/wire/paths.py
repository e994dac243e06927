"""The paths of requests, and what a key may do there."""

from __future__ import annotations

from enum import StrEnum
from typing import Final
from urllib.parse import quote

VERSION: Final = "v1"
DEFAULT_URL: Final = "http://127.0.0.1:8750"


class Path:
    """Paths under the service's URL; braces mark parameters."""

    CAPTURES: Final = "/v1/captures"
    CAPTURE: Final = "/v1/captures/{ref}"
    CONTENT: Final = "/v1/captures/{ref}/content"
    HEAD: Final = "/v1/captures/{ref}/head"
    TAIL: Final = "/v1/captures/{ref}/tail"
    LINES: Final = "/v1/captures/{ref}/lines"
    GREP: Final = "/v1/captures/{ref}/grep"
    SUMMARY: Final = "/v1/captures/{ref}/summary"
    READERS: Final = "/v1/captures/{ref}/readers"
    HOLD: Final = "/v1/captures/{ref}/hold"
    LIVE: Final = "/v1/captures/{ref}/live"
    APPEND: Final = "/v1/captures/{ref}/append"
    COMPLETE: Final = "/v1/captures/{ref}/complete"
    FOLLOW: Final = "/v1/captures/{ref}/follow"
    WAIT: Final = "/v1/captures/{ref}/wait"
    TIMELINE: Final = "/v1/captures/{ref}/timeline"
    SESSION: Final = "/v1/sessions/{session}"
    SESSION_HOLD: Final = "/v1/sessions/{session}/hold"
    OBSERVATIONS: Final = "/v1/observations"
    USAGE: Final = "/v1/usage"
    STATS: Final = "/v1/stats"
    FLEET_STATS: Final = "/v1/admin/stats"
    OVERVIEW: Final = "/v1/overview"
    FLEET_OVERVIEW: Final = "/v1/admin/overview"
    EXPERIMENTS: Final = "/v1/experiments"
    KEYS: Final = "/v1/keys"
    KEY: Final = "/v1/keys/{id}"
    KEY_ROTATION: Final = "/v1/keys/{id}/rotate"
    PAGE_SESSION: Final = "/v1/page/session"
    PAGE_CODE: Final = "/v1/page/code"
    PAGE_FILE: Final = "/page/{file}"
    SWEEP: Final = "/v1/admin/sweep"
    HEALTHZ: Final = "/healthz"
    READYZ: Final = "/readyz"
    METRICS: Final = "/metrics"
    OPENAPI: Final = "/openapi.json"
    INDEX: Final = "/"


class Scope(StrEnum):
    """The rights of a key: the first five for its own tenant; `fleet` reads the statistics of all tenants."""

    WRITE = "write"
    READ = "read"
    DELETE = "delete"
    OBSERVE = "observe"
    ADMIN = "admin"
    FLEET = "fleet"


def encode_path(value: str) -> str:
    """Encode a reference or a session as one path segment."""
    return quote(value, safe=":")
