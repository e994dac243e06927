"""All routes of the service."""

from __future__ import annotations

from typing import Final

from overspill_service.web import (
    admin,
    captures,
    content,
    following,
    health,
    keys,
    live,
    openapi,
    overview,
    page,
    reads,
    statistics,
    uploads,
)
from overspill_service.web.registry import RouteTable

_DESCRIBED: Final = (
    *uploads.ROUTES,
    *captures.ROUTES,
    *live.ROUTES,
    *content.ROUTES,
    *reads.ROUTES,
    *following.ROUTES,
    *statistics.ROUTES,
    *overview.ROUTES,
    *admin.ROUTES,
    *keys.ROUTES,
    *page.ROUTES,
    *health.ROUTES,
)
ROUTES: Final = (*_DESCRIBED, openapi.route_for(_DESCRIBED))
TABLE: Final = RouteTable(ROUTES)
