"""Finds the results of tools in histories of messages, and says where in them each one is.

Chat and Responses items of OpenAI, messages of Anthropic, LangChain, Bedrock's Converse, Gemini and the AI
SDK, and those of role `toolResult`, as dicts or objects. Each format has its own field names, so a result is
recognised by them and by types and roles. What a person, the model or the system said is never a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.shapes.block_types import ITEMS, TEXT_FIELDS, listed
from overspill.shapes.fields import get, text_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.shapes.fields import FieldPath

_CONTENT: Final = "content"
_TOOL_RESULT: Final = "tool_result"
_SDK_RESULT: Final = "tool-result"
_TOOL_MESSAGES: Final = frozenset({"tool", "function", "ToolMessageChunk", "toolResult", "tool_result"})
_PEOPLE: Final = frozenset({"user", "human"})
_FUNCTION_RESULT: Final = "function_result"
_CALL_ITEMS: Final = frozenset({"function_call", "custom_tool_call"})
_CALL_BLOCKS: Final = frozenset({"tool_use", "server_tool_use", "tool_call", "toolCall", "tool-call"})
_ID_FIELDS: Final = ("tool_call_id", "tool_use_id", "call_id", "toolUseId", "toolCallId")
_NAME_FIELDS: Final = ("name", "toolName", "tool_name")
_FAILURES: Final = ("is_error", "isError")
_OWN_ID: Final = (*_ID_FIELDS, "id")
_RESPONSES: Final = ("functionResponse", "function_response")
_WRAPPING_FIELDS: Final = frozenset({"result", "output", "error"})
"""A Gemini function has to respond with an object; a tool's text is wrapped in one of these fields."""


class _Item(NamedTuple):
    """An item that is a result: the path to its value, and the tool's name if no call says it.

    An empty `path` is the item itself: its type alone says which of its parts a model reads.
    """

    path: tuple[str, ...]
    tool: str = ""
    ids: tuple[str, ...] = _ID_FIELDS


_ITEMS: Final[Mapping[str, _Item]] = {
    **{kind: _Item((TEXT_FIELDS[kind],)) for kind in ITEMS - {_TOOL_RESULT}},
    "local_shell_call_output": _Item(("output",), "local_shell", _OWN_ID),
    "shell_call_output": _Item((), "shell"),
    "apply_patch_call_output": _Item(("output",), "apply_patch"),
    "mcp_call": _Item(("output",), ids=_OWN_ID),
    "program_output": _Item(("result",), "program"),
}
"""Items of OpenAI's Responses and of Gemini's Interactions."""


class ToolResult(NamedTuple):
    """The result of one call of a tool. `path` leads from the list of messages to its `value`."""

    path: FieldPath
    value: Any
    tool: str
    call_id: str
    status: str

    @property
    def holder(self) -> FieldPath:
        """The path to the message, item or block that has the value, or is the value."""
        return self.path[:-1] if isinstance(self.path[-1], str) else self.path


def tool_results(messages: Sequence[Any]) -> list[ToolResult]:
    """Return all results of tools, in order. A tool's name comes from the latest earlier call of that id."""
    names: dict[str, str] = {}
    found: list[ToolResult] = []
    for at, message in enumerate(messages):
        found += _results_in(message, (at,), names)
        names.update(_calls_in(message))
    return found


def value_at(value: Any, path: FieldPath) -> Any:
    """Follow `path` into `value`."""
    for step in path:
        value = value[step] if isinstance(step, int) else get(value, step)
    return value


def _results_in(message: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    kind = text_field(message, "type")
    if kind in _ITEMS:
        yield _result(message, path, _ITEMS[kind].path, names, _ITEMS[kind].ids)
    elif responses := list(_responses(message, path, names)):
        yield from responses
    elif kind == _TOOL_RESULT or {kind, text_field(message, "role")} & _TOOL_MESSAGES:
        packed = get(message, "data") if isinstance(message, Mapping) else None  # LangChain's message_to_dict
        if isinstance(packed, Mapping) and _CONTENT in packed:
            yield _result(packed, (*path, "data"), (_CONTENT,), names)
        else:  # its result blocks if it has any, else all of its content
            blocks = list(_result_blocks(message, path, names))
            yield from blocks or [_result(message, path, (_CONTENT,), names)]
    elif {kind, text_field(message, "role")} & _PEOPLE:
        yield from _result_blocks(message, path, names)


def _result_blocks(message: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    for at, block in enumerate(listed(get(message, _CONTENT))):
        inside = (*path, _CONTENT, at)
        if text_field(block, "type") == _TOOL_RESULT:
            yield _result(block, inside, (_CONTENT,), names)
        elif text_field(block, "type") == _SDK_RESULT:
            yield _result(block, inside, _path_in_sdk_result(block), names)
        elif text_field(block, "type") == _FUNCTION_RESULT:
            yield _result(block, inside, _ITEMS[_FUNCTION_RESULT].path, names)
        else:
            yield from _converse_results(get(block, "toolResult"), (*inside, "toolResult"), names)


def _path_in_sdk_result(block: Any) -> tuple[str, ...]:
    """For the AI SDK: the value in the typed output, or the whole result in its earlier form."""
    if get(block, "output") is None:
        return ("result",)
    return ("output", "value") if get(get(block, "output"), "value") is not None else ("output",)


def _converse_results(holder: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    """For Bedrock: each text and each document is one result; its blocks have no common form."""
    for at, block in enumerate(listed(get(holder, _CONTENT))):
        for field in ("text", "json"):
            if get(block, field) is not None:
                yield _result(holder, path, (_CONTENT, at, field), names)


def _responses(message: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    """For Gemini: the responses of functions, which have to stay objects."""
    for at, part in enumerate(listed(get(message, "parts"))):
        for name in _RESPONSES:
            if (holder := get(part, name)) is not None:
                inner = _path_in_response(get(holder, "response"))
                yield _result(holder, (*path, "parts", at, name), inner, names, _OWN_ID)


def _path_in_response(response: Any) -> FieldPath:
    is_wrapping = type(response) is dict and len(response) == 1 and response.keys() <= _WRAPPING_FIELDS
    return ("response", *response) if is_wrapping else ("response",)


def _result(
    holder: Any,
    path: FieldPath,
    inner: FieldPath,
    names: Mapping[str, str],
    ids: tuple[str, ...] = _ID_FIELDS,
) -> ToolResult:
    """Return the result at `inner` in `holder`; the other fields of `holder` name its call and its tool."""
    call_id = next(filter(None, (text_field(holder, name) for name in ids)), "")
    item = _ITEMS.get(text_field(holder, "type"))
    tool = _name(holder) or names.get(call_id) or (item.tool if item else "")
    failed = any(get(holder, name) is True for name in _FAILURES)
    return ToolResult(
        (*path, *inner),
        value_at(holder, inner),
        tool,
        call_id,
        "error" if failed else text_field(holder, "status"),
    )


def _name(holder: Any) -> str:
    return next(filter(None, (text_field(holder, name) for name in _NAME_FIELDS)), "")


def _calls_in(message: Any) -> Iterator[tuple[str, str]]:
    """Yield the id of each call that a message of the model asks for, and the name of its tool."""
    packed = get(message, "data") if isinstance(message, Mapping) else None
    message = packed if isinstance(packed, Mapping) else message
    if text_field(message, "type") in _CALL_ITEMS:
        yield text_field(message, "call_id") or text_field(message, "id"), text_field(message, "name")
    for call in listed(get(message, "tool_calls")):
        named = next(
            filter(None, (text_field(get(call, kind), "name") for kind in ("function", "custom"))), ""
        )
        yield text_field(call, "id"), text_field(call, "name") or named
    for block in listed(get(message, _CONTENT)):
        if text_field(block, "type") in _CALL_BLOCKS:
            yield text_field(block, "id") or text_field(block, "toolCallId"), _name(block)
        elif (use := get(block, "toolUse")) is not None:
            yield text_field(use, "toolUseId"), text_field(use, "name")
