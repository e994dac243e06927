"""Connects to the object store. A connection that is given up before all of a request was sent is broken off.

asyncio closes a connection once all that waits was sent. A store that hangs takes nothing: the socket and
those bytes would stay as long as it hangs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler


class Connector(aiohttp.TCPConnector):
    """Makes the connections of the event loop that runs here."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = partial(_Protocol, loop=self._loop)  # type: ignore[assignment]  # of a subclass


class _Protocol(ResponseHandler):
    def close(self) -> None:
        """Close the connection, and wait for nothing."""
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.abort()
        else:
            super().close()
