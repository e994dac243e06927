"""Reads the tenants' file again when it has changed.

A file that is being written may lack tenants, whose keys, limits and redaction would be gone for seconds. So
it is read only when it no longer changes. This job waits for no other work of the process: a key that was
taken out of the file must stop working within seconds, also during a long sweep or rebuild.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from overspill_service import access
from overspill_service.resources.attempts import Attempts
from overspill_service.settings.errors import SettingError

if TYPE_CHECKING:
    from overspill_service.web.service import Service

POLL_SECONDS: Final = 3.0
"""How often the file is looked at. It is read if it has not changed between two looks."""
RESTLESS_SECONDS: Final = 60.0
"""How long the file may keep changing before that is reported."""

log = logging.getLogger(__name__)


class TenantsFile:
    """The tenants' file of a serving process. Belongs to one event loop."""

    def __init__(self, service: Service, stamp: tuple[int, ...]) -> None:
        """`stamp` is the file's `access.stamp_of`, taken before the file was read."""
        self._service = service
        self._used = self._seen = stamp
        self._restless_since: float | None = None
        self._attempts = Attempts(log)

    async def run(self) -> None:
        """Look at the file every `POLL_SECONDS` until cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await self._attempts.make("reading the tenants' file", self.look_once())

    async def look_once(self) -> None:
        """Use the file if it has changed, but not since the last look. Report a wrong one, and ignore it.

        Raises `ServiceError` if a back end does not answer: the file is then read at the next look.
        """
        stamp = await asyncio.to_thread(access.stamp_of, self._service.settings.tenants)
        is_still, self._seen = stamp == self._seen, stamp
        if not is_still:
            self._note_restlessness()
            return
        self._restless_since = None
        if stamp == self._used:
            return
        try:
            await access.replace_tenants(self._service, self._service.settings)
        except SettingError as error:
            log.error("the changed tenants' file is wrong, and the former one stays in use: %s", error)  # noqa: TRY400  (no traceback for a typo)
        else:
            log.info("the tenants' file has changed and is in use")
        self._used = stamp

    def _note_restlessness(self) -> None:
        """Warn of a file that keeps changing: it is never read."""
        now = time.monotonic()
        if self._restless_since is None:
            self._restless_since = now
        elif now - self._restless_since >= RESTLESS_SECONDS:
            log.warning(
                "the tenants' file has changed at every look for %.0f s, and the former one is still in use: "
                "it is read once it has not changed for %g s",
                now - self._restless_since,
                POLL_SECONDS,
            )
            self._restless_since = now
