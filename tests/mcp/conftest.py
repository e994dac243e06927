"""Fixtures that tests of several MCP servers and proxies share."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS: Final = 60


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A service that takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(SECONDS)
        yield listening
