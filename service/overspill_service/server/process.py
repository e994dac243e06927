"""One serving process: an application on a listening socket, until it is told to stop."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from overspill_service.app import make_app, reload
from overspill_service.errors import ServiceError
from overspill_service.errors.system import failure
from overspill_service.resources.connections import Connections, connection_limit
from overspill_service.resources.threads import prepare_threads
from overspill_service.settings.settings import SettingError
from overspill_service.telemetry import logs
from overspill_service.web.service import SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import TextIO

    from overspill_service.settings.settings import Settings
    from overspill_service.telemetry.failure_log import FailureLog
    from overspill_service.web.service import Service

MAX_HEADER_BYTES: Final = 64 * 1024
"""One header field, at most: metadata may have 4 KiB, percent-encoded three times that."""
MAX_LINE_BYTES: Final = 512 * 1024
"""The request line, at most: room for a pattern that is far too long to be told so."""
BACKLOG: Final = 1024
READ_BUFFER: Final = 256 * 1024
KEEP_ALIVE_SECONDS: Final = 75.0
QUIET_SECONDS: Final = 0.1
"""How long a stop waits for requests that clients have sent already on connections that they keep open."""
CLOSE_SECONDS: Final = 1.0
"""How long aiohttp waits for handlers once connections are being closed: it passes no more bodies on then."""


M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
"""Names of parameters in glibc's malloc.h."""
ARENAS: Final = 1
LARGE_BUFFER: Final = 256 * 1024
"""Bytes of a buffer that goes back to the system as soon as it is freed."""


log = logging.getLogger("overspill_service.start")


def runner_of(app: web.Application) -> web.AppRunner:
    """How every process serves the application."""
    return web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,  # a client that hangs up ends its work
        auto_decompress=False,  # bodies are decoded in bounded steps, in threads
        shutdown_timeout=CLOSE_SECONDS,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        max_line_size=MAX_LINE_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        read_bufsize=READ_BUFFER,
    )


def listening_socket(settings: Settings) -> socket.socket:
    """A bound and listening socket at the address of the settings. Raises `OSError`, which names it."""
    host, port = settings.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        is_unknown = (error.errno or 0) < 0  # of the name service, which create_server hides
        reason = "its host is not known; write an address" if is_unknown else os.strerror(error.errno or 0)
        raise OSError(f"cannot listen on {settings.listen}: {reason}") from error


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, on uvloop where there is one: it takes a tenth off the CPU of a small request."""
    _configure_malloc()
    try:
        import uvloop  # noqa: PLC0415  (there is none for Windows)
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def _configure_malloc() -> None:
    """Have memory given back that is no longer used.

    Let threads share one heap: each of glibc's, up to eight a core, keeps the buffers that it freed. Keep
    large buffers out of it: glibc by itself moves them into it after the first one was freed.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            libc = ctypes.CDLL(None)
            libc.mallopt(M_ARENA_MAX, ARENAS)
            libc.mallopt(M_MMAP_THRESHOLD, LARGE_BUFFER)


async def serve(
    settings: Settings,
    listener: socket.socket,
    reread: Callable[[], Settings],
    parent: TextIO | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, or until `parent` ends: the pipe from the process that started this one.

    SIGHUP takes over what `reread` finds changed, as far as that needs no restart. After a stop, let requests
    in flight end within the grace, and close. Prints one line with the address once requests are served.
    """
    app = make_app(settings)
    await prepare_threads()
    runner = runner_of(app)
    stop, reloading = _signals(parent)
    await runner.setup()
    tasks = [asyncio.create_task(_reload_when(reloading, app[SERVICE], reread))]
    try:
        accepting = asyncio.create_task(_accept(runner, app[SERVICE], listener))
        tasks.append(accepting)
        print(f"overspill-service listens on {url_of(listener)}", flush=True)
        log.info("serving", extra=logs.fields(**_setup(app[SERVICE], url_of(listener))))
        await stop.wait()
        if parent is not None:
            asyncio.get_running_loop().remove_reader(parent)
        await _stop(accepting, listener, app[SERVICE])
    finally:
        for task in tasks:
            task.cancel()
        await runner.cleanup()


def _signals(parent: TextIO | None) -> tuple[asyncio.Event, asyncio.Event]:
    """Events for a stop and for a reload, set by signals; a stop also by the end of `parent`."""
    stop, reloading = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, reloading.set)
    if parent is not None:
        loop.add_reader(parent, stop.set)
    return stop, reloading


async def _accept(runner: web.AppRunner, service: Service, listener: socket.socket) -> None:
    assert runner.server is not None
    service.connections = Connections(connection_limit())
    record = partial(_record_refusal, service.failure_log)
    await service.connections.accept(listener, runner.server, record)


def _record_refusal(failure_log: FailureLog, error: OSError) -> None:
    known = failure(error, "the network")
    failure_log.record_cause(
        known.failure_name if known else "accepting", f"no client can be accepted: {known or error}"
    )


async def _reload_when(asked: asyncio.Event, service: Service, reread: Callable[[], Settings]) -> None:
    """Until cancelled: read the settings again each time that somebody asks for it."""
    while True:
        await asked.wait()
        asked.clear()
        try:
            settings = reread()
            waiting = await reload(service, settings)
        except (SettingError, ServiceError) as error:
            log.error("not reloaded, all stays as it was: %s", error)  # noqa: TRY400  (no traceback for a typo)
            continue
        logs.configure(settings.log_level, settings.log_format)
        log.info(
            "reloaded", extra=logs.fields(process=os.getpid(), needs_restart=",".join(waiting) or "nothing")
        )


async def _stop(accepting: asyncio.Task[None], listener: socket.socket, service: Service) -> None:
    start = time.monotonic()
    log.info("stopping", extra=logs.fields(process=os.getpid(), in_flight=service.in_flight.count))
    service.is_stopping = True  # a balancer sees it in /readyz before connections are refused
    await asyncio.sleep(service.settings.drain_delay)
    accepting.cancel()
    with suppress(asyncio.CancelledError):
        await accepting
    listener.close()
    await _drain(service, service.settings.grace)
    fields = {"in_flight": service.in_flight.count, "seconds": round(time.monotonic() - start, 3)}
    log.info("stopped", extra=logs.fields(process=os.getpid(), **fields))


def _setup(service: Service, url: str) -> dict[str, object]:
    """What to know of a process that begins to serve; of URLs without their passwords."""
    settings = service.settings
    return {
        "url": url,
        "version": version("overspill-service"),
        "process": os.getpid(),
        "workers": settings.workers,
        "store": without_password(settings.store or (settings.data / "objects").as_uri()),
        "catalog": without_password(settings.catalog),
        "keys": "none needed" if service.authenticator.allows_anonymous else "needed",
    }


def without_password(url: str) -> str:
    """The URL without what stands before the hosts."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    hosts, slash, path = rest.partition("/")
    return f"{scheme}://{hosts.rpartition('@')[2]}{slash}{path}"


async def _drain(service: Service, grace: float) -> None:
    """Let requests in flight end within `grace` seconds, with the bodies that are still coming in.

    Requests on open connections are served too. Each answer says that its connection is closed after it, so
    there is an end to them: a connection that is still open after the pause is idle.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(grace):
            await service.in_flight.wait_until_quiet(QUIET_SECONDS)
