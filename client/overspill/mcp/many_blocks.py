"""Joins the small blocks of a result with very many blocks into one text, which a guard can shorten.

A link has nothing but itself. A text or an embedded resource has what stands around its text.
"""

from __future__ import annotations

from itertools import accumulate, islice
from typing import Any, Final

from overspill.text.rendering import compact_json

_KINDS: Final = frozenset({"resource_link", "resource", "text"})
_NOT_AROUND: Final = frozenset({"text", "_meta", "annotations"})
"""The text itself, and the fields for programs."""
_KEPT_BLOCKS: Final = 20
_KEPT_SHARE: Final = 10
"""The blocks that are kept have at most this part of the bytes that a result may have."""


def may_have_many(result: Any) -> bool:
    """Return whether the blocks of a result are so many that they may be long, or are links."""
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(content, list):
        return False
    return len(content) > _KEPT_BLOCKS or any(map(_is_about_resource, content))


def _is_about_resource(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in {"resource_link", "resource"}


def with_few_blocks(result: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Return the result with its first blocks and a text of the others; the same if they are short enough.

    The text has a line for each link, and the fields around the text of a resource before it. Pictures and
    other blocks without a text stay.
    """
    content = result["content"]
    lines = {at: line for at, block in enumerate(content) if (line := _line_of(block)) is not None}
    if sum(chars for chars, _ in lines.values()) <= max_bytes:
        return result
    ends = accumulate(len(line) for _, line in islice(lines.values(), _KEPT_BLOCKS))
    shown_count = sum(end <= max_bytes // _KEPT_SHARE for end in ends)
    left_out = dict(islice(lines.items(), shown_count, None))
    blocks = [block for at, block in enumerate(content) if at not in left_out]
    text = "\n".join([*(line for _, line in left_out.values()), ""])
    return {**result, "content": [*blocks, {"type": "text", "text": text}]}


def _line_of(block: Any) -> tuple[int, str] | None:
    """Return the number of characters around the text of a block, and a line with all of them.

    Return None for a block that stays.
    """
    if not isinstance(block, dict) or block.get("type") not in _KINDS:
        return None
    resource = block.get("resource") if block["type"] == "resource" else None
    if isinstance(resource, dict) and "blob" in resource:
        return None
    holder = resource if isinstance(resource, dict) else block
    text = holder.get("text")
    if block["type"] == "resource_link" or not isinstance(text, str):
        link = compact_json(block)
        return len(link), link
    bare = {name: value for name, value in holder.items() if name not in _NOT_AROUND}
    around = compact_json({"type": "resource", "resource": bare} if holder is resource else bare)
    return len(around), text if holder is block else "\n".join(filter(None, (around, text)))
