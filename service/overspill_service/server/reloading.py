"""Reads settings and certificate again when that is asked for (SIGHUP)."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from overspill_service.access import reload
from overspill_service.errors import ServiceError
from overspill_service.resources.attempts import Attempts
from overspill_service.settings.errors import SettingError
from overspill_service.telemetry import logs

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from overspill_service.server.certificate import Certificate
    from overspill_service.settings.settings import Settings
    from overspill_service.web.service import Service

log = logging.getLogger("overspill_service.start")


async def run_reloads(
    requested: asyncio.Event,
    service: Service,
    certificate: Certificate | None,
    reread: Callable[[], Settings],
) -> None:
    """Apply the settings that `reread` returns each time that `requested` is set, until cancelled."""
    attempts = Attempts(log)
    while True:
        await requested.wait()
        requested.clear()
        await attempts.make("reading the settings again", _reload_once(service, certificate, reread))


async def _reload_once(
    service: Service, certificate: Certificate | None, reread: Callable[[], Settings]
) -> None:
    try:
        settings = reread()
        if certificate is not None:
            await certificate.reread()
        waiting = await reload(service, settings)
    except (SettingError, ServiceError) as error:
        log.error("not reloaded, nothing has changed: %s", error)  # noqa: TRY400  (no traceback for a typo)
        return
    logs.configure(settings.log_level, settings.log_format)
    log.info("reloaded", extra=logs.fields(process=os.getpid(), needs_restart=",".join(waiting) or "nothing"))
