"""Picks the values of environment variables that are secrets: by their names, and never a plain word."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SHORTEST_VALUE: Final = 8
LONGEST_VALUE: Final = 4_096
MOST_VALUES: Final = 64
_LONG_ENOUGH: Final = 16
"""A value of at least this many characters is taken for a secret, even if all of them are letters."""
_FEW_CHARACTERS: Final = 4
_NAME: Final = re.compile(
    r".*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|(?:^|_)(?:PAT|PWD|PASS))", re.IGNORECASE
)
_NO_SECRET: Final = re.compile(
    r"(?:OLD)?PWD|.*(?:PUBLIC|ANON|PUBLISHABLE)_KEY|.*_KEY_?(?:FILE|PATH)", re.IGNORECASE
)
_PATH: Final = re.compile(r"(?:~|\.{1,2})?/[\w.@-]*/|[A-Za-z]:\\|[a-z][a-z0-9+.-]{1,20}://", re.ASCII)
_MIXED: Final = re.compile(r"(?=.*[A-Za-z])(?=.*[^A-Za-z])", re.DOTALL)
_WORDS: Final = re.compile(r"[A-Za-z]+(?:[_.:-][A-Za-z]+)*[0-9]?")
"""Words such as `created_at`, `pnpm-lock.yaml`, `user_id1`: variables that end with KEY often hold them."""


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of variables whose names say that they are secret, the longest first.

    Paths and addresses are left out: a password in an address is found by its own rule. So are values of
    fewer than 8 or more than 4,096 characters, short ones of letters alone or of words, and all beyond 64.
    """
    values = ((name, environment.get(name, "").strip()) for name in environment if _says_secret(name))
    found = {value for name, value in values if _is_secret(name, value)}
    return tuple(sorted(found, key=lambda value: (-len(value), value))[:MOST_VALUES])


@lru_cache(maxsize=1_024)
def _says_secret(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and _NO_SECRET.fullmatch(name) is None


def _is_secret(name: str, value: str) -> bool:
    """Return whether the value of a variable with such a name is one."""
    if _PATH.match(value):
        return False
    if not SHORTEST_VALUE <= len(value) <= LONGEST_VALUE or len(set(value)) <= _FEW_CHARACTERS:
        return False
    if len(value) >= _LONG_ENOUGH:
        return True
    is_word = name.upper().endswith("KEY") and _WORDS.fullmatch(value) is not None
    return _MIXED.match(value) is not None and not is_word
