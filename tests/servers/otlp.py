"""A collector of spans on loopback: OTLP over HTTP, its protobuf decoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

from tests.lazy import LazyModule

messages = LazyModule("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
PATIENCE: Final = 30.0
"""Seconds."""


class Received(NamedTuple):
    """One span as a collector has it."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    facts: dict[str, str]
    resource: dict[str, str]


class Collector:
    """What was sent to `url` so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._spans: list[Received] = []
        self._changed = threading.Condition()

    def take(self, body: bytes) -> None:
        """Decode one request of an exporter."""
        request = messages.ExportTraceServiceRequest.FromString(body)
        with self._changed:
            for of_process in request.resource_spans:
                resource = _facts(of_process.resource.attributes)
                for scope in of_process.scope_spans:
                    self._spans += [_received(span, resource) for span in scope.spans]
            self._changed.notify_all()

    def wait_for(self, count: int, name: str) -> list[Received]:
        """The spans of a name, once there are `count` of them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._named(name)) >= count, PATIENCE), self._spans
            return self._named(name)

    def _named(self, name: str) -> list[Received]:
        return [span for span in self._spans if span.name == name]


def _received(span: Any, resource: dict[str, str]) -> Received:
    ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
    return Received(span.name, *ids, span.kind, _facts(span.attributes), resource)


def _facts(attributes: Any) -> dict[str, str]:
    return {each.key: str(each.value.string_value or each.value.int_value) for each in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            collector.take(decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join(PATIENCE)
        server.server_close()
