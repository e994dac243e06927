"""Text of clients as a log may have it: whoever reads a log in a terminal sees what stands there.

Controls of terminals, also those beyond ASCII (ECMA-48's C1), marks that turn the direction of a line, line
ends of Unicode and what has no width are written as escapes of JSON.
"""

from __future__ import annotations

import json


def visible(text: str) -> str:
    """Return the text with what nobody would see as escapes. Spaces stay, other blanks do not."""
    return (
        text
        if text.isprintable()
        else "".join(each if each.isprintable() else _escape(each) for each in text)
    )


def visible_lines(text: str) -> str:
    """Return a text of several lines in the same way. Line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(each if each in "\n\t" else visible(each) for each in text)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"
