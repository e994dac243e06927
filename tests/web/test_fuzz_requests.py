"""A bounded fuzz of requests as bytes: whatever comes, no error of the service, and it serves on."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
import zstandard

from tests.web.conftest import path_of

if TYPE_CHECKING:
    from tests.web.conftest import Api

ROUNDS: Final = int(os.environ.get("OVERSPILL_FUZZ_ROUNDS", "60"))
"""Requests a seed; more for a longer search."""
SECONDS: Final = 30.0
CONTENT: Final = b"a line\n" * 40
PACKED: Final = zstandard.compress(CONTENT)
OBSERVED: Final = b'{"observations": [{"tool": "t", "outcome": "inline", "count": 1}]}'


def request(line: str, *fields: str, body: bytes = b"") -> bytes:
    lines = [f"{line} HTTP/1.1", "Host: 127.0.0.1", *fields, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


CORPUS: Final = [
    request(f"PUT {path_of(CONTENT)}", "Overspill-Call-Id: call_0", "Overspill-Tool: t", body=CONTENT),
    request(f"PUT {path_of(CONTENT)}", "Content-Encoding: zstd", "Overspill-Label-a: b%20c", body=PACKED),
    request(
        "POST /v1/captures", "Overspill-Session: s", "Overspill-Ttl: 60", "Expect: 100-continue", body=CONTENT
    ),
    request("POST /v1/observations", "Content-Type: application/json", body=OBSERVED),
    request(f"PATCH {path_of(CONTENT)}", "Content-Type: application/json", body=b'{"ttl": 60}'),
    request(
        f"GET {path_of(CONTENT)}/grep?pattern=l.ne&context=2&cursor=abc", "Accept: text/plain;q=0.5, */*"
    ),
    request(f"GET {path_of(CONTENT)}/content", "Range: bytes=3-9", 'If-None-Match: "x", W/"y"'),
    request("GET /v1/captures?limit=2&created_after=2026-11-23T06:00:00Z&cursor=a"),
    request(
        "GET /v1/captures/call:a%2Fb/lines?start=1&end=5&session=s", "Accept-Encoding: gzip;q=0, identity"
    ),
    (
        f"PUT {path_of(CONTENT)} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        "Repr-Digest: sha-256=:AAAA:\r\n\r\n5\r\nabcde\r\n0\r\nTrailer: x\r\n\r\n"
    ).encode(),
]
PIECES: Final = [
    *(
        b"\r\n",
        b"\n",
        b"\0",
        b"\xff\xfe",
        b"%00",
        b"%FF",
        b"%",
        b": ",
        b";",
        b",",
        b'"',
        b" ",
        b"\t",
        b"?",
        b"&",
    ),
    *(b"-1", b"0", b"99999999999999999999", b"1e999", b"NaN", b"null", b"{" * 50, b"[" * 2_000, b"a" * 9_000),
    *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: y\r\n", b"Expect: x\r\n"),
]


def mutated(random_: random.Random) -> bytes:
    data = random_.choice(CORPUS)
    for _ in range(random_.randint(1, 4)):
        at, end = sorted(random_.randint(0, len(data)) for _ in range(2))
        other = random_.choice(CORPUS)
        start = random_.randrange(len(other))
        middle = random_.choice([b"", random_.choice(PIECES), data[at:end] * 2, other[start : start + 80]])
        data = data[:at] + middle + data[random_.choice([at, min(at + 9, end), end]) :]
    return data


async def statuses(api: Api, data: bytes) -> list[int]:
    """The statuses of all answers to these bytes, after which the client says no more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    with suppress(ConnectionError):
        writer.write(data)
        await writer.drain()
        writer.write_eof()
    answer = b""
    with suppress(ConnectionError):
        answer = await reader.read()
    writer.close()
    lines = [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.")]
    return [int(line.split()[1]) for line in lines]


@pytest.mark.parametrize("seed", range(4))
async def test_any_bytes_are_answered_without_an_error_of_the_service(api: Api, seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(ROUNDS):
        data = mutated(random_)
        async with asyncio.timeout(SECONDS):
            found = await statuses(api, data)

        assert [status for status in found if status >= 500] == [], data

    assert (await api.get("/readyz")).status == 200
    assert api.service.in_flight.count == 0
