"""Histories of messages, with the results of tools in them that are too long cut or captured.

Chat and Responses items of OpenAI, messages of Anthropic, LangChain, Bedrock's Converse, Gemini and the AI
SDK, and those of role `toolResult`, as dicts or objects. Only results of tools are touched, never what a
person, the model or the system said. What does not change stays the same object, and no input is ever
changed. Notices from earlier passes stay as they are, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.guard.assessment import assess
from overspill.guard.executors import finished
from overspill.guard.policy import Policy
from overspill.guard.spill import Spill
from overspill.histories.aging import NEWEST, aged, beyond_budget
from overspill.previews.notice import Kept
from overspill.shapes.content import examine, size_of
from overspill.shapes.fields import Unchangeable, get, text_field
from overspill.shapes.parts import with_values
from overspill.transfer.store_request import Origin
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.previews.notice import Notice
    from overspill.shapes.content import Shape
    from overspill.shapes.fields import FieldPath

WITHOUT_STORE: Final = "the history was cut before it was saved, with no store at hand"
COPIES: Final = ("artifact", "details")
"""Fields of a message that hold the tool's result again, for programs."""

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
"""The only field of a Gemini function's response where what the tool returned is no object."""


class _Item(NamedTuple):
    """An item that is a result: where in it the value is, and the tool's name where no call says it.

    An empty `place` is the item itself, whose parts are told by its type alone.
    """

    place: tuple[str, ...]
    tool: str = ""
    ids: tuple[str, ...] = _ID_FIELDS


_ITEMS: Final[Mapping[str, _Item]] = {
    "function_call_output": _Item(("output",)),
    "custom_tool_call_output": _Item(("output",)),
    "local_shell_call_output": _Item(("output",), "local_shell", _OWN_ID),
    "shell_call_output": _Item((), "shell"),
    "apply_patch_call_output": _Item(("output",), "apply_patch"),
    "mcp_call": _Item(("output",), ids=_OWN_ID),
    "program_output": _Item(("result",), "program"),
    _FUNCTION_RESULT: _Item(("result",)),
}
"""Of OpenAI's Responses, and the last of Gemini's Interactions."""


class ToolResult(NamedTuple):
    """The result of one call. `path` leads from the list of messages to its `value`."""

    path: FieldPath
    value: Any
    tool: str
    call_id: str
    status: str

    @property
    def holder(self) -> FieldPath:
        """Where the message, item or block is that has the value, or is it."""
        return self.path[:-1] if isinstance(self.path[-1], str) else self.path


def tool_results(messages: Sequence[Any]) -> list[ToolResult]:
    """All results of tools, in order. A name is that of the latest call before with the same id."""
    names: dict[str, str] = {}
    found: list[ToolResult] = []
    for at, message in enumerate(messages):
        found += _results_in(message, (at,), names)
        names.update(_calls_in(message))
    return found


def clamp_messages(
    messages: list[Any],
    policy: Policy | None = None,
    *,
    session: str = "",
    keep_copies: bool = True,
    budget: int | None = None,
    newest: int = NEWEST,
) -> list[Any]:
    """The history as it may be saved: results above the policy's limits become notices; nothing is stored.

    `session` is for the ids in the notices. Without `keep_copies`, the fields in `COPIES` go from messages
    whose result is cut, or was before. Where all results together have more than `budget` bytes, the oldest
    are cut too, but for the `newest` last ones. Cutting takes 5 ms a megabyte: a thread is the place.
    """
    clamping = _Clamping(Policy() if policy is None else policy, session, keep_copies)
    clamped = clamping.cut(messages, too_long(messages, clamping.policy))
    clamping = clamping._replace(policy=aged(clamping.policy))
    return clamping.cut(clamped, beyond_budget(tool_results(clamped), clamping.policy, budget, newest))


class _Clamping(NamedTuple):
    """How results are cut where nothing is stored."""

    policy: Policy
    session: str
    keep_copies: bool

    def cut(self, messages: list[Any], chosen: Iterable[tuple[ToolResult, Shape]]) -> list[Any]:
        new: dict[FieldPath, Any] = {}
        for result, content in chosen:
            origin = Origin(result.tool, result.call_id, self.session, result.status)
            spill = Spill.of(content, self.policy, origin)
            with suppress(Unchangeable):
                notice = spill.notice(Kept(outcome=Outcome.TRUNCATED, reason=WITHOUT_STORE))
                new |= _shorter(result, spill.content.replaced(notice), notice)
        return _with(messages, new, keep_copies=self.keep_copies)


async def spill_messages(
    messages: list[Any],
    guard: Guard,
    *,
    policy: Policy | None = None,
    session: str | None = None,
    keep_copies: bool = True,
    budget: int | None = None,
    newest: int = NEWEST,
) -> list[Any]:
    """The history with each result that is too long captured by the guard, and its notice instead.

    The capture's id is that which the guard gave, or would have given, when the tool returned: for the same
    session, call and content. `policy` goes before the guard's own; `keep_copies`, `budget` and `newest` are
    as in `clamp_messages`.
    """
    guarding = Guarding(guard, policy or guard.policy, session)
    spilled = await _spilled(messages, guarding.process, guarding.too_long(messages), keep_copies=keep_copies)
    guarding = guarding._replace(policy=aged(guarding.policy))
    chosen = guarding.beyond_budget(spilled, budget, newest)
    return await _spilled(spilled, guarding.process, chosen, keep_copies=keep_copies)


def spill_messages_sync(
    messages: list[Any],
    guard: Guard,
    *,
    policy: Policy | None = None,
    session: str | None = None,
    keep_copies: bool = True,
    budget: int | None = None,
    newest: int = NEWEST,
) -> list[Any]:
    """As `spill_messages`, for code without an event loop."""
    guarding = Guarding(guard, policy or guard.policy, session)
    chosen = guarding.too_long(messages)
    spilled = finished(_spilled(messages, guarding.process_sync, chosen, keep_copies=keep_copies))
    guarding = guarding._replace(policy=aged(guarding.policy))
    chosen = guarding.beyond_budget(spilled, budget, newest)
    return finished(_spilled(spilled, guarding.process_sync, chosen, keep_copies=keep_copies))


class Guarding(NamedTuple):
    """A guard for results from a history, with a policy and a session."""

    guard: Guard
    policy: Policy
    session: str | None = None

    async def process(self, result: ToolResult) -> Guarded:
        """Pass one result through the guard."""
        return await self.guard.process(result.value, **self._known(result))

    async def process_sync(self, result: ToolResult) -> Guarded:
        """Never waits: for `finished`."""
        return self.guard.process_sync(result.value, **self._known(result))

    def too_long(self, messages: list[Any]) -> list[ToolResult]:
        """Return the results that are longer than the policy allows."""
        return [result for result, _ in too_long(messages, self.policy)]

    def beyond_budget(self, messages: list[Any], budget: int | None, newest: int) -> list[ToolResult]:
        """Return the results to replace so that the history has `budget` bytes at most.

        The `newest` results stay.
        """
        chosen = beyond_budget(tool_results(messages), self.policy, budget, newest)
        return [result for result, _ in chosen]

    def _known(self, result: ToolResult) -> dict[str, Any]:
        return {
            "tool": result.tool,
            "call_id": result.call_id,
            "session": self.session,
            "status": result.status,
            "policy": self.policy,
        }


async def _spilled(
    messages: list[Any],
    process: Callable[[ToolResult], Awaitable[Guarded]],
    results: list[ToolResult],
    *,
    keep_copies: bool,
) -> list[Any]:
    guarded = [(result, await process(result)) for result in results]
    return with_spilled(messages, guarded, keep_copies=keep_copies)


def too_long(messages: Sequence[Any], policy: Policy) -> Iterator[tuple[ToolResult, Shape]]:
    """The results that have to spill, with what is to be captured of them."""
    for result in tool_results(messages):
        try:
            content = assess(result.value, result.tool, policy)
        except Exception:  # noqa: BLE001, S112  (a value that cannot be looked at stays as it is)
            continue
        if content is not None:
            yield result, content


def with_spilled(
    messages: list[Any], spilled: Sequence[tuple[ToolResult, Guarded]], *, keep_copies: bool = True
) -> list[Any]:
    """The history with what the guard made of these results; the same list where nothing became shorter."""
    new: dict[FieldPath, Any] = {}
    for result, guarded in spilled:
        if guarded.notice is not None:
            new |= _shorter(result, guarded.value, guarded.notice)
    return _with(messages, new, keep_copies=keep_copies)


def _shorter(result: ToolResult, value: Any, notice: Notice) -> dict[FieldPath, Any]:
    """The new value at its place, in the form of the old one; nothing where that would not be shorter."""
    old = result.value
    if isinstance(old, (list, tuple)) and not isinstance(value, (list, tuple)):
        value = [{"type": "text", "text": str(notice)}]
    is_shorter = _length(value) < _length(old)
    return {result.path: value} if is_shorter and _has_form(value, result) else {}


def _has_form(value: Any, result: ToolResult) -> bool:
    """Whether an item is still one of its type, and fields are still fields."""
    if result.holder == result.path:
        return text_field(value, "type") == text_field(result.value, "type")
    return not (isinstance(result.value, Mapping) and isinstance(value, str))


def _length(value: Any) -> int:
    content = examine(value)
    return 0 if content is None else size_of(content)


def _with(messages: list[Any], new: Mapping[FieldPath, Any], *, keep_copies: bool) -> list[Any]:
    """The history with other values at these places; a message that cannot be changed stays as it is."""
    if not keep_copies:
        new = {**new, **_without_copies(messages, new)}
    changed = messages
    for at in sorted({int(path[0]) for path in new}):
        of_message = {path[1:]: value for path, value in new.items() if path[0] == at}
        try:
            message = with_values(messages[at], of_message)
        except Unchangeable:
            continue
        changed = list(messages) if changed is messages else changed
        changed[at] = message
    return changed


def _without_copies(messages: Sequence[Any], new: Mapping[FieldPath, Any]) -> dict[FieldPath, Any]:
    copies: dict[FieldPath, Any] = {}
    for result in tool_results(messages):
        if result.path in new or _is_guarded(result.value):
            holder = _at(messages, result.holder)
            copies |= {(*result.holder, name): None for name in COPIES if get(holder, name) is not None}
    return copies


def _is_guarded(value: Any) -> bool:
    content = examine(value)
    return content is not None and content.is_guarded()


def _at(value: Any, path: FieldPath) -> Any:
    for step in path:
        value = value[step] if isinstance(step, int) else get(value, step)
    return value


def _results_in(message: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    kind = text_field(message, "type")
    if kind in _ITEMS:
        yield _result(message, path, _ITEMS[kind].place, names, _ITEMS[kind].ids)
    elif responses := list(_responses(message, path, names)):
        yield from responses
    elif kind == _TOOL_RESULT or {kind, text_field(message, "role")} & _TOOL_MESSAGES:
        packed = get(message, "data") if isinstance(message, Mapping) else None  # LangChain's message_to_dict
        if isinstance(packed, Mapping) and _CONTENT in packed:
            yield _result(packed, (*path, "data"), (_CONTENT,), names)
        else:
            yield from _results_of_message(message, path, names)
    elif {kind, text_field(message, "role")} & _PEOPLE:
        yield from _result_blocks(message, path, names)


def _results_of_message(message: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    """Of a tool's message: its result blocks if it has such, else all of its content."""
    blocks = list(_result_blocks(message, path, names))
    yield from blocks or [_result(message, path, (_CONTENT,), names)]


def _result_blocks(message: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    for at, block in enumerate(_listed(get(message, _CONTENT))):
        inside = (*path, _CONTENT, at)
        if text_field(block, "type") == _TOOL_RESULT:
            yield _result(block, inside, (_CONTENT,), names)
        elif text_field(block, "type") == _SDK_RESULT:
            yield _result(block, inside, _place_in_sdk_result(block), names)
        elif text_field(block, "type") == _FUNCTION_RESULT:
            yield _result(block, inside, _ITEMS[_FUNCTION_RESULT].place, names)
        else:
            yield from _converse_results(get(block, "toolResult"), (*inside, "toolResult"), names)


def _place_in_sdk_result(block: Any) -> tuple[str, ...]:
    """Of the AI SDK: the value in the typed output, or all of the result in its earlier form."""
    if get(block, "output") is None:
        return ("result",)
    return ("output", "value") if get(get(block, "output"), "value") is not None else ("output",)


def _converse_results(holder: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    """Of Bedrock: each text and each document is a result by itself, for its blocks are no other's."""
    for at, block in enumerate(_listed(get(holder, _CONTENT))):
        for field in ("text", "json"):
            if get(block, field) is not None:
                yield _result(holder, path, (_CONTENT, at, field), names)


def _responses(message: Any, path: FieldPath, names: Mapping[str, str]) -> Iterator[ToolResult]:
    """Of Gemini: what functions responded, which has to stay an object."""
    for at, part in enumerate(_listed(get(message, "parts"))):
        for name in _RESPONSES:
            if (holder := get(part, name)) is not None:
                place = _place_in_response(get(holder, "response"))
                yield _result(holder, (*path, "parts", at, name), place, names, _OWN_ID)


def _place_in_response(response: Any) -> FieldPath:
    is_wrapping = type(response) is dict and len(response) == 1 and response.keys() <= _WRAPPING_FIELDS
    return ("response", *response) if is_wrapping else ("response",)


def _result(
    holder: Any,
    path: FieldPath,
    place: FieldPath,
    names: Mapping[str, str],
    ids: tuple[str, ...] = _ID_FIELDS,
) -> ToolResult:
    """The result at `place` in `holder`, which says whose it is."""
    call_id = next(filter(None, (text_field(holder, name) for name in ids)), "")
    item = _ITEMS.get(text_field(holder, "type"))
    tool = _name(holder) or names.get(call_id) or (item.tool if item else "")
    failed = any(get(holder, name) is True for name in _FAILURES)
    return ToolResult(
        (*path, *place),
        _at(holder, place),
        tool,
        call_id,
        "error" if failed else text_field(holder, "status"),
    )


def _name(holder: Any) -> str:
    return next(filter(None, (text_field(holder, name) for name in _NAME_FIELDS)), "")


def _calls_in(message: Any) -> Iterator[tuple[str, str]]:
    """Ids of the calls that a message of the model asks for, and the names of their tools."""
    packed = get(message, "data") if isinstance(message, Mapping) else None
    message = packed if isinstance(packed, Mapping) else message
    if text_field(message, "type") in _CALL_ITEMS:
        yield text_field(message, "call_id") or text_field(message, "id"), text_field(message, "name")
    for call in _listed(get(message, "tool_calls")):
        named = next(
            filter(None, (text_field(get(call, kind), "name") for kind in ("function", "custom"))), ""
        )
        yield text_field(call, "id"), text_field(call, "name") or named
    for block in _listed(get(message, _CONTENT)):
        if text_field(block, "type") in _CALL_BLOCKS:
            yield text_field(block, "id") or text_field(block, "toolCallId"), _name(block)
        elif (use := get(block, "toolUse")) is not None:
            yield text_field(use, "toolUseId"), text_field(use, "name")


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()
