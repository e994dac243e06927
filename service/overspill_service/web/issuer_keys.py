"""The public keys of an OIDC issuer (JWKS, RFC 7517), from a file or its URL.

Only public keys for signatures are taken. With a shared secret, whoever can verify could also sign.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import time
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import aiohttp
from aiohttp import hdrs

from overspill_service.errors import CredentialsUnavailable
from overspill_service.resources.tasks import run_to_completion

RSA_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS: Final = (*RSA_ALGORITHMS, "ES256", "ES384", "ES512", "EdDSA")
REFRESH_SECONDS: Final = 300.0
"""How long the issuer's keys are used before they are read again."""
RETRY_SECONDS: Final = 10.0
"""Seconds for which an unknown key is not looked for again: anyone can name any key in a token."""
FETCH_SECONDS: Final = 5.0
MAX_BYTES: Final = 2**20
_KINDS: Final = ("RSA", "EC", "OKP")
"""Kinds of keys (`kty`, RFC 7518, section 6.1, and RFC 8037) with which only their owner can sign."""

log = logging.getLogger(__name__)


class IssuerKey(NamedTuple):
    """A public key of the issuer, and the algorithms that it may verify."""

    key: Any
    algorithms: tuple[str, ...]


class IssuerKeys:
    """The issuer's public keys, by their ids. Read again now and then, and when a token names another one."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._keys: dict[str, IssuerKey] = {}
        self._read_at = self._tried_at = -math.inf
        self._lock = asyncio.Lock()

    async def find(self, key_id: str) -> IssuerKey | None:
        """Return the key, None if the issuer has none with this id. Raises `CredentialsUnavailable`.

        A request with a known key never waits for requests that invent one. A client that hangs up does not
        end the reading. Otherwise a client that hangs up again and again would keep all others from new keys.
        """
        if key_id not in self._keys or self._is_worth_reading(key_id):
            async with self._lock:
                if self._is_worth_reading(key_id):
                    self._tried_at = time.monotonic()
                    await run_to_completion(self._refresh())
        if self._read_at == -math.inf:
            raise CredentialsUnavailable("the issuer's public keys cannot be read now; try again in a moment")
        return self._keys.get(key_id)

    def _is_worth_reading(self, key_id: str) -> bool:
        now = time.monotonic()
        is_old = now - self._read_at > REFRESH_SECONDS
        return (is_old or key_id not in self._keys) and now - self._tried_at > RETRY_SECONDS

    async def _refresh(self) -> None:
        """Read the keys. If that fails, the present keys stay in use."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                text = await (self._fetch() if "://" in self._source else asyncio.to_thread(self._load))
            keys = await asyncio.to_thread(_keys_of, text)  # a MiB of keys takes long
        except (OSError, aiohttp.ClientError, ValueError, RecursionError) as error:
            log.warning("the issuer's public keys cannot be read: %s: %s", type(error).__name__, error)
        else:
            self._keys = keys
            self._read_at = time.monotonic()

    async def _fetch(self) -> str:
        """Return the issuer's answer. Nothing is decompressed: a small answer may be a large text."""
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.get(
                self._source, allow_redirects=False, headers={hdrs.ACCEPT_ENCODING: "identity"}
            ) as answer,
        ):
            if answer.status != HTTPStatus.OK:
                raise ValueError(f"{self._source} answers {answer.status}")
            data = bytearray()
            async for piece in answer.content.iter_any():
                data += piece
                if len(data) > MAX_BYTES:
                    raise ValueError(f"more than {MAX_BYTES} bytes")
        return data.decode()

    def _load(self) -> str:
        at_once = os.O_RDONLY | os.O_NONBLOCK  # a pipe would keep its thread for ever
        with os.fdopen(os.open(self._source, at_once), "rb") as file:
            return (file.read(MAX_BYTES) or b"").decode()


def _keys_of(text: str) -> dict[str, IssuerKey]:
    """Return the keys of a JWKS by their ids, without those that verify no token.

    Raises `ValueError` if there are none, and `RecursionError` for nesting without end.
    """
    keys = {}
    document = json.loads(text)
    listed = document.get("keys") if isinstance(document, dict) else None
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(name := each.get("kid", ""), str):
            key = _key_of(each)
            if key is not None:
                keys[name] = key
    if not keys:
        raise ValueError("no public key for signatures is in it")
    return keys


def _key_of(described: dict[str, Any]) -> IssuerKey | None:
    """Return the key that one entry of a JWKS describes, None if it verifies no token."""
    from jwt import PyJWK  # noqa: PLC0415  (an extra)
    from jwt.exceptions import PyJWTError  # noqa: PLC0415

    is_for_signatures = described.get("use", "sig") == "sig" and described.get("kty") in _KINDS
    if not is_for_signatures or described.get("alg", ALGORITHMS[0]) not in ALGORITHMS:
        return None
    try:
        key = PyJWK(described)
    except (PyJWTError, ValueError, TypeError):
        return None
    # One without `alg` is for all algorithms of its kind (RFC 7517, section 4.4).
    is_for_all = described["kty"] == "RSA" and "alg" not in described
    return IssuerKey(key.key, RSA_ALGORITHMS) if is_for_all else IssuerKey(key, ALGORITHMS)
