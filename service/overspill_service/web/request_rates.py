"""Limits the requests of a tenant, of each of its keys, and of an address without a key.

A key that is used alone may send all that its tenant may. While others are in use, it may send a part.

Each process counts for itself. Once a second, replicas exchange the counts of those who come near a limit, or
lately did. Then each replica grants its part of the limit, in proportion to what it is asked. So the limit
holds for all of them together, a second or two late. A replica that is no longer asked still hears of the
others, so nobody gets more by going from one to the next.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Final

from overspill.reading.latest import Latest

from overspill_service.errors import RateExceeded
from overspill_service.resources.peers import network_of
from overspill_service.resources.token_buckets import TokenBucket, TokenBuckets
from overspill_service.resources.turns import Turns
from overspill_service.tenants.directory import KEY_ID_LENGTH
from overspill_service.web.replicas import KEEP_SECONDS, MAX_TOLD, TELL_SECONDS, Replica

if TYPE_CHECKING:
    from collections.abc import Callable

    from overspill_service.catalog import Coordination
    from overspill_service.tenants.directory import Principal

BURST_SECONDS: Final = 2
"""After a quiet time, a tenant may send the requests of this many seconds at once."""
MAX_NAMES: Final = 10_000
"""Tenants, and keys, that are known at once."""
SEVERAL_SECONDS: Final = 10.0
"""How long a key counts as in use."""
ALL: Final = 100
"""Percent."""
OF_KEY: Final = " key "
"""The separator of a tenant and its key in the names of buckets."""
SCRAPES_RATE: Final = 2.0
SCRAPES_BURST: Final = 60
"""Requests for the metrics from one address: each costs milliseconds. Prometheus asks every 15 seconds."""
UNKNOWN_KEYS_RATE: Final = 1.0
UNKNOWN_KEYS_BURST: Final = 60
"""Unknown keys from one address: each costs a request to the catalog."""
STRANGERS_RATE: Final = 250.0
STRANGERS_BURST: Final = 1000
"""Requests from one address that no tenant has sent: pages, unknown paths, missing keys."""
STRANGERS_SECONDS: Final = 5.0
"""How long such a request waits for its turn, at most."""
MAX_ADDRESSES: Final = 10_000
NEAR: Final = 0.1
"""The part of a limit from which on replicas report to each other."""
NEAR_SECONDS: Final = 60.0
"""Seconds after that for which a replica still reports, and reads the reports of others."""
MIN_SHARE: Final = 0.05
"""The share that a replica grants in any case, because it may be asked for more in the next moment."""


class KeysInUse:
    """Notes whether several keys of one tenant are in use."""

    def __init__(self) -> None:
        self._last, self._at, self._until = "", -math.inf, -math.inf

    def note(self, key: str, now: float) -> bool:
        """Note a request with a key. Return whether another one was used lately."""
        if key != self._last:
            self._until = max(self._until, self._at + SEVERAL_SECONDS)
            self._last = key
        self._at = now
        return now < self._until

    def note_elsewhere(self, now: float) -> None:
        """Note that another replica is asked with another key."""
        self._until = max(self._until, now + KEEP_SECONDS)


class RequestRates:
    """Belongs to one event loop."""

    label = "requests"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._replica = clock, Replica()
        self._limited: dict[tuple[str, float], TokenBuckets] = {}
        """The buckets of tenants, and those of keys, with the same limit."""
        self._keys: Latest[str, KeysInUse] = Latest(MAX_NAMES)
        """The keys of tenants."""
        self._scrapes = TokenBuckets("scrapes", SCRAPES_RATE, SCRAPES_BURST, clock, max_keys=MAX_ADDRESSES)
        self._unknown_keys = TokenBuckets(
            "unknown-keys", UNKNOWN_KEYS_RATE, UNKNOWN_KEYS_BURST, clock, max_keys=MAX_ADDRESSES
        )
        self._strangers = Turns(
            STRANGERS_RATE, STRANGERS_BURST, STRANGERS_SECONDS, clock, max_keys=MAX_ADDRESSES
        )
        self._used: dict[str, TokenBucket] = {}
        """Buckets that were asked since the last exchange, by the names that replicas have for them."""
        self._near: dict[str, tuple[TokenBucket, float]] = {}
        """Buckets that came near their limit, and until when they count as such."""
        self._divided: dict[str, TokenBucket] = {}
        """Buckets of which only a part may be used here."""
        self._told_at = clock()

    def count(self, principal: Principal) -> TokenBucket | None:
        """Count a request. Return the bucket that has the least left, None without a limit.

        Raises `RateExceeded` if the tenant has sent too many, or its key while others are in use.
        """
        tenant, rate = principal.tenant, principal.tenant.limits.max_request_rate
        if not rate:
            return None
        key = self._count_key(principal, rate)
        bucket = self._bucket("tenant", tenant.name, rate)
        if seconds := bucket.take():
            raise RateExceeded(
                f"a tenant may send {rate} requests a second (max_request_rate)",
                rate,
                seconds,
                bucket.policy,
            )
        return bucket if key is None or bucket.left <= key.left else key

    def _count_key(self, principal: Principal, rate: int) -> TokenBucket | None:
        """Count a request of a key. Return its bucket if other keys of its tenant are in use.

        A request that is refused here does not count for the tenant, so the other keys may use that part.
        """
        tenant, share = principal.tenant.name, principal.tenant.limits.max_key_share
        key = principal.key_hash[:KEY_ID_LENGTH] or principal.subject
        if share >= ALL or not key:
            return None
        bucket = self._bucket("key", f"{tenant}{OF_KEY}{key}", rate * share / ALL)
        if not self._keys_of(tenant).note(key, self._clock()):
            bucket.requested += 1
            return None
        if seconds := bucket.take():
            raise RateExceeded(
                f"a key may send {bucket.rate:g} requests a second while others of its tenant are in use "
                "(max_key_share)",
                math.ceil(bucket.rate),
                seconds,
                bucket.policy,
            )
        return bucket

    def _bucket(self, kind: str, name: str, rate: float) -> TokenBucket:
        buckets = self._limited.get((kind, rate))
        if buckets is None:
            burst = max(1.0, rate * BURST_SECONDS)  # a small part of a small limit is less than a request
            buckets = TokenBuckets(kind, rate, burst, self._clock, max_keys=MAX_NAMES)
            self._limited[kind, rate] = buckets
        self._used[name] = bucket = buckets.of(name)
        return bucket

    def _keys_of(self, tenant: str) -> KeysInUse:
        keys = self._keys.get(tenant)
        if keys is None:
            keys = self._keys[tenant] = KeysInUse()
        return keys

    def count_scrape(self, address: str) -> None:
        """Count a request for the metrics. Raises `RateExceeded` if the address has sent too many."""
        bucket = self._scrapes.of(network_of(address))
        if seconds := bucket.take():
            raise RateExceeded(
                "your address asks for the metrics too often", SCRAPES_BURST, seconds, bucket.policy
            )

    async def wait_for_turn(self, address: str) -> None:
        """Wait for the turn of a request that no tenant has sent. Raises `RateExceeded` after a while."""
        seconds = self._strangers.take(network_of(address))
        if seconds != 0:
            await asyncio.sleep(STRANGERS_SECONDS if seconds is None else seconds)
        if seconds is None:
            raise RateExceeded(
                f"your address may send {STRANGERS_RATE:g} requests a second without a key",
                math.ceil(STRANGERS_RATE),
                math.ceil(STRANGERS_SECONDS),
                f'"no-key";q={STRANGERS_BURST};w={math.ceil(STRANGERS_BURST / STRANGERS_RATE)}',
            )

    def require_guesses_left(self, address: str) -> TokenBucket:
        """Return the bucket of an address that tries a key. The caller takes a token if the key is unknown.

        All addresses of an IPv6 network have one bucket: a machine may have a whole network. Raises
        `RateExceeded` after too many unknown keys.
        """
        network = network_of(address)
        self._used[f"address {network}"] = bucket = self._unknown_keys.of(network)
        if seconds := bucket.wait():
            raise RateExceeded(
                "too many unknown keys and tokens came from your address",
                UNKNOWN_KEYS_BURST,
                seconds,
                bucket.policy,
            )
        return bucket

    async def tell_once(self, catalog: Coordination) -> None:
        """Report the requests here, and grant a share of each limit. Raises `CatalogUnavailable`."""
        asked = self._busy_buckets()
        for name in self._divided.keys() - asked.keys():  # hardly anything is asked of it any more
            self._divided.pop(name).set_share(1.0)
        others = await self._replica.tell(catalog, {name: rate for name, (_, rate) in asked.items()})
        for name, (bucket, rate) in asked.items():
            bucket.set_share(share_of(bucket.rate, rate, others[name]))
            self._divided[name] = bucket
        self._note_keys_elsewhere(others)

    def _note_keys_elsewhere(self, others: dict[str, float]) -> None:
        """Note tenants that use other keys elsewhere: there the tenant's count is higher than the key's."""
        for name, elsewhere in others.items():
            tenant, of_key, _ = name.partition(OF_KEY)
            if of_key and others.get(tenant, 0.0) > 2 * elsewhere:
                self._keys_of(tenant).note_elsewhere(self._clock())

    def _busy_buckets(self) -> dict[str, tuple[TokenBucket, float]]:
        """Return the buckets that came near their limit lately, and their present requests a second."""
        now, used = self._clock(), self._used
        seconds = max(now - self._told_at, TELL_SECONDS / 2)
        self._told_at, self._used = now, {}
        rates = {name: bucket.requested / seconds for name, bucket in used.items()}
        for name, bucket in used.items():
            bucket.requested = 0
            until = now + NEAR_SECONDS if rates[name] >= NEAR * bucket.rate else self._until(name)
            self._near[name] = bucket, until
        near = [name for name in self._near if self._until(name) > now]
        near.sort(key=lambda name: -rates.get(name, 0.0))
        self._near = {name: self._near[name] for name in near[:MAX_TOLD]}
        return {name: (bucket, rates.get(name, 0.0)) for name, (bucket, _) in self._near.items()}

    def _until(self, name: str) -> float:
        return self._near[name][1] if name in self._near else -math.inf


def share_of(limit: float, here: float, elsewhere: float) -> float:
    """Return the part of a limit to grant here, by the requests here and elsewhere."""
    if not here:  # whoever has used up the limit elsewhere may come next; who moves counts twice for a moment
        return min(1.0, max(MIN_SHARE, 2 - elsewhere / limit))
    rest = limit - elsewhere
    in_proportion = limit * here / (here + elsewhere)
    return min(1.0, max(MIN_SHARE, rest / limit, in_proportion / limit))
