"""Spans of heartbeats, exported once, from the position of the last run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.agents.models import Agent
from apps.heartbeats.models import SpanExport
from apps.heartbeats.services.reports.spans import export_spans, export_to
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from arbor.adapters import otlp
from arbor.errors import ConfigurationInvalid, DeliveryFailed
from arbor.telemetry import TENANT, Span
from tests.integration.heartbeats.conftest import run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of
from workers import tasks
from workers.schedule import entries


class FakeCollector:
    """Collects spans, unless it is down."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.down = False
        #: The slug of a tenant whose spans are refused.
        self.refused = ""
        self.requests = 0

    def export(self, spans: Sequence[Span]) -> None:
        self.requests += 1
        if self.down:
            raise DeliveryFailed("the collector is down")
        if self.refused in [span.attributes.get(TENANT) for span in spans]:
            raise DeliveryFailed("the collector refuses", final=True)
        self.spans += spans

    @property
    def roots(self) -> list[Span]:
        return [span for span in self.spans if span.parent_id is None]


@pytest.fixture
def collector(agent: Agent) -> FakeCollector:
    """Return a collector of the spans from now on."""
    collector = FakeCollector()
    assert export_to(collector) == 0
    return collector


def test_a_heartbeat_becomes_one_trace(
    collector: FakeCollector, fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(reply_of(thinking="Quiet.", actions=[action_of("remember", content="The reef is red.")]))
    heartbeat = run_heartbeat(fleet, agent)

    assert export_to(collector) == 1
    assert {span.trace_id for span in collector.spans} == {heartbeat.id.int}
    (root,) = collector.roots
    assert root.name == f"invoke_agent {agent.name}"
    assert root.attributes["arbor.heartbeat.status"] == "done"
    (call,) = [span for span in collector.spans if span.client]
    assert root.started_at <= call.started_at <= call.ended_at <= root.ended_at
    names = {span.name for span in collector.spans}
    assert {"execute_tool remember", "node act"} <= names
    # No text of the mind is sent.
    assert "reef" not in str([span.attributes for span in collector.spans])


def test_each_heartbeat_is_exported_once(
    collector: FakeCollector, fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(reply_of(thinking="Quiet."), repeat=True)
    first = run_heartbeat(fleet, agent)
    assert (export_to(collector), export_to(collector)) == (1, 0)
    second = run_heartbeat(fleet, agent)
    assert export_to(collector) == 1
    assert [span.trace_id for span in collector.roots] == [first.id.int, second.id.int]


def test_spans_arrive_after_the_collector_was_down(
    collector: FakeCollector, fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(reply_of(thinking="Quiet."))
    heartbeat = run_heartbeat(fleet, agent)
    collector.down = True
    with pytest.raises(DeliveryFailed):
        export_to(collector)
    collector.down = False
    assert export_to(collector) == 1
    assert [span.trace_id for span in collector.roots] == [heartbeat.id.int]


def test_a_collector_that_is_down_is_tried_for_one_tenant(
    fleet: Fleet, tenant: Tenant, other_tenant: Tenant, new_agent: Callable[..., Agent], scripted: Script
) -> None:
    agents = new_agent(tenant), new_agent(other_tenant)
    collector = FakeCollector()
    export_to(collector)
    scripted(reply_of(thinking="Quiet."), repeat=True)
    for agent in agents:
        run_heartbeat(fleet, agent)
    collector.down = True
    with pytest.raises(DeliveryFailed):
        export_to(collector)
    assert collector.requests == 1


def test_a_tenant_with_refused_spans_does_not_hold_up_others(
    fleet: Fleet, tenant: Tenant, other_tenant: Tenant, new_agent: Callable[..., Agent], scripted: Script
) -> None:
    agent, other = new_agent(tenant), new_agent(other_tenant)
    collector = FakeCollector()
    export_to(collector)
    with tenant_transaction(tenant.id):
        SpanExport.objects.update(exported_at=timezone.now() - timedelta(hours=1))
    scripted(reply_of(thinking="Quiet."), repeat=True)
    refused, accepted = run_heartbeat(fleet, agent), run_heartbeat(fleet, other)
    collector.refused = tenant.slug
    with pytest.raises(DeliveryFailed):
        export_to(collector)
    assert [span.trace_id for span in collector.roots] == [accepted.id.int]
    collector.refused = ""
    assert export_to(collector) == 1
    assert [span.trace_id for span in collector.roots] == [accepted.id.int, refused.id.int]


def test_a_new_tenant_starts_at_the_present(
    collector: FakeCollector, fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(reply_of(thinking="Quiet."))
    run_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        SpanExport.objects.all().delete()
    other = create_tenant(slug="spans-other", name="Other")
    assert export_to(collector) == 0
    assert collector.spans == []
    with tenant_transaction(other.id):
        assert SpanExport.objects.count() == 1


def test_the_job_runs_only_with_a_collector(
    agent: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ARBOR_EXPORT_SPANS = False
    assert export_spans() == 0
    assert "arbor.outbox.export_spans" not in entries()

    settings.ARBOR_EXPORT_SPANS, settings.OTEL_EXPORTER_OTLP_HEADERS = True, "X-Key=secret"
    assert entries()["arbor.outbox.export_spans"]["options"]["queue"] == "outbox"

    def missing(*, service: str, headers: str) -> FakeCollector:
        assert headers == "X-Key=secret"
        raise ConfigurationInvalid("install opentelemetry-sdk")

    monkeypatch.setattr(otlp, "OtlpExporter", missing)
    with pytest.raises(ConfigurationInvalid, match="opentelemetry-sdk"):
        export_spans()


def test_a_collector_that_is_down_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> int:
        raise DeliveryFailed("the OpenTelemetry collector did not accept 4 spans")

    monkeypatch.setattr(tasks, "export_spans", refuse)
    caplog.set_level(logging.INFO, "celery.app.trace")
    tasks.export_heartbeat_spans.apply()
    (record,) = [record for record in caplog.records if record.name == "celery.app.trace"]
    assert (record.levelname, record.exc_info) == ("INFO", None)
