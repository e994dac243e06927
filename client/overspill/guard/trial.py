"""An experiment as it runs in one guard: puts outputs into cohorts, and counts them there.

What an agent does after an oversized output is followed in both arms in the same way, whether the output
spilled or not. Otherwise an arm that keeps outputs whole would seem to have no repetitions.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overspill.guard import call_context
from overspill.guard.bursts import Bursts
from overspill.guard.counts.cohorts import CohortTally, met_sessions
from overspill.guard.decisions import Duplicates
from overspill.shapes.examination import examine, is_too_long
from overspill.text import encoding
from overspill.text.body import FileBody
from overspill.wire import Arm, Cohort, Outcome

if TYPE_CHECKING:
    from overspill.guard.guarded import Guarded
    from overspill.guard.holdout import Holdout
    from overspill.guard.policy import Policy
    from overspill.shapes.shape import Shape
    from overspill.text.body import Body
    from overspill.text.limits import Limits

_STEP_CHARS: Final = 1024 * 1024


class Assignment(NamedTuple):
    """The cohort of an output's session. `policy` decides whether it spills, `spilling` what is shown then.

    `limits` are those of the usual policy: what exceeds them is oversized in either arm.
    """

    cohort: Cohort
    session: str
    policy: Policy
    spilling: Policy
    limits: Limits


class Trial:
    """An experiment in one guard, whose own policy is the `usual` one. For any number of threads."""

    def __init__(self, holdout: Holdout, usual: Policy) -> None:
        self.counts: CohortTally = CohortTally()
        self._holdout = holdout
        self._usual = usual
        self._held_out = holdout.held_out(usual)
        self._keeps_whole = holdout.policy is None
        self._bursts = Bursts()
        self._duplicates = Duplicates()

    def policy(self, session: str) -> Policy:
        """Return the policy for the outputs of a session."""
        return self._held_out if self._holdout.arm(session) is Arm.HOLDOUT else self._usual

    def assignment(self, session: str, tool: str) -> Assignment | None:
        """Return the cohort of an output and how to treat it.

        None if it has no session, if its tool is exempt, or if it does not go into a conversation.
        """
        cohort = self._cohort(session, tool)
        if cohort is None:
            return None
        limits = self._usual.limits(tool)
        if cohort.arm is Arm.USUAL:
            return Assignment(cohort, session, self._usual, self._usual, limits)
        spilling = self._usual if self._keeps_whole else self._held_out
        return Assignment(cohort, session, self._held_out, spilling, limits)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies that decide whether an output is short. It is short in both arms if all agree."""
        return (self._usual,) if self._keeps_whole else (self._usual, self._held_out)

    def count_short(self, session: str, tool: str, size: int) -> None:
        """Count an output of `size` bytes that is short in both arms."""
        cohort = self._cohort(session, tool)
        if cohort is not None:
            self._add(cohort, session, tool, bytes_before=size, bytes_after=size)

    def count(
        self, assigned: Assignment, call_id: str, tool: str, guarded: Guarded, oversized: bytes | None
    ) -> None:
        """Count an output by what the guard made of it. `oversized` is what the function below returns."""
        session = assigned.session
        is_identical = self._is_identical(session, oversized, call_id) if oversized else False
        self._add(
            assigned.cohort,
            session,
            tool,
            bytes_before=guarded.bytes_before,
            bytes_after=guarded.bytes_after,
            oversized=oversized is not None,
            spilled=guarded.outcome is not Outcome.INLINE,
            tokens_kept_out=guarded.tokens_kept_out,
            identical=is_identical,
        )
        if oversized is not None:
            self._bursts.add_notice(session, tool)

    def _cohort(self, session: str, tool: str) -> Cohort | None:
        if tool in self._usual.exempt or call_context.is_bypassed():
            return None
        return self._holdout.cohort(session)

    def _add(self, cohort: Cohort, session: str, tool: str, **amounts: int) -> None:
        is_new = met_sessions.is_new(cohort.experiment, session)
        bursts = self._bursts.add_output(session, tool)
        self.counts.add(cohort, outputs=1, sessions=is_new, bursts=bursts, **amounts)

    def _is_identical(self, session: str, sha256: bytes, call_id: str) -> bool:
        earlier = self._duplicates.earlier(session, sha256, call_id)
        self._duplicates.remember(session, sha256, call_id, None)
        return earlier is not None


def oversized(shape: Shape, limits: Limits) -> bytes | None:
    """Return the digest of an output that exceeds the limits; None for any other, and for a notice.

    It takes about 1 ms a megabyte: call it in a thread. Raises `OSError` if the output's file cannot be read.
    """
    return _digest(shape.body) if is_too_long(shape, limits) else None


def _digest(body: Body) -> bytes:
    if isinstance(body, FileBody):
        return body.sha256
    if isinstance(body, bytes):
        return hashlib.sha256(body).digest()
    digest = hashlib.sha256()
    for at in range(0, len(body), _STEP_CHARS):
        digest.update(encoding.encode(body[at : at + _STEP_CHARS]))
    return digest.digest()


class PassedChunks:
    """The text of a stream that passes, to find out at its end whether it was oversized.

    It is bounded: what passes whole is within the limits of its arm.
    """

    def __init__(self) -> None:
        self._chunks: list[str | bytes] = []

    def take(self, chunk: Any) -> None:
        """Remember a chunk if it is text or bytes."""
        if isinstance(chunk, str | bytes):
            self._chunks.append(chunk)

    def oversized(self, limits: Limits, size: int) -> bytes | None:
        """Return the digest of an oversized stream of `size` bytes, empty for a stream of records."""
        if self._chunks:
            shape = examine(encoding.joined(self._chunks))
            return None if shape is None else oversized(shape, limits)
        return b"" if size > limits.max_bytes else None
