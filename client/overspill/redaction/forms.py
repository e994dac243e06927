"""The forms that most tokens have: a prefix, and a run of characters behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.redaction.placeholders import is_varied
from overspill.redaction.rule import LEAST_WORD, LONG_WORD, SecretRule

if TYPE_CHECKING:
    from collections.abc import Callable

WORD: Final = r"[A-Za-z0-9]{1,64}"
DASHED: Final = r"[\w-]{1,64}"
BASE64: Final = r"[A-Za-z0-9+/=]{1,64}"
HEX: Final = r"[0-9a-f]{1,64}"
UUID: Final = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"


def token(
    kind: str,
    *prefixes: str,
    least: int,
    more: str = DASHED,
    characters: str = "",
    check: Callable[[str, int, int], bool] = is_varied,
) -> SecretRule:
    """Return the rule of a token: a prefix, and at least `least` of the characters that `more` has."""
    body = characters or more[: more.rindex("{")]
    word = LONG_WORD if characters else f"{body}{{{LEAST_WORD}}}"
    return SecretRule(kind, prefixes, f"{body}{{{least}}}", more, word=word, check=check)


def hexadecimal(kind: str, *prefixes: str, size: int) -> SecretRule:
    """Return the rule of a prefix with hexadecimal digits."""
    digits = "[0-9A-Fa-f]"
    body, word = rf"{digits}{{{size}}}(?![A-Za-z0-9])", f"{digits}{{{LEAST_WORD}}}"
    return SecretRule(kind, prefixes, body, word=word, check=is_varied)
