"""The client's requests that the server has to answer.

Each answer is recognised by its id, even a second one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from overspill.mcp.proxy.messages import id_key
from overspill.reading.latest import Latest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overspill.mcp.proxy.messages import Id, Key
    from overspill.mcp.request import Request

_MAX_CLOSED: Final = 1_000
"""Requests that are answered or given up, for which another answer may come."""
_KEPT_PARAMS: Final = ("name", "_meta", "caller", "taskId")
"""The parameters that are needed for the answer. The arguments of a call may be large."""


class OpenRequests:
    """The requests of one connection. They raise nothing."""

    def __init__(self) -> None:
        self._open: dict[Key, Request] = {}
        self._closed: Latest[Key, Request] = Latest(_MAX_CLOSED)

    def note(self, request: Request) -> None:
        """Take a request that goes to the server."""
        params = {name: request.params[name] for name in _KEPT_PARAMS if name in request.params}
        self._open[id_key(request.id)] = replace(request, params=params)

    def __contains__(self, key: Key) -> bool:
        return key in self._open

    def answered(self, request_id: Any) -> Request | None:
        """Return the request that a message with this id answers, for the first time or once more."""
        keys = list(similar_keys(request_id))
        for key in keys:
            if key in self._open:
                return self._close(key)
        return next((self._closed[key] for key in keys if key in self._closed), None)

    def give_up(self, request_id: Any) -> None:
        """Note that the client wants no answer to a request. One may be under way."""
        for key in similar_keys(request_id):
            if key in self._open:
                self._close(key)
                return

    def end(self) -> list[Id]:
        """Return the ids of requests without an answer, and forget them."""
        ids = [request.id for request in self._open.values()]
        self._open.clear()
        return ids

    def _close(self, key: Key) -> Request:
        self._closed[key] = request = self._open.pop(key)
        return request


def similar_keys(request_id: Any) -> Iterator[Key]:
    """Yield the key of an id, then keys that clients treat as the same: the official ones treat "1" as 1."""
    yield id_key(request_id)
    if isinstance(request_id, int):
        yield id_key(str(request_id))
    elif isinstance(request_id, str | float):
        with suppress(ValueError, OverflowError):  # a text that is no number, or a number without end
            yield id_key(
                int(request_id)
                if isinstance(request_id, str) and request_id.isdecimal()
                else _whole(float(request_id))
            )


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() else number
