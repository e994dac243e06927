"""Opens the object store that a URL names. The only module of `objects` that names every adapter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from overspill_service.objects.file import FileStore
from overspill_service.objects.memory import MemoryStore

if TYPE_CHECKING:
    from overspill_service.objects import ObjectStore

_FORMS = "s3://bucket/prefix?endpoint=…&region=…&addressing=path&sse=…, file:///folder or memory:"


def open_store(url: str, *, data_dir: Path, require_tls: bool = False) -> ObjectStore:
    """Return the store that a URL names. For an empty URL it is the folder `objects` in `data_dir`.

    With `require_tls` a server must be reached by https, or run on this machine. Contacts no server, and
    writes nothing. Raises `ValueError` that says what is wrong and what is allowed.
    """
    scheme = urlsplit(url).scheme
    if not url:
        return FileStore(data_dir / "objects")
    if scheme == "s3":
        # boto3 takes longer to import than all other stores: not where there is no S3.
        from overspill_service.objects.s3 import Location, S3Store  # noqa: PLC0415

        return S3Store(Location.from_url(url), require_tls=require_tls)
    if scheme == "file":
        return FileStore(_folder(url))
    if scheme == "memory":
        return _memory(url)
    raise ValueError(f"an object store cannot be at {scheme or 'a plain path'!r}; write {_FORMS}")


def store_folder(url: str, *, data_dir: Path) -> Path | None:
    """Return the folder of a store in a folder, None for other stores.

    Raises `ValueError` if the URL is wrong.
    """
    if not url:
        return data_dir / "objects"
    return _folder(url) if urlsplit(url).scheme == "file" else None


def _folder(url: str) -> Path:
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ValueError("a file: store URL has no parameters; write file:///folder")
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise ValueError("a file: store URL has three slashes before an absolute folder: file:///folder")
    return Path(unquote(parts.path))


def _memory(url: str) -> MemoryStore:
    if url not in {"memory:", "memory://"}:
        raise ValueError("the memory: store URL has nothing after the colon")
    return MemoryStore()
