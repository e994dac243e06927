"""Tells secrets from what only has their form: placeholders, words, examples of documentation."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = frozenset(
    [
        "admin",
        "changeme",
        "default",
        "dummy",
        "example",
        "foobar",
        "guest",
        "hunter2",
        "mypass",
        "mypassword",
        "none",
        "null",
        "passwd",
        "password",
        "password123",
        "postgres",
        "pass",
        "placeholder",
        "pwd",
        "qwerty",
        "redacted",
        "root",
        "secret",
        "secretpassword",
        "some-password",
        "test",
        "tiger",
        "token",
        "undefined",
        "user",
        "username",
        "xxx",
        "your-password",
        "your_password",
        "yourpassword",
        "false",
        "true",
    ]
)
# ${NAME}, {name}, <name>, %(name)s, %s, [name], ****, ..., xxxx
_PLACEHOLDER: Final = re.compile(
    r"[$<{%\[(]|.*(?:[{}<>]|[*.xX_-]{4}|…)|[*.xX_-]{3}|\\|your[-_]|my[-_]?pass|(.)\1*\Z"
)
# test_token, a%20secret, my-secret-password: words that end with what they stand for.
_NAMED: Final = re.compile(
    r"(?:[a-z]++(?:[_-]|%20))*+[a-z]*(?:token|key|secret|password|passwd)", re.IGNORECASE
)
_EXAMPLE: Final = "EXAMPLE"
"""Stands in the keys of AWS's documentation."""
_CONNECTION: Final = (
    "server=",
    "source=",
    "host=",
    "hostname=",
    "address=",
    "uid=",
    "user id=",
    "user=",
    "username=",
    "database=",
    "catalog=",
)
_CONNECTION_CHARS: Final = 300
_FEW_CHARACTERS: Final = 6
_MIXED: Final = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")


def is_no_placeholder(text: str, start: int, end: int) -> bool:
    """Return whether a password stands for itself, not for one that a reader has to fill in."""
    value = text[start:end]
    if _PLACEHOLDER.match(value) or _NAMED.fullmatch(value):
        return False
    return value.lower() not in _WORDS


def is_mixed(text: str, start: int, end: int) -> bool:
    """Return whether a secret has letters and digits, as random ones of its length surely do."""
    value = text[start:end]
    return _MIXED.match(value) is not None and _PLACEHOLDER.match(value) is None


def is_before_host(text: str, start: int, end: int) -> bool:
    """Return whether a URL goes on with a host behind the password."""
    after = text[end + 1 : end + 2]
    return (after.isalnum() or after in {"[", "%", "$", "{", "_"}) and is_no_placeholder(text, start, end)


def is_varied(text: str, start: int, end: int) -> bool:
    """Return whether a secret is no example: not one character or word over and over."""
    value = text[start:end]
    return len(set(value.lower())) > _FEW_CHARACTERS and _EXAMPLE not in value


def is_in_connection_string(text: str, start: int, end: int) -> bool:
    """Return whether other settings of a connection string are before the password, in the same line."""
    before = text[max(0, start - _CONNECTION_CHARS) : start].rpartition("\n")[2]
    settings = before.lower().replace(" =", "=") if ";" in before else ""
    return any(each in settings for each in _CONNECTION) and is_no_placeholder(text, start, end)
