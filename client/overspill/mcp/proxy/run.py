"""Runs the proxy, from its options to its exit code."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from overspill.guard.guard import Guard
from overspill.mcp.proxy import child
from overspill.mcp.proxy.relay import Choices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from overspill.guard.policy import Policy
    from overspill.transfer.sync import SyncClient


def run(
    client: SyncClient,
    policy: Policy,
    server: Sequence[str] | str,
    *,
    headers: Mapping[str, str],
    whole: Sequence[str],
    drops_schemas: bool,
) -> int:
    """Run the proxy before a server: the words of a command, or a URL. Return the exit code.

    `headers` go with every request to a URL.
    Raises `ProgramNotStarted` and `streams.NoStreams`.
    """
    choices = Choices(frozenset(whole), drops_schemas)
    with client, Guard(client, policy) as guard:
        if not isinstance(server, str):
            return asyncio.run(child.run(server, guard, choices))
        from overspill.mcp.proxy import remote  # noqa: PLC0415  (the SDK, which a command does not need)

        return asyncio.run(remote.run(server, guard, choices, headers))
