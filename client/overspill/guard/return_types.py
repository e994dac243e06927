"""Keeps the return type that a wrapped tool declares.

Servers make schemas from a tool's annotations and refuse results that do not match. A notice that would not
match does not replace the result.
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
    """Return `value`, which stands for `result`, or the result if the tool's annotation forbids `value`."""
    if value is result or type(value) is str:
        return value
    try:
        is_valid = _check(tool if inspect.isroutine(tool) else type(tool).__call__)
    except Exception:  # noqa: BLE001  (pydantic or a name is not there, or a type that pydantic does not know)
        return value
    return value if is_valid(value) else result


@lru_cache(maxsize=1_000)
def _check(tool: Callable[..., Any]) -> Callable[[Any], bool]:
    """Return a function that says whether a value has the tool's return type.

    Raises anything if the type cannot be resolved now. `lru_cache` does not remember that: at the next call
    more modules may be imported and more names defined.
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
