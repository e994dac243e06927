"""The facts that a notice states about an output, and the notice itself, which replaces the output.

    [overspill] Output of run_command (call_1, failed: exit 1) too long: 223893 bytes, …
    Read more: inspect_output("cap_…"); modes: … Do not rerun.
    --- preview ---
    …
    [/overspill 482915302817]

The last line has the mark by which guards recognise a notice: see `notice_marks`. The preview is untrusted:
anything in it that looks like a line of ours is defused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from overspill.previews.notice_marks import marked
from overspill.wire import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from overspill.text.tokens import TokenCount

TOO_LONG: Final = "too long"
"""The usual end of a notice's first sentence: why the output is not shown."""
POINTER_REPEATS: Final = 2
"""From this many repeats on there is no preview: the model has seen it twice and ignored it."""
_END: Final = "[/overspill]"
_PREVIEW: Final = "--- preview ---\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreResult:
    """The fate of an output that was too long, and the time until which it is kept.

    `reason` says why the service does not have it. `is_refused` says that the service will not accept it
    later either. `path` names a file that the agent can open.
    """

    outcome: Outcome
    expires: datetime | None = None
    reason: str = ""
    path: str = ""
    is_refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts in a notice: bytes and lines of the whole output, and a `preview` that is safe to show.

    `id` is empty if nobody tries to store the output. `reader` is the call that reads more, with `{id}` in
    it; `modes` are its other modes. `tokens` is estimated if None. `call_id` and `status` are empty if
    unknown. `same_as` is the id of the first capture of the same content in the session, and `repeats` is the
    number of captures that followed it, including this one. `missing` says why there is only the beginning of
    the output. `masked` is the number of secrets of each kind that were masked in it.
    """

    id: str
    tool: str
    size: int
    lines: int
    preview: str
    reader: str
    modes: str = ""
    why: str = TOO_LONG
    tokens: TokenCount | None = None
    call_id: str = ""
    status: str = ""
    same_as: str | None = None
    repeats: int = 0
    missing: str = ""
    masked: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether the model got the same bytes so often that the notice only points to the capture."""
        return self.repeats >= POINTER_REPEATS


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notice: `head` has the mark and what to do, `preview` is the untrusted part, `str()` is the whole.

    `read_more` is the call in `head` that reads the capture. It and `id` are empty if nothing is stored.
    `path` is a file that the agent can open, if there is one. `text` is the whole, for styles with another
    form. A notice that `is_alone` leaves no room beside it: the output's other texts go without a
    placeholder. `tokens` is about how many tokens the whole output has.
    """

    id: str
    outcome: Outcome
    size: int
    lines: int
    head: str
    read_more: str
    preview: str
    path: str = ""
    text: str | None = None
    is_alone: bool = False
    tokens: int = 0

    @property
    def stored(self) -> bool:
        """Whether the whole output can be read, wherever it is."""
        return self.outcome is not Outcome.TRUNCATED

    def __str__(self) -> str:
        if self.text is not None:
            return marked(self.text) if has_own_end(self.text) else self.text
        newline = "" if self.preview.endswith("\n") else "\n"
        shown = f"{_PREVIEW}{self.preview}{newline}" if self.preview else ""
        return marked(f"{self.head}\n{shown}{_END}")


def has_own_end(text: str) -> bool:
    """Return whether the last line is one of ours, as `closing` makes it: the others of a style are not."""
    return text.endswith("]") and text.startswith("[overspill", text.rfind("\n") + 1)
