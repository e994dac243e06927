"""The end of a request: a proxy before the service must never see another end than the service does.

Every shape here is one that servers have read in two ways. The bytes behind it are never answered.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from tests.web.conftest import Api

HEAD = b"POST /v1/observations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SECOND = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKS = b"2\r\n{}\r\n0\r\n\r\n"
SIZED = b"Content-Length: 2\r\n\r\n{}"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

AMBIGUOUS = {
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 45\r\n\r\n{}",
    "two lengths alike": HEAD + b"Content-Length: 2\r\n" + SIZED,
    "a list of lengths": HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
    "a length with a sign": HEAD + b"Content-Length: +2\r\n\r\n{}",
    "a hexadecimal length": HEAD + b"Content-Length: 0x2\r\n\r\n{}",
    "a length without end": HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n{}",
    "chunked and a length": HEAD + CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    "a length and chunked": HEAD + b"Content-Length: 0\r\n" + CHUNKED + b"\r\n" + CHUNKS,
    "chunked twice": HEAD + CHUNKED + CHUNKED + b"\r\n" + CHUNKS,
    "chunked, then another": HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS,
    "another, then chunked": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "an unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\n" + SIZED,
    "a coding in quotes": HEAD + b'Transfer-Encoding: "chunked"\r\n' + SIZED,
    "a coding behind a control character": HEAD + b"Transfer-Encoding: \x0bchunked\r\n" + SIZED,
    "a space before the colon": HEAD + b"Transfer-Encoding : chunked\r\n" + SIZED,
    "chunked in HTTP/1.0": HEAD.replace(b"1.1", b"1.0")
    + b"Connection: keep-alive\r\n"
    + CHUNKED
    + b"\r\n"
    + CHUNKS,
    "a folded field": HEAD + b"X: a\r\n b\r\n" + SIZED,
    "a folded coding": HEAD + b"Transfer-Encoding:\r\n chunked\r\n" + SIZED,
    "a line end of LF alone": HEAD + b"X: a\n" + SIZED,
    "a carriage return alone": HEAD + b"X: a\rContent-Length: 99\r\n" + SIZED,
    "a NUL": HEAD + b"X: a\x00\r\n" + SIZED,
    "chunks that end with LF alone": HEAD + CHUNKED + b"\r\n2\n{}\n0\n\n",
    "a chunk's size with a sign": HEAD + CHUNKED + b"\r\n-2\r\n{}\r\n0\r\n\r\n",
    "a chunk's size beyond 64 bits": HEAD + CHUNKED + b"\r\n10000000000000002\r\n{}\r\n0\r\n\r\n",
    "bytes behind a chunk": HEAD + CHUNKED + b"\r\n2\r\n{}XX0\r\n\r\n",
    "a line break in a chunk's extension": HEAD + CHUNKED + b"\r\n2;a\n=b\r\n{}\r\n0\r\n\r\n",
    "a length among the trailers": HEAD + CHUNKED + b"\r\n2\r\n{}\r\n0\r\nContent-Length: 50\r\n\r\n",
    "two hosts": HEAD + b"Host: other\r\n" + SIZED,
}
PLAIN = {
    "a length": HEAD + SIZED,
    "chunks": HEAD + CHUNKED + b"\r\n" + CHUNKS,
    "the coding in capitals": HEAD + CHUNKED.upper() + b"\r\n" + CHUNKS,
    "a chunk's extension": HEAD + CHUNKED + b"\r\n2;a=b\r\n{}\r\n0\r\n\r\n",
    "a body of a request that is refused": HEAD.replace(b"json", b"text") + SIZED,
}
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


async def statuses(api: Api, data: bytes, most: int) -> list[int]:
    """Send bytes, and return the statuses of up to `most` answers, or of all until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(data)
    received = b""
    async with asyncio.timeout(PATIENCE):
        while len(_STATUS.findall(received)) < most and (piece := await reader.read(65536)):
            received += piece
    writer.close()
    return [int(each) for each in _STATUS.findall(received)]


@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_what_could_end_in_two_places_is_refused_with_all_that_follows(api: Api, data: Any) -> None:
    assert await statuses(api, data + SECOND, most=2) == [400]


@pytest.mark.parametrize("data", PLAIN.values(), ids=PLAIN)
async def test_what_ends_in_one_place_leaves_the_next_request_alone(api: Api, data: Any) -> None:
    first, second = await statuses(api, data + SECOND, most=2)

    assert first in (415, 422)
    assert second == 200
