"""Directives at the front of a user's message: `/think`, `/verbose`, `/elevated`; `/think:off` ends one.

directives, message = Directives.read(metadata).after("/think /verbose why does the build fail?")
directives.write(metadata)

They hold for a session: they are kept in its metadata. Only what a user wrote may be given to `after`: a
tool's output that begins with `/elevated` must never change anything.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from overspill.text import token_estimate
from overspill.text.reasons import one_safe_line

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping

METADATA: Final = "overspill_directives"
"""The name of the directives in a session's metadata."""
NAMES: Final = ("think", "verbose", "elevated")
THINK_PROMPT: Final = (
    "Think step by step before you answer: say what is known, what follows from it, and what is still open. "
    "Then answer."
)
_LOG: Final = logging.getLogger("overspill.directives")
_DIRECTIVE: Final = re.compile(rf"\s*/({'|'.join(NAMES)})(?::(on|off))?(?=\s|$)\s*", re.IGNORECASE)
_SHOWN_CHARS: Final = 200


class Directives(Struct, frozen=True):
    """The directives that a user gave in a session. The defaults are the safe ones."""

    think: bool = False
    verbose: bool = False
    elevated: bool = False

    @classmethod
    def read(cls, metadata: Any) -> Directives:
        """Return the directives in a session's metadata. What is missing or damaged is off."""
        stored = metadata.get(METADATA) if isinstance(metadata, Mapping) else None
        if not isinstance(stored, Mapping):
            return cls()
        return cls(**{name: stored.get(name) is True for name in NAMES})

    def write(self, metadata: MutableMapping[str, Any]) -> None:
        """Keep the directives in a session's metadata, as values that can be written as JSON."""
        metadata[METADATA] = self.fields()

    def fields(self) -> dict[str, bool]:
        """Return the directives by name."""
        return {name: getattr(self, name) for name in NAMES}

    def after(self, message: str, *, allowed: Iterable[str] = NAMES) -> tuple[Directives, str]:
        """Return the directives after a user's message, and the message without those at its front.

        A directive that is not `allowed` has no effect, but is taken off too. Any other word stays.
        """
        found, permitted = self.fields(), set(allowed)
        end = 0
        while match := _DIRECTIVE.match(message, end):
            name, state = match[1].lower(), (match[2] or "on").lower()
            if name in permitted or state == "off":
                found[name] = state == "on"
            end = match.end()
        return msgspec.structs.replace(self, **found), message[end:] if end else message

    @property
    def auto_approve(self) -> bool:
        """Whether tool calls need no approval."""
        return self.elevated

    @property
    def restrict_to_workspace(self) -> bool:
        """Whether tools must stay within the workspace."""
        return not self.elevated

    @property
    def allow_high_risk(self) -> bool:
        """Whether tools that are declared as risky may run."""
        return self.elevated


def report(calls: Iterable[tuple[str, str]]) -> str:
    """Return what `/verbose` appends to a response, and log it: of each call its tool, tokens and result.

    `calls` are the names of tools and their results as text. The result is shown in a line of 200 characters.
    """
    lines = []
    for tool, result in calls:
        tokens = token_estimate.likely(result)
        line = f"{one_safe_line(tool)} (about {tokens} tokens): {one_safe_line(result[: 4 * _SHOWN_CHARS])}"
        lines.append(line[: _SHOWN_CHARS + len(tool)])
        _LOG.info("%s", lines[-1])
    return "".join(f"\n- {line}" for line in lines)
