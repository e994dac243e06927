"""What kind of content a capture holds, told from its beginning."""

from __future__ import annotations


def detect(head: bytes, content_type: str | None) -> str:
    """text, json, log, binary or unknown."""
    if not head:
        return "unknown"
    if b"\0" in head:
        return "binary"
    if head.lstrip()[:1] in (b"{", b"[") or (content_type or "").startswith("application/json"):
        return "json"
    return "text"
