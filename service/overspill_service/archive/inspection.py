"""Run the bounded readers on a capture: fetch and decode the frames that they want, in threads."""

from __future__ import annotations

import re
from contextlib import aclosing, contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from overspill.reading import errors
from overspill.reading.chunks import Extent
from overspill.reading.patterns import check_pattern, compile_pattern
from overspill.wire import terminal_columns

from overspill_service.archive.frame_reader import unchanged
from overspill_service.errors import InvalidParameter, InvalidPattern
from overspill_service.resources.cpu import INLINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overspill.reading.chunks import Chunk, Wanted
    from overspill.reading.grep import Search
    from overspill.reading.patterns import Pattern
    from overspill.wire import GrepQuery, Text

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry
    from overspill_service.resources.cpu import Workers
    from overspill_service.resources.scans import Scan
    from overspill_service.store_format.frame_map import FrameMap

INLINE_BYTES: Final = 64 * 1024
"""Bytes of content of which some lines are found in less than a millisecond."""
ESCAPE: Final = b"\x1b"
FEW_ESCAPES: Final = 500
_WORDS: Final = re.compile(r"[A-Za-z0-9_ ]{1,100}")
"""Patterns that are compiled at once, on the event loop, and remembered."""
MIN_SCAN_BYTES: Final = 512 * 1024
MAX_SCAN_BYTES: Final = 12 * 2**20
"""Bytes that a scan of a large capture may hold: a line of 8 MiB, or 4 MiB and a large automaton."""

A_co = TypeVar("A_co", covariant=True)
T = TypeVar("T")
P = TypeVar("P")


class Answering(Protocol[A_co]):
    """A bounded reader. `wanted` is None once it can answer."""

    wanted: Wanted | None

    def answer(self) -> A_co: ...


class BoundedRead(Answering[A_co], Protocol[A_co]):
    def feed(self, chunk: Chunk) -> None: ...


async def inspect(
    archive: Archive, entry: Entry, begin: Callable[[Extent], BoundedRead[T]], workers: Workers | None = None
) -> T:
    """Run the read that `begin` makes for this capture, and return its answer.

    It runs in `workers`, by default in the threads for small reads. A small plain text is read at once. A
    terminal's is not: to draw one takes up to hundreds of milliseconds.
    """
    extent = extent_of(entry)
    is_small = workers is None and entry.size <= INLINE_BYTES and not extent.is_terminal
    workers = workers or archive.cpu.of(entry.tenant)
    with _query_errors():
        decoders = INLINE if is_small else workers
        async with (await archive.reader(entry, decoders)).with_memory(_scan_size(entry)) as reader:
            read = begin(extent)
            while (wanted := read.wanted) is not None:
                taker = _Taker(read, read.feed, unchanged, is_inline=is_small)
                frames = frames_wanted(reader.frames, wanted)
                async with aclosing(reader.map(frames, taker.work)) as batches:
                    async for batch in batches:
                        await taker.take(batch, workers)
                        if read.wanted is None:
                            break
                if taker.is_done:
                    return taker.answer
            return await workers.run(read.answer)


def extent_of(entry: Entry) -> Extent:
    """Return the whole of a capture, as the bounded readers see it."""
    return Extent(entry.size, entry.lines, terminal_columns(entry.labels))


async def compiled(query: GrepQuery, scan: Scan) -> Pattern:
    """Compile the pattern of a search, in two steps with a pause between them. Raises `InvalidPattern`."""
    with _query_errors():
        if _WORDS.fullmatch(query.pattern):
            return _of_words(scan.tenant, query.pattern, query.fixed, query.ignore_case)
        pattern, options = query.pattern, {"fixed": query.fixed, "ignore_case": query.ignore_case}
        await scan.run_locking(partial(check_pattern, pattern, **options))
        return await scan.run_locking(partial(compile_pattern, pattern, **options))


@lru_cache(maxsize=64)
def _of_words(tenant: str, pattern: str, fixed: bool, ignore_case: bool) -> Pattern:  # noqa: ARG001, FBT001
    """Return a compiled pattern. The time it takes reveals nothing about the patterns of other tenants."""
    return compile_pattern(pattern, fixed=fixed, ignore_case=ignore_case)


async def search(archive: Archive, entry: Entry, begin: Callable[[Extent], Search], workers: Workers) -> Text:
    """Run the search that `begin` makes, and return its answer. Several threads decode and search at once."""
    with _query_errors():
        async with (await archive.reader(entry, workers)).with_memory(_scan_size(entry)) as reader:
            search = begin(extent_of(entry))
            while (wanted := search.begin_part()) is not None:
                taker = _Taker(search, search.take, search.prepare)
                frames = _frames_to_search(reader.frames, wanted, backwards=search.backwards)
                async with aclosing(reader.map(frames, taker.work, is_reversed=search.backwards)) as batches:
                    async for batch in batches:
                        await taker.take(batch, workers)
                        if search.wanted is None or search.has_jumped:
                            break
                if taker.is_done:
                    return taker.answer
            return await workers.run(search.answer)


class _Taker(Generic[T, P]):
    """Takes the frames of a read in their order, each prepared by `prepare`.

    The first frame is taken by the thread that decodes it, and the answer is made there, because most reads
    end with that frame. No other one is decoded meanwhile.
    """

    answer: T

    def __init__(
        self,
        read: Answering[T],
        take: Callable[[P], None],
        prepare: Callable[[Chunk], P],
        *,
        is_inline: bool = False,
    ) -> None:
        """`is_inline`: `work` runs on the event loop, so it takes only what is taken quickly."""
        self._read, self._take, self._prepare = read, take, prepare
        self._is_first, self._is_inline = True, is_inline
        self.is_done = False

    def work(self, chunk: Chunk) -> P | None:
        """Prepare a frame, from any thread. Return None if it is taken already."""
        prepared = self._prepare(chunk)
        if not self._is_first or (self._is_inline and not _is_plain(chunk)):
            return prepared
        self._is_first = False
        self._take(prepared)
        if self._read.wanted is None:
            self.answer, self.is_done = self._read.answer(), True
        return None

    async def take(self, batch: Sequence[P | None], workers: Workers) -> None:
        """Take the frames that are not taken yet."""
        self._is_first = False
        if rest := [prepared for prepared in batch if prepared is not None]:
            await workers.run(self._take_all, rest)

    def _take_all(self, batch: Sequence[P]) -> None:
        for prepared in batch:
            self._take(prepared)
            if self._read.wanted is None:
                return


def _is_plain(chunk: Chunk) -> bool:
    """Return whether a short text needs no repair: escape sequences and wrong UTF-8 take milliseconds."""
    return chunk.utf8 and chunk.data.count(ESCAPE) <= FEW_ESCAPES


def _scan_size(entry: Entry) -> int:
    """Return the bytes that a scan may hold of this capture: a long line, automata, groups of lines."""
    return MIN_SCAN_BYTES + min(entry.size, MAX_SCAN_BYTES)


def _frames_to_search(frames: FrameMap, wanted: Wanted, *, backwards: bool) -> range:
    near = frames_wanted(frames, wanted)
    last = near[0] if wanted.span is None else near[-1]
    return range(last + 1) if backwards else range(near[0], len(frames))


@contextmanager
def _query_errors() -> Iterator[None]:
    """Turn the readers' errors about a query into the service's."""
    try:
        yield
    except errors.InvalidPattern as error:
        raise InvalidPattern(str(error)) from error
    except errors.InvalidQuery as error:
        raise InvalidParameter(str(error)) from error


def frames_wanted(frames: FrameMap, wanted: Wanted) -> range:
    """Return the frames that a read wants, from the first that it needs to the last that it may need."""
    first = _frame_at_offset(frames, wanted.offset)
    if wanted.newline:
        first = max(first, frames.frame_at_newline(wanted.newline))
    last = len(frames) - 1
    if wanted.last_newline is not None and wanted.last_newline <= frames.newlines:
        last = min(last, frames.frame_at_newline(wanted.last_newline))
    if wanted.span is not None:
        last = min(last, _frame_at_offset(frames, frames.raw_start(first + 1) + wanted.span - 1))
    return range(first, max(first, last) + 1)


def _frame_at_offset(frames: FrameMap, offset: int) -> int:
    """Return the frame that holds this byte, or the last frame if the content is shorter."""
    found = frames.frames_of_bytes(offset, offset + 1)
    return found.start if found else len(frames) - 1
