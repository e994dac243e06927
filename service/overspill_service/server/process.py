"""One serving process: an application on a listening socket, until a signal stops it."""

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
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web, web_protocol, web_response

from overspill_service import release
from overspill_service.app import make_app
from overspill_service.errors import FieldTooLarge, HeadersTooLarge, OutOfResources, ServiceError
from overspill_service.errors.system import failure
from overspill_service.resources.connection_limit import connection_limit
from overspill_service.resources.connections import Connections, Refusals
from overspill_service.resources.request_heads import MAX_FIELD_BYTES, MAX_FIELDS_BYTES
from overspill_service.resources.threads import prepare_threads
from overspill_service.server import malformed
from overspill_service.server.certificate import certificate_of, run_rereads
from overspill_service.server.reloading import run_reloads
from overspill_service.telemetry import logs
from overspill_service.web import expectations
from overspill_service.web.header_fields import MAX_HEADERS_BYTES
from overspill_service.web.problems import bytes_of
from overspill_service.web.service import SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import TextIO

    from overspill_service.server.certificate import Certificate
    from overspill_service.settings.settings import Settings
    from overspill_service.telemetry.failure_log import FailureLog
    from overspill_service.web.service import Service

MAX_LINE_BYTES: Final = 512 * 1024
"""Bytes of the request line, at most. A pattern that is far too long must fit, to be refused by name."""
BACKLOG: Final = 1024
READ_BUFFER: Final = 256 * 1024
KEEP_ALIVE_SECONDS: Final = 75.0
QUIET_SECONDS: Final = 0.1
"""A stop ends when no request has come for this long on the connections that clients keep open."""
CLOSE_SECONDS: Final = 1.0
"""How long aiohttp waits for handlers once it closes connections. It passes on no more bodies then."""

LARGE_HEAD: Final = "a request was refused while it came: its header fields are too long"
REFUSED: Final = (
    "too many connections of your address, or too many long requests at once; try again in a moment"
)

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
"""Parameters of glibc's mallopt (malloc.h)."""
ARENAS: Final = 1
SWITCH_SECONDS: Final = 0.0001
"""How long a thread keeps the interpreter while the event loop wants it, as after each call to the system.
This is a fiftieth of Python's default.
"""
LARGE_BUFFER: Final = 256 * 1024
"""Bytes of a buffer that returns to the system as soon as it is freed."""
FREE_BYTES: Final = 2 * 2**20
"""Free bytes that the heap keeps at its end: each piece of a body that comes needs some."""


log = logging.getLogger("overspill_service.start")


web_response.SERVER_SOFTWARE = "overspill"  # type: ignore[attr-defined]  # there is no other way to set it
"""The `Server` of answers to what is not HTTP at all, without the versions of Python and aiohttp."""
malformed.install()
expectations.install()
web_protocol.MAX_MSG_QUEUE_SIZE = 2
"""Requests of one connection that wait for the answer before them: a parsed head takes memory."""


def runner_of(app: web.Application) -> web.AppRunner:
    """Return the runner that serves the application."""
    return web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,  # a client that hangs up cancels its handler
        auto_decompress=False,  # bodies are decoded in bounded steps, in threads
        shutdown_timeout=CLOSE_SECONDS,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        max_line_size=MAX_LINE_BYTES,
        max_field_size=MAX_FIELD_BYTES,
        read_bufsize=READ_BUFFER,
    )


def listening_socket(settings: Settings) -> socket.socket:
    """Return a socket that listens at the address of the settings.

    Raises `OSError` that names the address.
    """
    host, port = settings.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        is_unknown = (error.errno or 0) < 0  # an error of the name service; create_server hides which
        reason = "its host is not known; write an address" if is_unknown else os.strerror(error.errno or 0)
        raise OSError(f"cannot listen on {settings.listen}: {reason}") from error


def url_of(listener: socket.socket, settings: Settings) -> str:
    """Return the URL to announce: that of the listening address."""
    host, port = listener.getsockname()[:2]
    scheme = "http" if settings.tls_certificate is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, with uvloop: it saves a tenth of the CPU of a small request."""
    import uvloop  # noqa: PLC0415  (operators' commands do without it)

    _configure_malloc()
    sys.setswitchinterval(SWITCH_SECONDS)
    uvloop.run(main)


def _configure_malloc() -> None:
    """Make malloc return free memory to the system.

    glibc gives each thread a heap of its own, up to eight for each core, and each heap keeps freed buffers:
    use one heap. glibc also moves large buffers into the heap after the first one was freed: keep them out.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another C library
            libc = ctypes.CDLL(None)
            libc.mallopt(M_ARENA_MAX, ARENAS)
            libc.mallopt(M_MMAP_THRESHOLD, LARGE_BUFFER)
            libc.mallopt(M_TRIM_THRESHOLD, FREE_BYTES)


async def serve(
    settings: Settings,
    listener: socket.socket,
    reread: Callable[[], Settings],
    parent: TextIO | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, or until `parent` ends: the pipe from the supervisor.

    SIGHUP applies the settings that `reread` returns, as far as they need no restart. A stop lets running
    requests end within the grace period. One line with the address is printed when requests are served.
    """
    certificate = certificate_of(settings)
    app = make_app(settings)
    await prepare_threads()
    runner = runner_of(app)
    stop, reloading = _signals(parent)
    await runner.setup()
    service, url = app[SERVICE], url_of(listener, settings)
    tasks = [asyncio.create_task(run_reloads(reloading, service, certificate, reread))]
    if certificate is not None:
        tasks.append(asyncio.create_task(run_rereads(certificate)))
    try:
        accepting = asyncio.create_task(_accept(runner, service, listener, certificate))
        tasks.append(accepting)
        print(f"overspill-service listens on {url}", flush=True)
        fields = _start_fields(service, url, certificate, is_open=await _is_open(service))
        log.info("serving", extra=logs.fields(**fields))
        await stop.wait()
        if parent is not None:
            asyncio.get_running_loop().remove_reader(parent)
        await _stop(accepting, listener, service)
    finally:
        for task in tasks:
            task.cancel()
        await runner.cleanup()


def _signals(parent: TextIO | None) -> tuple[asyncio.Event, asyncio.Event]:
    """Return events for a stop and for a reload that signals set. The end of `parent` is a stop too."""
    stop, reloading = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, reloading.set)
    if parent is not None:
        loop.add_reader(parent, stop.set)
    return stop, reloading


async def _accept(
    runner: web.AppRunner, service: Service, listener: socket.socket, certificate: Certificate | None
) -> None:
    assert runner.server is not None
    max_connections = min(connection_limit(), service.settings.max_connections or sys.maxsize)
    refusals = Refusals(
        crowded=bytes_of(OutOfResources(REFUSED)),
        large_head=bytes_of(HeadersTooLarge(MAX_FIELDS_BYTES, MAX_HEADERS_BYTES)),
        large_field=bytes_of(FieldTooLarge(MAX_FIELD_BYTES)),
    )
    note = partial(service.failure_log.record_cause, HeadersTooLarge.code, LARGE_HEAD)
    service.connections = Connections(max_connections, refusals, service.addresses.is_proxy, note)
    record = partial(_record_refusal, service.failure_log)
    await service.connections.accept(
        listener, runner.server, record, lambda: certificate.context if certificate else None
    )


def _record_refusal(failure_log: FailureLog, error: OSError) -> None:
    service_error = failure(error, "the network")
    failure_log.record_cause(
        service_error.failure_name if service_error else "accepting",
        f"no client can be accepted: {service_error or error}",
    )


async def _stop(accepting: asyncio.Task[None], listener: socket.socket, service: Service) -> None:
    start = time.monotonic()
    log.info("stopping", extra=logs.fields(process=os.getpid(), in_flight=service.in_flight.count))
    service.begin_stop()  # a balancer sees it in /readyz before connections are refused
    await asyncio.sleep(service.settings.drain_delay)
    accepting.cancel()
    with suppress(asyncio.CancelledError):
        await accepting
    listener.close()
    await _drain(service, service.settings.grace)
    fields = {"in_flight": service.in_flight.count, "seconds": round(time.monotonic() - start, 3)}
    log.info("stopped", extra=logs.fields(process=os.getpid(), **fields))


async def _is_open(service: Service) -> bool:
    try:
        return await service.mode.is_open()
    except ServiceError:  # nobody can tell now; requests without a key are refused meanwhile
        return False


def _start_fields(
    service: Service, url: str, certificate: Certificate | None, *, is_open: bool
) -> dict[str, object]:
    """Return what the log says of a process that begins to serve. URLs have no passwords."""
    settings = service.settings
    return {
        "url": url,
        "version": release(),
        "process": os.getpid(),
        "workers": settings.workers,
        "store": without_password(settings.store or (settings.data / "objects").resolve().as_uri()),
        "catalog": without_password(settings.catalog),
        "keys": "none needed" if is_open else "needed",
    } | ({"certificate_expires": str(certificate.validity)} if certificate else {})


def without_password(url: str) -> str:
    """Return the URL without user name and password."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    hosts, slash, path = rest.partition("/")
    return f"{scheme}://{hosts.rpartition('@')[2]}{slash}{path}"


async def _drain(service: Service, grace: float) -> None:
    """Wait at most `grace` seconds until running requests have ended and their bodies have been read.

    Requests on open connections are served too. Each answer closes its connection, so they come to an end: a
    connection that is still open after the pause is idle.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(grace):
            await service.in_flight.wait_until_quiet(QUIET_SECONDS)
