"""The outputs that never spill: answers of the tools that read captures, and those the host vouches for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from overspill.guard.policy_defaults import ANSWER_CHARS, READING_TOOLS
from overspill.text.limits import Limits
from overspill.text.measure import MAX_BYTES_PER_CHARACTER

if TYPE_CHECKING:
    from overspill.guard.policy import Policy
    from overspill.shapes.shape import Shape

_ANSWER: Final = Limits(ANSWER_CHARS * MAX_BYTES_PER_CHARACTER, max_chars=ANSWER_CHARS)


def is_exempt(policy: Policy, tool: str, shape: Shape) -> bool:
    """Return whether an output never spills.

    Any tool can have the name of one that reads captures. So the name exempts an output only if the output is
    as short as their answers are.
    """
    return tool in policy.exempt and (tool not in READING_TOOLS or not shape.exceeds(_ANSWER))


def policy_for_own_tool(policy: Policy, tool: str) -> Policy:
    """Return the policy for a tool that is known to be one of ours: its answers never spill."""
    return policy if tool in policy.exempt else replace(policy, exempt=policy.exempt | {tool})


def policy_for_foreign_tool(policy: Policy) -> Policy:
    """Return the policy for a tool that is known to be none of ours, whatever its name is."""
    return replace(policy, exempt=policy.exempt - READING_TOOLS)


def bare_name(tool: str) -> str:
    """Return a tool's name without its MCP server: `inspect_output` of `mcp__logs__inspect_output`.

    A proxy that found the name taken put `overspill_` before it.
    """
    return tool.rpartition("__")[2].removeprefix("overspill_")
