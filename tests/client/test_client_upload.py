"""Content on its way to the service: what may be given, what id it gets, what goes over the wire."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import random
import threading
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from overspill import errors, wire
from overspill.guard.guard import Guard
from overspill.transfer.client import Client
from overspill.transfer.compression import SINGLE_FRAME, WORTHWHILE
from overspill.transfer.source import InFile

from tests.client.scripted import Received, json, scripted
from tests.client.test_client_transport import ENTRY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

TEXT = b"one line of many\n"
SHORT = TEXT * 10
LONG = b"line %d of the log\n" * 100_000 % tuple(range(100_000))
RANDOM = random.Random(0).randbytes(1_500_000)


async def put(content: Any, **facts: Any) -> Received:
    """The request that storing `content` makes."""
    settings = facts.pop("settings", {})
    async with scripted(json(ENTRY, 201)) as service, Client(service.url, **settings) as overspill:
        await overspill.put(content, **facts)
    return service.received[0]


def decoded(request: Received) -> bytes:
    if request.headers.get("content-encoding") != "zstd":
        return request.body
    return zstandard.ZstdDecompressor().decompressobj().decompress(request.body)


def pieces(content: bytes, size: int = 100_000) -> Iterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def arriving(content: bytes) -> AsyncIterator[bytes]:
    for piece in pieces(content):
        await asyncio.sleep(0)
        yield piece


class Pipe(io.RawIOBase):
    """A binary file that cannot seek, as a pipe."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._content.readinto(buffer)


@pytest.mark.parametrize("content", [b"", SHORT, LONG], ids=["empty", "short", "long"])
@pytest.mark.parametrize(
    "form",
    [
        bytes,
        bytearray,
        memoryview,
        bytes.decode,
        io.BytesIO,
        Pipe,
        pieces,
        arriving,
        lambda content: list(pieces(content)),
        lambda content: memoryview(bytearray(content)),
    ],
)
async def test_every_form_of_content_is_stored_under_the_same_id(form: Any, content: bytes) -> None:
    request = await put(form(content), call_id="call_1", session="run-7")
    sha256 = hashlib.sha256(content).digest()

    assert decoded(request) == content
    assert request.headers["repr-digest"] == wire.encode_digest(sha256)
    assert request.target == f"/v1/captures/{wire.capture_id('run-7', 'call_1', sha256)}"


@pytest.mark.parametrize("content", [SHORT, LONG], ids=["short", "long"])
async def test_a_path_is_stored_as_its_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(content)

    assert decoded(await put(path)) == content


async def test_a_named_pipe_is_stored_as_what_comes_through(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writing = asyncio.create_task(asyncio.to_thread(fifo.write_bytes, LONG))

    assert decoded(await put(fifo)) == LONG
    await writing


async def test_a_file_that_is_not_there_is_the_callers_to_hear_of(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await put(tmp_path / "missing")


async def test_a_file_is_stored_from_where_it_stands() -> None:
    file = io.BytesIO(b"skipped" + LONG)
    file.seek(7)

    assert decoded(await put(file)) == LONG
    assert not file.closed


async def test_a_non_contiguous_view_is_stored_as_its_bytes() -> None:
    assert decoded(await put(memoryview(b"abcdef")[::2])) == b"ace"


async def test_a_view_of_wider_items_is_stored_as_its_bytes() -> None:
    assert decoded(await put(memoryview(b"abcdefgh").cast("Q"))) == b"abcdefgh"


async def test_a_lone_surrogate_does_not_stop_a_string() -> None:
    assert decoded(await put("a\ud800b")) == "a\ud800b".encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("content", [3, None, ["text"], {"a": 1}, io.StringIO("text"), object()])
async def test_what_has_no_bytes_is_refused(content: object) -> None:
    with pytest.raises(TypeError, match=r"give|gave"):
        await put(content)


async def test_what_an_iterator_raises_reaches_the_caller() -> None:
    def failing() -> Iterator[bytes]:
        yield b"begun"
        raise TimeoutError("the tool went away")

    with pytest.raises(TimeoutError, match="the tool went away"):
        await put(failing())


@pytest.mark.parametrize("now", [SHORT, LONG[:-1], LONG + b"more"])
def test_a_file_that_changes_after_it_was_hashed_is_noticed(now: bytes) -> None:
    file = io.BytesIO(LONG)
    content = InFile(file)
    file.seek(0)
    file.truncate()
    file.write(now)

    with pytest.raises(errors.ContentChanged):
        list(content.pieces())


async def test_a_file_that_changes_while_it_is_sent_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "growing.log"
    path.write_bytes(LONG)

    class Growing(io.FileIO):
        def tell(self) -> int:
            return super().tell()

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            if not data and super().tell() == len(LONG):
                with path.open("ab") as more:
                    more.write(b"more")
            return data

    with (
        Growing(path) as file,
        pytest.raises(errors.ContentChanged, match="changed while it was being captured"),
    ):
        await put(file)


@pytest.mark.parametrize("size", [WORTHWHILE, 100_000, SINGLE_FRAME])
async def test_short_content_goes_as_exactly_one_frame_with_size_and_checksum(size: int) -> None:
    content = (LONG * 2)[:size]
    request = await put(content)
    frame = zstandard.get_frame_parameters(request.body)
    decoder = zstandard.ZstdDecompressor().decompressobj()

    assert request.headers["content-encoding"] == "zstd"
    assert decoder.decompress(request.body) == content
    assert (decoder.eof, decoder.unused_data) == (True, b"")
    assert (frame.content_size, frame.has_checksum) == (size, True)


@pytest.mark.parametrize("content", [LONG[: WORTHWHILE - 1], RANDOM[:100_000], b""])
async def test_content_that_would_not_shrink_goes_as_it_is(content: bytes) -> None:
    request = await put(content)

    assert "content-encoding" not in request.headers
    assert request.body == content


async def test_compression_can_be_turned_off() -> None:
    request = await put(LONG[:100_000], settings={"compress": False})

    assert request.body == LONG[:100_000]


async def test_a_guard_uploads_with_all_settings_of_its_client() -> None:
    async with scripted(json(ENTRY, 201)) as service:
        client = Client(service.url, compress=False)
        async with client, Guard(client, spool=False) as guard:
            await guard.process(LONG[:100_000].decode(), tool="shell")

    assert service.received[0].body == LONG[:100_000]


async def test_long_content_is_not_compressed_for_a_service_on_this_machine() -> None:
    assert (await put(LONG)).body == LONG


@pytest.mark.parametrize("form", [bytes, pieces])
async def test_long_content_is_compressed_on_its_way_to_another_machine(
    form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overspill.transfer.address._LOCAL_HOSTS", frozenset())
    request = await put(form(LONG))

    assert request.headers["transfer-encoding"] == "chunked"
    assert decoded(request) == LONG
    assert len(request.body) < len(LONG) / 3
    assert request.headers["repr-digest"] == wire.encode_digest(hashlib.sha256(LONG).digest())


async def test_long_content_that_does_not_shrink_is_not_compressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overspill.transfer.address._LOCAL_HOSTS", frozenset())
    assert (await put(RANDOM)).body == RANDOM


async def test_what_is_known_of_the_call_goes_in_headers() -> None:
    request = await put(
        "text",
        call_id="a b\r\nc",
        session="Ümläut",
        tool="run_command",
        status="exit 1",
        ttl=60,
        labels={"Team": "🚀"},
    )
    headers = request.headers

    assert wire.decode_header(headers["overspill-call-id"]) == "a b\r\nc"
    assert wire.decode_header(headers["overspill-session"]) == "Ümläut"
    assert wire.decode_header(headers["overspill-label-team"]) == "🚀"
    assert headers["overspill-tool"] == "run_command"
    assert headers["overspill-status"] == "exit%201"
    assert headers["overspill-ttl"] == "60"
    assert headers["content-type"] == "text/plain; charset=utf-8"


async def test_nothing_is_claimed_that_the_caller_did_not_say() -> None:
    request = await put(b"bytes")

    assert "content-type" not in request.headers
    assert not [name for name in request.headers if name.startswith("overspill-")]


async def test_a_call_id_of_any_length_is_fitted_into_its_header_but_not_into_the_id() -> None:
    long_id = "x" * 10_000
    request = await put(b"bytes", call_id=long_id)

    assert wire.decode_header(request.headers["overspill-call-id"]) == wire.fit(long_id)
    assert request.target.endswith(wire.capture_id("", long_id, hashlib.sha256(b"bytes").digest()))


@pytest.mark.parametrize("name", ["", "a b", "ä", "a:b", "x" * 64, "-a"])
async def test_a_label_that_no_header_can_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="label"):
        await put(b"bytes", labels={name: "value"})


async def test_an_id_that_is_given_is_used() -> None:
    assert (await put(b"bytes", id=ENTRY.id)).target == f"/v1/captures/{ENTRY.id}"


async def test_iterators_that_wait_do_not_hold_up_other_captures() -> None:
    released = threading.Event()

    def waiting() -> Iterator[bytes]:
        released.wait()
        yield b"late"

    async with (
        scripted(json(ENTRY)) as service,
        Client(service.url) as overspill,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(20):
            group.create_task(overspill.put(waiting()))
        await overspill.put(LONG)
        released.set()

    assert len(service.received) == 21


async def test_memory_stays_flat_for_a_long_iterator() -> None:
    """Hashed, spooled and sent: 64 MiB through a few."""

    async def drain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        left = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        while left:
            left -= len(await reader.read(65536))
        await json(ENTRY, 201)(writer)
        writer.close()

    server = await asyncio.start_server(drain, "127.0.0.1", 0)
    async with server, Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as overspill:
        await overspill.put(b"the first request loads what is needed")
        tracemalloc.start()
        await overspill.put(bytes(65536) for _ in range(1024))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 12 * 1024 * 1024
