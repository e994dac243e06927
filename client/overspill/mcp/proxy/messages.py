"""JSON-RPC messages as they are on the wire. Only the members for routing are read; all else stays bytes."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from overspill.mcp.proxy.deep_json import members
from overspill.mcp.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

Id: TypeAlias = int | float | str | None
Key: TypeAlias = tuple[type, Id]
"""An id for a dict, in which 1, 1.0 and "1" are three."""


class Message(Struct, frozen=True):
    """The members of one message that routing needs."""

    id: Id | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def key(self) -> Key:
        """Return the id as a key of a dict."""
        return id_key(self.id)


class NotAMessage(Exception):
    """A line that holds no JSON-RPC message."""


_PARTS: Final = ("params", "result", "error")
_INTERNAL_ERROR: Final = -32603
_ONE = msgspec.json.Decoder(Message)
_MANY = msgspec.json.Decoder(list[Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])


def id_key(request_id: Any) -> Key:
    """Return an id as a key of a dict. A value that cannot be an id gets a key that no request has."""
    return type(request_id), request_id if isinstance(request_id, int | float | str) else None


def messages(line: bytes) -> Iterator[tuple[bytes, Message]]:
    """Yield the messages of a line, each with its bytes. A batch is yielded one by one.

    A batch that is nested too deeply to be read is a message without members. Raises `NotAMessage`.
    """
    try:
        each_line = _batch(line) if line.lstrip().startswith(b"[") else [line]
        yield from [(each, _read(each)) for each in each_line]
    except RecursionError:
        yield line, Message()


def _batch(line: bytes) -> list[bytes]:
    try:
        return [bytes(each) for each in _MANY.decode(line)]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotAMessage from error


def _read(line: bytes) -> Message:
    """Return the message, even if only Python's own reader takes it, as for half of a surrogate pair."""
    try:
        return _ONE.decode(line)
    except RecursionError:
        return _of_members(members(line))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _routed(json.loads(line))


def _routed(found: Any) -> Message:
    """Return a message that is parsed. Raises `NotAMessage`, or `ValidationError` for a wrong member."""
    if not isinstance(found, dict):
        raise NotAMessage
    fields = {name: found[name] for name in ("id", "method") if name in found}
    message = msgspec.convert(fields, Message)
    parts = {name: Raw(json.dumps(found[name]).encode()) for name in _PARTS if name in found}
    return msgspec.structs.replace(message, **parts)


def _of_members(written: dict[str, bytes]) -> Message:
    message = msgspec.convert(_readable(written, "id", "method"), Message)
    parts = {name: Raw(written[name]) for name in _PARTS if name in written}
    return msgspec.structs.replace(message, **parts)


def _readable(written: dict[str, bytes], *names: str) -> dict[str, Any]:
    """Return those of the members that can be read."""
    found = {}
    for name in names:
        with suppress(NotAMessage, KeyError):
            found[name] = value_of(written[name])
    return found


def parsed(line: bytes | Raw) -> dict[str, Any]:
    """Return a JSON object. Raises `NotAMessage`."""
    found = value_of(line)
    if not isinstance(found, dict):
        raise NotAMessage
    return found


def value_of(member: bytes | Raw) -> Any:
    """Return the value of JSON. Raises `NotAMessage`, also for a number that could not be written again."""
    try:
        return msgspec.json.decode(member)
    except RecursionError as error:
        raise NotAMessage from error
    except (msgspec.DecodeError, UnicodeDecodeError):  # as in `_read`: Python's own reader takes more
        return _value_for_python(bytes(member))


def value_or_text(member: Raw) -> Any:
    """Return the value of JSON, or its text if it cannot be read, or could not be written again."""
    try:
        return value_of(member)
    except NotAMessage:
        return bytes(member).decode(errors="replace")


def _value_for_python(text: bytes) -> Any:
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise NotAMessage from error


def _refused(constant: str) -> float:
    raise ValueError(constant)


def _finite(number: str) -> float:
    found = float(number)
    return found if math.isfinite(found) else _refused(number)


def request_of(message: Message) -> Request:
    """Return the request that a message with an id and a method makes."""
    assert message.id is not UNSET
    assert message.method is not UNSET
    return Request(message.id, message.method, {} if message.params is UNSET else _params(message.params))


def _params(raw: Raw) -> dict[str, Any]:
    """Return the readable part of a request's parameters."""
    try:
        return parsed(raw)
    except NotAMessage:
        with suppress(ValueError):
            written = members(bytes(raw))
            return _readable(written, *written)
    return {}


def encoded(message: Any) -> bytes:
    """Return the bytes of a message, without the end of the line.

    Raises `ValueError` for a number that JSON has not: `1e999` is read as one.
    """
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def text_only(name: str, value: Any) -> Any:
    """Return the result or the error that says a text alone; any other value as it is."""
    if not isinstance(value, str):
        return value
    if name == "error":
        return {"code": _INTERNAL_ERROR, "message": value}
    return {"content": [{"type": "text", "text": value}]}


def with_member(line: bytes, name: str, value: Any) -> bytes:
    """Return a response with another result or error. All its other members stay, byte for byte."""
    try:
        written = {key: bytes(each) for key, each in _MEMBERS.decode(line).items()}
    except RecursionError:
        written = members(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        written = {key: encoded(each) for key, each in json.loads(line).items() if key != name}
    written.pop(name, None)
    written[name] = encoded(value)
    return b"{%b}" % b",".join(b"%b:%b" % (encoded(key), each) for key, each in written.items())
