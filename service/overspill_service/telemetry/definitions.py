"""Every metric of the service, declared once.

/metrics, the page service/docs/metrics.md, and the tests of rules and dashboards read these declarations.
Names follow Prometheus' conventions: base units, the unit last, `_total` for counters
(https://prometheus.io/docs/practices/naming/). No label is a session, call or capture id.
"""

from __future__ import annotations

from typing import Final

from overspill.wire import SIZE_BOUNDS, Code, Outcome, PreviewKind

from overspill_service.telemetry.metric import (
    Kind,
    Label,
    Merge,
    Metric,
    counter,
    gauge,
    histogram,
    kept,
    of_process,
)

_TENANT: Final = Label("tenant")
_TOOL: Final = Label("tool")
_KEY: Final = Label("key")
_BACKEND: Final = Label("backend", ("store", "catalog"))
_DONE_OR_FAILED: Final = Label("result", ("done", "failed"))
_ROUTE: Final = Label("route"), Label("method")
_OPERATION: Final = _BACKEND, Label("operation")
_OUTPUT: Final = _TENANT, _TOOL, Label("outcome", tuple(Outcome))
_PREVIEW: Final = Label("preview", (*PreviewKind, "none"))
_MODE: Final = Label("mode", ("content", "head", "tail", "lines", "grep", "summary"))

SIZE_CLASSES: Final = (16 * 1024, 64 * 1024, 256 * 1024, 1024**2, 4 * 1024**2, 16 * 1024**2)
"""Inclusive bounds in bytes; what is larger than all is in the class `more`."""
_SIZE: Final = Label("size", (*map(str, SIZE_CLASSES), "more"))

_SIZES: Final = tuple(float(4**power) for power in range(5, 18))
"""Bytes: 1 KiB to 16 GiB."""
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

TOOL_OUTPUTS: Final = kept("tool_outputs", "Tool outputs seen by clients.", *_OUTPUT)
TOOL_OUTPUT_BYTES: Final = kept("tool_output_bytes", "Bytes of tool outputs as they were.", *_OUTPUT)
TOOL_OUTPUT_KEPT_BYTES: Final = kept(
    "tool_output_kept_bytes", "Bytes of tool outputs that entered a conversation.", *_OUTPUT
)
TOKENS_KEPT_OUT: Final = kept(
    "tool_output_tokens_kept_out",
    "Tokens of tool outputs that notices kept out of conversations, as clients estimate them.",
    *(_TENANT, _TOOL),
)
IDENTICAL_OUTPUTS: Final = kept(
    "identical_tool_outputs",
    "Spilled tool outputs with the same bytes as an earlier one of the session.",
    *(_TENANT, _TOOL),
)
RERUN_BURSTS: Final = kept(
    "tool_rerun_bursts",
    "Bursts of calls: a tool was called again and again in a session soon after a notice.",
    *(_TENANT, _TOOL),
)
TOOL_OUTPUT_SIZE: Final = histogram(
    "tool_output_size_bytes",
    "Sizes of tool outputs as they were, from clients that report them.",
    tuple(map(float, SIZE_BOUNDS)),
    _TENANT,
)

CAPTURES: Final = kept(
    "captures", "Captures by result.", _TENANT, _TOOL, Label("result", ("created", "repeated"))
)
CAPTURE_BYTES: Final = kept("capture_bytes", "Bytes of content of new captures.", _TENANT, _TOOL)
CAPTURE_STORED_BYTES: Final = kept("capture_stored_bytes", "Bytes stored for new captures.", _TENANT, _TOOL)
CAPTURE_SIZE: Final = histogram("capture_size_bytes", "Sizes of new captures.", _SIZES, _TENANT)
CAPTURES_READ: Final = kept("captures_read", "Captures that were read for the first time.", _TENANT, _TOOL)
FIRST_READ_DELAY: Final = histogram(
    "first_read_delay_seconds",
    "Time from the end of a capture's upload to its first read.",
    (1, 5, 15, 60, 300, 1800, 3600, 6 * 3600, 86400, 7 * 86400),
    _TENANT,
)
PREVIEWED_CAPTURES: Final = counter(
    "previewed_captures", "New captures by the kind of preview in their notice.", _TENANT, _PREVIEW
)
PREVIEWED_CAPTURES_READ: Final = counter(
    "previewed_captures_read",
    "Captures that were read for the first time, by the kind of preview in their notice.",
    *(_TENANT, _PREVIEW),
)
CAPTURES_BY_SIZE: Final = kept(
    "captures_by_size", "New captures by the class of their size, named by its bound.", _TENANT, _TOOL, _SIZE
)
CAPTURES_READ_AT_ONCE: Final = kept(
    "captures_read_at_once",
    "Captures that were read for the first time within a minute, by the class of their size.",
    *(_TENANT, _TOOL, _SIZE),
)
READS: Final = kept("reads", "Reads of captures by mode.", _TENANT, _TOOL, _MODE)
READ_BYTES: Final = counter("read_bytes", "Bytes of answers to reads.", _TENANT, _MODE)
STORED_CAPTURES: Final = gauge(
    "stored_captures", "Captures that are stored now. The same on every replica.", _TENANT, merge=Merge.MAX
)
STORED_BYTES: Final = gauge(
    "stored_bytes", "Bytes that they take in the object store.", _TENANT, merge=Merge.MAX
)
STORED_CONTENT_BYTES: Final = gauge(
    "stored_content_bytes", "Bytes of their content before compression.", _TENANT, merge=Merge.MAX
)
SPOOL_UPLOADS: Final = counter(
    "spool_uploads", "New captures that waited in a client's spool before they were uploaded.", _TENANT
)
SPOOL_WAIT: Final = histogram(
    "spool_wait_seconds",
    "How long they waited there.",
    (5, 30, 60, 300, 1800, 3600, 6 * 3600, 86400),
    _TENANT,
)
SPOOLED_CAPTURES: Final = gauge(
    "spooled_captures",
    "Captures that wait in clients' spools, by their last reports. The same on every replica.",
    _TENANT,
    merge=Merge.MAX,
)
SPOOLED_BYTES: Final = gauge("spooled_bytes", "Bytes that wait there.", _TENANT, merge=Merge.MAX)
SPOOLED_AGE: Final = gauge(
    "spooled_oldest_seconds", "How long the oldest of them has waited.", _TENANT, merge=Merge.MAX
)
SCAN_CPU: Final = Metric(
    kind=Kind.COUNTER,
    name="scan_cpu_seconds",
    help="Seconds of CPU time of greps and summaries.",
    labels=(_TENANT,),
    is_detail=True,
)
SCAN_WAIT: Final = Metric(
    kind=Kind.HISTOGRAM,
    name="scan_wait_seconds",
    help="How long batches of greps and summaries waited for a thread.",
    labels=(_TENANT,),
    buckets=(0.001, 0.01, 0.1, 1, 10),
    is_detail=True,
)
LIVE_CAPTURES: Final = gauge(
    "live_captures", "Captures that are live now. The same on every replica.", _TENANT, merge=Merge.MAX
)
LIVE_UNSTORED_BYTES: Final = gauge(
    "live_unstored_bytes",
    "Bytes of live captures that are accepted and not durable. The same on every replica.",
    _TENANT,
    merge=Merge.MAX,
)
UNCOMPACTED_CAPTURES: Final = gauge(
    "uncompacted_captures",
    "Finished captures that wait to be moved into fewer objects. The same on every replica.",
    merge=Merge.MAX,
)
LIVE_APPENDS: Final = counter("live_appends", "Appends to live captures.", _TENANT)
LIVE_APPEND_BYTES: Final = counter("live_append_bytes", "Bytes of content that they added.", _TENANT)
LIVE_SEGMENTS: Final = counter(
    "live_segments", "Segments of live captures by result.", _TENANT, _DONE_OR_FAILED
)
LIVE_DURABLE_DELAY: Final = histogram(
    "live_durable_delay_seconds",
    "Time from the acceptance of a segment's first byte until it was durable.",
    (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900),
)
VANISHED_PRODUCERS: Final = counter(
    "vanished_producers", "Captures that became partial because their producers were gone.", _TENANT
)
FOLLOWERS: Final = gauge("followers", "Clients that follow captures now.")
WAITS: Final = gauge("waits", "Waits that go on now.")
WAITS_ENDED: Final = counter(
    "waits_ended",
    "Waits by why they ended. Gone: the client hung up.",
    Label("reason", ("pattern", "lines", "ended", "timeout", "gone", "failed")),
)
UPLOADS_IN_PROGRESS: Final = gauge("uploads_in_progress", "Uploads in progress.")
SWEPT_CAPTURES: Final = counter("swept_captures", "Captures removed by sweeps.")
SWEEPS: Final = counter("sweeps", "Sweeps by result.", _DONE_OR_FAILED)
ORPHAN_BYTES: Final = gauge(
    "orphan_bytes",
    "Stored bytes that no capture needs, running uploads included, at the last search for orphans.",
)

HTTP_REQUESTS: Final = counter("http_requests", "Requests by route and status.", *_ROUTE, Label("status"))
HTTP_REQUEST_SECONDS: Final = histogram("http_request_seconds", "Time to answer.", _SECONDS, *_ROUTE)
PROBLEMS: Final = counter("problems", "Problems answered, by code.", Label("code", tuple(Code)))
TENANT_REQUESTS: Final = counter(
    "tenant_requests",
    "Requests by tenant, key and problem code. Tenant and key are empty without a valid key.",
    *(_TENANT, _KEY, Label("code")),
)
TENANT_RECEIVED_BYTES: Final = counter("tenant_received_bytes", "Bytes of bodies of requests.", _TENANT, _KEY)
TENANT_SENT_BYTES: Final = counter("tenant_sent_bytes", "Bytes of bodies of answers.", _TENANT, _KEY)

BACKEND_OPERATIONS: Final = counter(
    "backend_operations", "Operations of the back ends.", *_OPERATION, _DONE_OR_FAILED
)
BACKEND_OPERATION_SECONDS: Final = histogram(
    "backend_operation_seconds", "Time of back-end operations.", _SECONDS, *_OPERATION
)
CATALOG_DAMAGED_RECORDS: Final = counter(
    "catalog_damaged_records",
    "Records of the catalog that cannot be decoded, by result.",
    Label("result", ("mended", "left")),
)
CLOCK_SKEW: Final = gauge(
    "clock_skew_seconds",
    "Seconds by which this machine's clock differs from that of the back ends.",
    merge=Merge.MAX,
)
FREE_BYTES: Final = gauge(
    "free_bytes",
    "Free bytes of the disk that holds a back end in the data directory.",
    Label("backend"),
    merge=Merge.MAX,
)
FREE_INODES: Final = gauge(
    "free_inodes",
    "Free inodes of the disk that holds a back end in the data directory.",
    Label("backend"),
    merge=Merge.MAX,
)
BUILD_INFO: Final = gauge(
    "build_info",
    "1, with the versions of service and Python.",
    Label("version"),
    Label("python"),
    merge=Merge.MAX,
)
PROCESS_CPU: Final = of_process(Kind.COUNTER, "cpu_seconds", "User and system CPU time in seconds.")
PROCESS_MEMORY: Final = of_process(Kind.GAUGE, "resident_memory_bytes", "Resident memory in bytes.")
PROCESS_OPEN_FDS: Final = of_process(Kind.GAUGE, "open_fds", "Open file descriptors.")
PROCESS_MAX_FDS: Final = of_process(Kind.GAUGE, "max_fds", "File descriptors that may be open.")
PROCESS_START_TIME: Final = Metric(
    kind=Kind.GAUGE,
    name="process_start_time_seconds",
    help="Start of the process in seconds since the epoch, of the youngest worker.",
    namespace="",
    merge=Merge.MAX,
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
