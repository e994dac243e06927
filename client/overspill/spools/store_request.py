"""One output that is to be stored: its bytes, what is known of it, and how long its storing may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from overspill.live.ports import Description

if TYPE_CHECKING:
    from overspill.live.ports import Beginning
    from overspill.text.body import FileBody

__all__ = ["Origin", "StoreRequest"]


class Origin(NamedTuple):
    """The origin of an output: tool, call, session, and how the call ended if that is known.

    If `is_minted`, the id was made up for a call that has none, so no model knows it. `cohort` is the label
    of its session's cohort in an experiment, if there is one. `traceparent` is the span in which the output
    spilled, as W3C Trace Context writes it. `capture` is the handle of a live capture that has the output,
    or that has the beginning of it, which `live` completes.
    """

    tool: str
    call_id: str
    session: str
    status: str = ""
    is_minted: bool = False
    cohort: str = ""
    traceparent: str = ""
    capture: str = ""
    live: Beginning | None = None

    def description(self, id: str, **more: Any) -> Description:  # noqa: A002  (the field's own name)
        """Return what is stored with the output as capture `id`; `more` is what is known of it besides."""
        return Description(
            id=id,
            session=self.session,
            call_id=self.call_id,
            tool=self.tool,
            status=self.status,
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRequest:
    """The request to store an output of `size` bytes. The `description` is stored with it.

    `sha256` is the digest of the body, 32 bytes. The agent waits for the service for `wait` seconds, and for
    `deadline` seconds if nothing else can keep the output. `destinations` names the destinations, the first
    choice first.
    """

    description: Description
    sha256: bytes
    body: bytes | FileBody
    size: int
    lines: int
    origin: Origin
    wait: float
    deadline: float
    destinations: tuple[str, ...]

    @property
    def id(self) -> str:
        """The capture id."""
        return self.description.id
