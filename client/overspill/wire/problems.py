"""Problems, for programs and for people: the codes and the body of every error (RFC 9457)."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from enum import StrEnum
from typing import Final

from msgspec import Struct

PROBLEM_TYPE: Final = "application/problem+json"


class Code(StrEnum):
    """Stable problem codes; `status` and `heading` say what each means."""

    INVALID_REQUEST = "invalid_request"
    NOT_ACCEPTABLE = "not_acceptable"
    PRECONDITION_FAILED = "precondition_failed"
    EXPECTATION_FAILED = "expectation_failed"
    INVALID_ID = "invalid_id"
    INVALID_PARAMETER = "invalid_parameter"
    INVALID_HEADER = "invalid_header"
    INVALID_BODY = "invalid_body"
    INVALID_PATTERN = "invalid_pattern"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    DAMAGED_ENCODING = "damaged_encoding"
    INCOMPLETE_BODY = "incomplete_body"
    DIGEST_MISMATCH = "digest_mismatch"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    FOREIGN_ORIGIN = "foreign_origin"
    NOT_FOUND = "not_found"
    KEY_NOT_FOUND = "key_not_found"
    NO_ROUTE = "no_route"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    EXPIRED = "expired"
    DELETED = "deleted"
    ID_CONFLICT = "id_conflict"
    HELD = "held"
    WRONG_OFFSET = "wrong_offset"
    NOT_LIVE = "not_live"
    OTHER_PRODUCER = "other_producer"
    BUFFER_FULL = "buffer_full"
    KEY_REFUSED = "key_refused"
    SECRETS_FOUND = "secrets_found"
    CAPTURE_TOO_LARGE = "capture_too_large"
    BODY_TOO_LARGE = "body_too_large"
    HEADERS_TOO_LARGE = "headers_too_large"
    RANGE_NOT_SATISFIABLE = "range_not_satisfiable"
    TOO_MANY_REQUESTS = "too_many_requests"
    QUOTA_EXCEEDED = "quota_exceeded"
    CAPTURE_DAMAGED = "capture_damaged"
    INTERNAL = "internal"
    STORE_UNAVAILABLE = "store_unavailable"
    STORE_FULL = "store_full"
    CREDENTIALS_UNAVAILABLE = "credentials_unavailable"
    AUDIT_UNAVAILABLE = "audit_unavailable"
    CATALOG_UNAVAILABLE = "catalog_unavailable"
    CATALOG_INCOMPLETE = "catalog_incomplete"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    OVERLOADED = "overloaded"
    OUT_OF_RESOURCES = "out_of_resources"
    SHUTTING_DOWN = "shutting_down"
    CLOCK_SKEWED = "clock_skewed"

    @property
    def status(self) -> int:
        """Return the status code of the HTTP answer."""
        return _CODES[self][0]

    @property
    def heading(self) -> str:
        """Return what is wrong in a few words: the title of the problem."""
        return _CODES[self][1]


_CODES: Final[dict[Code, tuple[int, str]]] = {
    Code.INVALID_REQUEST: (400, "The request is malformed"),
    Code.NOT_ACCEPTABLE: (406, "No form of the answer is acceptable"),
    Code.PRECONDITION_FAILED: (412, "A precondition does not hold"),
    Code.EXPECTATION_FAILED: (417, "The expectation cannot be met"),
    Code.INVALID_ID: (422, "The capture id is malformed"),
    Code.INVALID_PARAMETER: (422, "A parameter is not valid"),
    Code.INVALID_HEADER: (422, "A header is not valid"),
    Code.INVALID_BODY: (422, "The body is not valid"),
    Code.INVALID_PATTERN: (422, "The pattern is not valid or not supported"),
    Code.UNSUPPORTED_ENCODING: (415, "The content encoding is not supported"),
    Code.UNSUPPORTED_MEDIA_TYPE: (415, "The body has another media type than this path takes"),
    Code.DAMAGED_ENCODING: (422, "The encoded body cannot be decoded"),
    Code.INCOMPLETE_BODY: (400, "The body ended before its announced length"),
    Code.DIGEST_MISMATCH: (400, "The content does not match its digest"),
    Code.UNAUTHORIZED: (401, "A valid key is needed"),
    Code.FORBIDDEN: (403, "The key lacks the scope that this needs"),
    Code.FOREIGN_ORIGIN: (403, "A page of another site sent this, or it names another host"),
    Code.NOT_FOUND: (404, "There is no such capture"),
    Code.KEY_NOT_FOUND: (404, "There is no such key"),
    Code.NO_ROUTE: (404, "There is nothing at this path"),
    Code.METHOD_NOT_ALLOWED: (405, "This path does not take this method"),
    Code.EXPIRED: (410, "The capture has expired"),
    Code.DELETED: (410, "The capture was deleted"),
    Code.ID_CONFLICT: (409, "The id already has other content"),
    Code.HELD: (409, "The capture is on hold"),
    Code.WRONG_OFFSET: (409, "The append does not begin where the content ends"),
    Code.NOT_LIVE: (409, "The capture no longer grows"),
    Code.OTHER_PRODUCER: (409, "Another producer appends to this capture"),
    Code.BUFFER_FULL: (429, "The object store is behind with what was accepted"),
    Code.KEY_REFUSED: (409, "The key cannot be made or changed like this"),
    Code.SECRETS_FOUND: (422, "The tenant stores no secrets"),
    Code.CAPTURE_TOO_LARGE: (413, "The capture is larger than the limit"),
    Code.BODY_TOO_LARGE: (413, "The body is larger than this path takes"),
    Code.HEADERS_TOO_LARGE: (431, "The headers are larger than any request needs"),
    Code.RANGE_NOT_SATISFIABLE: (416, "No byte of the range exists"),
    Code.TOO_MANY_REQUESTS: (429, "Too many requests at once"),
    Code.QUOTA_EXCEEDED: (507, "The tenant's stored limit is reached"),
    Code.CAPTURE_DAMAGED: (500, "The stored bytes are damaged"),
    Code.INTERNAL: (500, "The service failed"),
    Code.STORE_UNAVAILABLE: (503, "The object store does not answer"),
    Code.STORE_FULL: (507, "The object store or the catalog is full"),
    Code.CREDENTIALS_UNAVAILABLE: (503, "The issuer of tokens does not answer"),
    Code.AUDIT_UNAVAILABLE: (503, "The audit log cannot be written"),
    Code.CATALOG_UNAVAILABLE: (503, "The catalog does not answer"),
    Code.CATALOG_INCOMPLETE: (503, "The catalog is being rebuilt"),
    Code.DEADLINE_EXCEEDED: (503, "The work did not end in time"),
    Code.OVERLOADED: (503, "The service has no room for more at once"),
    Code.OUT_OF_RESOURCES: (503, "The service lacks memory, threads or descriptors"),
    Code.SHUTTING_DOWN: (503, "The service is stopping"),
    Code.CLOCK_SKEWED: (503, "The clock of this replica is wrong"),
}


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of every error. `detail` says what was wrong, what is allowed, what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    instance: str = ""
    """The request id, for the operator's logs."""
    expired: datetime | None = None
    """When the capture expired (code `expired`)."""
    limit: int | None = None
    offset: int | None = None
    """The bytes that are accepted of a live capture: where its next append must begin."""
    durable: int | None = None
    """How many of them are in the object store."""
    retry_after: int | None = None
    """Seconds to wait before trying again."""
