"""How many requests a tenant may send, and how many unknown keys an address may try.

Each process counts for itself. Once a second, replicas tell each other through the catalog how much is asked
of them by those who come near a limit. Then each grants its part of the limit, in proportion, so the limit
holds for all of them together, a second or two late.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from typing import TYPE_CHECKING, Final

from overspill_service.errors import RateExceeded, ServiceError
from overspill_service.resources.peers import network_of
from overspill_service.resources.token_buckets import TokenBucket, TokenBuckets

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog import Catalog
    from overspill_service.tenants.directory import Tenant

BURST_SECONDS: Final = 2
"""After a quiet time, a tenant may send the requests of this many seconds at once."""
MAX_TENANTS: Final = 10_000
UNKNOWN_KEYS_RATE: Final = 1.0
UNKNOWN_KEYS_BURST: Final = 60
"""Keys that are not known, from one address: each costs a question to the catalog."""
MAX_ADDRESSES: Final = 10_000
EXCHANGE_SECONDS: Final = 1.0
KEEP_SECONDS: Final = 3.0
"""How long others count on what a replica has told."""
NEAR: Final = 0.1
"""The part of a limit from which on replicas tell each other."""
LEAST_SHARE: Final = 0.05
"""What a replica grants in any case: more may be asked of it in the next moment."""
MOST_EXCHANGED: Final = 200
"""Names that are told in one round, at most: those of whom most is asked."""

log = logging.getLogger(__name__)


class RequestRates:
    """Belongs to one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._holder = clock, secrets.token_hex(8)
        self._tenants: dict[int, TokenBuckets] = {}
        """The buckets of tenants with the same limit."""
        self._unknown_keys = TokenBuckets(UNKNOWN_KEYS_RATE, UNKNOWN_KEYS_BURST, clock, most=MAX_ADDRESSES)
        self._used: dict[str, TokenBucket] = {}
        """Buckets that were asked since the last exchange, by the names that replicas have for them."""
        self._divided: dict[str, TokenBucket] = {}
        """Buckets of which only a part may be used here."""
        self._exchanged_at = clock()

    def count(self, tenant: Tenant) -> None:
        """Count a request of the tenant. Raises `RateExceeded` if it has sent too many."""
        rate = tenant.limits.max_request_rate
        if not rate:
            return
        buckets = self._tenants.get(rate)
        if buckets is None:
            buckets = TokenBuckets(rate, rate * BURST_SECONDS, self._clock, most=MAX_TENANTS)
            self._tenants[rate] = buckets
        self._used[tenant.name] = bucket = buckets.of(tenant.name)
        if seconds := bucket.take():
            raise RateExceeded(
                f"a tenant may send {rate} requests a second (max_request_rate)", rate, seconds
            )

    def require_patience(self, address: str) -> TokenBucket:
        """Return the bucket of an address that tries a key. Take a token from it if the key is unknown.

        With IPv6 a machine may have a whole network of addresses. Raises `RateExceeded` after too many
        unknown keys.
        """
        network = network_of(address)
        self._used[f"address {network}"] = bucket = self._unknown_keys.of(network)
        if seconds := bucket.wait():
            raise RateExceeded(
                "too many unknown keys and tokens came from your address", UNKNOWN_KEYS_BURST, seconds
            )
        return bucket

    async def run(self, catalog: Catalog) -> None:
        """Exchange with other replicas once a second, until cancelled."""
        while True:
            await asyncio.sleep(EXCHANGE_SECONDS)
            try:
                await self.exchange_once(catalog)
            except ServiceError as error:  # until then the shares stay as they are
                log.info("request rates are exchanged later: %s", error)

    async def exchange_once(self, catalog: Catalog) -> None:
        """Tell what is asked here, and grant a share of each limit. Raises `CatalogUnavailable`."""
        asked = self._busy_buckets()
        for name in self._divided.keys() - asked.keys():  # hardly anything is asked of it any more
            self._divided.pop(name).set_share(1.0)
        told = (
            catalog.exchange(name, self._holder, rate, keep=KEEP_SECONDS) for name, (_, rate) in asked.items()
        )
        others = await asyncio.gather(*told)
        for (name, (bucket, rate)), elsewhere in zip(asked.items(), others, strict=True):
            bucket.set_share(share_of(bucket.rate, rate, elsewhere))
            self._divided[name] = bucket

    def _busy_buckets(self) -> dict[str, tuple[TokenBucket, float]]:
        """Return of whom much was asked since the last time, and how much a second."""
        now, used = self._clock(), self._used
        seconds = max(now - self._exchanged_at, EXCHANGE_SECONDS / 2)
        self._exchanged_at, self._used = now, {}
        rates = {name: (bucket, bucket.asked / seconds) for name, bucket in used.items()}
        for bucket in used.values():
            bucket.asked = 0
        near = [(name, found) for name, found in rates.items() if found[1] >= NEAR * found[0].rate]
        near.sort(key=lambda each: -each[1][1])
        return dict(near[:MOST_EXCHANGED])


def share_of(limit: float, here: float, elsewhere: float) -> float:
    """Return the part of a limit that may be granted here, by what is asked here and elsewhere."""
    rest = limit - elsewhere
    in_proportion = limit * here / (here + elsewhere)
    return min(1.0, max(LEAST_SHARE, rest / limit, in_proportion / limit))
