"""Puts the links of a result that has very many into one text, a line each, which a guard can shorten."""

from __future__ import annotations

from typing import Any, Final

from overspill.text.rendering import compact_json

_LINK: Final = "resource_link"
KEPT_LINKS: Final = 20


def with_few_links(result: dict[str, Any], most_bytes: int) -> dict[str, Any]:
    """Return the result with its first links and a text of the others; the same if they are short enough."""
    content = result["content"]
    links = [at for at, block in enumerate(content) if isinstance(block, dict) and block.get("type") == _LINK]
    others = links[KEPT_LINKS:]
    lines = [compact_json(content[at]) for at in others]
    if sum(map(len, lines)) <= most_bytes:
        return result
    left_out = set(others)
    kept = [block for at, block in enumerate(content) if at not in left_out]
    return {**result, "content": [*kept, {"type": "text", "text": "\n".join([*lines, ""])}]}
