"""Overspill: oversized tool outputs, stored whole and read by handle.

    from overspill import Guard, SyncClient, inspection_tool

    client = SyncClient()                                  # the service that OVERSPILL_URL names
    guard = Guard(client)
    run_command = guard.wrap(run_command)                  # a long output becomes a notice with a handle
    inspect_output = inspection_tool(client)               # the tool with which the agent reads more

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overspill.advice.comparison import ExperimentReport, compare_arms
    from overspill.agent_tools.agent_tool import AgentTool
    from overspill.agent_tools.inspect_output import INSPECT_OUTPUT_SCHEMA, inspection_tool
    from overspill.agent_tools.reading_tools import reading_tools
    from overspill.agent_tools.source_tools import source_tools
    from overspill.agent_tools.system_prompt import system_prompt
    from overspill.agent_tools.terminal_output import terminal_tool
    from overspill.errors import OverspillError, ProblemError, ProtocolError, Unreachable
    from overspill.guard.band import Band
    from overspill.guard.call_context import calling
    from overspill.guard.guard import Guard
    from overspill.guard.guarded import Guarded
    from overspill.guard.holdout import Holdout
    from overspill.guard.policy import Policy
    from overspill.guard.turn import Turn
    from overspill.histories.history import clamp_messages, spill_messages, spill_messages_sync
    from overspill.histories.overflow import Overflow, is_overflow
    from overspill.histories.recovery import Recovered, recover, recover_sync
    from overspill.live.process import capture_process
    from overspill.previews.notice_forms import is_notice
    from overspill.shapes.captured import CapturedOutput
    from overspill.shapes.display import for_display
    from overspill.spools.spool import Spool
    from overspill.spools.workspace import Workspace
    from overspill.text.limits import Limits
    from overspill.text.lookalikes import defuse
    from overspill.transfer.client import Client, call
    from overspill.transfer.sync import SyncClient
    from overspill.wire import ByteRange, Outcome

    __version__: str

__all__ = [
    "INSPECT_OUTPUT_SCHEMA",
    "AgentTool",
    "Band",
    "ByteRange",
    "CapturedOutput",
    "Client",
    "ExperimentReport",
    "Guard",
    "Guarded",
    "Holdout",
    "Limits",
    "Outcome",
    "Overflow",
    "OverspillError",
    "Policy",
    "ProblemError",
    "ProtocolError",
    "Recovered",
    "Spool",
    "SyncClient",
    "Turn",
    "Unreachable",
    "Workspace",
    "__version__",
    "call",
    "calling",
    "capture_process",
    "clamp_messages",
    "compare_arms",
    "defuse",
    "for_display",
    "inspection_tool",
    "is_notice",
    "is_overflow",
    "reading_tools",
    "recover",
    "recover_sync",
    "source_tools",
    "spill_messages",
    "spill_messages_sync",
    "system_prompt",
    "terminal_tool",
]

_MODULES = {
    "INSPECT_OUTPUT_SCHEMA": "agent_tools.inspect_output",
    "AgentTool": "agent_tools.agent_tool",
    "Band": "guard.band",
    "ByteRange": "wire",
    "CapturedOutput": "shapes.captured",
    "Client": "transfer.client",
    "ExperimentReport": "advice.comparison",
    "Guard": "guard.guard",
    "Guarded": "guard.guarded",
    "Holdout": "guard.holdout",
    "Limits": "text.limits",
    "Outcome": "wire",
    "Overflow": "histories.overflow",
    "OverspillError": "errors",
    "Policy": "guard.policy",
    "ProblemError": "errors",
    "ProtocolError": "errors",
    "Recovered": "histories.recovery",
    "Spool": "spools.spool",
    "SyncClient": "transfer.sync",
    "Turn": "guard.turn",
    "Unreachable": "errors",
    "Workspace": "spools.workspace",
    "call": "transfer.client",
    "calling": "guard.call_context",
    "capture_process": "live.process",
    "clamp_messages": "histories.history",
    "compare_arms": "advice.comparison",
    "defuse": "text.lookalikes",
    "for_display": "shapes.display",
    "inspection_tool": "agent_tools.inspect_output",
    "is_notice": "previews.notice_forms",
    "is_overflow": "histories.overflow",
    "reading_tools": "agent_tools.reading_tools",
    "recover": "histories.recovery",
    "recover_sync": "histories.recovery",
    "source_tools": "agent_tools.source_tools",
    "spill_messages": "histories.history",
    "spill_messages_sync": "histories.history",
    "system_prompt": "agent_tools.system_prompt",
    "terminal_tool": "agent_tools.terminal_output",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module("importlib.metadata").version(__name__)
    elif name in _MODULES:
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
