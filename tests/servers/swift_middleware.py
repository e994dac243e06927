"""Two middlewares for a Swift proxy of one process, so that it behaves as S3 does.

`info_cache` stands in for memcached: account and container records, copied through JSON as the real
client does. `put_lock` makes `If-None-Match: *` exclusive: Swift itself looks first and renames later,
so several of many concurrent creators can win; on AWS exactly one does. One lock per path restores that.

Swift imports this file on its own; it must not import anything of the project.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from eventlet.semaphore import Semaphore

    Environ = dict[str, Any]
    App = Callable[[Environ, Any], Iterable[bytes]]
    Filter = Callable[[App], App]


class InfoCache:
    """The methods of Swift's memcache client that its proxy calls."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, float]] = {}

    def get(self, key: str, raise_on_error: bool = False) -> Any:
        text, deadline = self._values.get(key, ("null", 0))
        if deadline and deadline < time.time():
            del self._values[key]
            return None
        return json.loads(text)

    def set(self, key: str, value: Any, serialize: bool = True, time: float = 0, **_: Any) -> None:
        self._values[key] = (json.dumps(value), _deadline(time))

    def incr(self, key: str, delta: int = 1, time: float = 0) -> int:
        value = max(0, (self.get(key) or 0) + int(delta))
        self.set(key, value, time=time)
        return value

    def decr(self, key: str, delta: int = 1, time: float = 0) -> int:
        return self.incr(key, -int(delta), time)

    def delete(self, key: str, server_key: str | None = None) -> None:
        self._values.pop(key, None)

    def get_multi(self, keys: Iterable[str], server_key: str) -> list[Any]:
        return [self.get(key) for key in keys]

    def set_multi(self, mapping: dict[str, Any], server_key: str, time: float = 0, **_: Any) -> None:
        for key, value in mapping.items():
            self.set(key, value, time=time)


def _deadline(seconds: float) -> float:
    return time.time() + float(seconds) if seconds else 0


def info_cache(settings: dict[str, str], **_: str) -> Filter:
    cache = InfoCache()

    def wrap(app: App) -> App:
        def serve(environ: Environ, start_response: Any) -> Iterable[bytes]:
            environ["swift.cache"] = cache
            return app(environ, start_response)

        return serve

    return wrap


def put_lock(settings: dict[str, str], **_: str) -> Filter:
    from eventlet.semaphore import Semaphore  # noqa: PLC0415  (only Swift's process has it loaded)

    locks: dict[str, Semaphore] = {}
    users: Counter[str] = Counter()

    def wrap(app: App) -> App:
        def serve(environ: Environ, start_response: Any) -> Iterable[bytes]:
            if environ["REQUEST_METHOD"] != "PUT" or "HTTP_IF_NONE_MATCH" not in environ:
                return app(environ, start_response)
            path = environ["PATH_INFO"]
            users[path] += 1
            try:
                with locks.setdefault(path, Semaphore(1)):
                    return [b"".join(app(environ, start_response))]  # written when the reply is read
            finally:
                users[path] -= 1
                if not users[path]:
                    del users[path], locks[path]

        return serve

    return wrap
