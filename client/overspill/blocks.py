"""Content blocks of MCP, Anthropic, OpenAI and LangChain, and the results that carry them.

A block is a dict or an object with a `type`; text blocks have a `text`. No framework is imported.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overspill import measure
from overspill.notice import MAX_NOTICE, as_dict, is_notice, placeholder
from overspill.rendering import TEXT, as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overspill.notice import Notice

TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text"})
RESOURCE: Final = "resource"
OTHER_BLOCKS: Final = frozenset(
    {
        *(
            "image",
            "image_url",
            "input_image",
            "audio",
            "input_audio",
            "video",
            "media",
            "file",
            "input_file",
        ),
        *(
            "resource",
            "resource_link",
            "document",
            "search_result",
            "tool_reference",
            "refusal",
            "data",
            "uri",
        ),
    }
)
_TOOL_MESSAGES: Final = frozenset({"tool", "tool_result", "function"})
_OTHER_MESSAGES: Final = frozenset(
    {"human", "ai", "system", "user", "assistant", "developer", "chat", "remove"}
)
_STRUCTURED_FIELDS: Final = ("structuredContent", "structured_content")
_ERROR_FIELDS: Final = ("isError", "is_error")
_MOST_PLACEHOLDERS: Final = 16


class Blocks:
    """A list of content blocks: its text blocks share one budget and one capture.

    The notice takes the place of the first text block and a placeholder that of each later one that is
    longer, up to a number, behind which they go; blocks of other types stay where they are.
    """

    content_type = TEXT

    def __init__(self, blocks: Sequence[Any]) -> None:
        self._blocks = blocks
        self._texts = {at: text for at, block in enumerate(blocks) if (text := text_of(block)) is not None}
        self.body: str | bytes = joined(list(self._texts.values()))

    def __bool__(self) -> bool:
        return bool(self._texts)

    def is_guarded(self) -> bool:
        return len(self.body) <= MAX_NOTICE and any(is_notice(text) for text in self._texts.values())

    def replaced(self, notice: Notice) -> Any:
        instead = {at: _shorter(text, notice) for at, text in self._first_texts()}
        for at in list(instead)[:1]:
            instead[at] = str(notice)
        kept = [
            with_text(block, instead[at]) if at in instead else block
            for at, block in enumerate(self._blocks)
            if at in instead or at not in self._texts
        ]
        return kept if isinstance(self._blocks, list) else tuple(kept)

    def _first_texts(self) -> list[tuple[int, str]]:
        return list(self._texts.items())[: 1 + _MOST_PLACEHOLDERS]


class Envelope:
    """A result around text or content blocks (MCP's `CallToolResult`, a tool message): its other fields stay.

    Structured content that says the same as the text goes; any other is captured behind the text.
    Where there is no text, a dict with the notice stands in for the structured content.
    """

    content_type = TEXT

    def __init__(self, result: Any) -> None:
        self._result = result
        content = _get(result, "content")
        self._is_text = isinstance(content, str)
        self._blocks = Blocks([content] if self._is_text else content)
        fields = ((name, _get(result, name)) for name in _STRUCTURED_FIELDS)
        self._structured = {name: value for name, value in fields if value is not None}
        self.body: str | bytes = self._body()

    def _body(self) -> str | bytes:
        text = str(self._blocks.body)
        own = [as_text(value)[0] for value in self._structured.values() if not _repeats(text, value)]
        return joined([text, *own] if text else own)

    def is_guarded(self) -> bool:
        return self._blocks.is_guarded()

    def replaced(self, notice: Notice) -> Any:
        if not self._blocks:
            return _changed(self._result, dict.fromkeys(self._structured, as_dict(notice)))
        blocks = self._blocks.replaced(notice)
        without = dict.fromkeys(self._structured)
        return _changed(self._result, {"content": blocks[0] if self._is_text else blocks, **without})


def is_error(result: Any) -> bool:
    """Whether `result` says that its tool failed."""
    return any(_get(result, name) is True for name in _ERROR_FIELDS)


def joined(texts: Sequence[str]) -> str:
    """Texts one after the other, each beginning a line of its own."""
    if len(texts) <= 1:
        return texts[0] if texts else ""
    *most, last = texts
    return "".join([*(text if text.endswith("\n") else f"{text}\n" for text in most), last])


def is_blocks(items: Sequence[Any]) -> bool:
    """Whether all are content blocks, or bare strings among blocks."""
    return any(not isinstance(item, str) for item in items) and all(
        isinstance(item, str) or _is_block(item) for item in items
    )


def is_envelope(value: Any) -> bool:
    """Whether `value` carries content blocks, or is a tool message around text."""
    content = _get(value, "content")
    if isinstance(content, str):
        return bool({_word(value, "type"), _word(value, "role")} & _TOOL_MESSAGES)
    if not isinstance(content, list):
        return False
    return is_blocks(content) or (
        not content and any(_get(value, name) is not None for name in _STRUCTURED_FIELDS)
    )


def is_other_message(value: Any) -> bool:
    """Whether `value` is a message of a person, the model or the system: those are never touched."""
    return (
        bool({_word(value, "type"), _word(value, "role")} & _OTHER_MESSAGES)
        and _get(value, "content") is not None
    )


def text_of(block: Any) -> str | None:
    """The text of a text block or of an embedded resource; None for a block of another type."""
    if isinstance(block, str):
        return block
    kind = _word(block, "type")
    holder = _get(block, "resource") if kind == RESOURCE else block if kind in TEXT_BLOCKS else None
    text = None if holder is None else _get(holder, "text")
    return text if isinstance(text, str) else None


def with_text(block: Any, text: str) -> Any:
    """A block like `block` with another text."""
    if isinstance(block, str):
        return text
    if _word(block, "type") == RESOURCE:
        return _changed(block, {"resource": _changed(_get(block, "resource"), {"text": text})})
    return _changed(block, {"text": text})


def _shorter(text: str, notice: Notice) -> str:
    """A placeholder for `text`, or `text` where that is no longer: an exit status stays readable."""
    short = placeholder(notice, measure.size(text))
    return short if len(short) < len(text) else text


def _is_block(item: Any) -> bool:
    return text_of(item) is not None or _word(item, "type") in OTHER_BLOCKS


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _word(value: Any, name: str) -> str:
    word = _get(value, name)
    return word if isinstance(word, str) else ""


def _changed(value: Any, fields: dict[str, Any]) -> Any:
    """A copy of a dict, record or plain object with other `fields`; a dict loses those that become None."""
    if isinstance(value, Mapping):
        return {
            name: new for name, new in {**value, **fields}.items() if name not in fields or new is not None
        }
    if hasattr(value, "model_copy"):
        return value.model_copy(update=fields)
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **fields)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **fields)
    changed = copy.copy(value)
    for name, new in fields.items():
        setattr(changed, name, new)
    return changed


def _repeats(text: str, value: Any) -> bool:
    """Whether `text` is the JSON of `value`, as MCP servers send it for clients that read text only."""
    try:
        parsed = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return bool(value in (parsed, {"result": parsed}))
