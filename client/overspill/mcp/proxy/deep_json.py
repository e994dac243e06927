"""Splits a JSON object at its top level, however deeply its members are nested: decoders end at some depth.

It takes the text to be JSON, and checks nothing.
"""

from __future__ import annotations

import json
import re
from typing import Final

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{}:,]', re.DOTALL)
"""A text, or a mark between values."""


def members(text: bytes) -> dict[str, bytes]:
    """Return the members of an object as they are written. Raises `ValueError` if the text is no object."""
    found: dict[str, bytes] = {}
    name, begin, depth = None, 0, 0
    for token in _TOKEN.finditer(text):
        mark = token[0][:1]
        if depth == 1 and mark in b",:}":
            written = text[begin : token.start()].strip()
            if mark == b":":
                name = str(json.loads(written))
            elif name is not None:
                found[name], name = written, None
            begin = token.end()
        if mark in b"{[":
            begin = begin if depth else token.end()
            depth += 1
        elif mark in b"}]":
            depth -= 1
    if depth or not text.lstrip().startswith(b"{"):
        raise ValueError("this is no object of JSON")
    return found
