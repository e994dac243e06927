"""The numbers and words of a policy that names none, and those of the profiles."""

from __future__ import annotations

from typing import Final

MAX_LINES: Final = 2_000
PREVIEW_BYTES: Final = 2_048
LEAST_GAIN: Final = 0.33
INLINE_CHARS: Final = 5_000
INLINE_LINES: Final = 100
CONTEXT_SHARE: Final = 0.30
CONTEXT_TOKENS: Final = 128_000
MAX_STREAM_BYTES: Final = 1024**3
SLOWEST_UPLOAD: Final = 256 * 1024
"""Bytes a second. If nothing else can keep an output, its upload gets the time that this rate takes."""
CLAMP_BYTES: Final = 50 * 1024
SHARE_FLOOR: Final = 2_000
SHARE_CEILING: Final = 400_000
TOKENS_KEPT: Final = 0.8
LINE_SPARE: Final = 0.2
READER: Final = 'inspect_output("{id}")'
MODES: Final = "modes: tail, range, grep, summary"
READING_TOOLS: Final = frozenset({"inspect_output", "list_captures"})
"""The tools that read captures."""
ANSWER_CHARS: Final = 40_000
"""Characters that their answers have at most."""
