"""The file that `put` stores: the given file itself, or a copy of it with its secrets masked."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from overspill.cli.progress import ProgressFile
from overspill.reading.content_kind import HEAD_BYTES, detect
from overspill.text.long_files import long_file_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from overspill.redaction.redactor import RedactingStream, Redactor

_PIECE_BYTES: Final = 1024 * 1024
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_NONE: Final[Mapping[str, int]] = {}


class MaskedFile(NamedTuple):
    """A binary file to read from where it stands, the SHA-256 of its content, and what was masked, by kind.

    Without a digest it was not looked at.
    """

    file: IO[bytes] | ProgressFile
    sha256: bytes | None = None
    masked: Mapping[str, int] = _NONE


@contextmanager
def masked_file(file: IO[bytes] | ProgressFile, redactor: Redactor | None) -> Iterator[MaskedFile]:
    """Give `file` without its secrets: itself, if it has none or is not text. Raises `OSError`.

    What is written to it meanwhile is not looked at. It is not stored either: the digest says so.
    """
    start = file.tell()
    head = file.read(HEAD_BYTES)
    file.seek(start)
    if redactor is None or not _is_text(head):
        yield MaskedFile(file)
        return
    with SpooledTemporaryFile(_PIECE_BYTES, prefix="overspill-put-", dir=long_file_folder()) as copy:
        masked, sha256 = _copy_from_first_secret(file, start, redactor.stream(bytes), copy)
        copy.seek(0)
        file.seek(start)
        shown = file.beside(copy) if isinstance(file, ProgressFile) else copy
        yield MaskedFile(shown if masked else file, sha256, masked)


def _is_text(head: bytes) -> bool:
    return head.startswith(_UTF_16) or detect(head, None) != "binary"


def _copy_from_first_secret(
    file: IO[bytes] | ProgressFile, start: int, masking: RedactingStream[bytes], copy: IO[bytes]
) -> tuple[Mapping[str, int], bytes]:
    """Copy the masked content if there is a secret in it. Return what was masked, and the SHA-256."""
    digest, unchanged = hashlib.sha256(), 0
    for piece in _masked_pieces(file, masking):
        digest.update(piece)
        if not masking.counts:
            unchanged += len(piece)
            continue
        if unchanged:
            _copy_beginning(file, start, unchanged, copy)
            unchanged = 0
        copy.write(piece)
    return masking.counts, digest.digest()


def _masked_pieces(file: IO[bytes] | ProgressFile, masking: RedactingStream[bytes]) -> Iterator[bytes]:
    while data := file.read(_PIECE_BYTES):
        yield masking.feed(data)
    yield masking.finish()


def _copy_beginning(file: IO[bytes] | ProgressFile, start: int, size: int, copy: IO[bytes]) -> None:
    """Copy the first `size` bytes without moving the file's position."""
    at = file.tell()
    file.seek(start)
    while size and (data := file.read(min(size, _PIECE_BYTES))):
        copy.write(data)
        size -= len(data)
    file.seek(at)
