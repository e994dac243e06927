"""One connection to Redis that many tasks share. Commands go out in order, and answers come in that order.

A command on an idle connection is sent at once. Other commands are sent together, once for each iteration of
the event loop. No caller holds the connection, and a command needs no task, lock or timer of its own. So a
cancelled caller cannot leave an answer behind for the next one. This module knows nothing of retries, or of
what commands mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, cast

import hiredis
from redis import exceptions as redis_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = asyncio.Future[Any]

CHECKS_PER_TIMEOUT: Final = 4
"""How often answers that are due are looked for within their timeout."""
WHOLE_BYTES: Final = 64 * 1024
"""The largest command that is sent in one piece with others."""
_NOTHING: Final = object()
_PING: Final = b"*1\r\n$4\r\nPING\r\n"
_PONGS: Final = b"PONG", [b"pong", b""]
"""The answers to a PING on a connection that listens: before it has subscribed, and after that."""
_KINDS: Final = {
    "NOSCRIPT": redis_errors.NoScriptError,
    "NOPERM": redis_errors.NoPermissionError,
    "NOAUTH": redis_errors.AuthenticationError,
    "WRONGPASS": redis_errors.AuthenticationError,
}
"""Errors that callers tell apart by their class. `failures` reads the other codes from the text."""
_UNCODED: Final = {
    "ERR max number of clients reached": redis_errors.ConnectionError,
    "ERR Protocol error: unauthenticated": redis_errors.AuthenticationError,
}
"""The same for errors that have no code of their own, by their beginning."""


def error_of(text: str) -> redis_errors.RedisError:
    """Return the error that an answer is. It begins with its code."""
    uncoded = (kind for beginning, kind in _UNCODED.items() if text.startswith(beginning))
    kind = _KINDS.get(text.partition(" ")[0]) or next(uncoded, redis_errors.ResponseError)
    return kind(text)


class Link(asyncio.Protocol):
    """One connection. Each command has `timeout` seconds for its answer."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._on_message: Callable[[list[Any]], None] | None = None
        self._reader = hiredis.Reader(replyError=error_of, notEnoughData=_NOTHING)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._waiting: deque[tuple[Answer, float]] = deque()
        """The answers that have not come yet, and when each command was sent."""
        self._ignored: Answer = self._loop.create_future()
        """Stands for answers that nobody waits for."""
        self._ignored.cancel()
        self._timer: asyncio.TimerHandle | None = None
        self._is_retired = False
        self._is_silent = False
        """Whether nothing has come since the last PING of a connection that listens."""
        self._error: Exception | None = None
        self.closed: Answer = self._loop.create_future()
        """Done once the connection is gone. Its result is the error that it was closed for, if any."""

    @property
    def is_usable(self) -> bool:
        return self._transport is not None and not self._is_retired

    @property
    def backlog(self) -> int:
        """Bytes that the system has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def send(self, command: tuple[Any, ...], *, publishes: bool = False) -> Answer:
        """Send a command. Its answer is what Redis says, or a `RedisError`.

        If the command `publishes`, its subscribers get the news before this connection gets the answer, so
        they do not wait for what this process does next. Redis writes first to the connection that was the
        last to get something to write (`putClientInPendingWriteQueue` in its `networking.c`). So this
        connection is given something, a PING, before the command.
        """
        answer = self._loop.create_future()
        if self._transport is None:
            answer.set_exception(redis_errors.ConnectionError("the connection is gone"))
            return answer
        packed = hiredis.pack_command(command)
        is_idle = not self._unsent and not self._waiting
        if publishes and is_idle:
            packed = _PING + packed
            self._waiting.append((self._ignored, self._loop.time()))
        if not is_idle:  # there may be more to come: send it with that
            if not self._unsent:
                self._loop.call_soon(self._flush)
            self._unsent.append(packed)
        else:
            self._transport.write(packed)
        if self._on_message is None:
            self._waiting.append((answer, self._loop.time()))
            if self._timer is None:
                self._timer = self._loop.call_later(self._timeout / CHECKS_PER_TIMEOUT, self._check)
        else:  # what comes of it is a message
            answer.set_result(None)
        return answer

    def listen(self, on_message: Callable[[list[Any]], None]) -> None:
        """Treat all that comes from now on as messages: a connection that subscribes gets no answers.

        It closes when Redis does not even answer a PING: a host that is gone does not say so.
        """
        self._on_message = on_message
        self._timer = self._loop.call_later(self._timeout, self._ping)

    def retire(self) -> None:
        """Send no more commands, and close once all have their answers."""
        self._is_retired = True
        if not self._waiting:
            self.close()

    def close(self, error: Exception | None = None) -> None:
        """Close at once. `closed` then has the error."""
        self._error = error
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are not subclasses

    def data_received(self, data: bytes) -> None:
        self._is_silent = False
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not _NOTHING:
                self._take(answer)
        except hiredis.ProtocolError:  # this is not Redis
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (the port's)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, deque()
        for answer, _ in waiting:
            if not answer.done():
                answer.set_exception(redis_errors.ConnectionError("the connection was lost"))
        if not self.closed.done():
            self.closed.set_result(self._error)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._transport is None:
            return
        if len(unsent) == 1:
            self._transport.write(unsent[0])
        elif sum(map(len, unsent)) <= WHOLE_BYTES:
            self._transport.write(b"".join(unsent))
        else:
            self._transport.writelines(unsent)

    def _take(self, answer: Any) -> None:
        if self._on_message is not None:
            if answer not in _PONGS:
                self._on_message(answer)
            return
        if not self._waiting:  # nobody asked: this is not Redis
            self.close()
            return
        waiting, _ = self._waiting.popleft()
        if not waiting.done():  # else its caller was cancelled
            if isinstance(answer, Exception):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)
        if self._is_retired and not self._waiting:
            self.close()

    def _ping(self) -> None:
        """Ask for a sign of life. Close if the last time there was none."""
        if self._is_silent:
            self.close(redis_errors.TimeoutError("no answer"))
        elif self._transport is not None:
            self._is_silent = True
            self._transport.write(_PING)
            self._timer = self._loop.call_later(self._timeout, self._ping)

    def _check(self) -> None:
        """Fail what has waited too long, and close: nobody knows what becomes of the rest."""
        self._timer = None
        if not self._waiting:
            return
        due = self._loop.time() - self._timeout
        if self._waiting[0][1] > due:
            self._timer = self._loop.call_later(self._timeout / CHECKS_PER_TIMEOUT, self._check)
            return
        for answer, since in self._waiting:
            if since <= due and not answer.done():
                answer.set_exception(redis_errors.TimeoutError("no answer"))
        self.close()
