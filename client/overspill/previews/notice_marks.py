"""The mark by which a guard recognises a notice: no tool can make one.

    … [/overspill 482915302817]
    [overspill cap_prxnb3ik4acvryxfxnoh 482915302817]

It stands at the end of a notice's last line. It is a keyed code over all of the notice: BLAKE2b with a secret
(see `notice_key`), as 12 digits, which cost 4 tokens where letters cost up to 9. The same notice has the same
mark in every turn and every process that has the same secret, so it keeps a prompt cache warm. Whoever
guesses marks has to get 10^12 texts past a guard, and gains that it leaves one text alone.
"""

from __future__ import annotations

import hmac
import re
from hashlib import blake2b
from typing import Final

from overspill.previews.notice_key import notice_key
from overspill.reading.latest import Latest

MARK_DIGITS: Final = 12
_MARKED: Final = re.compile(rf" ([0-9]{{{MARK_DIGITS}}})\]\Z")
_TAIL: Final = MARK_DIGITS + len(" ]")


def mark_of(text: str) -> str:
    """Return the mark of a text: 12 digits."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), key=notice_key()).digest()
    return f"{int.from_bytes(digest) % 10**MARK_DIGITS:0{MARK_DIGITS}}"


def is_mark_of(text: str, mark: object) -> bool:
    """Return whether `mark` is that of the text."""
    return isinstance(mark, str) and mark.isascii() and hmac.compare_digest(mark, mark_of(text))


def marked(text: str) -> str:
    """Return a text that ends with a bracket with its mark before that."""
    return f"{text[:-1]} {mark_of(text)}]"


def is_marked(text: str) -> bool:
    """Return whether the text ends with its mark, as `marked` returns it."""
    found = _MARKED.search(text, max(0, len(text) - _TAIL))
    return found is not None and is_mark_of(f"{text[: found.start()]}]", found[1])


def rewritten(text: str, old: str, new: str) -> str:
    """Return a marked text with `new` for `old` in it, and with the mark that it then has."""
    return marked(f"{text[:-_TAIL]}]".replace(old, new))


_remembered: Final[Latest[bytes, None]] = Latest(4_096)
"""Digests of the last notices of this process that have no line of ours, and so no mark."""


def remember(text: str) -> None:
    """Remember a notice in the words of another design, which have no room for a mark. For any thread."""
    _remembered[_digest(text)] = None


def is_remembered(text: str) -> bool:
    """Return whether the text is such a notice."""
    return bool(_remembered) and _digest(text) in _remembered


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
