"""Functions that count tokens exactly: any function of a text, or tiktoken if it and its files are here."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

log: Final = logging.getLogger("overspill")

Tokenizer: TypeAlias = Callable[[str], Any]
"""The number of tokens of a text, or the tokens themselves: anything that has a length."""

_ENCODINGS: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""SHA-256 of the files in tiktoken's cache. If one has other content, tiktoken would fetch it again."""
_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


class TokenizerUnusable(Exception):
    """A tokenizer failed, or did not answer with a number."""


class Tiktoken:
    """Counts with tiktoken, if that is installed and has its file in its cache.

    Nothing is imported or read before the first use, and nothing is fetched.
    """

    def __init__(self, encoding: str = "o200k_base") -> None:
        if encoding not in _ENCODINGS:
            raise ValueError(f"encoding must be one of {', '.join(_ENCODINGS)}, not {encoding!r}")
        self._encoding = encoding
        self._encode: Tokenizer | None = None
        self._is_absent = False

    def __call__(self, text: str) -> int:
        """Return the tokens of `text`. Raises `TokenizerUnusable` if tiktoken or its file is missing."""
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
    """Return whether tiktoken would find the file of `encoding` in its cache, and accept it."""
    named = (os.environ.get(name) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"))
    folder = next((name for name in named if name is not None), None)
    folder = str(Path(tempfile.gettempdir(), "data-gym-cache")) if folder is None else folder
    name = hashlib.sha1(_URL.format(encoding).encode(), usedforsecurity=False).hexdigest()
    try:
        data = Path(folder, name).read_bytes() if folder else b""
    except OSError:
        return False
    return hashlib.sha256(data).hexdigest() == _ENCODINGS[encoding]


_MAX_FAILED: Final = 100
_failed: Final[set[str]] = set()
"""Names of tokenizers whose failure was logged: each is logged once, without any text."""


def is_tokenizer_failure(error: BaseException) -> bool:
    """Return whether `error` comes from the tokenizer. A panic of Rust code is no `Exception`."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def note_failure(tokenizer: Tokenizer, error: BaseException) -> None:
    """Log that a tokenizer fails, unless that was logged before or it is just not installed."""
    name = str(getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__))
    if isinstance(error, TokenizerUnusable) or name in _failed or len(_failed) >= _MAX_FAILED:
        return
    _failed.add(name)
    log.warning("the tokenizer %s fails with %s: tokens are estimated", name, type(error).__name__)
