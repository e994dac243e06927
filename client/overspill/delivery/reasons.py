"""The reasons why an output could not be stored, in words for a notice."""

from __future__ import annotations

from overspill.errors import OverspillError, ProblemError
from overspill.execution.threads import is_lack_of_threads


def reason(error: BaseException) -> str:
    """Say what went wrong, for a notice: the service's own words, or the error's type and text."""
    if isinstance(error, ProblemError):
        return f"the service refused: {error}"
    if isinstance(error, OverspillError):
        return str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        return "this process has no memory left for it"
    if isinstance(error, RuntimeError) and is_lack_of_threads(error):
        return "this process can start no more threads"
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  (a tool's own exception, which cannot even say what it is)
        return type(error).__name__
