"""The numbers and words of a policy that names none, and those of the profiles."""

from __future__ import annotations

from typing import Final

MAX_LINES: Final = 2_000
PREVIEW_BYTES: Final = 2_048
MIN_GAIN: Final = 0.33
"""The share of an output that its notice must save."""
INLINE_CHARS: Final = 5_000
INLINE_LINES: Final = 100
"""The limits of `Policy.file_based`."""
CONTEXT_SHARE: Final = 0.30
CONTEXT_TOKENS: Final = 128_000
"""The context window that a profile assumes, and the share of it that an output may have."""
MAX_STREAM_BYTES: Final = 1024**3
SLOWEST_UPLOAD: Final = 256 * 1024
"""Bytes a second. If nothing else can keep an output, its upload gets the time that this rate takes."""
CLAMP_BYTES: Final = 50 * 1024
"""The limit of `Policy.clamped`."""
CAPPED_BYTES: Final = 128 * 1024
"""The limit of `Policy.capped`."""
SHARE_FLOOR: Final = 2_000
SHARE_CEILING: Final = 400_000
"""The least and the most characters of `Policy.clamped_to_share`, whatever the context window."""
TOKENS_KEPT: Final = 0.8
"""The share of its limit that `Policy.token_limited` keeps of a longer output."""
LINE_SPARE: Final = 0.2
"""The share of its room that `Policy.clamped_to_share` gives up to end at the end of a line."""
READER: Final = 'inspect_output("{id}")'
MODES: Final = "modes: tail, range, grep, summary"
"""The other modes of `READER` that a notice names."""
READING_TOOLS: Final = frozenset({"inspect_output", "list_captures"})
"""The tools that read captures."""
ANSWER_CHARS: Final = 40_000
"""The most characters of their answers."""
