"""Debian's Chromium without a window, and a hostile web site for it to visit.

    async with Site() as site, browsing(site.url(page), names={"evil.example": "127.0.0.1"}):
        report = await site.report()

The pages' scripts say what they found by posting it to `/report` of the site.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self

import pytest
from aiohttp import web

from tests.servers.keeper import keep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

HOST: Final = "127.0.0.1"
PATIENCE: Final = 60.0
QUIET: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
    ),
    "--disable-dev-shm-usage",
    # What browsers themselves do against this is not what is tested.
    "--disable-features=BlockInsecurePrivateNetworkRequests,LocalNetworkAccessChecks,PrivateNetworkAccessChecks",
    "--disable-popup-blocking",
)


def executable() -> str:
    """The Chromium of this machine; the test is skipped where there is none."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on the PATH (Debian: apt-get install chromium)")
    return program


class Site:
    """A web site on loopback: one page, and what its script reports."""

    def __init__(self) -> None:
        self.page = ""
        self.port = 0
        self._reports: asyncio.Queue[Any] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_get("/{path:.*}", self._show)
        application.router.add_post("/report", self._note)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def report(self) -> Any:
        """The next report of a page, once it has come."""
        async with asyncio.timeout(PATIENCE):
            return await self._reports.get()

    async def _show(self, _: web.Request) -> web.Response:
        return web.Response(text=self.page, content_type="text/html", headers={"Connection": "close"})

    async def _note(self, request: web.Request) -> web.Response:
        self._reports.put_nowait(json.loads(await request.text()))
        return web.Response(headers={"Access-Control-Allow-Origin": "*"})


class Name:
    """A port on loopback that leads where its owner says: what a name is whose address is changed."""

    def __init__(self, port: int) -> None:
        self.leads_to = port
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connect, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(HOST, self.leads_to)
        await asyncio.gather(_pump(reader, ours), _pump(theirs, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(64 * 1024):
            writer.write(piece)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def browsing(url: str, names: Mapping[str, str]) -> AsyncIterator[None]:
    """A browser of its own at this page until the block ends. `names` are host names and their addresses."""
    rules = ",".join(f"MAP {name} {address}" for name, address in names.items())
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        flags = [*QUIET, f"--user-data-dir={profile}", f"--host-resolver-rules={rules}"]
        process = await asyncio.create_subprocess_exec(
            *(executable(), *flags, url),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"HOME": profile},
        )
        keep(process.pid)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
