"""The results of an operator's `check`: a probe a line, whether it worked, and what to know or mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from overspill_service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class CheckResult(Struct, frozen=True):
    """One probe: what was tried, whether it works, what to know or mend."""

    name: str
    ok: bool
    detail: str = ""


async def outcome(name: str, probe: Callable[[], Awaitable[str]]) -> CheckResult:
    """Run one probe, which returns a detail or raises a `ServiceError` that says what is wrong."""
    try:
        return CheckResult(name, ok=True, detail=await probe())
    except ServiceError as error:
        return CheckResult(name, ok=False, detail=str(error))
