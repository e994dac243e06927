"""How many requests a tenant may send, and how many unknown keys an address may try, in one process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from overspill_service.errors import RateExceeded
from overspill_service.resources.token_buckets import TokenBucket, TokenBuckets

if TYPE_CHECKING:
    from overspill_service.tenants.directory import Tenant

BURST_SECONDS: Final = 2
"""After a quiet time, a tenant may send the requests of this many seconds at once."""
MAX_TENANTS: Final = 10_000
UNKNOWN_KEYS_RATE: Final = 1.0
UNKNOWN_KEYS_BURST: Final = 60
"""Keys that are not known, from one address: each costs a question to the catalog."""
MAX_ADDRESSES: Final = 10_000


class RequestRates:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._tenants: dict[int, TokenBuckets] = {}
        """The buckets of tenants with the same limit."""
        self._unknown_keys = TokenBuckets(
            UNKNOWN_KEYS_RATE, UNKNOWN_KEYS_BURST, time.monotonic, most=MAX_ADDRESSES
        )

    def count(self, tenant: Tenant) -> None:
        """Count a request of the tenant. Raises `RateExceeded` if it has sent too many."""
        rate = tenant.limits.max_request_rate
        if not rate:
            return
        buckets = self._tenants.get(rate)
        if buckets is None:
            buckets = TokenBuckets(rate, rate * BURST_SECONDS, time.monotonic, most=MAX_TENANTS)
            self._tenants[rate] = buckets
        if seconds := buckets.of(tenant.name).take():
            raise RateExceeded(
                f"a tenant may send {rate} requests a second (max_request_rate)", rate, seconds
            )

    def require_patience(self, address: str) -> TokenBucket:
        """Return the bucket of an address that tries a key. Take a token from it if the key is unknown.

        Raises `RateExceeded` after too many unknown keys.
        """
        bucket = self._unknown_keys.of(address)
        if seconds := bucket.wait():
            raise RateExceeded(
                "too many unknown keys and tokens came from your address", UNKNOWN_KEYS_BURST, seconds
            )
        return bucket
