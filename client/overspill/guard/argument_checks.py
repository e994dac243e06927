"""Checks the types of a guard's arguments, so that a wrong one gets a clear error."""

from __future__ import annotations

from overspill.guard.holdout import Holdout
from overspill.guard.policy import Policy
from overspill.transfer.client import Client
from overspill.transfer.sync import SyncClient


def check_guard_arguments(client: object, policy: object, holdout: object) -> None:
    """Raise `TypeError` for arguments of a guard that have another type."""
    if not (client is None or isinstance(client, (Client, SyncClient, str))):
        type_name = type(client).__name__
        hint = "; give a policy by name: Guard(policy=…)" if isinstance(client, Policy) else ""
        raise TypeError(
            f"client must be a Client, a SyncClient or the URL of a service, not a {type_name}{hint}"
        )
    if not (policy is None or isinstance(policy, Policy)):
        raise TypeError(f"policy must be a Policy, not {policy!r}")
    if not (holdout is None or isinstance(holdout, Holdout)):
        raise TypeError(f"holdout must be a Holdout, not {holdout!r}")
