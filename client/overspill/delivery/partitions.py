"""Finds the part of a spool that belongs to a client."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from overspill.spools.spool import Spool

if TYPE_CHECKING:
    from overspill.spools.partition import Partition
    from overspill.transfer.client import Client
    from overspill.transfer.sync import SyncClient


def partition_for(client: Client | SyncClient | None, spool: Spool | bool = True) -> Partition | None:  # noqa: FBT001, FBT002
    """Return the part of the spool that belongs to a client's service and key, or None if there is no spool.

    `spool=True` is the spool that the environment names, if there is a client; False is none. Raises
    `TypeError` for anything else that is not a spool, and `ValueError` if a variable of the environment has a
    wrong value.
    """
    if not isinstance(spool, (Spool, bool, type(None))):
        hint = "; a folder is Spool(folder)" if isinstance(spool, (str, os.PathLike)) else ""
        raise TypeError(f"spool must be a Spool, a Workspace, True or False, not {spool!r}{hint}")
    usual = Spool.default() if spool is True and client is not None else None
    found = usual if isinstance(spool, bool) else spool
    if found is None:
        return None
    return (
        found.partition("", "") if client is None else found.partition(client.address.url, client.address.key)
    )
