"""Guess the kind of a capture's content from its first bytes. For display only."""

from __future__ import annotations

import codecs
import json
import re
from typing import Final

import msgspec

from overspill.reading.text import cut_before, strip_escapes

HEAD_BYTES: Final = 8 * 1024
"""Bytes from which the kind is guessed."""
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x07\x1b")) + b"\x7f"
"""Control characters that no terminal output has."""
_MAX_CONTROLS_SHARE: Final = 0.05
_MAX_NOT_UTF8_SHARE: Final = 0.3
_BOM: Final = b"\xef\xbb\xbf"
_LOG_LINE: Final = re.compile(
    rb"""
    \W{0,4} (?:
        \d{4} [-/.] \d\d [-/.] \d\d [T\ _] ?\d?\d:\d\d          # 2026-11-21T23:12
      | \d\d [-/.] \d\d [-/.] \d{2,4} [\ :T] \d\d:\d\d          # 21/11/2026:23:12
      | \d\d:\d\d:\d\d\b                                        # 23:12:01
      | (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [a-z]* ,? \ .{1,16} \d\d:\d\d
      | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [a-z]* \ .{1,12} \d\d:\d\d
      | 1\d{9} (?:\.\d+|\d{3})? \b                              # seconds or milliseconds since the epoch
      | (?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|PANIC) \b
      | (?:trace|debug|info|notice|warn|warning|error|critical|fatal|panic) \b \W{0,2} [:\]|]
    )
  | .{0,120}? (?:
        \[ \d\d/[A-Z][a-z]{2}/\d{4}:                             # the access log's date
      | \b (?:level|lvl|severity) [=:]
      | \s \[? (?:INFO|DEBUG|WARN|WARNING|ERROR|FATAL) \b
    )
    """,
    re.VERBOSE,
)
_LOG_LINES: Final = 50
"""The number of first lines to look at. In a log most of them are log lines; others may be tracebacks."""
_MIN_LOG_SHARE: Final = 0.4


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON has no {constant}")


# The numbers' values are of no interest, and a long one would take long to convert.
_DECODER: Final = json.JSONDecoder(parse_int=len, parse_float=len, parse_constant=_refuse)
_UNFINISHED: Final = re.compile(
    r"""
    (?: " (?: [^"\\\x00-\x1f] | \\["\\/bfnrt] | \\u[0-9A-Fa-f]{4} )*+ (?: \\ (?: u[0-9A-Fa-f]{0,3} )? )?
      | t r?+ u?+ | f a?+ l?+ s?+ | n u?+ l?+
      | (?<=\\) u [0-9A-Fa-f]{0,4}             # the decoder points at an escape that is cut
      | - | \. | [eE] [+-]?                  # and takes the digits before these for a whole number
    )?
    """,
    re.VERBOSE,
)
"""A possible end of a JSON text that is cut short: the beginning of a token, or nothing."""


def detect(head: bytes, content_type: str | None) -> str:
    """Return text, json (also JSON Lines), log, binary or unknown, from the first `HEAD_BYTES` bytes.

    The look of the content counts more than `content_type`.
    """
    head = head[:HEAD_BYTES]
    declared = (content_type or "").partition(";")[0].strip().lower()
    if not head:
        return "unknown"
    if _is_binary(head):
        return "binary"
    text = strip_escapes(head).removeprefix(_BOM).strip()
    if _is_json(text):
        return "json"
    if _is_log(text):
        return "log"
    if _share_bad(head) > _MAX_NOT_UTF8_SHARE:
        return "text" if declared.startswith("text/") else "unknown"
    return "text"


def _is_binary(head: bytes) -> bool:
    if b"\0" in head:
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls > _MAX_CONTROLS_SHARE * len(head)


def _share_bad(head: bytes) -> float:
    """Return the share of `head` that is not UTF-8."""
    whole = head[: cut_before(head, len(head) - 1)] if len(head) == HEAD_BYTES else head
    return 1 - len(whole.decode(errors="ignore").encode()) / max(1, len(whole))


def _is_json(text: bytes) -> bool:
    """Return whether `text` is an object or array, the beginning of one, or lines of them."""
    if text[:1] not in (b"{", b"["):
        return False
    return _begins_json(text) or all(
        line[:1] in (b"{", b"[") and _begins_json(line) for line in text.splitlines() if line.strip()
    )


def _begins_json(text: bytes) -> bool:
    """Return whether `text` is JSON, or the beginning of a JSON text that goes on."""
    try:
        msgspec.json.decode(text)
    except RecursionError:
        return True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _is_cut_short(text)
    return True


def _is_cut_short(text: bytes) -> bool:
    """Return whether JSON is right up to its last token, and that token may go on behind the end."""
    try:
        known, _ = codecs.utf_8_decode(text, "strict", False)  # a character may be cut in half
        _DECODER.decode(known)
    except RecursionError:
        return True
    except json.JSONDecodeError as error:
        return _UNFINISHED.fullmatch(known, error.pos) is not None
    except ValueError:  # bytes that are not UTF-8, or a constant that JSON has not
        return False
    return True


def _is_log(text: bytes) -> bool:
    lines = [line for line in text.splitlines()[:_LOG_LINES] if line.strip()]
    return sum(1 for line in lines if _LOG_LINE.match(line)) >= max(1, _MIN_LOG_SHARE * len(lines))
