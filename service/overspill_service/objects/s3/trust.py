"""Trust in certificates of the object store. If one is not trusted, the authorities are read again.

A TLS context reads the file of the authorities only once, so it would never trust one that was added later.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
import time
from typing import Final

READ_SECONDS: Final = 5.0
"""Seconds between two looks into the file, at least: a certificate may be wrong for good."""

log = logging.getLogger(__name__)


class Trust:
    """The authorities that all new connections to one store trust."""

    def __init__(self, ca_bundle: str | None) -> None:
        """`ca_bundle`: the file of the authorities. None: those of the system.

        Raises `ValueError` if it has none.
        """
        self._ca_bundle = ca_bundle
        try:
            self.context = self._read()
        except OSError as error:
            raise ValueError(
                f"AWS_CA_BUNDLE: {ca_bundle} cannot be read, or has no certificates, as PEM"
            ) from error
        self._next_look = -math.inf
        self._lock = asyncio.Lock()

    async def has_changed(self, used: ssl.SSLContext) -> bool:
        """Return whether a certificate that was refused with `used` may be trusted now."""
        async with self._lock:
            if self.context is used and time.monotonic() >= self._next_look:
                await asyncio.to_thread(self._reread)
                self._next_look = time.monotonic() + READ_SECONDS
            return self.context is not used

    def _reread(self) -> None:
        try:
            self.context = self._read()
        except OSError as error:  # a file that is being written
            log.warning("authorities could not be read again, the former ones stay trusted: %s", error)

    def _read(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._ca_bundle)
