"""What a wrapped tool says that it returns: what stands in for its result has to be that too.

Servers check results against schemas that they made from a tool's annotations, and refuse what differs.
"""

from __future__ import annotations

import inspect
import sys
import typing
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def keep_return_type(tool: Callable[..., Any], result: Any, value: Any) -> Any:
    """Return `value`, which stands in for `result`; the result where the tool's annotation forbids it."""
    if value is result or type(value) is str:
        return value
    try:
        is_valid = _check(tool if inspect.isroutine(tool) else type(tool).__call__)
    except Exception:  # noqa: BLE001  (pydantic or a name is not there, or a type that pydantic does not know)
        return value
    return value if is_valid(value) else result


@lru_cache(maxsize=1_000)
def _check(tool: Callable[..., Any]) -> Callable[[Any], bool]:
    """Return what tells whether a value is of the tool's return type.

    Raises anything where that is not known now. It may be known at the next call: modules are imported and
    names defined meanwhile, so only an answer is remembered.
    """
    pydantic: Any = sys.modules["pydantic"]
    annotation = typing.get_type_hints(tool, include_extras=True).get("return", Any)
    adapter = pydantic.TypeAdapter(annotation)

    def is_valid(value: Any) -> bool:
        try:
            adapter.validate_python(value)
        except Exception:  # noqa: BLE001  (pydantic's own error, or a validator's)
            return False
        return True

    return is_valid
