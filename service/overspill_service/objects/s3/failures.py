"""The meaning of a bucket's refusals: which error each becomes, and what the operator can do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from overspill_service.errors import StoreFull, StoreUnavailable
from overspill_service.errors.certificates import distrust

TRANSIENT_STATUSES: Final = frozenset({429, 500, 502, 503, 504})
TRANSIENT_CODES: Final = frozenset(
    {
        "BadDigest",  # this and the next two: the body was damaged or cut on its way
        "IncompleteBody",
        "XAmzContentSHA256Mismatch",
        "BandwidthLimitExceeded",
        "ConditionalRequestConflict",
        "InternalError",
        "OperationAborted",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
    }
)
NOT_S3: Final = "UnexpectedAnswer"
"""The code of an answer that S3 would not give. S3 has no such code."""
_FULL_CODES: Final = frozenset(
    {
        "InsufficientCapacity",
        "QuotaExceeded",
        "XMinioAdminBucketQuotaExceeded",
        "XMinioStorageFull",
    }
)
_FULL_STATUS: Final = 507
NO_CREDENTIALS: Final = (
    "there are no credentials for the object store; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "or give this machine a role"
)
NOT_RENEWED: Final = "the object store's credentials could not be renewed"
NOT_ENCRYPTED: Final = (
    "the object store does not encrypt by sse={sse}; configure it there, or take sse= out of the store URL"
)
NO_HOST: Final = "the object store's host is not known; correct endpoint= in the store's URL"
_CLOCK: Final = "this machine's clock is too far from the object store's; synchronise it"
_REGION: Final = "the bucket {bucket!r} is in another region{where}; correct region= in the store URL"
_KEYS: Final = "the object store refuses the credentials ({code}); check AWS_ACCESS_KEY_ID and the secret"
_SESSION: Final = (
    "the object store's session token is no longer valid; renew it in the AWS configuration, which is read "
    "again, or in AWS_SESSION_TOKEN, and restart the service"
)
UNPROVED: Final = (
    "the object store answered {status}, but did not do as it was asked; if a proxy answers in its place, "
    "correct that, or endpoint= in the store URL"
)
_DENIED: Final = (
    "the object store denies access to the bucket {bucket!r}; check the credentials, and allow them "
    "s3:ListBucket on it and s3:PutObject, s3:GetObject and s3:DeleteObject in it"
)
_NO_BUCKET: Final = "the bucket {bucket!r} does not exist; create it or correct the store URL"
_LOCKED: Final = (
    "the object store answered {code}; if objects of the bucket {bucket!r} are retained by default (Object "
    "Lock), use another bucket: the service deletes what has expired"
)
_ADVICE: Final = {
    "InvalidRequest": _LOCKED,
    "RequestTimeTooSkewed": _CLOCK,
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "TemporaryRedirect": _REGION,
    "InvalidAccessKeyId": _KEYS,
    "SignatureDoesNotMatch": _KEYS,
    "ExpiredToken": _SESSION,
    "InvalidToken": _SESSION,
    "NoSuchBucket": _NO_BUCKET,
    NOT_S3: UNPROVED.format(status=200),
}
_ADVICE_BY_STATUS: Final = {301: _REGION, 307: _REGION, 401: _KEYS, 403: _DENIED, 404: _NO_BUCKET}


def untrusted(error: Exception) -> StoreUnavailable:
    """Return the error for a certificate that TLS refused."""
    return StoreUnavailable(distrust("the object store", error, "AWS_CA_BUNDLE"))


def says_absent(status: int, code: str) -> bool:
    """Return whether S3 says that there is no such object.

    A 404 without a code of S3 comes from a proxy before the store.
    """
    return status == HTTPStatus.NOT_FOUND and code not in ("", "NoSuchBucket")


def is_full(status: int, code: str) -> bool:
    return status == _FULL_STATUS or code in _FULL_CODES


def is_transient(status: int, code: str) -> bool:
    """Return whether the same request may succeed later."""
    return not is_full(status, code) and (status in TRANSIENT_STATUSES or code in TRANSIENT_CODES)


def failure(status: int, code: str, *, bucket: str, region: str = "") -> StoreUnavailable | StoreFull:
    """Return the error for a refusal. `region` is where the store says that the bucket is."""
    if is_full(status, code):
        return StoreFull("the object store has no room; enlarge its quota or delete captures")
    advice = _ADVICE.get(code) or _ADVICE_BY_STATUS.get(status)
    if advice is None:
        return StoreUnavailable(f"the object store answered {status} {code}".rstrip())
    where = f", {region}" if region else ""
    return StoreUnavailable(advice.format(bucket=bucket, code=code or status, where=where))
