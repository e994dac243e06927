"""Read from a tool's result how the call ended: an exit code, an error flag, a status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from overspill.shapes.carriers import is_error, is_success
from overspill.shapes.fields import get, text_field

_EXIT_CODES: Final = ("exit_code", "exitCode", "returncode", "return_code", "exit_status", "exitStatus")
_LARGEST: Final = 2**32


def status_of(result: Any) -> str:
    """Return `exit 3`, `error` or `success`; empty if the result does not say."""
    if isinstance(result, (str, bytes, bytearray, memoryview, list, tuple)) or result is None:
        return ""
    if isinstance(result, BaseException):
        return "error"
    for name in _EXIT_CODES:
        code = get(result, name)
        if type(code) is int and abs(code) < _LARGEST:
            return f"exit {code}"
    if is_error(result):
        return "error"
    return "success" if is_success(result) else _status(result)


def _status(result: Any) -> str:
    """Return the status `success` or `error`. Other words, as `active` in a row of data, are not a call's."""
    if not isinstance(result, Mapping) and not text_field(result, "tool_call_id"):
        return ""
    status = text_field(result, "status").lower()
    return status if status in {"success", "error"} else ""
