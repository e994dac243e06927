"""Gemini CLI: its AfterTool hook replaces a result by denying it with a reason, which the model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overspill.guard.guard import Guard


def after_tool(guard: Guard, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to an AfterTool event: the notice, if the result is a text that is too long."""
    value = event.get("tool_response")
    response: dict[str, Any] = value if isinstance(value, dict) else {}
    text = _text(response.get("llmContent"))
    if event.get("hook_event_name") != "AfterTool" or text is None:
        return {}
    guarded = guard.process_sync(
        text,
        tool=str(event.get("tool_name", "")),
        session=str(event.get("session_id", "")),
        status="error" if response.get("error") else "",
    )
    if guarded.notice is None:
        return {}
    return {"decision": "deny", "reason": str(guarded.notice)}


def _text(content: Any) -> str | None:
    """Return the text of a result, or None if it has anything else, such as an image."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return None if any(not isinstance(text, str) for text in texts) else "".join(texts)
