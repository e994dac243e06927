r"""Finds the lines of files that match, by ripgrep or by Python, with the same answers in the same order.

Both skip the folders of `SKIPPED`, files that look binary, and symbolic links. Both search hidden files, and
heed no .gitignore. A folder's entries come in the order of their names' bytes. One thing differs: `\s`, `\w`,
`\d` and `\b` know other alphabets than ASCII in ripgrep only.
"""

from __future__ import annotations

import fnmatch
import os
import select
import subprocess
import tempfile
from contextlib import suppress
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from overspill.agent_tools.error_answers import InvalidArguments
from overspill.reading.patterns import compile_pattern
from overspill.reading.text import normalize_lines
from overspill.text.reasons import one_safe_line

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from overspill.reading.patterns import Pattern

SKIPPED: Final = (
    "node_modules",
    ".git",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
    "dist",
    "build",
    ".next",
    ".nuxt",
)
_BLOCK_BYTES: Final = 1024 * 1024
"""Bytes that are searched at once. Of a line that is longer than two blocks Python searches only these."""
_BINARY_BYTES: Final = 8_000
"""A file with a NUL among this many first bytes is binary, as in Git."""
_TICK_MILLISECONDS: Final = 100
_RIPGREP: Final = (
    *("--no-config", "--no-ignore", "--hidden", "--no-messages", "--text", "--crlf", "--encoding=none"),
    *("--color=never", "--no-heading", "--with-filename", "--null", "--line-number", "--sort=path"),
)


class FileQuery(NamedTuple):
    """A search in files. `glob` is for names of files; nothing in it separates folders."""

    pattern: str
    glob: str
    is_fixed: bool
    ignores_case: bool


class FileMatch(NamedTuple):
    """A line that matches, without its newline, and the file that has it."""

    path: Path
    number: int
    line: bytes


def by_ripgrep(
    program: str, root: Path, query: FileQuery, is_over: Callable[[], bool]
) -> Generator[FileMatch, None, None]:
    """Yield the matches that ripgrep finds. Stop once `is_over` says so.

    Raises `InvalidArguments` for a pattern that it does not take, and `OSError` if it cannot be started.
    """
    target = "./" if root.is_dir() else f"./{root.name}"
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603  (arguments of our own making)
            [program, *_RIPGREP, *_flags(query), "--", target],
            cwd=root if root.is_dir() else root.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdout is not None
        try:
            for line in _lines(process.stdout.fileno(), is_over):
                match = _match(line, root)
                if match is not None:
                    yield match
        finally:
            if process.poll() is None and is_over():
                process.kill()
            process.stdout.close()
            code = process.wait()
        errors.seek(0)
        message = errors.read(_BINARY_BYTES).decode("utf-8", "replace").strip()
        if code > 1 and message:
            raise InvalidArguments(f"ripgrep does not take the pattern: {one_safe_line(message)}")


def _flags(query: FileQuery) -> Iterator[str]:
    if query.glob != "*":
        yield f"--glob=**/{query.glob}"
    yield from (f"--glob=!**/{name}/" for name in SKIPPED)
    if query.is_fixed:
        yield "--fixed-strings"
    if query.ignores_case:
        yield "--ignore-case"
    yield f"--regexp={query.pattern}"


def _lines(reader: int, is_over: Callable[[], bool]) -> Iterator[bytes]:
    """Yield lines without their newlines. Of a line that is longer than a block the rest is dropped."""
    poll = select.poll()
    poll.register(reader, select.POLLIN | select.POLLHUP)
    rest = b""
    while not is_over():
        if not poll.poll(_TICK_MILLISECONDS):
            continue
        data = os.read(reader, _BLOCK_BYTES)
        if not data:
            if rest:
                yield rest
            return
        *whole, last = data.split(b"\n")
        if whole:
            whole[0] = rest + whole[0]
            yield from whole
            rest = last
        elif len(rest) < _BLOCK_BYTES:
            rest += last


def _match(line: bytes, root: Path) -> FileMatch | None:
    """Read a line of ripgrep's output; return None for one of a binary file."""
    name, _, rest = line.partition(b"\0")
    number, _, text = rest.partition(b":")
    path = root / os.fsdecode(name) if root.is_dir() else root
    return FileMatch(path, int(number), text) if _is_text(path) else None


@lru_cache(maxsize=1)
def _is_text(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b"\0" not in file.read(_BINARY_BYTES)
    except OSError:
        return False


def by_python(root: Path, query: FileQuery, is_over: Callable[[], bool]) -> Generator[FileMatch, None, None]:
    """Yield the matches that Python finds. Stop once `is_over` says so.

    Raises `InvalidPattern` for a pattern that it does not take: without RE2 only plain texts.
    """
    pattern = compile_pattern(query.pattern, fixed=query.is_fixed, ignore_case=query.ignores_case)
    if not root.is_dir():
        yield from _matches(root, pattern)
        return
    for path in _files(root):
        if is_over():
            return
        if fnmatch.fnmatchcase(path.name, query.glob):
            yield from _matches(path, pattern)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: os.fsencode(each.name)):
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED:
                    yield from _files(folder / entry.name)
            elif entry.is_file(follow_symlinks=False):
                yield folder / entry.name


def _matches(path: Path, pattern: Pattern) -> Iterator[FileMatch]:
    """Yield the matches of one file; none if it is binary or cannot be read."""
    before = 0
    with suppress(OSError), path.open("rb") as file:
        if b"\0" in file.read(_BINARY_BYTES):
            return
        file.seek(0)
        for block, is_line_start in _blocks(file):
            lines = block.split(b"\n")
            for index in _matching_lines(normalize_lines(block, ansi=True, utf8=False), pattern):
                if index or is_line_start:
                    yield FileMatch(path, before + index + 1, lines[index])
            before += len(lines) - 1


def _matching_lines(text: bytes, pattern: Pattern) -> Iterator[int]:
    """Yield the indices of the lines that match. No match reaches beyond its line."""
    index, counted, stop = 0, 0, len(text)
    start = pattern.first_line(text, 0, stop)
    while start < stop and (found := pattern.search(text, start, stop)):
        begin = text.rfind(b"\n", 0, found[0]) + 1
        if begin == stop:  # behind the last newline there is no line
            return
        end = text.find(b"\n", found[0])
        end = stop if end < 0 else end
        index, counted = index + text.count(b"\n", counted, begin), begin
        if pattern.search(text, begin, end):
            yield index
        start = end + 1


def _blocks(file: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield about a block of whole lines at a time, and whether it begins at the beginning of a line.

    A line that is longer than two blocks is continued in blocks that do not.
    """
    is_line_start = True
    while block := file.read(_BLOCK_BYTES):
        block += file.readline(_BLOCK_BYTES)
        yield block, is_line_start
        is_line_start = block.endswith(b"\n")
