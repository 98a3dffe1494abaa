"""Spans sent by OTLP over HTTP, to a collector of this process."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from arbor.adapters import otlp
from arbor.adapters.otlp import OtlpExporter
from arbor.errors import ConfigurationInvalid, DeliveryFailed
from arbor.telemetry import heartbeat_spans
from tests.unit.test_telemetry import ID, a_heartbeat


class Collector(ThreadingHTTPServer):
    """Records the requests that it gets, and answers with a status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.headers.append(self.headers.get("X-Key", ""))
        self.server.requests.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_collector_receives_the_trace_of_a_heartbeat(collector: Collector) -> None:
    spans = heartbeat_spans(a_heartbeat())
    exporter = OtlpExporter(service="arbor", headers="x-key=secret")
    exporter.export(spans)
    exporter.close()

    (request,) = collector.requests
    (resource,) = request.resource_spans
    assert {item.key: item.value.string_value for item in resource.resource.attributes}[
        "service.name"
    ] == "arbor"
    received = list(resource.scope_spans[0].spans)
    assert [span.name for span in received] == [span.name for span in spans]
    assert {span.trace_id for span in received} == {ID.bytes}
    assert received[0].parent_span_id == b""
    assert {span.parent_span_id for span in received[1:]} == {received[0].span_id}
    assert received[0].end_time_unix_nano - received[0].start_time_unix_nano == 900_000_000
    attributes = {item.key: item.value.string_value for item in received[-1].attributes}
    assert attributes["error.type"] == "failed"
    assert collector.headers == ["secret"]


def test_a_collector_that_refuses_is_an_error(collector: Collector) -> None:
    collector.status = 400
    exporter = OtlpExporter(service="arbor")
    with pytest.raises(DeliveryFailed, match="did not accept 6 spans") as failure:
        exporter.export(heartbeat_spans(a_heartbeat()))
    with pytest.raises(DeliveryFailed, match=r"did not accept 1 span$"):
        exporter.export(heartbeat_spans(a_heartbeat())[:1])
    exporter.close()
    assert failure.value.final


def test_a_collector_without_an_answer_has_refused_nothing(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "_TIMEOUT_S", 0.2)
    collector.server_close()
    exporter = OtlpExporter(service="arbor")
    with pytest.raises(DeliveryFailed) as failure:
        exporter.export(heartbeat_spans(a_heartbeat()))
    exporter.close()
    assert not failure.value.final


def test_the_packages_are_named_where_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "INSTALLED", False)
    with pytest.raises(ConfigurationInvalid, match="opentelemetry-sdk"):
        OtlpExporter(service="arbor")
