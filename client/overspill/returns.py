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


def returned(tool: Callable[..., Any], result: Any, value: Any) -> Any:
    """Return `value`, which stands in for `result`; the result where the tool's annotation forbids it."""
    if value is result or type(value) is str:
        return value
    check = _check(tool if inspect.isroutine(tool) else type(tool).__call__)
    return value if check is None or check(value) else result


@lru_cache(maxsize=1_000)
def _check(tool: Callable[..., Any]) -> Callable[[Any], bool] | None:
    """Return what tells whether a value is of the tool's return type; None where that is not known."""
    pydantic: Any = sys.modules.get("pydantic")
    if pydantic is None:
        return None
    try:
        annotation = typing.get_type_hints(tool, include_extras=True).get("return", Any)
        adapter = pydantic.TypeAdapter(annotation)
    except Exception:  # noqa: BLE001  (names that are not there, or types that pydantic does not know)
        return None

    def is_valid(value: Any) -> bool:
        try:
            adapter.validate_python(value)
        except Exception:  # noqa: BLE001  (pydantic's own error, or a validator's)
            return False
        return True

    return is_valid
