"""An MCP server at a URL, reached over streamable HTTP by the SDK's transport."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING, Any

from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types.jsonrpc import INVALID_REQUEST, jsonrpc_message_adapter
from pydantic import ValidationError

from overspill.mcp.proxy.http_client import END_SECONDS, ProxyClient
from overspill.mcp.proxy.http_headers import RequestHeaders
from overspill.mcp.proxy.messages import NotAMessage, encoded, parsed
from overspill.mcp.proxy.relay import Relay
from overspill.mcp.proxy.streams import (
    check_streams,
    drain,
    line_writer,
    lines,
    standard_streams,
    until_stuck,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from overspill.guard.guard import Guard
    from overspill.mcp.proxy.relay import Choices

_log = logging.getLogger("overspill.mcp")


async def run(url: str, guard: Guard, choices: Choices, headers: Mapping[str, str]) -> int:
    """Guard the server at `url`, until the client closes our standard input, or a signal comes.

    Return the exit code, 128 + n for signal n. `headers` go with every request. Raises `NoStreams`.
    """
    check_streams()
    reader, writer = await standard_streams()
    to_server: asyncio.Queue[bytes | None] = asyncio.Queue()
    relay = Relay(guard, line_writer(writer), to_server.put_nowait, choices)
    request_headers = RequestHeaders()
    reading = asyncio.create_task(_read(reader, relay))
    signals = _ended_by_signals(reading)
    async with (
        ProxyClient(dict(headers)) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=None) as (received, sent),
    ):
        sending = asyncio.create_task(_send(to_server, sent, relay, request_headers, line_writer(writer)))
        receiving = asyncio.create_task(_receive(received, relay, request_headers, writer))
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()
        to_server.put_nowait(None)
        await asyncio.wait([sending], timeout=END_SECONDS)
        sending.cancel()
        await relay.finish()
        await _drain_unless_stuck(writer)
        receiving.cancel()
    return 128 + signals[0] if signals else 0


async def _drain_unless_stuck(writer: asyncio.StreamWriter) -> None:
    """Wait until the client has taken what it was sent, or takes nothing of it."""
    draining = asyncio.create_task(drain(writer))
    stuck = asyncio.create_task(until_stuck(writer, END_SECONDS))
    await asyncio.wait([draining, stuck], return_when=asyncio.FIRST_COMPLETED)
    draining.cancel()
    if stuck.done():
        _log.warning("the client does not read: what waits for it is given up")
    stuck.cancel()


async def _read(reader: asyncio.StreamReader, relay: Relay) -> None:
    """Read the client's messages to the end of its input. Raises `MessageTooLong`."""
    async for line in lines(reader):
        relay.from_client(line)


def _ended_by_signals(reading: asyncio.Task[None]) -> list[int]:
    """Let a signal end the reading. Return the list that gets its number."""
    numbers: list[int] = []

    def end(number: int) -> None:
        numbers.append(number)
        reading.cancel()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    return numbers


async def _send(
    queue: asyncio.Queue[bytes | None],
    sent: Any,
    relay: Relay,
    request_headers: RequestHeaders,
    to_client: Callable[[bytes], None],
) -> None:
    """Post each message, with the headers that its revision needs. Answer lines that are no messages."""
    while (line := await queue.get()) is not None:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            _log.warning("the client's line is not a JSON-RPC message: %s errors", error.error_count())
            to_client(_refusal(line))
            continue
        metadata = ClientMessageMetadata(headers=request_headers.of(parsed(line), relay.revision))
        await sent.send(SessionMessage(message, metadata=metadata))


async def _receive(
    received: Any, relay: Relay, request_headers: RequestHeaders, writer: asyncio.StreamWriter
) -> None:
    async for item in received:
        if isinstance(item, Exception):
            _log.warning("the MCP server cannot be understood: %s", item)
            continue
        request_headers.note(getattr(item.message, "result", None) or {})
        relay.from_server(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        await drain(writer)


def _refusal(line: bytes) -> bytes:
    """Return the error for a line that cannot be posted, with its id if it has one."""
    try:
        named = parsed(line).get("id")
    except NotAMessage:
        named = None
    error = {"code": INVALID_REQUEST, "message": "this is not a JSON-RPC message"}
    return encoded({"jsonrpc": "2.0", "id": named if isinstance(named, int | str) else None, "error": error})
