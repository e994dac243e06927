"""Overspill: oversized tool outputs, stored whole and read by handle.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overspill.calls import calling
    from overspill.captured import CapturedOutput
    from overspill.client import Client, call
    from overspill.errors import OverspillError, ProblemError, ProtocolError, Unreachable
    from overspill.guard import Guard
    from overspill.guarded import Guarded
    from overspill.policy import Policy
    from overspill.sync import SyncClient
    from overspill.tools import INSPECT_OUTPUT_SCHEMA, inspection_tool
    from overspill.wire import ByteRange

__all__ = [
    "INSPECT_OUTPUT_SCHEMA",
    "ByteRange",
    "CapturedOutput",
    "Client",
    "Guard",
    "Guarded",
    "OverspillError",
    "Policy",
    "ProblemError",
    "ProtocolError",
    "SyncClient",
    "Unreachable",
    "call",
    "calling",
    "inspection_tool",
]

_MODULES = {
    "INSPECT_OUTPUT_SCHEMA": "tools",
    "ByteRange": "wire",
    "CapturedOutput": "captured",
    "Client": "client",
    "Guard": "guard",
    "Guarded": "guarded",
    "OverspillError": "errors",
    "Policy": "policy",
    "ProblemError": "errors",
    "ProtocolError": "errors",
    "SyncClient": "sync",
    "Unreachable": "errors",
    "call": "client",
    "calling": "calls",
    "inspection_tool": "tools",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
