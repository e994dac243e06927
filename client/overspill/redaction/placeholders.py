"""Tells secrets from what only has their form: placeholders, words, examples of documentation."""

from __future__ import annotations

import base64
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
    r"[$<{%\[(\"']|.*(?:[{}<>]|[*.xX_-]{4}|…)|[*.xX_-]{3}|\\|your[-_]|my[-_]?pass|(.)\1*\Z"
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
    "dbname=",
    "ssl=",
)
_CONNECTION_CHARS: Final = 300
_FEW_CHARACTERS: Final = 6
_MIXED: Final = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")

_QUOTES: Final = ('"', "'")
_LONG: Final = 20
_LEAST_VARIETY: Final = 8
_LEAST_CHANGES: Final = 3
_CHANGE: Final = re.compile(
    r"[a-z](?=[0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[0-9])|[a-z](?=[A-Z])|[A-Z]{2}(?=[a-z])"
)
"""Changes from a letter to a digit and the like."""
_CODE: Final = re.compile(r"[()\[\]{}]|^[./~]|://|\.\.")
_NAME: Final = re.compile(
    r"(?:[A-Z]{0,3}[a-z]{2,64}[0-9]{0,5})++\Z|[a-z_]\w*(?:\.[a-z_]\w*)++\Z|(?:[a-z]{2,64}-)++[a-z0-9]{4,10}\Z"
)
"""The name of a class, of something in a module, or in Kubernetes, as behind `token =` and `secret:`."""
_NAME_CHARS: Final = 64
_PLACE: Final = re.compile(
    r"(?:next|previous|page|paging|pagination|continuation|cursor|scroll|resume|start|starting|after|sync|csrf|xsrf"
    r"|lock|change|update|request|idempotency)"
    r"(?:[_-]?page|[_-]?change)?[_-]token[^\w\n]{0,16}\Z"
    r"|AWS::\w{1,32}::\w{1,32}[^\w\n]{1,16}\Z",
    re.IGNORECASE,
)
_COMMAND: Final = re.compile(r"\b(?:curl|wget|http|https|ab|hey)\b")
_LOGIN: Final = re.compile(
    r"\b(?:sshpass|(?:docker|podman|oras|helm registry|buildah|skopeo) login)\b[^|;&\n]*\s-p ?[\"']?\Z"
    r"|\b(?:sshpass|mysql(?:dump|admin|import|show|check|pump|sh)?|mariadb(?:-\w{1,16})?)\s[^|;&\n]*\s-p[\"']?\Z"
)
"""A program and its option for a password. Without a space behind it, that of MySQL too."""
_SENTRY: Final = re.compile(r"@[\w.-]{0,64}\bsentry\b")
"""Behind the key of a project, which web pages have."""
_COOKIE_VALUE: Final = re.compile(r"""=([^\s;,"'\\]{16,})""")
_COOKIE_CHARS: Final = 1_000
_MACHINE: Final = re.compile(
    r"\b(?:machine\s{1,8}\S{1,128}|default)\s{1,16}login\s{1,8}\S{1,128}\s{1,16}\S{0,8}password[ \t]{1,8}\Z"
)


def is_no_placeholder(text: str, start: int, end: int) -> bool:
    """Return whether a password stands for itself, not for one that a reader has to fill in."""
    value = text[start:end]
    if _PLACEHOLDER.match(value) or _NAMED.fullmatch(value):
        return False
    return value.lower().rstrip("0123456789") not in _WORDS


def is_mixed(text: str, start: int, end: int) -> bool:
    """Return whether a secret has letters and digits, as random ones of its length surely do."""
    value = text[start:end]
    return _MIXED.match(value) is not None and _PLACEHOLDER.match(value) is None and _EXAMPLE not in value


def is_credential(text: str, start: int, end: int) -> bool:
    """Return whether what follows a scheme of authentication is more than a short word."""
    is_long = end - start >= _LONG or is_mixed(text, start, end)
    return (is_long or not text[start:end].islower()) and is_no_placeholder(text, start, end)


def is_before_host(text: str, start: int, end: int) -> bool:
    """Return whether a URL goes on with a host behind the password."""
    after = text[end + 1 : end + 2]
    return (after.isalnum() or after in {"[", "%", "$", "{", "_"}) and is_no_placeholder(text, start, end)


def is_varied(text: str, start: int, end: int) -> bool:
    """Return whether a secret is not an example: not one character or word over and over."""
    value = text[start:end]
    return len(set(value.lower())) > _FEW_CHARACTERS and _EXAMPLE not in value


def is_in_connection_string(text: str, start: int, end: int) -> bool:
    """Return whether other settings of a connection string are beside the password, in the same line."""
    before = text[max(0, start - _CONNECTION_CHARS) : start].rpartition("\n")[2]
    after = text[end : end + _CONNECTION_CHARS].partition("\n")[0]
    settings = (before + after).lower().replace(" =", "=")
    if not any(each in settings for each in _CONNECTION):
        return False
    if ";" not in before + after and (before[-1:] in _QUOTES or not is_mixed(text, start, end)):
        return False
    return is_no_placeholder(text, start, end) and _CODE.search(text, start, end) is None


def is_random(text: str, start: int, end: int) -> bool:
    """Return whether a secret changes between letters, digits and signs as often as random ones do."""
    value = text[start:end]
    if len(set(value)) < _LEAST_VARIETY or not is_mixed(text, start, end) or _CODE.search(value):
        return False
    if not is_no_placeholder(text, start, end) or _NAME.match(value):
        return False
    return len(_CHANGE.findall(value)) >= _LEAST_CHANGES


def is_random_credential(text: str, start: int, end: int) -> bool:
    """Return whether a secret is random, and its name not that of a place, a form's token or a type in AWS.

    An agent has to send such tokens back: `next_token` gets it the next page.
    """
    if not is_random(text, start, end):
        return False
    return _PLACE.search(text, max(0, start - _NAME_CHARS), start) is None


def is_signature(text: str, start: int, end: int) -> bool:
    """Return whether a signature stands in the query of a URL that says for how long it is good."""
    query = text[max(0, start - _CONNECTION_CHARS) : start]
    return any(each in query for each in ("se=", "sv=", "sp=")) and is_mixed(text, start, end)


def is_expiring_signature(text: str, start: int, end: int) -> bool:
    """Return whether a signature stands in the query of a URL, beside the instant at which it ends."""
    query = text[max(0, start - _CONNECTION_CHARS) : start]
    return any(each in query for each in ("Expires=", "Policy=")) and is_mixed(text, start, end)


def is_user_and_password(text: str, start: int, end: int) -> bool:
    """Return whether it is base64 of a user and a password."""
    try:
        user, colon, password = base64.b64decode(text[start:end], validate=True).decode().partition(":")
    except ValueError:
        return False
    return bool(user and colon and password) and (user + password).isprintable()


def names_a_command(text: str, start: int, end: int) -> bool:
    """Return whether the line begins with a program that takes a user and a password."""
    line = text[max(0, start - _CONNECTION_CHARS) : start].rpartition("\n")[2]
    return _COMMAND.search(line) is not None and is_no_placeholder(text, start, end)


def names_a_machine(text: str, start: int, end: int) -> bool:
    """Return whether a machine and a login stand before the password, as in a `.netrc`."""
    before = text[max(0, start - _CONNECTION_CHARS) : start]
    return _MACHINE.search(before) is not None and is_credential(text, start, end)


def names_a_login(text: str, start: int, end: int) -> bool:
    """Return whether a password is the argument of a program that logs in."""
    line = text[max(0, start - _CONNECTION_CHARS) : start].rpartition("\n")[2]
    return _LOGIN.search(line) is not None and is_no_placeholder(text, start, end)


def has_random_cookie(text: str, start: int, end: int) -> bool:
    """Return whether one of the cookies that begin there is random."""
    line = text[start : end + _COOKIE_CHARS].partition("\n")[0]
    return any(is_random(line, *found.span(1)) for found in _COOKIE_VALUE.finditer(line))


def is_random_before_host(text: str, start: int, end: int) -> bool:
    """Return whether a URL has something random for a user, and goes on with a host."""
    at = text.find("@", end)
    is_public = _SENTRY.match(text, at) is not None
    return is_before_host(text, start, at) and is_random(text, start, end) and not is_public
