"""A holdout: the settings of an experiment that treats a random share of sessions in another way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from overspill.guard import number_checks
from overspill.guard.policy import Policy
from overspill.text.limits import UNLIMITED, Limits
from overspill.wire import EXPERIMENT_NAME, Arm, Cohort

if TYPE_CHECKING:
    from collections.abc import Mapping

KEEP_BYTES: Final = 200_000
MAX_KEPT_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdout:
    """An experiment that holds out the share `share` of all sessions, to compare them with the others.

        Guard(client, holdout=Holdout(name="whole", share=0.05))                      # outputs stay whole
        Guard(client, holdout=Holdout(name="tails", share=0.5, policy=Policy(strategy="TAIL")))

    Outputs of held-out sessions follow `policy`. Without one they stay whole up to `keep_bytes` bytes, and
    longer ones spill as usual. A session's arm follows from its name and that of the experiment alone, so it
    is the same for all guards, machines and sub-agents. An output without a session is in neither arm.

    Begin another experiment under another name. Raises `ValueError` for a name that has other characters than
    letters, digits, `-` and `_`, or more than 64; for a share that is not between 0 and 1; for a bound
    of more than 8 MiB. Raises `TypeError` for a policy of another type.
    """

    name: str
    share: float = 0.05
    policy: Policy | None = None
    keep_bytes: int = KEEP_BYTES

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or re.fullmatch(EXPERIMENT_NAME, self.name) is None:
            raise ValueError(f"name must have 1 to 64 letters, digits, '-' and '_', not {self.name!r}")
        number_checks.share("share", self.share)
        if self.share == 1:
            raise ValueError("share must be less than 1: nothing would be left to compare with")
        number_checks.whole("keep_bytes", self.keep_bytes)
        if self.keep_bytes > MAX_KEPT_BYTES:
            raise ValueError(f"keep_bytes must be at most {MAX_KEPT_BYTES}, not {self.keep_bytes}")
        if not (self.policy is None or isinstance(self.policy, Policy)):
            raise TypeError(f"policy must be a Policy, not {self.policy!r}")

    def cohort(self, session: str) -> Cohort | None:
        """Return the arm and the group of a session; None without a session."""
        return Cohort.of(self.name, session, self.share) if session else None

    def arm(self, session: str) -> Arm | None:
        """Return the arm of a session, for the agent's own records; None without a session."""
        cohort = self.cohort(session)
        return None if cohort is None else cohort.arm

    def held_out(self, usual: Policy) -> Policy:
        """Return the policy of held-out sessions, beside the `usual` one."""
        if self.policy is not None:
            return self.policy
        limits: Mapping[str, Limits] = {tool: self._wider(usual.limits(tool)) for tool in usual.tools}
        widest = self._wider(usual.limits(""))
        return usual.uniform(widest).merged(limits)

    def _wider(self, limits: Limits) -> Limits:
        """Return the limit in bytes alone, `keep_bytes` unless a tool is allowed more as usual."""
        own = 0 if limits.max_bytes == UNLIMITED else limits.max_bytes
        return Limits(max(self.keep_bytes, own))
