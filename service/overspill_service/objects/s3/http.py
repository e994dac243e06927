"""Signed requests over aiohttp, the hot path: with retries and bounded replies, without S3 semantics."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from overspill_service.objects.s3.connector import Connector
from overspill_service.objects.s3.credentials import may_refuse_credentials
from overspill_service.objects.s3.failures import NO_HOST, UNPROVED, is_transient, untrusted
from overspill_service.objects.s3.retry import TransientFailure
from overspill_service.resources.fair_places import FairPlaces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aiohttp.abc import AbstractStreamWriter
    from botocore.credentials import ReadOnlyCredentials
    from multidict import CIMultiDictProxy

    from overspill_service.objects.s3.retry import Retry
    from overspill_service.objects.s3.signing import Signer
    from overspill_service.objects.s3.trust import Trust

PIECE_BYTES: Final = 256 * 1024
"""Bytes handed to the transport at once. Larger writes would stall the loop and double the memory."""
INLINE_HASH_BYTES: Final = 128 * 1024
"""Bodies up to this size are hashed in the event loop (0.1 ms), larger ones in a thread."""
MAX_ERROR_BYTES: Final = 64 * 1024
CONNECT_TIMEOUT_SECONDS: Final = 5
READ_TIMEOUT_SECONDS: Final = 20
KEEPALIVE_SECONDS: Final = 15
_CODE: Final = re.compile(rb"<Code>([A-Za-z0-9.]{1,64})</Code>")
_SUCCESS: Final = range(200, 300)


@dataclass(frozen=True)
class PutBody:
    pieces: Sequence[bytes] = ()
    size: int = 0
    sha256: str = hashlib.sha256().hexdigest()

    @classmethod
    async def of(cls, pieces: Sequence[bytes]) -> PutBody:
        size = sum(map(len, pieces))
        if size <= INLINE_HASH_BYTES:
            return cls(pieces, size, _sha256(pieces))
        return cls(pieces, size, await asyncio.to_thread(_sha256, pieces))


def _sha256(pieces: Sequence[bytes]) -> str:
    state = hashlib.sha256()
    for piece in pieces:
        state.update(piece)
    return state.hexdigest()


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: PutBody = PutBody()
    limit: int = 0
    """The longest body of a successful reply. Of a longer body one byte more is read."""
    owner: str = ""
    """The owner of the object."""
    is_done: Callable[[Reply], bool] = lambda _: True
    """Whether a successful reply proves that the store did what was asked: a proxy may answer 200 too."""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def is_success(self) -> bool:
        return self.status in _SUCCESS

    @property
    def code(self) -> str:
        """The error code in an S3 error document. Empty for other bodies."""
        found = _CODE.search(self.body) if not self.is_success else None
        return found[1].decode() if found else ""


class _Payload(aiohttp.Payload):
    """A body that is written in small pieces, and can be written again."""

    _autoclose = True

    def __init__(self, body: PutBody) -> None:
        super().__init__(body, content_type="application/octet-stream")
        self._body, self._size = body, body.size

    async def write(self, writer: AbstractStreamWriter) -> None:
        for piece in self._body.pieces:
            view = memoryview(piece)
            for start in range(0, len(view), PIECE_BYTES):
                await writer.write(view[start : start + PIECE_BYTES])

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._body.pieces).decode(encoding, errors)


class HttpClient:
    """One connection pool, opened at its first use in the running loop."""

    def __init__(self, signer: Signer, *, concurrency: int, trust: Trust | None) -> None:
        self._signer = signer
        self._concurrency = concurrency
        share = max(1, concurrency - concurrency // 4)
        self._slots = FairPlaces(concurrency, "requests to the object store", share, wait_seconds=None)
        self._trust = trust
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request, retry: Retry) -> Reply:
        """Return the reply, whatever its status. A reply that another attempt may change is retried.

        Raises `StoreUnavailable` if there is no reply.
        """
        return await retry.run(lambda: self._attempt(request))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _attempt(self, request: Request) -> Reply:
        async with self._slots.hold(request.owner):
            try:
                reply = await self._trusting(request)
            except TimeoutError as error:
                raise TransientFailure("the object store is too slow to answer") from error
            except aiohttp.ClientSSLError as error:
                raise untrusted(error) from error
            except aiohttp.ClientConnectorDNSError as error:
                raise TransientFailure(NO_HOST) from error
            except aiohttp.ClientError as error:
                raise TransientFailure(
                    f"the connection to the object store failed ({type(error).__name__})"
                ) from error
        if is_transient(reply.status, reply.code):
            raise TransientFailure(f"the object store answered {reply.status} {reply.code}".rstrip())
        if reply.is_success and not request.is_done(reply):
            raise TransientFailure(UNPROVED.format(status=reply.status))
        return reply

    async def _trusting(self, request: Request) -> Reply:
        """Return the reply. Try again if the certificate was not trusted, and may be by now."""
        used = self._trust.context if self._trust else None
        try:
            return await self._authorised(request)
        except aiohttp.ClientSSLError:
            if self._trust is None or used is None or not await self._trust.has_changed(used):
                raise
        return await self._authorised(request)

    async def _authorised(self, request: Request) -> Reply:
        """Return the reply. Send the request again if its credentials were refused, and there are others."""
        credentials = self._signer.credentials
        used = await credentials.current()
        reply = await self._exchange(request, used)
        if may_refuse_credentials(reply.status) and await credentials.have_changed(used):
            reply = await self._exchange(request, await credentials.current())
        if reply.is_success:
            credentials.were_accepted()
        return reply

    async def _exchange(self, request: Request, credentials: ReadOnlyCredentials) -> Reply:
        headers = self._signer.sign(
            credentials, request.method, request.url, request.headers, request.body.sha256
        )
        data = _Payload(request.body) if request.method == "PUT" else None
        url = URL(request.url, encoded=True)  # another encoding, or a redirect, would break the signature
        tls = self._trust.context if self._trust else True
        async with self._open().request(
            request.method, url, headers=headers, data=data, allow_redirects=False, ssl=tls
        ) as response:
            limit = request.limit if response.status in _SUCCESS else MAX_ERROR_BYTES
            return Reply(response.status, response.headers, await _read_at_most(response, limit))

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=self._concurrency, keepalive_timeout=KEEPALIVE_SECONDS),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=READ_TIMEOUT_SECONDS
                ),
                headers=CIMultiDict({"Accept-Encoding": "identity", "User-Agent": "overspill-service"}),
                auto_decompress=False,  # objects are stored bytes, whatever Content-Encoding a proxy adds
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def _read_at_most(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body, or `limit + 1` bytes of it. Only a read to the end frees the connection."""
    try:
        return await response.content.readexactly(limit + 1)
    except asyncio.IncompleteReadError as error:
        return error.partial
