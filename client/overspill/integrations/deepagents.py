"""deepagents: its offloaded results as captures, so that every machine and sub-agent can read them.

agent = create_deep_agent(model, tools, backend=capture_backend())

`OverspillMiddleware` of `overspill.integrations.langchain` does without its files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileUploadResponse,
    GlobResult,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import compile_grep_include_glob, normalize_read_bounds
from langgraph.config import get_config

from overspill.errors import Absent, OverspillError
from overspill.transfer.client import call
from overspill.transfer.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deepagents.backends.protocol import FileData, FileInfo, GrepMatch

    from overspill.wire import Entry

TOOL: Final = "deepagents"
"""The tool of every capture that is a file: the backend sees no other captures."""
OFFLOADED: Final = "/large_tool_results/"
"""The folder into which deepagents puts results that are too long."""
_PAGE: Final = 1_000
_MAX_FILES: Final = 10_000
_MAX_MATCHES: Final = 1_000
_READ_BYTES: Final = 128 * 1024
"""Bytes of one read: deepagents shows a model about 80,000 characters."""
_FIXED: Final = "a capture never changes: write the new text to another path, or to this one as a whole"


def capture_backend(
    client: SyncClient | None = None, default: BackendProtocol | None = None
) -> CompositeBackend:
    """Return a backend that keeps offloaded results as captures, and all other files in `default`.

    `default` is the state of the thread if it is not given. Without `client` it is one for the service that
    `OVERSPILL_URL` and `OVERSPILL_KEY` name.
    """
    kept = CaptureBackend(client)
    return CompositeBackend(default=StateBackend() if default is None else default, routes={OFFLOADED: kept})


class CaptureBackend(BackendProtocol):
    """Files of one flat folder, each a capture. Its session is the thread of the graph, or else the client's.

    The name of a file is the id of the tool call. Writing a path again makes a newer capture, and that is the
    one that is read. A file can be read, searched, listed and deleted, and not edited. What goes wrong is an
    `error` of the result, so without the service deepagents leaves a result as it is.
    """

    def __init__(self, client: SyncClient | None = None) -> None:
        self._client = SyncClient() if client is None else client

    def write(self, file_path: str, content: str) -> WriteResult:
        """Store a text under a path."""
        try:
            self._put(file_path, content)
        except OverspillError as error:
            return WriteResult(error=f"Error: {error}")
        return WriteResult(path=file_path)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Return up to `limit` lines from line `offset` on, counted from 0, and about 128 KiB at most.

        Of a line that is longer than that only `inspect_output` reads the rest.
        """
        first, count = normalize_read_bounds(offset, limit)
        if count == 0:
            return ReadResult(file_data=_data(""), no_lines_requested=True)
        try:
            content, last, total = self._lines(file_path, first + 1, first + count)
        except OverspillError as error:
            return ReadResult(error=_reason(error, file_path))
        if last <= first:
            beyond = f"Error: Line offset {first} exceeds file length ({total} lines)"
            return ReadResult(error=beyond) if first else ReadResult(file_data=_data(""))
        onward = last if last < total else None
        return ReadResult(
            file_data=_data(content),
            total_lines=total,
            start_line=first + 1,
            end_line=last,
            next_offset=onward,
        )

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Search for a text in one file, or in all of the session."""
        matches: list[GrepMatch] = []
        try:
            for name in self._names(path, glob):
                for match in self._matches(name, pattern):
                    if max_count is not None and len(matches) >= max_count:
                        return GrepResult(matches=matches, truncated=True)
                    matches.append(match)
        except OverspillError as error:
            return GrepResult(error=_reason(error, path or "/"), matches=matches or None)
        return GrepResult(matches=matches)

    def ls(self, path: str) -> LsResult:
        """List the files of the session; `path` is the folder or a file."""
        try:
            found = [_described(name, entry) for name, entry in self._files().items() if _is_in(name, path)]
        except OverspillError as error:
            return LsResult(error=f"Error: {error}")
        return LsResult(entries=found)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Return the files of the session whose name matches."""
        listed = self.ls(path or "/")
        if listed.entries is None:
            return GlobResult(error=listed.error)
        fits = compile_grep_include_glob(pattern.lstrip("/"))
        return GlobResult(matches=[each for each in listed.entries if fits(each["path"].lstrip("/"))])

    def edit(
        self,
        file_path: str,  # noqa: ARG002  (the protocol's)
        old_string: str,  # noqa: ARG002
        new_string: str,  # noqa: ARG002
        replace_all: bool = False,  # noqa: ARG002, FBT001, FBT002
    ) -> EditResult:
        """Say that a capture never changes."""
        return EditResult(error=f"Error: {_FIXED}")

    def delete(self, file_path: str) -> DeleteResult:
        """Delete every capture that was written to a path."""
        removed = 0
        try:
            while True:
                removed += self._client.delete(_ref(file_path), session=self._session).captures
        except Absent as error:
            return DeleteResult(path=file_path) if removed else DeleteResult(error=_reason(error, file_path))
        except OverspillError as error:
            return DeleteResult(error=f"Error: {error}")

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Store files of any bytes."""
        found = []
        for path, data in files:
            try:
                self._put(path, data)
            except OverspillError as error:
                found.append(FileUploadResponse(path, f"Error: {error}"))
            else:
                found.append(FileUploadResponse(path))
        return found

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return the bytes of files."""
        found = []
        for path in paths:
            try:
                content = self._client.content(_ref(path), session=self._session)
            except Absent:
                found.append(FileDownloadResponse(path, error=FILE_NOT_FOUND))
            except OverspillError as error:
                found.append(FileDownloadResponse(path, error=f"Error: {error}"))
            else:
                found.append(FileDownloadResponse(path, content))
        return found

    @property
    def _session(self) -> str:
        try:
            thread = (get_config().get("configurable") or {}).get("thread_id")
        except RuntimeError:  # not in a graph
            thread = None
        return self._client.session if thread is None else str(thread)

    def _put(self, path: str, content: str | bytes) -> None:
        self._client.put(content, tool=TOOL, call_id=_name(path), session=self._session)

    def _lines(self, path: str, start: int, end: int) -> tuple[str, int, int]:
        """Return the text of lines, the number of the last one, and how many there are."""
        pieces, size, offset = [], 0, 0
        while True:
            found = self._client.lines(_ref(path), start, end, offset=offset, session=self._session)
            pieces.append(found.content)
            size += len(found.content)
            if not found.next or size >= _READ_BYTES:
                return "".join(pieces), found.end_line, found.total_lines
            place = found.place
            start, offset = place["start"], place.get("offset", 0)

    def _matches(self, name: str, pattern: str) -> Iterator[GrepMatch]:
        cursor: str | None = None
        while True:
            found = self._client.grep(
                call(name),
                pattern,
                fixed=True,
                max_matches=_MAX_MATCHES,
                cursor=cursor,
                session=self._session,
            )
            for match in found.matches or ():
                yield {"path": f"/{name}", "line": match.line_number, "text": match.line}
            if not found.next:
                return
            cursor = found.next["cursor"]

    def _names(self, path: str | None, glob: str | None) -> list[str]:
        """Return the names of the files in which to search: the one that is named, or those that fit."""
        if path is not None and _name(path):
            return [_name(path)]
        fits = compile_grep_include_glob(glob.lstrip("/")) if glob else None
        return [name for name in self._files() if fits is None or fits(name)]

    def _files(self) -> dict[str, Entry]:
        """Return the newest capture of each file of the session, by name."""
        files: dict[str, Entry] = {}
        for entry in self._client.iterate(session=self._session, tool=TOOL, page=_PAGE):  # newest first
            files.setdefault(entry.call_id, entry)
            if len(files) == _MAX_FILES:
                break
        return files


def _name(path: str) -> str:
    """Return the id of the call that a path stands for."""
    return path.strip("/")


def _ref(path: str) -> str:
    return call(_name(path))


def _is_in(name: str, path: str) -> bool:
    return _name(path) in {"", name}


def _described(name: str, entry: Entry) -> FileInfo:
    return {"path": f"/{name}", "is_dir": False, "size": entry.size, "modified_at": entry.created.isoformat()}


def _data(content: str) -> FileData:
    return {"content": content, "encoding": "utf-8"}


def _reason(error: OverspillError, path: str) -> str:
    return f"Error: File '{path}' not found" if isinstance(error, Absent) else f"Error: {error}"
