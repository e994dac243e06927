"""The contract between client and service: paths, headers, query names, bodies, problem codes.

Both sides import this module and mention no path, header or code of their own. It knows nothing of
HTTP libraries, storage or agents.
"""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import datetime  # noqa: TC003  (msgspec resolves annotations at run time)
from enum import StrEnum
from typing import Annotated, ClassVar, Final
from urllib.parse import quote, unquote

from msgspec import UNSET, Meta, Struct, UnsetType

VERSION: Final = "v1"
DEFAULT_URL: Final = "http://127.0.0.1:8750"
DEFAULT_TTL: Final = 24 * 3600
"""Retention of a capture in seconds where nobody asks for another."""
MAX_VALUE: Final = 4096
"""UTF-8 bytes that one metadata value (session, call id, tool, label) may take."""
PROBLEM_TYPE: Final = "application/problem+json"


class Path:
    """Paths under the service's URL; braces mark parameters."""

    CAPTURES: Final = "/v1/captures"
    CAPTURE: Final = "/v1/captures/{ref}"
    CONTENT: Final = "/v1/captures/{ref}/content"
    HEAD: Final = "/v1/captures/{ref}/head"
    TAIL: Final = "/v1/captures/{ref}/tail"
    LINES: Final = "/v1/captures/{ref}/lines"
    GREP: Final = "/v1/captures/{ref}/grep"
    SUMMARY: Final = "/v1/captures/{ref}/summary"
    SESSION: Final = "/v1/sessions/{session}"
    OBSERVATIONS: Final = "/v1/observations"
    USAGE: Final = "/v1/usage"
    SWEEP: Final = "/v1/admin/sweep"
    HEALTHZ: Final = "/healthz"
    READYZ: Final = "/readyz"
    METRICS: Final = "/metrics"
    OPENAPI: Final = "/openapi.json"
    INDEX: Final = "/"


class Header:
    """Header names beyond the standard ones. Values are percent-encoded UTF-8 (RFC 3986)."""

    SESSION: Final = "Overspill-Session"
    CALL_ID: Final = "Overspill-Call-Id"
    TOOL: Final = "Overspill-Tool"
    STATUS: Final = "Overspill-Status"
    TTL: Final = "Overspill-Ttl"
    LABEL: Final = "Overspill-Label-"
    SHA256: Final = "Overspill-Sha256"
    SIZE: Final = "Overspill-Size"
    STATE: Final = "Overspill-State"
    EXPIRES: Final = "Overspill-Expires"
    REPR_DIGEST: Final = "Repr-Digest"
    REQUEST_ID: Final = "X-Request-Id"


# --- identity -------------------------------------------------------------------------------------

CAPTURE_ID: Final = re.compile(r"cap_[a-z2-7]{20}")
CALL_PREFIX: Final = "call:"


def capture_id(session: str, call_id: str, content_sha256: bytes) -> str:
    """The id of the capture of this content, produced by this call in this session.

    `"cap_" + base32(sha256(session, call id, sha256 of the content))[:20]`, lower case. Each text goes
    in as its UTF-8 bytes behind their length (8 bytes, big-endian), so that no two pairs collide.
    """
    state = hashlib.sha256()
    for text in (session, call_id):
        data = text.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    state.update(content_sha256)
    return "cap_" + base64.b32encode(state.digest()).decode().lower()[:20]


def call_id_of(ref: str) -> str | None:
    """The tool-call id of a `call:` reference; None for any other reference.

    Raises `ValueError` where the id is empty: that is a variable that was not set, not a tool call.
    """
    if not ref.startswith(CALL_PREFIX):
        return None
    if ref == CALL_PREFIX:
        raise ValueError(f"{CALL_PREFIX} names no tool call: the call's id must follow it, and is empty here")
    return ref.removeprefix(CALL_PREFIX)


def fit(value: str, limit: int = MAX_VALUE) -> str:
    """`value` as metadata may carry it: lone surrogates replaced, at most `limit` UTF-8 bytes.

    A longer value keeps its beginning and ends in `~` and 32 hex digits of its SHA-256, so that equal
    values stay equal and different ones different: a lookup by a 10 KB call id still finds its capture.
    """
    data = value.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode()
    mark = "~" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return data[: limit - len(mark)].decode("utf-8", "ignore") + mark


def encode_header(value: str) -> str:
    """Any text as a header value: percent-encoded UTF-8, so no control byte ever reaches the wire."""
    return quote(value, safe=" !#$&'()*+,-./:;<=>?@[]^_`{|}~").replace(" ", "%20")


def decode_header(value: str) -> str:
    """The inverse of `encode_header`. Raises `UnicodeDecodeError` on bytes that are not UTF-8."""
    return unquote(value, errors="strict")


def encode_path(value: str) -> str:
    """A reference or session as one path segment."""
    return quote(value, safe=":")


# --- digests (RFC 9530) ---------------------------------------------------------------------------


def encode_digest(sha256: bytes) -> str:
    """The `Repr-Digest` field value of a SHA-256 digest."""
    return f"sha-256=:{base64.b64encode(sha256).decode()}:"


_KEY: Final = r"[A-Za-z*][A-Za-z0-9_.*-]*"
_STRING: Final = r'"(?:[ !#-\[\]-~]|\\["\\])*"'
_BARE: Final = rf"(?: :[A-Za-z0-9+/=]*: | {_STRING} | [A-Za-z0-9!#$%&'*+.^_`|~:/?-]+ )"
_LIST: Final = rf"\( (?: [^()\"] | {_STRING} )* \)"
_PARAMETERS: Final = rf"(?: ;[ ]*{_KEY} (?: ={_BARE} )? )*"
_MEMBER: Final = re.compile(
    rf"[ \t]* (?P<key>{_KEY}) (?: =(?P<value> {_BARE} | {_LIST} ) )? {_PARAMETERS} [ \t]* (?P<comma>,)?",
    re.VERBOSE,
)
"""One member of a dictionary (RFC 8941, section 3.2), read loosely where it is no byte sequence."""


def decode_digest(field: str) -> bytes:
    """Return the SHA-256 digest (32 bytes) of a `Repr-Digest` field.

    The field is a dictionary of algorithms (RFC 8941): other algorithms and all parameters are ignored, and
    of a repeated algorithm the last one counts. Raises `ValueError` if it has no SHA-256 or is malformed.
    """
    found, position, follows = "", 0, True
    while follows and (member := _MEMBER.match(field, position)):
        if member["key"].lower() == "sha-256":
            found = member["value"] or ""
        position, follows = member.end(), member["comma"] is not None
    if position == len(field) and not follows and found[:1] == ":":
        digest = base64.b64decode(found[1:-1], validate=True)
        if len(digest) == hashlib.sha256().digest_size:
            return digest
    raise ValueError("Repr-Digest needs the form sha-256=:BASE64: with a digest of 32 bytes")


# --- byte ranges (RFC 9110, section 14) -----------------------------------------------------------


class ContentRange(Struct, frozen=True):
    """A range that has been held against a size: bytes `start` up to, not including, `stop`."""

    start: int
    stop: int
    size: int

    def __len__(self) -> int:
        return self.stop - self.start

    def __str__(self) -> str:
        """The `Content-Range` field value."""
        return f"bytes {self.start}-{self.stop - 1}/{self.size}"


class ByteRange(Struct, frozen=True):
    """One range as asked for: `first` and `last` are inclusive, from 0.

    `first is None` asks for the last `last` bytes (a suffix); `last is None` goes to the end.
    """

    first: int | None
    last: int | None = None

    _PATTERN: ClassVar[re.Pattern[str]] = re.compile(
        r"\s*bytes\s*=\s*([0-9]*)\s*-\s*([0-9]*)\s*", re.IGNORECASE
    )
    _FAR: ClassVar[int] = 10**18
    """Beyond every size: positions with more digits mean no more than this one."""

    @classmethod
    def parse(cls, field: str) -> ByteRange | None:
        """The range of a `Range` field; None where RFC 9110 says to ignore it.

        That is: another unit, several ranges, anything malformed, or `last` before `first`.
        """
        match = cls._PATTERN.fullmatch(field)
        if match is None:
            return None
        first, last = (cls._position(text) for text in match.groups())
        if first is None and last is None:
            return None
        if first is not None and last is not None and last < first:
            return None
        return cls(first, last)

    @classmethod
    def _position(cls, digits: str) -> int | None:
        if not digits:
            return None
        digits = digits.lstrip("0") or "0"
        return int(digits) if len(digits) <= len(str(cls._FAR)) else cls._FAR

    def __str__(self) -> str:
        """The `Range` field value."""
        return f"bytes={'' if self.first is None else self.first}-{'' if self.last is None else self.last}"

    def resolve(self, size: int) -> ContentRange | None:
        """The range within `size` bytes; None where not one byte of it exists (416)."""
        if self.first is None:
            start, stop = max(0, size - (self.last or 0)), size
        else:
            start, stop = self.first, size if self.last is None else min(self.last + 1, size)
        return ContentRange(start, stop, size) if start < stop else None


# --- captures -------------------------------------------------------------------------------------


class State(StrEnum):
    """Whether a capture still grows, is whole, or ended early."""

    LIVE = "live"
    COMPLETE = "complete"
    PARTIAL = "partial"


class Entry(Struct, frozen=True, kw_only=True):
    """What is known of one capture. Sizes in bytes; `lines` counts a last line without a newline too."""

    id: str
    state: State
    size: int
    stored_size: int
    lines: int
    sha256: str
    content_type: str
    kind: str
    """text, json, log, binary or unknown: found by looking at the content."""
    tool: str
    session: str
    call_id: str
    status: str
    labels: dict[str, str]
    created: datetime
    expires: datetime


class Listing(Struct, frozen=True, kw_only=True):
    """A page of captures, newest first; `cursor` asks for the next one and is null on the last."""

    captures: list[Entry]
    cursor: str | None = None
    incomplete: bool = False
    """The catalog was lost and is being rebuilt from the object store: captures may be missing."""


class Usage(Struct, frozen=True, kw_only=True):
    """A tenant's stored totals and limits; a limit of 0 is none."""

    tenant: str
    captures: int
    size: int
    stored_size: int
    oldest: datetime | None
    max_capture_size: int
    max_stored_size: int
    max_captures: int
    default_ttl: int
    max_ttl: int
    incomplete: bool = False
    """The catalog was lost and is being rebuilt from the object store: the totals may be too low."""


class Removed(Struct, frozen=True, kw_only=True):
    """How many captures a removal or a sweep took away, and their stored bytes."""

    captures: int
    stored_size: int


class Amendment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of PATCH: a new life of `ttl` seconds, counted from now."""

    ttl: Annotated[int, Meta(ge=1)]


# --- bounded reads --------------------------------------------------------------------------------


def approx_tokens(size: int) -> int:
    """About how many tokens `size` bytes of text are, rounded up: 3.3 bytes a token.

    That is the median over logs, code, JSON and prose, which have 1.4 to 5.0; but for the extremes the
    estimate is off by -24 to +36 %. For a budget that must not be exceeded, count 2.4 bytes a token.
    """
    return -(-10 * size // 33)


class Match(Struct, frozen=True, kw_only=True):
    """One line that a grep found, with the lines around it."""

    line_number: int
    line: str
    before: list[str]
    after: list[str]


class Text(Struct, frozen=True, kw_only=True):
    """The one shape of every bounded read of text.

    Lines count from 1 and both ends are inclusive; an empty answer has `end_line = start_line - 1`.
    `truncated` says that a cap cut the answer short; `next` then holds the whole query that goes on (of
    grep, or of lines for every other mode), also inside one very long line. It is None where a grep has
    reported all its matches and only lines around the last one are missing.
    """

    content: str
    start_line: int
    end_line: int
    total_lines: int
    total_bytes: int
    mode: str
    truncated: bool
    approx_tokens: int
    next: dict[str, str] | None = None
    replaced: bool = False
    """Bytes that are not UTF-8 were replaced by U+FFFD."""
    matches: list[Match] | UnsetType = UNSET
    match_count: int | UnsetType = UNSET
    """Matching lines found in the part that was searched; a `cursor` in `next` goes on."""
    incomplete: list[int] | UnsetType = UNSET
    """Numbers of lines that may match, though they are not among `matches` nor counted; given by a grep where
    there are such lines. They are too long to be searched as a whole for this pattern."""

    @property
    def place(self) -> dict[str, int]:
        """The `start`, `end` and `offset` that `next` holds."""
        return {name: int(value) for name, value in (self.next or {}).items() if name in _PLACES}


_PLACES: Final = frozenset({"start", "end", "offset"})


class Repeated(Struct, frozen=True, kw_only=True):
    """A group of lines that are equal once numbers are masked."""

    line: str
    count: int
    first_line: int


class Severity(Struct, frozen=True, kw_only=True):
    """How many lines look like errors or warnings, and the first few of their numbers."""

    count: int
    line_numbers: list[int]


class Summary(Struct, frozen=True, kw_only=True):
    """What a capture looks like without reading it."""

    total_lines: int
    total_bytes: int
    content_type: str
    kind: str
    longest_line: int
    mean_line: float
    empty_lines: int
    first_lines: list[str]
    last_lines: list[str]
    repeated: list[Repeated]
    errors: Severity
    warnings: Severity
    json_shape: str | None = None
    scanned_bytes: int = 0
    truncated: bool = False
    """The scan stopped at its budget: the figures hold for the first `scanned_bytes`."""
    mode: str = "summary"


# --- queries --------------------------------------------------------------------------------------

Count = Annotated[int, Meta(ge=1, le=2**53)]


class NoQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a request that takes no parameter."""


class RefQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every read by reference: `session` narrows a `call:` reference."""

    session: str | None = None


class ReadQuery(RefQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every reading of text can be given."""

    ansi: bool = False
    """Keep ANSI escape sequences."""
    max_bytes: Annotated[int, Meta(ge=256, le=65536)] | None = None
    """Bytes of text that the answer has at most, where that is less than the service's own cap."""


class HeadQuery(ReadQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the first lines are read."""

    lines: Count = 50


class TailQuery(ReadQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the last lines are read."""

    lines: Count = 50


class LinesQuery(ReadQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which lines are read, numbered from 1; `end` is one of them."""

    start: Count = 1
    end: Count | None = None
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Bytes to skip inside line `start`: how to go on inside one very long line."""


class GrepQuery(ReadQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `grep` searches for, and how much it shows."""

    pattern: str
    fixed: bool = False
    ignore_case: bool = False
    invert: bool = False
    context: Annotated[int, Meta(ge=0, le=100)] = 0
    before: Annotated[int, Meta(ge=0, le=100)] | None = None
    after: Annotated[int, Meta(ge=0, le=100)] | None = None
    max_matches: Annotated[int, Meta(ge=1, le=1000)] = 50
    from_end: bool = False
    count: bool = False
    """Only count matching lines, all of them, and list none."""
    cursor: str | None = None


class ListQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which captures are listed: each filter narrows the list. `cursor` goes on with an earlier one."""

    session: str | None = None
    call_id: Annotated[str, Meta(min_length=1)] | None = None
    tool: str | None = None
    state: State | None = None
    since: datetime | None = None
    until: datetime | None = None
    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


# --- observations ---------------------------------------------------------------------------------


class Outcome(StrEnum):
    """What became of an output: it stays, is in the service, waits on this machine, or is lost in part."""

    INLINE = "inline"
    CAPTURED = "captured"
    SPOOLED = "spooled"
    TRUNCATED = "truncated"


SIZE_BOUNDS: Final = tuple(4**power for power in range(4, 16))
"""Bounds in bytes, each inclusive, of the classes that outputs' sizes are counted in: 256 B to 1 GiB."""
SIZE_CLASSES: Final = len(SIZE_BOUNDS) + 1
"""One for each bound, and one for what is larger than all."""
BATCH_MEMORY: Final = 24 * 3600
"""Seconds for which the service knows a batch of observations, and does not count it again."""
_Sizes = Annotated[
    tuple[Annotated[int, Meta(ge=0, le=2**53)], ...],
    Meta(min_length=SIZE_CLASSES, max_length=SIZE_CLASSES),
]


class Observation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tool outputs that a client saw, grouped by tool and outcome.

    `sizes` is how many of them, as the tools returned them, fell into each class of `SIZE_BOUNDS`; without
    it they are counted in no histogram. Raises `ValueError` where it does not add up to `count`.
    """

    tool: Annotated[str, Meta(max_length=MAX_VALUE)]
    outcome: Outcome
    count: Count
    bytes_before: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    bytes_after: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    sizes: _Sizes | None = None

    def __post_init__(self) -> None:
        if self.sizes is not None and sum(self.sizes) != self.count:
            raise ValueError(f"sizes must add up to count: {sum(self.sizes)} is not {self.count}")


class Observations(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch of observations; one whose id was seen within `BATCH_MEMORY` is not counted again."""

    batch: Annotated[str, Meta(min_length=8, max_length=64, pattern="^[A-Za-z0-9_-]+$")]
    observations: Annotated[list[Observation], Meta(max_length=1000)]


class Accepted(Struct, frozen=True, kw_only=True):
    """The answer to a batch of observations: whether the metrics count them."""

    counted: bool


# --- problems (RFC 9457) --------------------------------------------------------------------------


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
    DAMAGED_ENCODING = "damaged_encoding"
    INCOMPLETE_BODY = "incomplete_body"
    DIGEST_MISMATCH = "digest_mismatch"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    NO_ROUTE = "no_route"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    EXPIRED = "expired"
    DELETED = "deleted"
    ID_CONFLICT = "id_conflict"
    CAPTURE_TOO_LARGE = "capture_too_large"
    BODY_TOO_LARGE = "body_too_large"
    RANGE_NOT_SATISFIABLE = "range_not_satisfiable"
    TOO_MANY_REQUESTS = "too_many_requests"
    QUOTA_EXCEEDED = "quota_exceeded"
    CAPTURE_DAMAGED = "capture_damaged"
    INTERNAL = "internal"
    STORE_UNAVAILABLE = "store_unavailable"
    STORE_FULL = "store_full"
    CATALOG_UNAVAILABLE = "catalog_unavailable"
    CATALOG_INCOMPLETE = "catalog_incomplete"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    OVERLOADED = "overloaded"
    OUT_OF_RESOURCES = "out_of_resources"
    SHUTTING_DOWN = "shutting_down"
    CLOCK_SKEWED = "clock_skewed"

    @property
    def status(self) -> int:
        return _CODES[self][0]

    @property
    def heading(self) -> str:
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
    Code.DAMAGED_ENCODING: (422, "The encoded body cannot be decoded"),
    Code.INCOMPLETE_BODY: (400, "The body ended before its announced length"),
    Code.DIGEST_MISMATCH: (400, "The content does not match its digest"),
    Code.UNAUTHORIZED: (401, "A valid key is needed"),
    Code.FORBIDDEN: (403, "The key lacks the scope that this needs"),
    Code.NOT_FOUND: (404, "There is no such capture"),
    Code.NO_ROUTE: (404, "There is nothing at this path"),
    Code.METHOD_NOT_ALLOWED: (405, "This path does not take this method"),
    Code.EXPIRED: (410, "The capture has expired"),
    Code.DELETED: (410, "The capture was deleted"),
    Code.ID_CONFLICT: (409, "The id holds another content"),
    Code.CAPTURE_TOO_LARGE: (413, "The capture is larger than the limit"),
    Code.BODY_TOO_LARGE: (413, "The body is larger than this path takes"),
    Code.RANGE_NOT_SATISFIABLE: (416, "No byte of the range exists"),
    Code.TOO_MANY_REQUESTS: (429, "Too many requests at once"),
    Code.QUOTA_EXCEEDED: (507, "The tenant's stored limit is reached"),
    Code.CAPTURE_DAMAGED: (500, "The stored bytes are damaged"),
    Code.INTERNAL: (500, "The service failed"),
    Code.STORE_UNAVAILABLE: (503, "The object store does not answer"),
    Code.STORE_FULL: (507, "The object store or the catalog is full"),
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
    retry_after: int | None = None
    """Seconds to wait before trying again."""


class Scope(StrEnum):
    """What a key may do."""

    WRITE = "write"
    READ = "read"
    DELETE = "delete"
    OBSERVE = "observe"
    ADMIN = "admin"
