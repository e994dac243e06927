"""One request as the client builds it, before any HTTP library is involved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence  # noqa: TC003  (msgspec resolves annotations at run time)
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct, structs

from overspill import wire
from overspill.errors import error_of
from overspill.transfer.argument_checks import check_labels, check_reference, check_text

TEXT_TYPE: Final = "text/plain; charset=utf-8"
"""That of `text/media_types`, which is not imported here: it takes longer than all of this room."""
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class Body(Struct, frozen=True, kw_only=True):
    """A request's body, which each attempt sends from its beginning.

    `length` is bytes, or None if it is not known. `pieces` may block, so a thread iterates over it. `parts`
    is the body if it is in memory. `on_sent` is called with the number of bytes of each piece that
    was sent.
    """

    length: int | None
    pieces: Callable[[], Iterator[bytes | memoryview]]
    encoding: str | None = None
    parts: Sequence[bytes] | None = None
    on_sent: Callable[[int], object] | None = None

    @classmethod
    def of(cls, data: bytes, encoding: str | None = None) -> Body:
        """Return the body for data in memory."""
        return cls.of_parts([data], encoding)

    @classmethod
    def of_parts(cls, parts: Sequence[bytes], encoding: str | None = None) -> Body:
        """Return the body for data that is in memory in parts."""
        return cls(length=sum(map(len, parts)), pieces=lambda: iter(parts), encoding=encoding, parts=parts)


class Request(Struct, frozen=True, kw_only=True):
    """One request. `path` is percent-encoded. `repeatable`: sending it twice has the effect of once.

    `route` is the path with its parameters in braces, if it has any. The service may take `answer_seconds`
    longer than others to answer. Without progress the request ends after `silent_seconds`, if those are fewer
    than the client's timeout.
    """

    method: str
    path: str
    route: str = ""
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    body: Body | None = None
    repeatable: bool = True
    answer_seconds: float = 0
    silent_seconds: float | None = None


def call_id_of(ref: str) -> str | None:
    """Return the tool-call id of a `call:` reference, or None. Raises `InvalidId` if the id is empty."""
    try:
        return wire.call_id_of(ref)
    except ValueError as error:
        raise error_of(wire.Code.INVALID_ID, str(error)) from None


def of_capture(method: str, path: str, ref: str, query: Struct | None = None) -> Request:
    """Return a request about one capture. `path` is one of `wire.Path` with `{ref}` in it.

    Raises `InvalidId` if the reference is empty, and `TypeError` if it is not text.
    """
    check_reference(ref)
    if not ref:
        raise error_of(wire.Code.INVALID_ID, "the capture's id is empty")
    call_id = call_id_of(ref)
    fitted = wire.fit(ref) if call_id is None else wire.CALL_PREFIX + wire.fit(call_id)
    return Request(
        method=method,
        path=path.format(ref=wire.encode_path(fitted)),
        route=path,
        query={} if query is None else encode_query(query),
    )


def of_session(method: str, path: str, session: str) -> Request:
    """Return a request about one session. `path` is one of `wire.Path` with `{session}` in it.

    Raises `InvalidParameter` if its name is empty, and `TypeError` if it is not text.
    """
    check_text("session", session)
    if not session:
        raise error_of(wire.Code.INVALID_PARAMETER, "the session's name is empty; nothing was changed")
    return Request(method=method, path=path.format(session=wire.encode_path(wire.fit(session))), route=path)


def upload(
    id: str,  # noqa: A002  (the field's own name)
    headers: Mapping[str, str],
    sha256: bytes,
    body: Body,
    *,
    on_sent: Callable[[int], object] | None,
) -> Request:
    """Return the request that stores a capture. `sha256` is the digest of its content, not of the body."""
    prepared = of_capture("PUT", wire.Path.CAPTURE, id)
    headers = {**headers, wire.Header.REPR_DIGEST: wire.encode_digest(sha256)}
    return structs.replace(prepared, headers=headers, body=structs.replace(body, on_sent=on_sent))


def with_json(request: Request, body: Struct) -> Request:
    """Return the request with `body` as its JSON."""
    headers = {**request.headers, "Content-Type": "application/json"}
    return structs.replace(request, headers=headers, body=Body.of(msgspec.json.encode(body)))


def metadata(
    session: str,
    *,
    call_id: str,
    tool: str,
    status: str,
    labels: Mapping[str, str] | None,
    ttl: int | None,
    content_type: str,
) -> dict[str, str]:
    """Return the headers for what is kept with a capture.

    Raises `ValueError` for a wrong label's name or media type, and `TypeError` for what is not text.
    """
    arguments = {
        "session": session,
        "call_id": call_id,
        "tool": tool,
        "status": status,
        "content_type": content_type,
    }
    for name, value in arguments.items():
        check_text(name, value)
    if not content_type.isprintable():
        raise ValueError(
            f"content_type {content_type!r} is not a media type such as text/plain; charset=utf-8"
        )
    texts = {
        wire.Header.SESSION: session,
        wire.Header.CALL_ID: call_id,
        wire.Header.TOOL: wire.fit(tool, wire.SHORT_VALUE),
        wire.Header.STATUS: wire.fit(status, wire.SHORT_VALUE),
    }
    headers = {name: wire.encode_header(wire.fit(text)) for name, text in texts.items() if text}
    headers |= _label_headers(labels or {})
    if ttl is not None:
        headers[wire.Header.TTL] = str(ttl)
    if content_type:
        headers["Content-Type"] = content_type
    return headers


def _label_headers(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of the labels that are not empty. Raises as `metadata` does.

    A label has a header of its own, unless proxies such as nginx would drop one of that name: then it stands
    in the header for all such labels. Of names that differ in case only, the last one counts.
    """
    check_labels(labels)
    for name in labels:
        if not _LABEL.fullmatch(name):
            raise ValueError(f"a label's name is 1 to 63 letters, digits, '_', '.' and '-'; it is {name!r}")
    texts = {name.lower(): wire.fit(text) for name, text in labels.items() if text}
    dropped = {name: text for name, text in texts.items() if "_" in name or "." in name}
    headers: dict[str, str] = {
        wire.Header.LABEL + name: wire.encode_header(text)
        for name, text in texts.items()
        if name not in dropped
    }
    if dropped:
        headers[wire.Header.LABELS] = wire.encode_labels(dropped)
    return headers


def encode_query(query: Struct) -> dict[str, str]:
    """Return the fields that differ from their defaults, as query parameters.

    A time without a zone is local time, as everywhere in Python.
    """
    values = msgspec.to_builtins(structs.replace(query, **_zoned(query)))
    return {
        field.encode_name: _text(values[field.encode_name])
        for field in structs.fields(query)
        if getattr(query, field.name) != field.default
    }


def _zoned(query: Struct) -> dict[str, datetime]:
    """Return the times of a query that have no zone, as times with one."""
    times = {name: getattr(query, name) for name in query.__struct_fields__}
    return {
        name: time.astimezone()
        for name, time in times.items()
        if isinstance(time, datetime) and time.tzinfo is None
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
