"""The parts of the service that handlers use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from aiohttp import web
from overspill.reading.chunks import Caps

from overspill_service.resources.admission import Admission
from overspill_service.resources.body_buffers import BodyBuffers
from overspill_service.resources.connections import Connections
from overspill_service.resources.loop_time import LoopTime
from overspill_service.telemetry.failure_log import FailureLog
from overspill_service.web.history import History

if TYPE_CHECKING:
    from overspill_service.archive.archive import Archive
    from overspill_service.archive.key_issuing import KeyIssuer
    from overspill_service.archive.reader_notes import ReaderNotes
    from overspill_service.audit.log import AuditLog
    from overspill_service.live.flusher import Flusher
    from overspill_service.live.streams import Streams
    from overspill_service.live.views import LiveViews
    from overspill_service.resources.body_pace import BodyPace
    from overspill_service.resources.fair_places import Places
    from overspill_service.resources.scans import ScanThreads
    from overspill_service.resources.tenant_mix import TenantMix
    from overspill_service.resources.unsent_answers import UnsentAnswers
    from overspill_service.settings.settings import Settings
    from overspill_service.telemetry.metrics import Metrics
    from overspill_service.telemetry.scrapes import Scrapes
    from overspill_service.telemetry.spans import Spans
    from overspill_service.tenants.directory import TenantDirectory
    from overspill_service.web.authentication import Authenticator
    from overspill_service.web.client_address import ClientAddresses
    from overspill_service.web.open_mode import OpenMode
    from overspill_service.web.page_sessions import PageSessions
    from overspill_service.web.request_rates import RequestRates


class InFlight:
    """Counts the requests that are being answered. Each is a `with` block."""

    def __init__(self) -> None:
        self.count = 0
        self._begun = 0
        """All that have ever begun."""

    def __enter__(self) -> None:
        self.count += 1
        self._begun += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1

    async def wait_until_quiet(self, seconds: float) -> None:
        """Wait until no request has run for about `seconds`."""
        begun = -1
        while self.count or self._begun != begun:
            begun = self._begun
            await asyncio.sleep(seconds)


@dataclass(slots=True, kw_only=True)
class Service:
    """The parts that handlers use. The composition root assembles them."""

    archive: Archive
    directory: TenantDirectory
    authenticator: Authenticator
    mode: OpenMode
    issuer: KeyIssuer
    metrics: Metrics
    reader_notes: ReaderNotes
    settings: Settings
    places: Places
    unsent: UnsentAnswers
    scans: ScanThreads
    mix: TenantMix
    body_pace: BodyPace
    flusher: Flusher
    live_views: LiveViews
    streams: Streams
    loop_time: LoopTime = field(default_factory=LoopTime)
    admission: Admission = field(default_factory=Admission)
    connections: Connections = field(default_factory=Connections)
    body_buffers: BodyBuffers = field(default_factory=BodyBuffers)
    scrapes: Scrapes
    page_sessions: PageSessions
    addresses: ClientAddresses
    rates: RequestRates
    hosts: frozenset[str] | None = field(init=False)
    """The host names that requests may be sent to, besides loopback's; None if any name is allowed."""
    spans: Spans | None = None
    history: History = field(default_factory=History)
    failure_log: FailureLog = field(default_factory=FailureLog)
    in_flight: InFlight = field(default_factory=InFlight)
    is_stopping: bool = field(default=False)

    def __post_init__(self) -> None:
        self.hosts = self.settings.answered_hosts

    @property
    def audit(self) -> AuditLog:
        return self.archive.audit

    def begin_stop(self) -> None:
        """Say in /readyz that the process stops, and end the answers that would last."""
        self.is_stopping = True
        self.streams.stop()

    @property
    def caps(self) -> Caps:
        """The limits of one bounded read."""
        return Caps(self.settings.answer_lines, self.settings.answer_bytes)


SERVICE: Final = web.AppKey("service", Service)
