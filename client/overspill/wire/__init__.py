"""The contract between client and service: paths, headers, query names, bodies, problem codes.

Both sides import this package and mention no path, header or code of their own. It knows nothing of
HTTP libraries, storage or agents.
"""

from overspill.wire.captures import (
    DEFAULT_TTL,
    PREVIEW_LABEL,
    Amendment,
    Entry,
    Listing,
    PreviewKind,
    Removed,
    State,
    Usage,
)
from overspill.wire.headers import Header, decode_digest, decode_header, encode_digest, encode_header
from overspill.wire.identity import CALL_PREFIX, CAPTURE_ID, MAX_VALUE, call_id_of, capture_id, fit
from overspill.wire.observations import (
    BATCH_MEMORY,
    SIZE_BOUNDS,
    SIZE_CLASSES,
    Accepted,
    Observation,
    Observations,
    Outcome,
)
from overspill.wire.paths import DEFAULT_URL, VERSION, Path, Scope, encode_path
from overspill.wire.problems import PROBLEM_TYPE, Code, Problem
from overspill.wire.queries import (
    Count,
    GrepQuery,
    HeadQuery,
    LinesQuery,
    ListQuery,
    NoQuery,
    ReadQuery,
    RefQuery,
    TailQuery,
)
from overspill.wire.ranges import ByteRange, ContentRange
from overspill.wire.reads import Match, Repeated, Severity, Summary, Text, approx_tokens
from overspill.wire.statistics import MAX_ROWS, Stats, StatsQuery, StatsRow

__all__ = [
    "BATCH_MEMORY",
    "CALL_PREFIX",
    "CAPTURE_ID",
    "DEFAULT_TTL",
    "DEFAULT_URL",
    "MAX_ROWS",
    "MAX_VALUE",
    "PREVIEW_LABEL",
    "PROBLEM_TYPE",
    "SIZE_BOUNDS",
    "SIZE_CLASSES",
    "VERSION",
    "Accepted",
    "Amendment",
    "ByteRange",
    "Code",
    "ContentRange",
    "Count",
    "Entry",
    "GrepQuery",
    "HeadQuery",
    "Header",
    "LinesQuery",
    "ListQuery",
    "Listing",
    "Match",
    "NoQuery",
    "Observation",
    "Observations",
    "Outcome",
    "Path",
    "PreviewKind",
    "Problem",
    "ReadQuery",
    "RefQuery",
    "Removed",
    "Repeated",
    "Scope",
    "Severity",
    "State",
    "Stats",
    "StatsQuery",
    "StatsRow",
    "Summary",
    "TailQuery",
    "Text",
    "Usage",
    "approx_tokens",
    "call_id_of",
    "capture_id",
    "decode_digest",
    "decode_header",
    "encode_digest",
    "encode_header",
    "encode_path",
    "fit",
]
