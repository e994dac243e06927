"""What kind of text an output is, told from its beginning: a guess for people, never relied upon.

The service looks more closely at what it stores; on the usual outputs both say the same.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from overspill.body import Filed
from overspill.plain import ANSI

if TYPE_CHECKING:
    from overspill.body import Body

Kind: TypeAlias = Literal["text", "json", "log", "unknown"]

_HEAD: Final = 8 * 1024
_LOG_LINE: Final = re.compile(
    r"""
    \W{0,4} (?:
        \d{4} [-/.] \d\d [-/.] \d\d [T\ _] ?\d?\d:\d\d
      | \d\d [-/.] \d\d [-/.] \d{2,4} [\ :T] \d\d:\d\d
      | \d\d:\d\d:\d\d\b
      | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [a-z]* \ .{1,12} \d\d:\d\d
      | (?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|PANIC) \b
    )
  | .{0,120}? (?: \[ \d\d/[A-Z][a-z]{2}/\d{4}: | \b (?:level|lvl|severity) [=:] )
    """,
    re.VERBOSE,
)
_LOG_LINES: Final = 50
_LEAST_LOG: Final = 0.4


def kind_of(body: Body) -> Kind:
    """The kind of `body`, of which the first 8 KiB are looked at; `unknown` for nothing and for no text.

    Raises `OSError` where it is in a file that cannot be read.
    """
    try:
        head = body[:_HEAD] if isinstance(body, str) else _decoded(body)
    except UnicodeDecodeError:
        return "unknown"
    if not head or "\0" in head:
        return "unknown"
    text = ANSI.sub("", head).strip()
    if _is_json(text):
        return "json"
    return "log" if _is_log(text) else "text"


def _decoded(body: bytes | Filed) -> str:
    """The beginning of `body`, without a character that the cut splits."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    head = body.at(0, _HEAD) if isinstance(body, Filed) else body[:_HEAD]
    return decoder.decode(head, final=len(body) <= _HEAD)


def _is_json(text: str) -> bool:
    """Whether `text` is an object or array, or the beginning of one, or lines of them."""
    if text[:1] not in ("{", "["):
        return False
    lines = (line for line in text.splitlines() if line.strip())
    return _begins_json(text) or all(line[:1] in ("{", "[") and _begins_json(line) for line in lines)


def _begins_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    except UnicodeEncodeError:
        return False
    except RecursionError:
        return True
    return True


def _is_log(text: str) -> bool:
    lines = [line for line in text.splitlines()[:_LOG_LINES] if line.strip()]
    return sum(1 for line in lines if _LOG_LINE.match(line)) >= max(1, _LEAST_LOG * len(lines))
