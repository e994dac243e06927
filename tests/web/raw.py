"""Requests as bytes: what no HTTP client would send, or would send only once."""

from __future__ import annotations

import asyncio
from email.message import Message
from email.parser import BytesHeaderParser
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from overspill import wire

if TYPE_CHECKING:
    from tests.web.conftest import Api

SECONDS = 30.0


class Answer(NamedTuple):
    status: int
    headers: Message
    body: bytes

    @property
    def problem(self) -> wire.Problem:
        assert self.headers.get_content_type() == wire.PROBLEM_TYPE
        return msgspec.json.decode(self.body, type=wire.Problem)


async def exchange(api: Api, method: str, target: str, *fields: str, body: bytes = b"") -> Answer:
    """Send one request with these header lines, `Host` included only if it is among them."""
    lines = [f"{method} {target} HTTP/1.1", *fields, "Connection: close"]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(head + body)
        await writer.drain()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return parsed(answer)


def parsed(answer: bytes) -> Answer:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, _, fields = head.partition(b"\r\n")
    return Answer(int(status.split()[1]), BytesHeaderParser().parsebytes(fields), body)
