"""Objects in an S3 bucket: `s3://bucket/prefix?endpoint=http://…&region=…&addressing=path`.

With `&sse=AES256`, or `&sse=aws:kms&sse_kms_key_id=…`, every put asks the store to encrypt. Puts fail until
the store has confirmed the encryption of an object, so that a store that encrypts nothing is noticed.

Puts, reads, single deletes and pings use aiohttp (`http`), signed with the credentials of the AWS chain.
Everything else uses boto3 in threads (`bucket`). Payloads are signed, so the store verifies what it received,
over http as over https.
"""

from __future__ import annotations

import itertools
import math
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct
from overspill.wire import is_loopback

from overspill_service.errors import CaptureDamaged, ServiceError, StoreUnavailable
from overspill_service.errors.checks import CheckResult, run_probe
from overspill_service.objects.checks import check_operations, probe_key
from overspill_service.objects.keys import check_key, check_prefix, is_key, owner_of
from overspill_service.objects.s3.bucket import Bucket
from overspill_service.objects.s3.failures import NOT_ENCRYPTED, failure, says_absent
from overspill_service.objects.s3.http import HttpClient, PutBody, Request
from overspill_service.objects.s3.location import SSE_HEADER, Location
from overspill_service.objects.s3.replies import (
    clock_skew,
    date_of,
    is_asked_for,
    is_no_page,
    is_of_copy,
    is_of_object,
    is_of_removal,
)
from overspill_service.objects.s3.retry import Retry
from overspill_service.objects.s3.signing import Signer
from overspill_service.objects.s3.trust import Trust
from overspill_service.resources.tasks import fan_out
from overspill_service.store_format.object_keys import PROBES, is_service_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from overspill_service.objects import StoredObject
    from overspill_service.objects.s3.http import Reply

__all__ = ["Location", "Probe", "S3Store"]

MAX_SINGLE_DELETES: Final = 4
"""Up to this many keys are deleted one by one: that is cheaper than boto3's multi-delete."""
CONCURRENT_DELETES: Final = 16
"""Keys that are deleted one by one at the same time."""
MAX_COPY_REPLY_BYTES: Final = 64 * 1024
PING_SECONDS: Final = 5
VERSIONING_SECONDS: Final = 300.0
"""Seconds for which the answer whether the bucket keeps versions is reused."""
MAX_SKEW_SECONDS: Final = 300
"""AWS refuses signatures that are 900 s off. A clock that is this far off deserves a warning."""
_CREATE_ONLY: Final = {"If-None-Match": "*"}


class Abilities(Struct, frozen=True):
    """The abilities of a store, and the seconds by which this machine's clock is ahead of the store's."""

    conditional_create: bool
    clock_skew_seconds: float


class S3Store:
    def __init__(
        self,
        location: Location,
        *,
        deadline: float = 60,
        concurrency: int = 64,
        page_size: int = 1000,
        require_tls: bool = False,
    ) -> None:
        """Blocks while it looks for credentials: make it at the start, not in a request.

        `deadline`: seconds for one operation with its retries; `concurrency`: requests at once; `page_size`:
        keys per request of a listing or a multi-delete, at most 1000. Raises `ValueError` if `require_tls`
        is not met, or if the AWS configuration or its file of authorities cannot be used.
        """
        self._location, self._encryption = location, location.write_headers
        self._bucket = Bucket(location, deadline=deadline, page_size=page_size)
        self.base = location.base(self._bucket.endpoint)
        if require_tls and not _is_safe(self.base):
            self._bucket.close()
            raise ValueError(f"{self.base} is reached without TLS, and require_tls is set: use https://")
        trust = Trust(self._bucket.ca_bundle) if self.base[:5] == "https" else None
        self._page_size = page_size
        self._versions: tuple[bool | None, float] = None, -math.inf
        """Whether the bucket keeps versions, and until when that is trusted."""
        self._http = HttpClient(
            Signer(self._bucket.credentials, self._bucket.region), concurrency=concurrency, trust=trust
        )
        self._retry = Retry(deadline=deadline)
        self._ping_retry = Retry(deadline=min(PING_SECONDS, deadline), attempts=2)
        self._condition: Mapping[str, str] = _CREATE_ONLY
        self._is_encryption_proved = location.sse is None

    async def put(self, key: str, pieces: Sequence[bytes]) -> bool:
        check_key(key)
        body = await PutBody.of(pieces)
        reply = await self._put(key, body, self._condition)
        # A store without conditional writes. Nothing depends on them: each attempt has its own keys.
        if reply.status == HTTPStatus.NOT_IMPLEMENTED and self._condition:
            reply = await self._put(key, body, {})
            self._condition = {} if reply.is_success else self._condition
        # 412: the object exists, from an earlier attempt of this put or from others.
        if not reply.is_success and reply.status != HTTPStatus.PRECONDITION_FAILED:
            raise self._refusal(reply)
        await self._require_encryption(key, reply)
        return reply.is_success

    async def read(self, key: str, start: int, length: int) -> bytes:
        check_key(key)
        max_size = length if start >= 0 else -start
        if not max_size:
            return b""
        span = f"bytes={start}-{start + length - 1}" if start >= 0 else f"bytes={start}"
        request = Request(
            "GET", self._url(key), {"Range": span}, limit=max_size, owner=owner_of(key), is_done=is_of_object
        )
        reply = await self._http.send(request, self._retry)
        if says_absent(reply.status, reply.code):
            raise KeyError(key)
        if reply.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start < 0:  # an empty object
            return b""
        return self._range(reply, start, max_size)

    async def copy(self, key: str, new_key: str) -> None:
        """Copy with one request. It has no condition: stores that know one for puts may not know it here."""
        check_key(key)
        check_key(new_key)
        source = {"x-amz-copy-source": f"/{self._location.bucket}/{self._location.prefix}{key}"}
        request = Request(
            "PUT",
            self._url(new_key),
            source | self._encryption,
            limit=MAX_COPY_REPLY_BYTES,
            owner=owner_of(new_key),
            is_done=is_of_copy,
        )
        reply = await self._http.send(request, self._retry)
        if says_absent(reply.status, reply.code):
            raise KeyError(key)
        if not reply.is_success:
            raise self._refusal(reply)
        await self._require_encryption(new_key, reply)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        check_prefix(prefix)
        page, token = await self._bucket.page(prefix, None)
        while True:
            for stored in page:
                if is_key(stored.key):
                    yield stored
            if token is None:
                return
            page, token = await self._bucket.page(prefix, token)

    async def foreign(self) -> AsyncIterator[str]:
        """Yield every name under the prefix that is not a key of the service, without the prefix."""
        token: str | None = None
        while True:
            page, token = await self._bucket.page("", token)
            for stored in page:
                if not is_service_key(stored.key):
                    yield stored.key
            if token is None:
                return

    async def delete(self, keys: Iterable[str]) -> None:
        remaining = iter(keys)
        while batch := [*itertools.islice(remaining, self._page_size)]:
            for key in batch:
                check_key(key)
            rest = batch if len(batch) <= MAX_SINGLE_DELETES else await self._bucket.delete(batch)
            await fan_out(self._delete, rest, concurrency=CONCURRENT_DELETES)

    async def make_room(self) -> None:
        """Do nothing: the store shares no disk with a catalog."""

    async def sweep_temporary(self, age: float) -> int:  # noqa: ARG002  (the store keeps no half of a put)
        return 0

    async def keeps_versions(self) -> bool | None:
        """Return whether the bucket is or was versioned, as it was a few minutes ago at most."""
        is_versioned, until = self._versions
        if until <= time.monotonic():
            is_versioned = await self._bucket.is_versioned()
            self._versions = is_versioned, time.monotonic() + VERSIONING_SECONDS
        return is_versioned

    async def now(self) -> float | None:
        """Return the `Date` of an answer of any status, in whole seconds. None if there is none."""
        reply = await self._http.send(Request("HEAD", f"{self.base}/"), self._ping_retry)
        return date_of(reply)

    async def ping(self) -> None:
        reply = await self._http.send(Request("HEAD", f"{self.base}/", is_done=is_no_page), self._ping_retry)
        if not reply.is_success:
            raise self._refusal(reply)

    async def close(self) -> None:
        await self._http.close()
        self._bucket.close()

    async def create_bucket(self) -> None:
        """Create the bucket if it is missing. This is for the set-up, not for serving."""
        await self._bucket.create()

    async def probe(self) -> Abilities:
        """Find out the store's abilities by writing and deleting a small object. Remember them."""
        key, body = probe_key(), await PutBody.of([b"probe"])
        replies = [await self._put(key, body, _CREATE_ONLY) for _ in range(2)]
        now = time.time()
        await self._delete(key)
        await self._require_encryption(key, replies[0])
        is_exclusive = replies[1].status == HTTPStatus.PRECONDITION_FAILED
        if not is_exclusive and not replies[1].is_success and replies[1].status != HTTPStatus.NOT_IMPLEMENTED:
            raise self._refusal(replies[1])
        self._condition = _CREATE_ONLY if is_exclusive else {}
        return Abilities(conditional_create=is_exclusive, clock_skew_seconds=clock_skew(replies[1], now))

    async def check(self) -> Sequence[CheckResult]:
        reached = await run_probe("bucket", self._describe)
        if not reached.ok:
            return [reached]
        return [reached, *await check_operations(self), *await self._check_abilities()]

    async def _check_abilities(self) -> Sequence[CheckResult]:
        try:
            probe = await self.probe()
        except ServiceError as error:
            return [CheckResult("conditional create", ok=False, detail=str(error))]
        create = "yes" if probe.conditional_create else "no; object keys are unique, nothing depends on it"
        skew = probe.clock_skew_seconds
        return [
            CheckResult("conditional create", ok=True, detail=create),
            CheckResult("clock", abs(skew) < MAX_SKEW_SECONDS, f"{skew:+.1f} s from the store's"),
        ]

    async def _describe(self) -> str:
        """List one page: a refused listing has an error code, a refused HEAD has none."""
        await self._bucket.page(PROBES, None)
        return f"{self.base} in {self._bucket.region}"

    def _url(self, key: str) -> str:
        return f"{self.base}/{self._location.prefix}{key}"

    async def _put(self, key: str, body: PutBody, condition: Mapping[str, str]) -> Reply:
        headers = {**condition, **self._encryption}
        request = Request("PUT", self._url(key), headers, body, owner=owner_of(key), is_done=is_of_object)
        return await self._http.send(request, self._retry)

    async def _require_encryption(self, key: str, reply: Reply) -> None:
        """Raise `StoreUnavailable` if the store does not encrypt as it was asked to. It is asked once.

        Some stores say of an object only later how they encrypt it.
        """
        if self._is_encryption_proved or not reply.is_success:
            return
        if reply.headers.get(SSE_HEADER) != self._location.sse:
            reply = await self._http.send(Request("HEAD", self._url(key)), self._retry)
        if reply.headers.get(SSE_HEADER) != self._location.sse:
            raise StoreUnavailable(NOT_ENCRYPTED.format(sse=self._location.sse))
        self._is_encryption_proved = True

    async def _delete(self, key: str) -> None:
        request = Request("DELETE", self._url(key), owner=owner_of(key), is_done=is_of_removal)
        reply = await self._http.send(request, self._retry)
        if not reply.is_success and not says_absent(reply.status, reply.code):
            raise self._refusal(reply)

    def _range(self, reply: Reply, start: int, max_size: int) -> bytes:
        """Return the body if it is the requested range."""
        is_short = start >= 0 and len(reply.body) < max_size
        if reply.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or (reply.is_success and is_short):
            raise CaptureDamaged(f"a stored object ends before byte {start + max_size}")
        if not reply.is_success:
            raise self._refusal(reply)
        is_whole = reply.status == HTTPStatus.OK and start <= 0  # stores may answer 200 with a small object
        if len(reply.body) > max_size or not (is_whole or is_asked_for(reply, start)):
            raise StoreUnavailable("the object store does not answer range reads; it cannot be used")
        return reply.body

    def _refusal(self, reply: Reply) -> ServiceError:
        if reply.status == HTTPStatus.NOT_IMPLEMENTED and self._location.sse:
            return StoreUnavailable(NOT_ENCRYPTED.format(sse=self._location.sse))
        region = reply.headers.get("x-amz-bucket-region", "")
        return failure(reply.status, reply.code, bucket=self._location.bucket, region=region)


def _is_safe(url: str) -> bool:
    """Return whether nobody on the way can read requests to this URL."""
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")
