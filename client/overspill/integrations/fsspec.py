"""Captures as files, for everything that opens files through fsspec: pandas, DuckDB, `fsspec.open`.

    frame = pandas.read_csv("overspill://cap_…")
    with fsspec.open("overspill://call:toolu_1", "rt") as file: ...

The service is the one that `OVERSPILL_URL` and `OVERSPILL_KEY` name, unless storage options do. Files can be
read, in any order, and listed. A capture never changes, so nothing can be written.
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from overspill.errors import Absent, BadRequest, Denied, OverspillError, Unreachable
from overspill.spools.holder import Holder
from overspill.spools.spool import partition_for
from overspill.transfer.sync import SyncClient
from overspill.wire import ByteRange

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from overspill.spools.capture import LocalCapture
    from overspill.wire import Entry

_PAGE: Final = 1000
BLOCK_BYTES: Final = 1024 * 1024
"""Bytes that are fetched at once when a file is read in small steps."""


class CaptureFileSystem(AbstractFileSystem):
    """The captures of one tenant, all in one folder. `session` narrows listings, and is where `call:`
    references are looked up; else that is the session of `OVERSPILL_SESSION`.

    A path is a capture id, or `call:` and the id of a tool call. What still waits on this machine can be
    read, and is not listed. Raises `FileNotFoundError` for a capture that is not there, has expired or was
    deleted, `PermissionError` for a key that may not read, and `ConnectionError` if the service cannot be
    reached.
    """

    protocol: ClassVar[str] = "overspill"
    root_marker: ClassVar[str] = ""

    def __init__(
        self, url: str | None = None, key: str | None = None, *, session: str | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self._client = SyncClient(url, key)
        self._session = session
        self._holder = Holder(partition_for(self._client), session=session or self._client.session)

    @property
    def fsid(self) -> str:
        """The name of the service, for caches."""
        return f"overspill-{self._client.address.url}"

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return the size of a capture, and what is known of it."""
        ref = self._strip_protocol(path)
        if not ref:
            return {"name": "", "size": 0, "type": "directory"}
        with self._source(ref) as source:
            return _described(ref, source.get(ref, session=self._session))

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:  # noqa: FBT001, FBT002  (fsspec's form)
        """List all captures, newest first; of one capture, itself."""
        ref = self._strip_protocol(path)
        found = [self.info(ref)] if ref else [_described(each.id, each) for each in self._all()]
        return found if detail else [each["name"] for each in found]

    def _all(self) -> list[Entry]:
        with _os_errors(""):
            return list(self._client.iterate(session=self._session, page=_PAGE))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Return the bytes of a capture, from `start` to before `end`; negative ones count from its end."""
        ref = self._strip_protocol(path)
        if start is None and end is None:
            return self._content(ref, None)
        first, stop, _step = slice(start, end).indices(self.info(ref)["size"])
        return self._content(ref, ByteRange(first, stop - 1)) if first < stop else b""

    def created(self, path: str) -> datetime:
        """Return when the capture was stored."""
        when: datetime = self.info(path)["created"]
        return when

    modified = created

    def checksum(self, path: str) -> int:
        """Return a number that is the same for the same bytes."""
        return int(self.info(path)["sha256"], 16)

    def _content(self, ref: str, byte_range: ByteRange | None) -> bytes:
        with self._source(ref) as source:
            return source.content(ref, byte_range, session=self._session)

    def _open(
        self, path: str, mode: str = "rb", block_size: int | str | None = None, **options: Any
    ) -> CaptureFile:
        if mode != "rb":
            raise OSError("captures cannot be written: they never change")
        size = block_size if isinstance(block_size, int) else BLOCK_BYTES
        return CaptureFile(self, path, mode, size, **{**options, "size": self.info(path)["size"]})

    @contextmanager
    def _source(self, ref: str) -> Iterator[SyncClient | LocalCapture]:
        """Give the block what to read `ref` from."""
        with _os_errors(ref), self._holder.source(self._client, ref, self._session) as source:
            yield source


class CaptureFile(AbstractBufferedFile):
    """One capture, read in ranges."""

    fs: CaptureFileSystem

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.cat_file(self.path, start, end)


def _described(name: str, entry: Entry) -> dict[str, Any]:
    return {
        "name": name,
        "size": entry.size,
        "type": "file",
        "created": entry.created,
        "expires": entry.expires,
        "sha256": entry.sha256,
        "content_type": entry.content_type,
        "tool": entry.tool,
        "session": entry.session,
        "call_id": entry.call_id,
    }


@contextmanager
def _os_errors(path: str) -> Iterator[None]:
    """Let the errors of the service become those that users of files expect."""
    try:
        yield
    except (Absent, BadRequest) as error:
        raise FileNotFoundError(errno.ENOENT, str(error), path) from error
    except Denied as error:
        raise PermissionError(errno.EACCES, str(error), path) from error
    except Unreachable as error:
        raise ConnectionError(str(error)) from error
    except OverspillError as error:
        raise OSError(errno.EIO, str(error), path) from error
