"""Searches files for an agent: with ripgrep if it is installed, else with the same answers from Python.

The matches are kept as they come, in constant memory, and then guarded.
"""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Struct

from overspill.agent_tools.arguments import argument, request_of, schema_of
from overspill.agent_tools.error_answers import InvalidArguments
from overspill.agent_tools.file_matches import FileQuery, by_python, by_ripgrep
from overspill.agent_tools.guarded_recording import guarded_answer
from overspill.agent_tools.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from overspill.agent_tools.agent_tool import Answer, Arguments
    from overspill.agent_tools.file_matches import FileMatch
    from overspill.guard.guard import Guard

NAME: Final = "search_files"
DESCRIPTION: Final = """\
Search the text of all files below a folder. output has one line for each match: path:line number:text.

matches says how many lines match, files in how many files. A long output is stored whole; output then is a
notice with a preview, and overspill.capture is the handle with which inspect_output reads the rest. Folders
such as node_modules, .git, .venv, dist and build are skipped, and so are binary files. On failure,
error says what is wrong and what to do."""
SECONDS: Final = 60.0
_LINE_BYTES: Final = 8 * 1024
"""Bytes of a matching line that are shown."""


class SearchRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of one call."""

    pattern: Annotated[str, argument("A regular expression (RE2 syntax), or text if fixed.")]
    path: Annotated[str, argument("The folder or file, relative to the usual directory.")] = "."
    glob: Annotated[str, argument("Only files with such a name, such as *.py.")] = "*"
    ignore_case: Annotated[bool, argument("Whether case does not matter.")] = False
    fixed: Annotated[bool, argument("Whether pattern is plain text.")] = False

    @classmethod
    def of(cls, arguments: Arguments) -> SearchRequest:
        """Read the request from a model's arguments, leniently. Raises `InvalidArguments`."""
        request = request_of(cls, arguments, NAME)
        if not request.pattern or re.search(r"[\0\n]", request.pattern + request.path + request.glob):
            raise InvalidArguments("pattern must have text; NUL and newlines are not allowed in any argument")
        if re.search(r"[/{}\\]", request.glob):
            raise InvalidArguments("glob is for the file's name: text with *, ? and [...], as in *.py")
        return request


SEARCH_FILES_SCHEMA: Final = schema_of(SearchRequest)


class FileSearch:
    """One search. `stop`, from any thread, ends it."""

    def __init__(self, guard: Guard, directory: Path, ripgrep: str | None) -> None:
        self._guard, self._directory, self._ripgrep = guard, directory, ripgrep
        self._is_stopped = threading.Event()

    def answer(self, arguments: Arguments, session: str | None) -> Answer:
        """Search; return the answer. Raises `InvalidArguments`, `InvalidPattern`, and `OSError`."""
        request = SearchRequest.of(arguments)
        with Recording() as recording:
            counts = self._search(request, recording)
            return {**counts, **guarded_answer(self._guard, recording, NAME, "ok", session)}

    def stop(self) -> None:
        """End the search, or do not begin it."""
        self._is_stopped.set()

    def _search(self, request: SearchRequest, recording: Recording) -> dict[str, Any]:
        """Record every match; return how many there are. Raises `InvalidArguments`."""
        root = self._directory / request.path
        if not root.exists():
            raise InvalidArguments(f"there is no file or folder {request.path!r} in the usual directory")
        until = time.monotonic() + SECONDS

        def is_over() -> bool:
            return self._is_stopped.is_set() or time.monotonic() >= until

        matches, files = 0, set()
        with closing(self._matches(root, request, is_over)) as found:
            for match in found:
                if is_over():
                    break
                matches += 1
                files.add(match.path)
                recording.take(_match_line(self._directory, match))
        counts = {"matches": matches, "files": len(files)}
        return {**counts, "incomplete": True} if is_over() else counts

    def _matches(
        self, root: Path, request: SearchRequest, is_over: Callable[[], bool]
    ) -> Generator[FileMatch, None, None]:
        query = FileQuery(request.pattern, request.glob, request.fixed, request.ignore_case)
        if self._ripgrep is None:
            return by_python(root, query, is_over)
        return by_ripgrep(self._ripgrep, root, query, is_over)


def _match_line(directory: Path, match: FileMatch) -> bytes:
    """Return a match as a line: path:line number:text."""
    name = os.fsencode(os.path.relpath(match.path, directory))
    line = match.line.rstrip(b"\r")
    if len(line) > _LINE_BYTES:
        line = line[:_LINE_BYTES] + b" [%d bytes more]" % (len(line) - _LINE_BYTES)
    return b"%b:%d:%b\n" % (name, match.number, line)
