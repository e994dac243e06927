"""The facts about one request and its answer that the parts of the web layer share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

if TYPE_CHECKING:
    from overspill_service.audit.events import Action
    from overspill_service.resources.token_buckets import TokenBucket
    from overspill_service.telemetry.spans import RequestSpan
    from overspill_service.web.service import Service


@dataclass(slots=True)
class Exchange:
    service: Service
    request_id: str
    route: str
    """The path of the request's route, with its parameters in braces."""
    address: str
    """The client's address."""
    head_size: int = 0
    """Bytes of the request's target and fields. 0 until they are looked at."""
    fields: dict[str, Any] = field(default_factory=dict)
    """The fields of the request's log lines."""
    key_expires: str = ""
    """When the key of the request expires, if that is soon."""
    is_admitted: bool = False
    """A tenant sent it, and it was admitted as one of the tenant's."""
    bucket: TokenBucket | None = None
    """The bucket in which the request was counted, if its tenant or key has a rate."""
    response: web.StreamResponse | None = None
    """The response whose header may have been sent already."""
    action: Action | None = None
    """The action of the request, if the audit log is on."""
    are_reads_audited: bool = False
    span: RequestSpan | None = None


EXCHANGE: Final = web.RequestKey("exchange", Exchange)
