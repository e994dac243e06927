"""What counts tokens exactly: any function of a text, and tiktoken where it is installed with its files."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

Tokenizer: TypeAlias = Callable[[str], Any]
"""The number of tokens of a text, or the tokens themselves: anything that has a length."""

_ENCODINGS: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""SHA-256 of the files that tiktoken keeps in its cache; with another content it would fetch them anew."""
_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


class TokenizerUnusable(Exception):
    """A tokenizer that failed, or answered with no number."""


class Tiktoken:
    """tiktoken's count where it is installed and has its file in its cache; fails otherwise.

    Nothing is imported or read before the first use.
    """

    def __init__(self, encoding: str = "o200k_base") -> None:
        if encoding not in _ENCODINGS:
            raise ValueError(f"encoding must be one of {', '.join(_ENCODINGS)}, not {encoding!r}")
        self._encoding = encoding
        self._encode: Tokenizer | None = None
        self._is_absent = False

    def __call__(self, text: str) -> int:
        """Raises `Unusable`."""
        if self._encode is None:
            if self._is_absent or not _is_cached(self._encoding):
                self._is_absent = True
                raise TokenizerUnusable
            self._encode = _loaded(self._encoding)
        return len(self._encode(text))


def _loaded(encoding: str) -> Tokenizer:
    try:
        import tiktoken  # noqa: PLC0415  (an optional library, and slow to import)
    except ImportError as error:
        raise TokenizerUnusable from error
    encode: Tokenizer = tiktoken.get_encoding(encoding).encode_ordinary
    return encode


def _is_cached(encoding: str) -> bool:
    """Whether tiktoken would find the file of `encoding` where it looks, and take it."""
    named = (os.environ.get(name) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"))
    folder = next((name for name in named if name is not None), None)
    folder = str(Path(tempfile.gettempdir(), "data-gym-cache")) if folder is None else folder
    name = hashlib.sha1(_URL.format(encoding).encode(), usedforsecurity=False).hexdigest()
    try:
        data = Path(folder, name).read_bytes() if folder else b""
    except OSError:
        return False
    return hashlib.sha256(data).hexdigest() == _ENCODINGS[encoding]
