"""Links to one Redis server: opened with its login and TLS, and shared by all commands of a process.

One link carries everything while it is fast enough. Another one is opened when what was sent last waits in
the system's buffer, so that large commands do not hold up small ones.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from redis import exceptions as redis_errors

from overspill_service.catalog.redis.failures import NO_TLS, NO_TLS_FILES
from overspill_service.catalog.redis.link import Link

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Address = tuple[str, int]
    FileState = tuple[int, int, int] | None

MAX_LINKS: Final = 4
BUSY_BYTES: Final = 64 * 1024
"""A link with a longer backlog is not used if there is a better one."""
CONNECT_SECONDS: Final = 1.0
"""Seconds for one connection to be made, its login included."""
ANSWER_SECONDS: Final = 2.0
_NOT_TLS: Final = ssl.SSLError, ConnectionResetError, ConnectionAbortedError
"""The errors of TLS with a server that does not speak TLS, unless it is silent."""
_NO_FILES: Final = ssl.SSLError, FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError
"""The errors for wrong TLS files. Other errors may pass: a process may lack descriptors for a moment."""


class LinkOptions(Struct, frozen=True, kw_only=True):
    """The login and the time limits of a link. The TLS options have redis-py's names."""

    db: int = 0
    username: str | None = None
    password: str | None = None
    tls: bool = False
    ssl_ca_certs: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_check_hostname: bool = True
    answer_seconds: float = ANSWER_SECONDS
    """Seconds for the answer to one command."""

    @property
    def login(self) -> list[tuple[Any, ...]]:
        """The commands that come before all others."""
        found: list[tuple[Any, ...]] = []
        if self.password is not None:
            names = (self.username,) if self.username is not None else ()
            found.append(("AUTH", *names, self.password))
        if self.db:
            found.append(("SELECT", self.db))
        return found

    @property
    def tls_files(self) -> list[str]:
        """The files that the context for TLS is made of."""
        named = (
            self.ssl_ca_certs,
            self.ssl_certfile,
            self.ssl_keyfile,
            ssl.get_default_verify_paths().cafile,
        )
        return [each for each in named if each is not None]

    def context(self) -> ssl.SSLContext | None:
        """Return what TLS needs, None without it. Reads files that have changed. Raises redis-py's errors."""
        return _context(self, tuple(map(_state_of, self.tls_files))) if self.tls else None


@lru_cache(maxsize=8)
def _context(options: LinkOptions, files: tuple[FileState, ...]) -> ssl.SSLContext:  # noqa: ARG001  (the cache's)
    """Make a context. That takes 20 ms of CPU: a burst to a cluster opens a hundred connections."""
    context = ssl.create_default_context()
    context.check_hostname = options.ssl_check_hostname
    try:
        if options.ssl_certfile is not None:
            context.load_cert_chain(options.ssl_certfile, options.ssl_keyfile)
        if options.ssl_ca_certs is not None:
            context.load_verify_locations(options.ssl_ca_certs)
    except _NO_FILES as error:
        raise redis_errors.ConnectionError(NO_TLS_FILES) from error
    return context


def _state_of(file: str) -> FileState:
    """Return what differs once a file was replaced, or written again. None if there is none."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


async def opened(address: Address, options: LinkOptions) -> Link:
    """Return a link that is logged in. Raises redis-py's errors."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await _logged_in(address, options, Link(options.answer_seconds))
    except TimeoutError as error:
        raise redis_errors.TimeoutError(NO_TLS if options.tls else "no connection") from error
    except OSError as error:
        text = NO_TLS if options.tls and _is_no_tls(error) else "no connection"
        raise redis_errors.ConnectionError(text) from error


def _is_no_tls(error: OSError) -> bool:
    """Return whether a server may speak no TLS. One that sends an alert does."""
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return False
    return isinstance(error, _NOT_TLS) and not isinstance(error, ssl.SSLCertVerificationError)


async def _logged_in(address: Address, options: LinkOptions, link: Link) -> Link:
    context = await asyncio.to_thread(options.context) if options.tls else None
    await asyncio.get_running_loop().create_connection(lambda: link, *address, ssl=context)
    try:
        for command in options.login:
            await _ask(link, command)
    except BaseException:
        link.close()
        raise
    return link


async def _ask(link: Link, command: tuple[Any, ...]) -> None:
    try:
        await link.send(command)
    except redis_errors.ResponseError as error:
        if command[0] == "AUTH":
            raise redis_errors.AuthenticationError(str(error)) from error
        raise


class Links:
    """The links of one process to the server that `connect` reaches. Belongs to one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Link]], seconds: float) -> None:
        """`seconds`: how long a command waits for its first link."""
        self._connect, self._seconds = connect, seconds
        self._links: list[Link] = []
        self._connecting: asyncio.Task[Link] | None = None

    async def run(self, *command: Any, publishes: bool = False) -> Any:
        """Return the command's answer; see `Link.send`. Raises redis-py's errors."""
        link = self._free() or await self._connected()
        return await link.send(command, publishes=publishes)

    def reconnect(self) -> None:
        """Use new links from now on. Commands under way get their answers from the old ones."""
        links, self._links = self._links, []
        for each in links:
            each.retire()

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        links, self._links = self._links, []
        for each in links:
            each.close()
        await asyncio.gather(*(each.closed for each in links))

    def _free(self) -> Link | None:
        """Return the first link without a backlog, else the one with the shortest. None if there is none."""
        links = self._links
        if links and links[0].is_usable and links[0].backlog <= BUSY_BYTES:
            return links[0]
        links[:] = [each for each in links if each.is_usable]
        if not links:
            return None
        best = min(links, key=lambda each: each.backlog)
        if best.backlog > BUSY_BYTES and len(links) < MAX_LINKS:
            self._begin_connecting()
        return best

    async def _connected(self) -> Link:
        """Wait until there is one more link. All that wait share one attempt. Raises redis-py's errors."""
        async with asyncio.timeout(self._seconds):
            return await asyncio.shield(self._begin_connecting())

    def _begin_connecting(self) -> asyncio.Task[Link]:
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._open(), name="connection to Redis")
            self._connecting.add_done_callback(self._end_connecting)
        return self._connecting

    def _end_connecting(self, task: asyncio.Task[Link]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # whoever waited has raised it

    async def _open(self) -> Link:
        link = await self._connect()
        self._links.append(link)
        return link
