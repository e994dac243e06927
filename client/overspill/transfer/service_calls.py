"""The calls about a tenant as a whole, and about the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overspill import wire
from overspill.errors import ProblemError, Unreachable
from overspill.transfer import request
from overspill.transfer.caller import Caller

if TYPE_CHECKING:
    from datetime import datetime


class ServiceCalls(Caller):
    """Reports and reads figures, sweeps, signs in to the web page, and asks whether the service works."""

    async def observe(self, observations: wire.Observations) -> wire.Accepted:
        """Report counts of tool outputs. A batch that is sent twice counts once."""
        prepared = request.Request(method="POST", path=wire.Path.OBSERVATIONS)
        return await self._call(request.with_json(prepared, observations), wire.Accepted)

    async def usage(self) -> wire.Usage:
        """Return what the tenant has stored, in captures and bytes, and its limits."""
        return await self._call(request.Request(method="GET", path=wire.Path.USAGE), wire.Usage)

    async def stats(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        step: int | None = None,
        total: bool = False,
    ) -> wire.Stats:
        """Return what happened to the tenant's outputs and captures over time: sums by tool and outcome.

        A row is of one bucket of `step` seconds: 60, 900 or 86400, kept for 3 hours, 7 and 400 days.
        Buckets that begin in `since <= start < until` are summed up: without `since` an hour before
        `until`, without `until` now, without `step` the shortest that is kept long enough. With `total`, a
        row is the sum of all buckets. Times without a zone are UTC. `figures` are counts, bytes or tokens
        by the name of the metric. Raises `InvalidParameter` for another step, `since` after `until`, or too
        many rows.
        """
        return await self._stats(wire.Path.STATS, since, until, step, total=total)

    async def fleet_stats(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        step: int | None = None,
        total: bool = False,
    ) -> wire.Stats:
        """Return the same sums for all tenants, by tenant and outcome: `tool` is empty in every row.

        The key needs the scope `fleet`; without it this raises `Forbidden`. Otherwise as `stats`.
        """
        return await self._stats(wire.Path.FLEET_STATS, since, until, step, total=total)

    async def _stats(
        self, path: str, since: datetime | None, until: datetime | None, step: int | None, *, total: bool
    ) -> wire.Stats:
        query = request.encode_query(wire.StatsQuery(since=since, until=until, step=step, total=total))
        return await self._call(request.Request(method="GET", path=path, query=query), wire.Stats)

    async def experiments(
        self, *, since: datetime | None = None, until: datetime | None = None
    ) -> wire.Experiments:
        """Return the sums of experiments: those of guards with a holdout, by arm and group of sessions.

        They count from `since`, by default for 30 days before `until`, which is now by default. Give both
        to `overspill.compare_arms`. Times without a zone are refused: `BadRequest`.
        """
        query = wire.ExperimentsQuery(since=since, until=until)
        prepared = request.Request(
            method="GET", path=wire.Path.EXPERIMENTS, query=request.encode_query(query)
        )
        return await self._call(prepared, wire.Experiments)

    async def sweep(self) -> wire.Removed:
        """Remove expired captures now, and say how many. It is never retried, so the count is exact."""
        prepared = request.Request(method="POST", path=wire.Path.SWEEP, repeatable=False)
        return await self._call(prepared, wire.Removed)

    async def page_link(self, ref: str = "") -> str:
        """Return a link that opens the web page, of a capture if one is given, signed in with this key.

        It works once, for two minutes. Whoever has it may do what the key may.
        """
        prepared = request.Request(method="POST", path=wire.Path.PAGE_CODE, repeatable=False)
        sign_in = await self._call(prepared, wire.SignInCode)
        view = f"/captures/{wire.encode_path(ref)}" if ref else "/"
        fragment = f"code={sign_in.code}&to={view}" if sign_in.code else view
        return f"{self.address.url}/#{fragment}"

    async def healthy(self) -> bool:
        """Return whether the service's process answers."""
        return await self._is_fine(wire.Path.HEALTHZ)

    async def ready(self) -> bool:
        """Return whether the service can take requests: its object store and catalog answer too."""
        return await self._is_fine(wire.Path.READYZ)

    async def _is_fine(self, path: str) -> bool:
        transport = await self._transport()
        try:
            await transport.call(request.Request(method="GET", path=path, repeatable=False))
        except (Unreachable, ProblemError):
            return False
        return True
