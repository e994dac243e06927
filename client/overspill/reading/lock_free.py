"""A property that is computed once for each object, without a lock.

`functools.cached_property` of Python 3.11 holds one lock for all objects of a class while it computes a
value: a slow one stops the others, and a child forked meanwhile waits without end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  (it stands where the one of functools would)
    """An attribute that is computed when it is first asked for.

    Threads that ask at the same time may each compute it. All get the value that was kept first.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        return vars(instance).setdefault(self._name, self._compute(instance))
