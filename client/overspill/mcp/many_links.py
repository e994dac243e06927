"""Puts the links of a result that are very many, or very long, into one text, which a guard can shorten."""

from __future__ import annotations

from itertools import accumulate, islice
from typing import Any, Final

from overspill.text.rendering import compact_json

_LINK: Final = "resource_link"
_KEPT_LINKS: Final = 20
_KEPT_SHARE: Final = 10
"""The links that are kept have at most this part of the bytes that a result may have."""


def _is_link(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == _LINK


def has_links(result: Any) -> bool:
    """Return whether a result has links."""
    content = result.get("content") if isinstance(result, dict) else None
    return isinstance(content, list) and any(map(_is_link, content))


def with_few_links(result: dict[str, Any], most_bytes: int) -> dict[str, Any]:
    """Return the result with its first links and a text of the others; the same if they are short enough.

    The text has a line for each link.
    """
    content = result["content"]
    lines = {at: compact_json(block) for at, block in enumerate(content) if _is_link(block)}
    if sum(map(len, lines.values())) <= most_bytes:
        return result
    ends = accumulate(len(line) for line in islice(lines.values(), _KEPT_LINKS))
    kept = sum(end <= most_bytes // _KEPT_SHARE for end in ends)
    left_out = dict(islice(lines.items(), kept, None))
    blocks = [block for at, block in enumerate(content) if at not in left_out]
    text = "\n".join([*left_out.values(), ""])
    return {**result, "content": [*blocks, {"type": "text", "text": text}]}
