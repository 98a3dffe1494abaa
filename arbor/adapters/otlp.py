"""Send spans to an OpenTelemetry collector by OTLP over HTTP.

The exporter of OpenTelemetry reads the address, headers, certificates and compression from its own variables (`OTEL_EXPORTER_OTLP_…`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from arbor.errors import ConfigurationInvalid, DeliveryFailed
from arbor.quotations import counted
from arbor.telemetry import ERROR_TYPE, Span

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags
    from opentelemetry.util.re import parse_env_headers
    from requests import Session
except ImportError:  # the packages are optional
    INSTALLED = False
else:
    INSTALLED = True

if TYPE_CHECKING:
    from requests import Response

_SCOPE = "arbor"
#: The limit of one request.
_TIMEOUT_S = 10.0
#: Answers about the collector or a proxy, not about the spans.
_UNAVAILABLE = frozenset({408, 429, 502, 503, 504})
#: Variables by which the exporter of OpenTelemetry loads a session of its own.
_SESSION_VARIABLES = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_TRACES_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
)


class OtlpExporter:
    """Implements `arbor.telemetry.SpanExporter` by OTLP."""

    def __init__(self, *, service: str, headers: str = "") -> None:
        """Create an exporter; `service` names the installation, `headers` are NAME=VALUE by commas.

        Raises ConfigurationInvalid without the packages.
        """
        if not INSTALLED:
            raise ConfigurationInvalid(
                "spans need packages: install opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http, or unset"
                " OTEL_EXPORTER_OTLP_ENDPOINT"
            )
        session = None if any(map(os.environ.get, _SESSION_VARIABLES)) else Session()
        #: The status of the collector's last answer to a request; None: no answer.
        self._status: int | None = None
        if session is not None:
            session.hooks["response"].append(self._record_status)
        self._exporter = OTLPSpanExporter(
            timeout=_TIMEOUT_S, session=session, headers=parse_env_headers(headers, liberal=True) or None
        )
        # Adds OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
        self._resource = Resource.create({"service.name": service})

    def export(self, spans: Sequence[Span]) -> None:
        """Send spans. Raises DeliveryFailed when the collector does not accept them; `final` where it answered with a refusal."""
        self._status = None
        result = self._exporter.export([self._readable(span) for span in spans])
        if result is not SpanExportResult.SUCCESS:
            refused = self._status is not None and self._status not in _UNAVAILABLE
            raise DeliveryFailed(
                f"the OpenTelemetry collector did not accept {counted(len(spans), 'span')}",
                final=refused,
            )

    def close(self) -> None:
        """Close the connections."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _record_status(self, response: Response, **_: object) -> None:
        self._status = response.status_code

    def _readable(self, span: Span) -> ReadableSpan:
        attributes = {**span.attributes, **({ERROR_TYPE: span.error} if span.error else {})}
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=None if span.parent_id is None else _context(span.trace_id, span.parent_id),
            resource=self._resource,
            attributes=attributes,
            kind=SpanKind.CLIENT if span.client else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
            start_time=_nanoseconds(span.started_at),
            end_time=_nanoseconds(max(span.ended_at, span.started_at)),
            instrumentation_scope=InstrumentationScope(_SCOPE),
        )


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(at: datetime) -> int:
    # Whole microseconds: a float of seconds would round them.
    return int(at.timestamp()) * 1_000_000_000 + at.microsecond * 1000
