"""Run the bounded readers on a capture: fetch and decode the frames that they want, in threads."""

from __future__ import annotations

from contextlib import aclosing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from overspill.reading import errors
from overspill.reading.chunks import Extent, TerminalExtent
from overspill.reading.patterns import compile_pattern
from overspill.wire import TERMINAL_LABEL

from overspill_service.errors import InvalidParameter, InvalidPattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from overspill.reading.chunks import Chunk, Wanted
    from overspill.reading.grep import Search
    from overspill.reading.patterns import Pattern
    from overspill.reading.scanning import ScannedChunk
    from overspill.wire import GrepQuery, Text

    from overspill_service.archive.archive import Archive
    from overspill_service.catalog.records import Entry
    from overspill_service.resources.cpu import Workers
    from overspill_service.resources.scans import ScanTurn
    from overspill_service.store_format.frame_map import FrameMap

MIN_SCAN_BYTES: Final = 512 * 1024
MAX_SCAN_BYTES: Final = 12 * 2**20
"""Bytes that a scan of a large capture may hold: a line of 8 MiB, or 4 MiB and a large automaton."""

A_co = TypeVar("A_co", covariant=True)
T = TypeVar("T")


class BoundedRead(Protocol[A_co]):
    """A bounded reader. `wanted` is None once it can answer."""

    wanted: Wanted | None

    def feed(self, chunk: Chunk) -> None: ...
    def answer(self) -> A_co: ...


async def inspect(
    archive: Archive, entry: Entry, begin: Callable[[Extent], BoundedRead[T]], workers: Workers | None = None
) -> T:
    """Run the read that `begin` makes for this capture, and return its answer.

    It runs in `workers`, by default in the threads for small reads.
    """
    workers = workers or archive.cpu
    with _query_errors():
        async with (await archive.reader(entry, workers)).with_memory(_scan_size(entry)) as reader:
            read = await workers.run(begin, _extent_of(entry))
            while (wanted := read.wanted) is not None:
                frames = frames_wanted(reader.frames, wanted)
                async with aclosing(reader.chunks(frames)) as batches:
                    async for batch in batches:
                        await workers.run(_feed, read, batch)
                        if read.wanted is None:
                            break
            return await workers.run(read.answer)


def _extent_of(entry: Entry) -> Extent:
    kind = TerminalExtent if TERMINAL_LABEL in entry.labels else Extent
    return kind(entry.size, entry.lines)


async def compiled(query: GrepQuery, turn: ScanTurn) -> Pattern:
    """Compile the pattern of a search. Raises `InvalidPattern`."""
    with _query_errors():
        return await turn.run_locking(
            partial(compile_pattern, query.pattern, fixed=query.fixed, ignore_case=query.ignore_case)
        )


async def search(archive: Archive, entry: Entry, begin: Callable[[Extent], Search], workers: Workers) -> Text:
    """Run the search that `begin` makes, and return its answer. Several threads decode and search at once."""
    with _query_errors():
        async with (await archive.reader(entry, workers)).with_memory(_scan_size(entry)) as reader:
            search = await workers.run(begin, _extent_of(entry))
            while (wanted := search.begin_part()) is not None:
                frames = _frames_to_search(reader.frames, wanted, backwards=search.backwards)
                async with aclosing(
                    reader.map(frames, search.prepare, is_reversed=search.backwards)
                ) as batches:
                    async for batch in batches:
                        await workers.run(_take, search, batch)
                        if search.wanted is None or search.has_jumped:
                            break
            return await workers.run(search.answer)


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


def _take(search: Search, batch: Sequence[ScannedChunk]) -> None:
    for prepared in batch:
        search.take(prepared)


def _feed(read: BoundedRead[object], batch: Sequence[Chunk]) -> None:
    for chunk in batch:
        read.feed(chunk)
        if read.wanted is None:
            return


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
