"""Signature version 4 in headers, by botocore's signer, for a body whose hash is known."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.credentials import ReadOnlyCredentials

    from overspill_service.objects.s3.credentials import ChainCredentials

logging.getLogger("botocore").setLevel(logging.WARNING)  # its debug lines hold session tokens and signatures


class _Auth(S3SigV4Auth):
    def payload(self, request: AWSRequest) -> str:
        return str(request.context["sha256"])


class Signer:
    def __init__(self, credentials: ChainCredentials, region: str) -> None:
        self.credentials = credentials
        self._region = region

    def sign(
        self,
        credentials: ReadOnlyCredentials,
        method: str,
        url: str,
        headers: Mapping[str, str],
        sha256: str,
    ) -> dict[str, str]:
        """Return the headers with those that authenticate the request.

        `sha256`: that of the body, hexadecimal.
        """
        request = AWSRequest(method=method, url=url, headers=dict(headers))
        request.context["sha256"] = sha256
        _Auth(credentials, "s3", self._region).add_auth(request)
        return dict(request.headers.items())
