"""Content on its way to the caller: decoded, verified, resumed."""

from __future__ import annotations

import hashlib
import itertools
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from overspill import errors, wire
from overspill.transfer.client import Client
from overspill.transfer.compression import MAX_FRAME, PIECE_SIZE, FrameDecoder
from overspill.wire import ByteRange, Code

from tests.client.scripted import Scripted, Step, answer, problem, scripted, then_close

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

CAPTURE = "cap_" + "a" * 20
MAGIC = b"\x28\xb5\x2f\xfd"
WINDOW_OF_16_MIB = 14 << 3
"""The window's descriptor: its exponent, less 10, and its mantissa of three bits (RFC 8878, 3.1.1.1.2)."""
CONTENT = b"line %d of the log\n" * 100_000 % tuple(range(100_000))


def frames(content: bytes, size: int = 512 * 1024) -> bytes:
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return b"".join(compressor.compress(content[at : at + size]) for at in range(0, len(content), size))


def facts(content: bytes) -> dict[str, str]:
    return {wire.Header.SIZE: str(len(content)), wire.Header.SHA256: hashlib.sha256(content).hexdigest()}


def stored(content: bytes, *, cut: int | None = None) -> Step:
    """The content as zstd frames; `cut` breaks the connection off after that many bytes."""
    body = frames(content)
    headers = {**facts(content), "Content-Encoding": "zstd"}
    if cut is None:
        return answer(body, headers=headers)
    return then_close(answer(body[:cut], headers=headers, length=len(body)))


def part(content: bytes, start: int, stop: int | None = None, *, cut: int | None = None) -> Step:
    """Bytes of the content as they are."""
    stop = len(content) if stop is None else stop
    headers = {**facts(content), "Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"}
    body = content[start:stop]
    step = answer(body if cut is None else body[:cut], 206, headers, length=len(body))
    return step if cut is None else then_close(step)


def plain(content: bytes, headers: dict[str, str] | None = None, **settings: int) -> Step:
    return answer(content, headers={**facts(content), **(headers or {})}, **settings)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def asked_ranges(service: Scripted) -> list[str | None]:
    return [request.headers.get("range") for request in service.received]


async def test_stored_frames_are_decoded_by_the_client() -> None:
    async with scripted(stored(CONTENT)) as service, Client(service.url) as overspill:
        assert await overspill.content(CAPTURE) == CONTENT

    assert service.received[0].headers["accept-encoding"] == "zstd"


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 65_536, CONTENT])
async def test_content_comes_as_it_is_where_the_service_does_not_compress(content: bytes) -> None:
    async with scripted(plain(content)) as service, Client(service.url) as overspill:
        assert await overspill.content(CAPTURE) == content


async def test_a_range_is_asked_for_unencoded() -> None:
    async with scripted(part(CONTENT, 100, 200)) as service, Client(service.url) as overspill:
        assert await overspill.content(CAPTURE, ByteRange(100, 199)) == CONTENT[100:200]

    assert service.received[0].headers["range"] == "bytes=100-199"
    assert service.received[0].headers["accept-encoding"] == "identity"


async def test_a_suffix_is_held_against_the_size_that_the_answer_gives() -> None:
    async with scripted(part(CONTENT, len(CONTENT) - 10)) as service, Client(service.url) as overspill:
        assert await overspill.content(CAPTURE, ByteRange(None, 10)) == CONTENT[-10:]


@pytest.mark.parametrize("step", [part(CONTENT, 0, 200), plain(CONTENT), part(CONTENT, 100, 201)])
async def test_another_range_than_was_asked_for_is_refused(step: Step) -> None:
    async with scripted(step) as service, Client(service.url) as overspill:
        with pytest.raises(errors.ProtocolError, match="asked for bytes=100-199"):
            await overspill.content(CAPTURE, ByteRange(100, 199))


async def test_a_range_beyond_the_end_says_how_long_the_capture_is() -> None:
    async with (
        scripted(problem(Code.RANGE_NOT_SATISFIABLE, limit=5)) as service,
        Client(service.url) as overspill,
    ):
        with pytest.raises(errors.RangeNotSatisfiable) as raised:
            await overspill.content(CAPTURE, ByteRange(10))

    assert raised.value.limit == 5


async def test_every_byte_arrives_once_over_several_breaks() -> None:
    async def breaking(writer: asyncio.StreamWriter) -> None:
        """Answer what is asked for, but break off after 300,000 bytes of it."""
        asked = ByteRange.parse(service.received[-1].headers.get("range", ""))
        if asked is None or asked.first is None:
            await then_close(answer(CONTENT[:300_000], headers=facts(CONTENT), length=len(CONTENT)))(writer)
        else:
            await part(CONTENT, asked.first, cut=300_000)(writer)

    async with scripted(breaking) as service, Client(service.url, retries=20) as overspill:
        assert await overspill.content(CAPTURE) == CONTENT

    assert len(asked_ranges(service)) > 5


async def test_a_transfer_that_always_breaks_is_given_up() -> None:
    async with scripted(stored(CONTENT, cut=0)) as service, Client(service.url, retries=2) as overspill:
        with pytest.raises(errors.Unreachable):
            await overspill.content(CAPTURE)

    assert len(service.received) == 3


@pytest.mark.parametrize("content", [b"", b"all of it"])
async def test_a_break_after_the_last_byte_of_content_loses_nothing(content: bytes) -> None:
    unended = then_close(answer(content, headers=facts(content), length=len(content) + 1))
    async with scripted(unended) as service, Client(service.url) as overspill:
        assert await overspill.content(CAPTURE) == content

    assert len(service.received) == 1


async def test_a_transfer_that_stalls_is_resumed() -> None:
    async def stall(writer: asyncio.StreamWriter) -> None:
        await answer(CONTENT[:1000], headers=facts(CONTENT), length=len(CONTENT))(writer)

    async with scripted(stall, part(CONTENT, 1000)) as service, Client(service.url, timeout=0.2) as overspill:
        assert await overspill.content(CAPTURE) == CONTENT

    assert asked_ranges(service) == [None, f"bytes=1000-{len(CONTENT) - 1}"]


async def test_a_transfer_is_not_resumed_with_another_capture() -> None:
    """As where `call:` finds a newer capture meanwhile."""
    newer = CONTENT.replace(b"log", b"LOG")
    begun = then_close(answer(CONTENT[:1000], headers=facts(CONTENT), length=len(CONTENT)))
    async with scripted(begun, part(newer, 1000)) as service, Client(service.url) as overspill:
        with pytest.raises(errors.ProtocolError, match="another content"):
            await overspill.content("call:call_0")


async def test_damaged_content_is_noticed() -> None:
    damaged = CONTENT[:-2] + b"X\n"
    async with scripted(plain(damaged, facts(CONTENT))) as service, Client(service.url) as overspill:
        with pytest.raises(errors.ProtocolError, match="do not match the capture's SHA-256"):
            await overspill.content(CAPTURE)


async def test_a_damaged_frame_is_noticed() -> None:
    body = bytearray(frames(CONTENT))
    body[len(body) // 2] ^= 0xFF
    step = answer(bytes(body), headers={**facts(CONTENT), "Content-Encoding": "zstd"})
    async with scripted(step) as service, Client(service.url) as overspill:
        with pytest.raises(errors.ProtocolError):
            await overspill.content(CAPTURE)


async def test_more_content_than_announced_is_noticed() -> None:
    step = answer(frames(CONTENT + b"more"), headers={**facts(CONTENT), "Content-Encoding": "zstd"})
    async with scripted(step) as service, Client(service.url) as overspill:
        with pytest.raises(errors.ProtocolError, match="longer than the"):
            await overspill.content(CAPTURE)


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (answer(b"x", headers={"Content-Encoding": "br", wire.Header.SIZE: "1"}), "the encoding 'br'"),
        (answer(b"x" * 100, headers={"Content-Encoding": "zstd", wire.Header.SIZE: "9"}), "not the zstd"),
        (answer(b"x"), "does not say the capture's size"),
        (answer(b"x", 206), "does not say which bytes"),
    ],
)
async def test_an_answer_that_is_no_content_is_refused(step: Step, complaint: str) -> None:
    async with scripted(step) as service, Client(service.url) as overspill:
        with pytest.raises(errors.ProtocolError, match=complaint):
            await overspill.content(CAPTURE)


async def test_leaving_a_stream_early_ends_the_transfer() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        step = answer(b"", headers={wire.Header.SIZE: str(2**40)}, length=2**40)
        await step(writer)
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with scripted(endless) as service, Client(service.url) as overspill:
        async with overspill.stream(CAPTURE) as pieces:
            assert await anext(pieces)
        await service.ended.wait()

        with pytest.raises(StopAsyncIteration):
            await anext(pieces)


async def test_content_that_compresses_enormously_comes_in_bounded_pieces() -> None:
    content = bytes(64 * 1024 * 1024)
    async with scripted(stored(content)) as service, Client(service.url) as overspill:
        sizes = [len(piece) async for piece in overspill.stream(CAPTURE)]

    assert sum(sizes) == len(content)
    assert max(sizes) <= 512 * 1024


async def test_a_download_writes_a_file(tmp_path: Path) -> None:
    target = tmp_path / "out.log"
    async with scripted(stored(CONTENT)) as service, Client(service.url) as overspill:
        assert await overspill.download(CAPTURE, target) == len(CONTENT)

    assert target.read_bytes() == CONTENT
    assert names_in(tmp_path) == ["out.log"]


async def test_a_failed_download_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "out.log"
    target.write_bytes(b"old")
    step = plain(CONTENT[:-1] + b"X", facts(CONTENT))
    async with scripted(step) as service, Client(service.url) as overspill:
        with pytest.raises(errors.ProtocolError):
            await overspill.download(CAPTURE, target)

    assert target.read_bytes() == b"old"
    assert names_in(tmp_path) == ["out.log"]


@given(
    contents=st.lists(st.binary(max_size=300), max_size=6),
    cuts=st.lists(st.integers(0, 3000), max_size=8),
)
def test_frames_decode_however_they_are_cut(contents: list[bytes], cuts: list[int]) -> None:
    body = b"".join(zstandard.compress(content) for content in contents)
    bounds = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    decoder = FrameDecoder()
    decoded = [piece for at, to in itertools.pairwise(bounds) for piece in decoder.decode(body[at:to])]

    assert b"".join(decoded) == b"".join(contents)


def test_skippable_frames_are_skipped() -> None:
    body = b"\x5d\x2a\x4d\x18\x03\x00\x00\x00abc" + zstandard.compress(b"content")

    assert list(FrameDecoder().decode(body)) == [b"content"]


def test_a_frame_without_a_bounded_size_is_refused() -> None:
    stream = zstandard.ZstdCompressor().compressobj()
    unsized = stream.compress(b"content") + stream.flush()
    oversized = zstandard.compress(bytes(MAX_FRAME + 1))

    for body in (unsized, oversized):
        with pytest.raises(errors.ProtocolError, match="no declared size"):
            list(FrameDecoder().decode(body))


def lying_frame(blocks: int) -> bytes:
    """A frame that says that it holds 256 bytes; each of its blocks of 4 bytes decodes to 128 KiB."""
    header = MAGIC + b"\x40" + bytes([WINDOW_OF_16_MIB, 0, 0])  # the size has two bytes, less 256
    block = (128 * 1024 << 3 | 0b010).to_bytes(3, "little") + b"a"  # one byte, repeated
    return header + block * blocks


def test_a_frame_that_decodes_to_more_than_it_declares_is_refused() -> None:
    with pytest.raises(errors.ProtocolError, match="cannot be decoded"):
        list(FrameDecoder().decode(lying_frame(800)))


def test_what_decodes_large_comes_in_bounded_pieces() -> None:
    sizes = [len(piece) for piece in FrameDecoder().decode(zstandard.compress(bytes(MAX_FRAME)))]

    assert sum(sizes) == MAX_FRAME
    assert max(sizes) <= PIECE_SIZE


def test_a_frame_that_needs_a_larger_window_than_its_content_may_have_is_refused() -> None:
    wider = bytearray(lying_frame(blocks=1))
    wider[5] = WINDOW_OF_16_MIB + (1 << 3)

    with pytest.raises(errors.ProtocolError, match="cannot be decoded"):
        list(FrameDecoder().decode(bytes(wider)))


@pytest.mark.parametrize("damaged", [b"{} is not zstd, and long enough", frames(CONTENT)[:-1] + b"X"])
def test_what_is_no_zstd_is_refused(damaged: bytes) -> None:
    with pytest.raises(errors.ProtocolError, match=r"zstd|decoded"):
        list(FrameDecoder().decode(damaged))
