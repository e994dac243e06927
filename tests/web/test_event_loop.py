"""The event loop does nothing that takes long, however small the body that asks for it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import zstandard
from overspill.wire import Header
from overspill_service.archive import archive, uploading
from overspill_service.resources.cpu import INLINE_FRAMES
from overspill_service.store_format import frames, index, screening
from overspill_service.store_format.decoding import BodyDecoder
from overspill_service.store_format.ingest import INLINE_BYTES, Ingest
from overspill_service.store_format.screening import Screen

from tests.core.contents import log
from tests.faults.traffic import noise
from tests.web.conftest import Api, path_of
from tests.web.live_producer import Producer

if TYPE_CHECKING:
    from overspill_service.store_format.screening import Treatment

ZSTD = zstandard.ZstdCompressor(write_checksum=True)
BODIES = {
    "small": (None, log(INLINE_BYTES - 1000)),
    "large": (None, log(10 * INLINE_BYTES)),
    "gzip that decodes large": ("gzip", gzip.compress(bytes(4_000_000))),
    "gzip": ("gzip", gzip.compress(log(INLINE_BYTES - 1000))),
    "a small zstd frame": ("zstd", ZSTD.compress(log(INLINE_BYTES - 1000))),
    "a zstd frame that decodes large": ("zstd", ZSTD.compress(log(8 * INLINE_BYTES))),
    "zstd that decodes very large": ("zstd", ZSTD.compress(bytes(40_000_000))),
    "many zstd frames": ("zstd", ZSTD.compress(bytes(60_000)) * 100),
    "many frames to skip": ("zstd", (b"\x50\x2a\x4d\x18" + bytes(4)) * 4_000 + ZSTD.compress(b"x")),
    "noise": (None, noise(10 * INLINE_BYTES)),
}


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the pieces of content that the event loop's own thread takes in."""
    sizes: list[int] = []
    loop, note = threading.get_ident(), Ingest._measure

    def noted(self: Ingest, piece: bytes) -> None:
        if threading.get_ident() == loop:
            sizes.append(len(piece))
        note(self, piece)

    monkeypatch.setattr(Ingest, "_measure", noted)
    return sizes


@pytest.mark.parametrize(("encoding", "body"), BODIES.values(), ids=BODIES)
async def test_no_body_is_decoded_or_hashed_on_the_event_loop_but_a_small_one(
    api: Api, on_the_loop: list[int], encoding: str | None, body: bytes
) -> None:
    headers = {"Content-Encoding": encoding} if encoding else {}
    for status in (201, 200):
        response = await api.send("PUT", path_of(body), data=body, headers=headers)

        assert response.status == status
        assert sum(on_the_loop) <= INLINE_BYTES
        on_the_loop.clear()


@pytest.mark.parametrize("redaction", ["tag", "refuse"])
@pytest.mark.parametrize(("encoding", "body"), BODIES.values(), ids=BODIES)
async def test_little_is_searched_for_secrets_on_the_event_loop(
    start_api: Callable[..., Any], on_the_loop: list[int], redaction: str, encoding: str | None, body: bytes
) -> None:
    api: Api = await start_api(redaction=redaction)
    headers = {"Content-Encoding": encoding} if encoding else {}
    response = await api.send("PUT", path_of(body), data=body, headers=headers)

    assert response.status == 201
    assert sum(on_the_loop) <= screening.INLINE_BYTES


@pytest.mark.parametrize("redaction", [None, "tag", "refuse"])
def test_the_few_last_bytes_of_a_long_body_are_no_small_body(redaction: Treatment | None) -> None:
    screen = None if redaction is None else Screen(redaction)
    ingest = Ingest(None, level=frames.LEVEL, limit=2**40, screen=screen)
    list(ingest.take([bytes(INLINE_BYTES)], is_last=False))

    assert not ingest.runs_inline([b"x"], is_last=True)  # with it goes what waits of the body


async def test_a_small_body_of_the_client_costs_no_thread(api: Api, on_the_loop: list[int]) -> None:
    encoding, body = BODIES["a small zstd frame"]
    await api.send("PUT", path_of(body), data=body, headers={"Content-Encoding": str(encoding)})

    assert on_the_loop


async def test_the_index_of_many_frames_is_made_and_read_in_threads(
    start_api: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    api: Api = await start_api()
    loop, seen = threading.get_ident(), []
    for module, name in ((uploading, "trailer"), (archive, "pack"), (index, "parse")):
        work = getattr(module, name)

        def watched(*args: Any, work: Any = work, name: str = name) -> Any:
            seen.append((name, threading.get_ident() == loop))
            return work(*args)

        monkeypatch.setattr(module, name, watched)
    body = gzip.compress(bytes((INLINE_FRAMES + 10) * 576 * 1024), 1)
    entry = await (
        await api.send("PUT", path_of(body), data=body, headers={"Content-Encoding": "gzip"})
    ).json()
    assert (
        await api.send("PUT", path_of(body), data=body, headers={"Content-Encoding": "gzip"})
    ).status == 200

    assert entry["size"] > INLINE_FRAMES * 576 * 1024
    assert set(seen) == {("trailer", False), ("pack", False), ("parse", False)}


@pytest.mark.parametrize(("encoding", "body"), BODIES.values(), ids=BODIES)
async def test_no_append_is_decoded_on_the_event_loop_but_a_small_one(
    api: Api, monkeypatch: pytest.MonkeyPatch, encoding: str | None, body: bytes
) -> None:
    loop, sizes = threading.get_ident(), []
    feed, decompress = BodyDecoder.feed, frames.decompress

    def fed(self: BodyDecoder, data: bytes) -> Iterator[bytes]:
        for piece in feed(self, data):
            sizes.append(len(piece) if threading.get_ident() == loop else 0)
            yield piece

    def decompressed(data: bytes, limit: int) -> bytes:
        content = decompress(data, limit)
        sizes.append(len(content) if threading.get_ident() == loop else 0)
        return content

    monkeypatch.setattr(BodyDecoder, "feed", fed)
    monkeypatch.setattr("overspill_service.web.append_bodies.decompress", decompressed)
    producer = Producer(api)
    await producer.begin()
    headers = {"Content-Encoding": encoding} if encoding else {}
    sent = {Header.PRODUCER: "me", Header.UPLOAD_OFFSET: "0", **headers}
    answer = await api.send("POST", f"{producer.path}/append", data=body, headers=sent)

    assert answer.status in (200, 413)
    assert sum(sizes) <= INLINE_BYTES
