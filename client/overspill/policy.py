"""What spills and how much of it is shown: limits per tool, frozen once built. Knows no content."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from overspill import measure
from overspill.measure import Limits
from overspill.wire import DEFAULT_TTL

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES: Final = 50_000
MAX_LINES: Final = 2_000
PREVIEW_BYTES: Final = 2_048
INLINE_CHARS: Final = 5_000
INLINE_LINES: Final = 100
SLOWEST_UPLOAD: Final = 4 * 1024 * 1024
"""Bytes a second that an upload is given time for on top of `Policy.wait`."""

TOOL_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "grep_search": 20_000,
        "find_by_name": 20_000,
        "run_command": 50_000,
        "command_status": 50_000,
        "read_file": 100_000,
    }
)
READER: Final = (
    'inspect_output(capture="{id}", mode="grep", pattern="…"); other modes: head, tail, range, summary. '
    "In a shell: overspill grep {id} PATTERN"
)
INSPECTION_TOOLS: Final = frozenset(
    {"inspect_output", "list_outputs", "get_terminal_output", "overspill_inspect"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The guard's decisions, as values.

    `tools` maps a tool's name to its byte limit (or to whole `Limits`) and merges over `TOOL_BYTES`.
    Tools in `exempt` are never spilled: the ones that read captures, or the model could never see one.
    `preview_bytes` and `preview_lines` bound what a notice shows; `lost_preview_bytes` is what it shows
    where nothing could be stored. `ttl` in seconds, None leaves it to the service. `wait` is how many
    seconds a small output makes the agent wait for the service at most; see `deadline`. `reader` tells the
    model how to read more; `{id}` in it becomes the capture id.
    """

    max_bytes: int = MAX_BYTES
    max_lines: int = MAX_LINES
    max_chars: int | None = None
    tools: Mapping[str, int | Limits] = field(default_factory=dict)
    exempt: frozenset[str] = INSPECTION_TOOLS
    preview_bytes: int = PREVIEW_BYTES
    preview_lines: int = 100
    lost_preview_bytes: int = 4 * PREVIEW_BYTES
    ttl: int | None = None
    wait: float = 5.0
    reader: str = READER

    def __post_init__(self) -> None:
        names = ("max_bytes", "max_lines", "preview_bytes", "preview_lines", "lost_preview_bytes", "wait")
        numbers = {name: getattr(self, name) for name in names}
        numbers |= {tool: min(_numbers(limit)) for tool, limit in self.tools.items()}
        for name, number in numbers.items():
            if number < 0:
                raise ValueError(f"{name} must be 0 or more, not {number}")
        object.__setattr__(self, "tools", MappingProxyType({**TOOL_BYTES, **self.tools}))
        object.__setattr__(self, "exempt", frozenset(self.exempt))

    @classmethod
    def file_based(cls, *, inline_chars: int = INLINE_CHARS, inline_lines: int = INLINE_LINES) -> Policy:
        """File-based output management: the same limits for all tools, and a day of retention."""
        return cls(ttl=DEFAULT_TTL).limited(inline_chars, inline_lines)

    def limited(self, inline_chars: int, inline_lines: int) -> Policy:
        """The policy with these limits for every tool alike."""
        limits = Limits(inline_chars * measure.MAX_BYTES_PER_CHARACTER, inline_lines, inline_chars)
        return replace(
            self,
            max_bytes=limits.max_bytes,
            max_lines=limits.max_lines,
            max_chars=limits.max_chars,
            tools=dict.fromkeys(self.tools, limits),
        )

    def limits(self, tool: str) -> Limits:
        limit = self.tools.get(tool, self.max_bytes)
        return limit if isinstance(limit, Limits) else Limits(limit, self.max_lines, self.max_chars)

    def merged(self, tools: Mapping[str, int | Limits]) -> Policy:
        """The policy with `tools` merged over its table."""
        return replace(self, tools={**self.tools, **tools})

    def deadline(self, size: int) -> float:
        """Seconds within which `size` bytes must be stored: `wait`, and time for a slow link."""
        return self.wait + size / SLOWEST_UPLOAD


def _numbers(limit: int | Limits) -> list[int]:
    return [limit] if isinstance(limit, int) else [number for number in limit if number is not None]
