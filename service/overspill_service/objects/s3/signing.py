"""Signature version 4 in headers, by botocore's signer, for a body whose hash is known."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials, RefreshableCredentials
from botocore.exceptions import BotoCoreError

from overspill_service.errors import StoreUnavailable
from overspill_service.objects.s3.failures import NO_CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Mapping

logging.getLogger("botocore").setLevel(logging.WARNING)  # its debug lines hold session tokens and signatures


class _Auth(S3SigV4Auth):
    def payload(self, request: AWSRequest) -> str:
        return str(request.context["sha256"])


class Signer:
    def __init__(self, credentials: Credentials | None, region: str) -> None:
        self._credentials = credentials
        self._region = region

    async def sign(self, method: str, url: str, headers: Mapping[str, str], sha256: str) -> dict[str, str]:
        """Return the headers with those that authenticate the request. `sha256` of the body is hexadecimal.

        Raises `StoreUnavailable` if there are no credentials, or they cannot be renewed.
        """
        request = AWSRequest(method=method, url=url, headers=dict(headers))
        request.context["sha256"] = sha256
        _Auth(await self._current(), "s3", self._region).add_auth(request)
        return dict(request.headers.items())

    async def _current(self) -> ReadOnlyCredentials:
        if self._credentials is None:
            raise StoreUnavailable(NO_CREDENTIALS)
        if (
            not isinstance(self._credentials, RefreshableCredentials)
            or not self._credentials.refresh_needed()
        ):
            return self._credentials.get_frozen_credentials()
        try:
            return await asyncio.to_thread(self._credentials.get_frozen_credentials)
        except BotoCoreError as error:
            raise StoreUnavailable("the object store's credentials could not be renewed") from error
