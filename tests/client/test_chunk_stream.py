"""Streams of chunks: held while they may stay, captured as they flow once they are too long."""

import asyncio
import hashlib
import io
import os
import resource
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from overspill.shapes.captured import kind_of
from overspill.shapes.chunk_stream import ChunkStream
from overspill.shapes.guarded_chunks import (
    guarded_chunks,
    guarded_chunks_async,
    is_async_chunk_iterator,
    is_chunk_iterator,
)
from overspill.shapes.held_chunks import HeldChunks
from overspill.shapes.records import Reserve
from overspill.shapes.stream_shapes import StreamShape
from overspill.text import encoding
from overspill.text.body import FileBody
from overspill.text.buffer import MEMORY_BYTES_WITHOUT_FILE, Buffer, CannotBuffer
from overspill.text.limits import Limits
from overspill.text.measure import extent_of

from tests.client.shell import printed_by

LIMITS = Limits(100, 10)
CHUNKS = st.lists(st.text(st.sampled_from("aé😀\n\r"), max_size=30) | st.binary(max_size=30), max_size=20)
MIB = 1024 * 1024


@pytest.fixture
def temp_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary files are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def settled(content: StreamShape) -> str:
    body = content.body
    return f"NOTICE of {extent_of(body).size} bytes, {content.content_type}"


def through(source: Any, limits: Limits = LIMITS) -> list[Any]:
    return list(guarded_chunks(iter(source), ChunkStream(limits), settled))


async def through_async(source: AsyncIterator[Any], limits: Limits = LIMITS) -> list[Any]:
    async def settle(content: StreamShape) -> str:
        return settled(content)

    chunks = guarded_chunks_async(source, ChunkStream(limits), settle, asyncio.to_thread)
    return [chunk async for chunk in chunks]


async def of(chunks: Any, error: Exception | None = None) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk
    if error is not None:
        raise error


def body_of(source: Any, **options: Any) -> Any:
    bodies: list[Any] = []
    list(
        guarded_chunks(
            iter(source), ChunkStream(LIMITS, **options), lambda content: bodies.append(content.body)
        )
    )
    return bodies[0]


def data_of(body: Any) -> bytes:
    if isinstance(body, FileBody):
        return b"".join(body.pieces())
    return encoding.encode(body) if isinstance(body, str) else bytes(body)


def joined(chunks: list[Any]) -> bytes:
    return b"".join(encoding.encode(chunk) if isinstance(chunk, str) else chunk for chunk in chunks)


# --- what may stay --------------------------------------------------------------------------------


def test_a_stream_within_the_limits_comes_out_as_the_same_chunks() -> None:
    chunks = ["a" * 40, "é" * 20, "\n" * 5]

    assert all(one is other for one, other in zip(through(chunks), chunks, strict=True))


async def test_an_async_stream_within_the_limits_comes_out_as_the_same_chunks() -> None:
    assert await through_async(of([b"a", b"b"])) == [b"a", b"b"]


@given(CHUNKS, st.integers(0, 60), st.integers(0, 6), st.none() | st.integers(0, 40))
def test_chunks_are_held_exactly_as_long_as_together_they_fit(
    chunks: list[Any], size: int, lines: int, chars: int | None
) -> None:
    limits = Limits(size, lines, chars)
    held = HeldChunks(limits)
    for number, chunk in enumerate(chunks, 1):
        extent = extent_of(joined(chunks[:number]))
        fits = extent.size <= size and extent.lines <= lines
        fits = fits and (chars is None or sum(map(len, chunks[:number])) <= chars)

        assert held.take(chunk) == fits == held.fits()
        if not fits:
            break


def test_tokens_count_at_the_end() -> None:
    few, many = Limits(1_000, 10, max_tokens=10), ["word " * 10] * 4

    assert through(["word"], few) == ["word"]
    assert through(many, few) == ["NOTICE of 200 bytes, text/plain; charset=utf-8"]


def test_what_a_generator_returns_is_still_returned() -> None:
    def tool() -> Any:
        yield "a"
        return 7

    def outer() -> Any:
        return (yield from guarded_chunks(tool(), ChunkStream(LIMITS), settled))

    chunks = outer()
    assert next(chunks) == "a"
    with pytest.raises(StopIteration) as stop:
        next(chunks)
    assert stop.value.value == 7


# --- what is captured -----------------------------------------------------------------------------


def test_a_stream_over_the_limits_comes_out_as_one_notice() -> None:
    assert through(["a" * 60, "b" * 60]) == ["NOTICE of 120 bytes, text/plain; charset=utf-8"]


async def test_an_async_stream_over_the_limits_comes_out_as_one_notice() -> None:
    assert await through_async(of(["a\n"] * 11)) == ["NOTICE of 22 bytes, text/plain; charset=utf-8"]


@given(CHUNKS, st.integers(0, 200))
def test_what_is_gathered_is_every_byte(chunks: list[Any], in_memory: int) -> None:
    gathering = Buffer(memory_bytes=in_memory)
    for chunk in chunks:
        gathering.write(chunk)
    body = gathering.finish()
    whole = joined(chunks)

    assert data_of(body) == whole
    assert extent_of(body) == extent_of(whole)
    assert isinstance(body, FileBody) == (len(whole) > in_memory)
    if isinstance(body, FileBody):
        assert body.sha256 == hashlib.sha256(whole).digest()
        assert body.path.stat().st_mode & 0o077 == 0


def test_a_character_split_between_chunks_is_whole_in_the_capture() -> None:
    whole = ("é😀" * 40).encode()
    source = [whole[at : at + 3] for at in range(0, len(whole), 3)]

    assert data_of(body_of(source)).decode() == "é😀" * 40
    assert through(source) == ["NOTICE of 240 bytes, text/plain; charset=utf-8"]


@pytest.mark.parametrize(
    ("first", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xff", "application/octet-stream"),
        ("é".encode(), "text/plain; charset=utf-8"),
    ],
)
def test_a_stream_of_bytes_is_of_the_kind_that_its_bytes_are(first: bytes, media_type: str) -> None:
    assert through([first, b"a" * 100]) == [f"NOTICE of {100 + len(first)} bytes, {media_type}"]


def test_the_notice_is_a_chunk_like_those_before() -> None:
    class Notice:
        def __str__(self) -> str:
            return "né"

    notice: Any = Notice()

    assert StreamShape("", "", is_bytes=True).replaced(notice) == "né".encode()
    assert StreamShape("", "", is_bytes=False).replaced(notice) == "né"


@pytest.mark.parametrize(
    ("line", "kind"), [('{"a": 1}\n', "json"), ("é plain\n", "text"), ("\0\n", "unknown")]
)
def test_the_kind_of_what_is_in_a_file_is_told_from_its_beginning(line: str, kind: str) -> None:
    body = body_of([line * 1024] * 2048)

    assert isinstance(body, FileBody)
    assert kind_of(body) == kind


def test_a_file_is_removed_with_the_last_who_knows_it() -> None:
    body = body_of(["a" * 2 * MIB])
    path = body.path
    assert path.exists()
    del body

    assert not path.exists()


def test_memory_stays_flat_however_long_the_stream_is() -> None:
    code = (
        "import resource\n"
        "from overspill.shapes.chunk_stream import ChunkStream\n"
        "from overspill.shapes.guarded_chunks import guarded_chunks\n"
        "from overspill.text.limits import Limits\n"
        "def run(megabytes):\n"
        "    chunks = (b'0123456789abcde\\n' * 4096 for _ in range(16 * megabytes))\n"
        "    flow = ChunkStream(Limits(50_000, 2_000))\n"
        "    return list(guarded_chunks(chunks, flow, lambda c: (c.body.size, c.body.lines)))\n"
        "run(8)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(run(64))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    told, growth = printed_by(code).splitlines()

    assert told == f"[({64 * MIB}, {64 * MIB // 16})]"
    assert int(growth) < 4 * 1024


# --- chunks of other kinds ------------------------------------------------------------------------


def test_a_stream_of_records_within_the_limits_comes_out_as_the_same_objects() -> None:
    rows = [{"a": "x" * 50}, {"b": 1}, "c"]

    assert all(one is other for one, other in zip(through(rows), rows, strict=True))


def test_objects_that_show_nothing_of_themselves_flow_through() -> None:
    silent = [object() for _ in range(1_000)]

    assert through(silent) == silent


def test_held_chunks_come_before_the_first_of_another_kind() -> None:
    assert through(["a", None, "b"]) == ["a", None, "b"]
    assert through(["a", None, "b" * 500]) == ["NOTICE of 512 bytes, application/x-ndjson"]


def test_another_kind_behind_a_long_text_is_captured_as_it_prints() -> None:
    assert data_of(body_of(["a" * 101, {"b": 1}])) == b"a" * 101 + b"{'b': 1}"


def test_what_flows_is_told_from_what_is_read() -> None:
    async def stream() -> AsyncIterator[str]:
        yield "a"

    assert is_chunk_iterator(iter(["a"]))
    assert is_async_chunk_iterator(stream())
    assert not is_chunk_iterator(io.StringIO("a"))
    assert not is_chunk_iterator(["a"])
    assert not is_chunk_iterator("a")
    assert not is_chunk_iterator(stream())


def test_whether_something_flows_is_told_without_asking_it() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    assert not is_chunk_iterator(Hostile())
    assert not is_async_chunk_iterator(Hostile())


# --- failures and ends ----------------------------------------------------------------------------


def failing(chunks: list[Any]) -> Iterator[Any]:
    yield from chunks
    raise ValueError("boom")


def collected(source: Iterator[Any]) -> tuple[list[Any], str]:
    chunks: list[Any] = []
    with pytest.raises(ValueError) as caught:
        chunks.extend(source)
    return chunks, str(caught.value)


def test_an_error_within_the_limits_comes_behind_the_held_chunks() -> None:
    assert collected(guarded_chunks(failing(["a", "b"]), ChunkStream(LIMITS), settled)) == (
        ["a", "b"],
        "boom",
    )


def test_an_error_behind_too_much_comes_behind_the_notice_whose_capture_says_so() -> None:
    def body(content: StreamShape) -> Any:
        return content.body

    assert collected(guarded_chunks(failing(["a" * 101]), ChunkStream(LIMITS), body)) == (
        [f"{'a' * 101}\n(the stream failed here: ValueError: boom)\n"],
        "boom",
    )


async def test_an_error_of_an_async_stream_comes_behind_the_notice() -> None:
    source = of(["a" * 101], ValueError("boom"))
    chunks = guarded_chunks_async(source, ChunkStream(LIMITS), _settled_async, asyncio.to_thread)
    first = await anext(chunks)

    assert first == "NOTICE of 145 bytes, text/plain; charset=utf-8"
    with pytest.raises(ValueError, match="boom"):
        await anext(chunks)


async def _settled_async(content: StreamShape) -> str:
    return settled(content)


class Source:
    """A source that tells whether it was closed."""

    def __init__(self, chunk: Callable[[], Any] = lambda: "a" * 64 * 1024) -> None:
        self.is_closed = False
        self._chunk = chunk

    def __iter__(self) -> "Source":
        return self

    def __next__(self) -> Any:
        return self._chunk()

    def close(self) -> None:
        self.is_closed = True

    def __aiter__(self) -> "Source":
        return self

    async def __anext__(self) -> Any:
        await asyncio.sleep(0)
        return self._chunk()

    async def aclose(self) -> None:
        self.is_closed = True


def test_a_stream_without_end_is_ended_at_the_most_that_is_kept() -> None:
    source = Source()
    bodies: list[Any] = []
    list(
        guarded_chunks(
            source, ChunkStream(LIMITS, max_bytes=3 * MIB), lambda content: bodies.append(content.body)
        )
    )

    assert source.is_closed
    assert data_of(bodies[0]) == b"a" * 3 * MIB + b"\n(no more of the stream is kept: more than 3.1 MB)\n"


async def test_an_async_stream_without_end_is_ended_too() -> None:
    source = Source()
    flow = ChunkStream(LIMITS, max_bytes=3 * MIB)
    chunks = [chunk async for chunk in guarded_chunks_async(source, flow, _settled_async, asyncio.to_thread)]

    assert source.is_closed
    assert chunks == [f"NOTICE of {3 * MIB + 51} bytes, text/plain; charset=utf-8"]


async def test_a_time_out_of_the_tools_own_is_its_error() -> None:
    with pytest.raises(TimeoutError, match="own"):
        await through_async(of(["a"], TimeoutError("own")))


def test_who_stops_asking_closes_the_source() -> None:
    source = Source(lambda: {"a": 1})
    chunks = guarded_chunks(source, ChunkStream(Limits(100), reserve=Reserve(10)), settled)
    next(chunks)
    chunks.close()

    assert source.is_closed


async def test_a_cancelled_reader_closes_the_source_and_leaves_no_file(temp_folder: Path) -> None:
    written = asyncio.Event()

    async def run(work: Callable[..., Any], *args: Any) -> Any:
        done = await asyncio.to_thread(work, *args)
        if list(temp_folder.iterdir()):
            written.set()
        return done

    source, flow = Source(), ChunkStream(LIMITS)
    reading = asyncio.create_task(anext(guarded_chunks_async(source, flow, _settled_async, run)))
    await written.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert source.is_closed
    assert not list(temp_folder.iterdir())


def test_closing_while_a_chunk_is_taken_leaves_no_file(temp_folder: Path) -> None:
    for _ in range(20):
        flow = ChunkStream(LIMITS)
        taking = threading.Thread(target=lambda flow=flow: [flow.take("a" * MIB) for _ in range(20)])
        taking.start()
        flow.close()
        taking.join()

    assert not list(temp_folder.iterdir())


def test_where_no_file_can_be_made_a_stream_is_kept_in_memory_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    source = Source()
    seen: list[StreamShape] = []
    list(guarded_chunks(source, ChunkStream(LIMITS), seen.append))

    assert (
        seen[0].body
        == "a" * MEMORY_BYTES_WITHOUT_FILE + "\n(no more of the stream is kept: No such file or directory)\n"
    )
    assert seen[0].missing == "No such file or directory"


def test_a_stream_whose_file_cannot_grow_is_whole_all_the_same(temp_folder: Path) -> None:
    chunks = [f"{number}\n" * 20_000 for number in range(100)]
    with file_limit(2 * MIB):
        seen: list[StreamShape] = []
        list(guarded_chunks(iter(chunks), ChunkStream(LIMITS), seen.append))

    assert data_of(seen[0].body) == joined(chunks)
    assert seen[0].missing == ""
    assert not list(temp_folder.iterdir())


def test_a_stream_that_neither_file_nor_memory_holds_says_what_is_missing(temp_folder: Path) -> None:
    chunks = ["a" * 100_000 + "\n"] * 300
    with file_limit(2 * MIB):
        seen: list[StreamShape] = []
        list(guarded_chunks(iter(chunks), ChunkStream(LIMITS), seen.append))

    assert seen[0].missing == "File too large"
    assert data_of(seen[0].body).endswith(b"(no more of the stream is kept: File too large)\n")


def test_a_file_that_lost_bytes_behind_our_back_is_not_called_whole(temp_folder: Path) -> None:
    gathering = Buffer(memory_bytes=0)
    gathering.write("a" * MIB)
    os.truncate(next(temp_folder.iterdir()), 100)
    body = gathering.finish()

    assert (len(data_of(body)), isinstance(body, FileBody) and body.size) == (100, 100)
    assert "another size" in gathering.missing


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_for_ever(gathering: Buffer) -> None:
    while True:
        gathering.write("a" * 100_000 + "\n")


def test_what_cannot_be_read_back_is_said_instead(temp_folder: Path) -> None:
    """What a full disk has taken is counted at the end, when somebody has removed it."""
    with file_limit(MEMORY_BYTES_WITHOUT_FILE + MIB + 1000):
        flow = ChunkStream(LIMITS)
        while not flow.is_over:
            flow.take("a" * 100_000)
        flow.end()
        for file in temp_folder.iterdir():
            file.unlink()
        content = flow.shape()

    assert content is not None
    assert content.body == "(what came of the stream cannot be read back: No such file or directory)\n"
    assert "cannot be read back" in content.missing


def test_a_full_disk_ends_the_stream_with_what_is_on_it(temp_folder: Path) -> None:
    with file_limit(MEMORY_BYTES_WITHOUT_FILE + MIB + 1000):
        gathering = Buffer()
        with pytest.raises(CannotBuffer, match="File too large"):
            write_for_ever(gathering)
        gathering.add_remark("full")
        body = gathering.finish()

    assert isinstance(body, FileBody)
    data = data_of(body)
    assert data.endswith((b"a\n(full)\n", b"a(full)\n"))
    assert MEMORY_BYTES_WITHOUT_FILE + MIB - 10_000 < len(data) == body.size
    assert body.lines == data.count(b"\n")
    assert body.sha256 == hashlib.sha256(data).digest()
    assert gathering.missing == "File too large"
