"""Agent programs, and the longest results that they show whole.

A program cuts the middle of a longer result, or writes it to a file. The limits here are below the programs'
own, so a guard shortens the result first, and the rest can still be read.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from overspill.text.limits import UNLIMITED, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

_MIN_CHARS_PER_TOKEN: Final = 2
"""Nearly every text has more characters in a token."""


class Host(NamedTuple):
    """A program: the longest result that it shows whole, and what its MCP client calls itself.

    `client_names` are the beginnings of `clientInfo.name`, in lower case, with "-" for a space.
    """

    limits: Limits
    client_names: tuple[str, ...]

    @property
    def answer_chars(self) -> int:
        """Return the characters that it certainly shows of a reading tool's answer or of a notice."""
        return fitting_chars(self.limits)


def fitting_chars(limits: Limits) -> int:
    """Return the longest length of an ASCII text within the limits in bytes, characters and tokens of 2."""
    by_tokens = UNLIMITED if limits.max_tokens is None else limits.max_tokens * _MIN_CHARS_PER_TOKEN
    return min(limits.max_bytes, limits.max_chars or UNLIMITED, by_tokens)


HOSTS: Final[Mapping[str, Host]] = MappingProxyType(
    {
        "claude-code": Host(Limits(UNLIMITED, max_chars=50_000, max_tokens=20_000), ("claude-code",)),
        "cline": Host(Limits(UNLIMITED, max_chars=8_000), ("cline",)),
        "codex": Host(Limits(36_000), ("codex",)),
        "copilot-cli": Host(Limits(20_000), ("github-copilot",)),
        "gemini-cli": Host(Limits(UNLIMITED, max_chars=40_000), ("gemini-cli",)),
        "opencode": Host(Limits(50_000, 2_000), ("opencode",)),
        "qwen-code": Host(Limits(UNLIMITED, 1_000, max_chars=25_000), ("qwen-cli", "qwen-code")),
        "vscode": Host(Limits(8_000), ("visual-studio-code",)),
    }
)
"""By name; client/docs/hosts.md says where each number is from."""


def host_named(name: str) -> Host:
    """Return a program of `HOSTS`. Raises `ValueError` for any other name."""
    if name not in HOSTS:
        raise ValueError(f"there is no host {name!r}; there are {', '.join(HOSTS)}")
    return HOSTS[name]


def host_of_client(client_name: str) -> str | None:
    """Return the program whose MCP client has this `clientInfo.name`, or None if it is not known."""
    written = client_name.lower().replace(" ", "-")
    return next((name for name, host in HOSTS.items() if written.startswith(host.client_names)), None)
