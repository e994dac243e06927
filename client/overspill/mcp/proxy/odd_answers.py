"""Answers that are none by the protocol: one that cannot be read, or is a text, is shortened as a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overspill.mcp.proxy.messages import NotAMessage, value_of

if TYPE_CHECKING:
    from msgspec import Raw

_INTERNAL_ERROR: Final = -32603


def value_or_text(member: Raw) -> Any:
    """Return what JSON says, or its text if that cannot be read, or could not be written again."""
    try:
        return value_of(member)
    except NotAMessage:
        return bytes(member).decode(errors="replace")


def text_only(name: str, value: Any) -> Any:
    """Return the result or the error that says a text alone; any other value as it is."""
    if not isinstance(value, str):
        return value
    if name == "error":
        return {"code": _INTERNAL_ERROR, "message": value}
    return {"content": [{"type": "text", "text": value}]}
