"""Uploads to a service that accepts connections and takes nothing leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING

import pytest
from overspill import Client, SyncClient
from overspill.errors import ClientClosed, Unreachable

from tests.leaks import open_files

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENT = os.urandom(8 * 2**20)
"""More than the system takes of a connection whose other end reads nothing."""


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """What listens where a service should be."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening


def url_of(listening: socket.socket) -> str:
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_an_upload_that_is_given_up_leaves_no_connection_open(deaf: socket.socket) -> None:
    async with Client(url_of(deaf), timeout=0.05, retries=2) as client:
        before = open_files()
        with pytest.raises(Unreachable):
            await client.put(CONTENT)
        await asyncio.sleep(0)

        assert open_files() == before


def test_a_client_for_synchronous_code_leaves_no_connection_open(deaf: socket.socket) -> None:
    before = open_files()
    with SyncClient(url_of(deaf), timeout=0.05, retries=0) as client, pytest.raises(Unreachable):
        client.put(CONTENT)

    assert open_files() == before


async def test_a_client_that_is_closed_waits_for_no_upload(deaf: socket.socket) -> None:
    client = Client(url_of(deaf))
    upload = asyncio.create_task(client.put(CONTENT))
    deaf.setblocking(False)
    connection, _ = await asyncio.get_running_loop().sock_accept(deaf)
    with connection:
        await asyncio.get_running_loop().sock_recv(connection, 1)
        await client.aclose()
        with pytest.raises(ClientClosed):
            await upload
