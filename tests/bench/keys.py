"""The cost of checking a key that was looked up a moment ago."""

from __future__ import annotations

import asyncio
import math
import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final, cast

from aiohttp.test_utils import make_mocked_request
from overspill_service.access import directory_of
from overspill_service.settings.settings import Settings
from overspill_service.tenants.directory import ALL_SCOPES, Principal
from overspill_service.tenants.keys import hash_key, new_key
from overspill_service.web.authentication import Authenticator, CachedKey

from tests.bench import measuring, table
from tests.bench.table import Goal, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from aiohttp import web

    from tests.bench.scale import Scale
    from tests.bench.servers import Servers

SECRETS: Final = {"one secret": ("now",), "also a former secret, whose key it is": ("now", "before")}


def measure(_: Servers, scale: Scale) -> Iterator[Row]:
    """Yield the rows of the table."""
    for what, secrets in SECRETS.items():
        seconds = median(_seconds(secrets, scale.pick(20_000, 200)) for _ in range(scale.rounds))
        yield Row(f"CPU of a warm key check, {what}", seconds, Goal(20e-6), table.microseconds)


def _seconds(secrets: Sequence[str], number: int) -> float:
    """Return the CPU seconds of one check, of `number` in a row."""
    key = new_key()
    authenticator = _warm(key, secrets)
    request = make_mocked_request("GET", "/v1/usage", headers={"Authorization": f"Bearer {key}"})
    took = measuring.cost(partial(asyncio.run, _check(authenticator, request, number)), measuring.own)
    return took.cpu / number


async def _check(authenticator: Authenticator, request: web.Request, number: int) -> None:
    for _ in range(number):
        await authenticator.principal(request, "127.0.0.1")


def _warm(key: str, secrets: Sequence[str]) -> Authenticator:
    """Return what checks keys. It knows this one, and asks nobody else."""
    directory, nobody = directory_of(Settings()), cast("Any", None)
    found = Authenticator(
        directory, nobody, nobody, nobody, nobody, nobody, clock=time.time, secrets=list(secrets)
    )
    key_hash = hash_key(key, secrets[-1])
    principal = Principal(tenant=directory.tenant("a"), scopes=ALL_SCOPES, key_hash=key_hash)
    found._cache[key_hash] = CachedKey(math.inf, None, principal)
    return found
