"""A real server on a real socket that answers each request with the next step of a script.

For what a sound service never does: resets, silence, lying lengths, damaged bytes.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec
from overspill.wire import PROBLEM_TYPE, Code, Problem

Step = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Received:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Scripted:
    """`received` are the requests so far; `connections` and `ended` count what was opened and closed."""

    steps: list[Step]
    url: str = ""
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    reads_bodies: bool = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    await self._exchange(reader, writer)
        finally:
            writer.close()
            self.ended.set()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(await self._read(reader))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        await step(writer)
        await writer.drain()

    async def _read(self, reader: asyncio.StreamReader) -> Received:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        request = Received(method, target, headers)
        if self.reads_bodies:
            request.body = await _body(reader, headers)
        return request


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    body = b""
    while length := int(await reader.readline(), 16):
        body += await reader.readexactly(length)
        await reader.readline()
    await reader.readline()
    return body


@asynccontextmanager
async def scripted(
    *steps: Step, reads_bodies: bool = True, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Scripted]:
    """A server that takes `steps` in turn; the last one is repeated."""
    script = Scripted(list(steps), reads_bodies=reads_bodies)
    serving: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.ensure_future(script.serve(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0, limit=1 << 20, ssl=tls)
    script.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield script
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the next turn of the loop


def answer(
    body: bytes = b"", status: int = 200, headers: dict[str, str] | None = None, *, length: int | None = None
) -> Step:
    """An answer; `length` is the length that it claims where that is not the truth."""
    fields = {"Content-Length": str(len(body) if length is None else length), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())

    async def step(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n".encode() + body)

    return step


def json(value: object, status: int = 200) -> Step:
    return answer(msgspec.json.encode(value), status, {"Content-Type": "application/json"})


def problem(code: Code, headers: dict[str, str] | None = None, **facts: object) -> Step:
    body = {
        "type": "x",
        "title": code.heading,
        "status": code.status,
        "code": code,
        "detail": f"about {code}",
        **facts,
    }
    return answer(
        msgspec.json.encode(msgspec.convert(body, Problem)),
        code.status,
        {"Content-Type": PROBLEM_TYPE, **(headers or {})},
    )


async def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection off instead of answering."""
    writer.transport.abort()


async def silence(writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.Event().wait()


def then_close(step: Step) -> Step:
    """The step, and then the end of the connection without a word of warning."""

    async def closing(writer: asyncio.StreamWriter) -> None:
        await step(writer)
        await writer.drain()
        writer.close()

    return closing


@contextmanager
def scripted_in_thread(*steps: Step) -> Iterator[Scripted]:
    """The same, in a thread of its own, for synchronous code."""
    ready: Future[Scripted] = Future()
    done = threading.Event()

    async def serve() -> None:
        async with scripted(*steps) as service:
            ready.set_result(service)
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield ready.result()
    finally:
        done.set()
        thread.join()
