"""The policy for guards that no code configures: those of hooks, proxies, gateways and adapters."""

from __future__ import annotations

import os

from overspill.guard.policy import Policy


def environment_policy() -> Policy:
    """Return the policy of the file that `OVERSPILL_POLICY` names, or the defaults if it is not set.

    Raises what `Policy.load` does.
    """
    path = os.environ.get("OVERSPILL_POLICY", "").strip()
    return Policy.load(path) if path else Policy()
