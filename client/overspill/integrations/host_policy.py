"""The policy of the environment, for an agent program whose own tools are guarded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overspill.guard.environment_policy import environment_policy
from overspill.guard.policy_defaults import MAX_LINES
from overspill.text.limits import UNLIMITED

if TYPE_CHECKING:
    from overspill.guard.policy import Policy

_FILE_READERS: Final = {
    "claude-code": "Read",
    "copilot-cli": "view",
    "gemini-cli": "read_file",
    "opencode": "read",
}
"""Tools that read a file page by page: 2,000 lines and some words about them make a page."""


def host_policy(program: str) -> Policy:
    """Return it with no limit above what the program shows.

    A page of a file may have any number of lines, unless the policy has a number of its own.
    """
    policy, tool = environment_policy(), _FILE_READERS[program]
    hosted = policy.for_host(program)
    if policy.limits(tool).max_lines != MAX_LINES:
        return hosted
    return hosted.merged({tool: hosted.limits(tool)._replace(max_lines=UNLIMITED)})
