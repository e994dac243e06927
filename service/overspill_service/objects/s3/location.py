"""The location of a bucket: `s3://bucket/prefix?endpoint=http://…&region=…&addressing=path&sse=AES256`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from overspill_service.objects.keys import is_key

if TYPE_CHECKING:
    from typing import Self

Addressing = Literal["path", "virtual"]

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
_REGION: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_ENDPOINT: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._/-]*)?"
)
_PARAMETERS: Final = ("endpoint", "region", "addressing", "profile", "sse", "sse_kms_key_id")
_ENCRYPTIONS: Final = ("AES256", "aws:kms", "aws:kms:dsse")
_KMS_KEY: Final = re.compile(r"[A-Za-z0-9:/_.-]{1,2048}")
SSE_HEADER: Final = "x-amz-server-side-encryption"
_KMS_KEY_HEADER: Final = "x-amz-server-side-encryption-aws-kms-key-id"


@dataclass(frozen=True)
class Location:
    bucket: str
    prefix: str = ""
    """The beginning of every key in the bucket. Empty, or ends with a `/`."""
    endpoint: str | None = None
    region: str | None = None
    """None: by the AWS configuration."""
    addressing: Addressing = "virtual"
    profile: str | None = None
    """The profile of the AWS configuration whose credentials to use. None: the usual chain."""
    sse: str | None = None
    """How the store encrypts objects, as S3 names it. None: as the bucket says."""
    sse_kms_key_id: str | None = None

    @classmethod
    def from_url(cls, url: str) -> Self:
        """Parse a store URL. Raises `ValueError` without the URL, because it may hold a secret."""
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise ValueError(
                "credentials do not belong in a store URL; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        if not _BUCKET.fullmatch(parts.netloc):
            raise ValueError(f"{parts.netloc!r} is not a bucket name: write s3://bucket/prefix")
        query = _parameters(parts.query)
        endpoint = _endpoint(query.get("endpoint"))
        return cls(
            bucket=parts.netloc,
            prefix=_prefix(parts.path),
            endpoint=endpoint,
            region=_region(query.get("region")),
            profile=query.get("profile") or None,
            addressing=_addressing(query.get("addressing"), parts.netloc, endpoint),
            sse=_encryption(query),
            sse_kms_key_id=query.get("sse_kms_key_id"),
        )

    @property
    def write_headers(self) -> dict[str, str]:
        """The headers of every write."""
        headers = {SSE_HEADER: self.sse, _KMS_KEY_HEADER: self.sse_kms_key_id}
        return {name: value for name, value in headers.items() if value is not None}

    def base(self, endpoint: str) -> str:
        """Return the bucket's URL under this endpoint, without a `/` at the end."""
        if self.addressing == "path":
            return f"{endpoint.rstrip('/')}/{self.bucket}"
        scheme, _, rest = endpoint.rstrip("/").partition("://")
        return f"{scheme}://{self.bucket}.{rest}"


def _parameters(query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    names = [name for name, _ in pairs]
    for name in names:
        if name not in _PARAMETERS:
            raise ValueError(f"an s3: store URL has no parameter {name!r}; it has {', '.join(_PARAMETERS)}")
        if names.count(name) > 1:
            raise ValueError(f"the parameter {name!r} is given twice")
    return dict(pairs)


def _prefix(path: str) -> str:
    prefix = path.strip("/")
    if prefix and not is_key(prefix):
        raise ValueError(f"the prefix {prefix!r} may have segments of [A-Za-z0-9._-] between single '/' only")
    return f"{prefix}/" if prefix else ""


def _endpoint(value: str | None) -> str | None:
    if value is None:
        return None
    if not _ENDPOINT.fullmatch(value):
        raise ValueError("endpoint= takes http://host:port or https://host:port, without credentials")
    return value.rstrip("/")


def _region(value: str | None) -> str | None:
    if value is not None and not _REGION.fullmatch(value):
        raise ValueError(f"region={value!r} is not a region name such as eu-west-1")
    return value


def _encryption(query: dict[str, str]) -> str | None:
    sse, key = query.get("sse"), query.get("sse_kms_key_id")
    if sse is not None and sse not in _ENCRYPTIONS:
        raise ValueError(f"sse={sse!r} is none of {', '.join(_ENCRYPTIONS)}")
    if key is not None and (sse is None or not sse.startswith("aws:kms")):
        raise ValueError("sse_kms_key_id= is for sse=aws:kms and sse=aws:kms:dsse only")
    if key is not None and not _KMS_KEY.fullmatch(key):
        raise ValueError(f"sse_kms_key_id={key[:100]!r} is not an id, alias or ARN of a key")
    return sse


def _addressing(value: str | None, bucket: str, endpoint: str | None) -> Addressing:
    """Return the addressing.

    By default virtual-hosted at AWS, except if a dot in the name would break TLS.
    """
    if value is None:
        return "path" if endpoint or "." in bucket else "virtual"
    if value == "path":
        return "path"
    if value == "virtual":
        return "virtual"
    raise ValueError(f"addressing={value!r} is neither path nor virtual")
