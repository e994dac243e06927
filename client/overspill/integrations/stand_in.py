"""Objects that stand for an object of a framework, to change what one of its methods does."""

from __future__ import annotations

import copy
from typing import Any, Self


class StandIn:
    """Stands for `inner`: what a subclass does not change is the object's own, its class too.

    Frameworks ask for the classes of their own objects, as OpenAI's SDK does of what invokes a tool before it
    approves a call. `owner` is for the subclass.
    """

    def __init__(self, inner: Any, owner: Any) -> None:
        vars(self).update(_inner=inner, _owner=owner)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._inner)

    def __copy__(self) -> Self:
        return type(self)(copy.copy(self._inner), self._owner)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return one for a copy of the object. Both have the owner: copies of an agent share their guard."""
        return type(self)(copy.deepcopy(self._inner, memo), self._owner)

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)
