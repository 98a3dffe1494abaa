"""Serve `/metrics` in the format of Prometheus: figures of the installation without tenants' data; closed by default."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from apps.console.access import is_platform_operator
from apps.contacts.services import outbox
from apps.heartbeats.services.reports.status import FleetStatus, fleet_status
from apps.memories.services.jobs.health import MAX_COUNTED, OFF
from arbor.memory.maintenance.health import HealthState

_CLOSED = (
    "closed: show ARBOR_METRICS_TOKEN as a bearer token, or sign in as an operator of the installation\n"
)


@login_not_required
@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the figures to requests with the token, and to signed-in superusers."""
    if not (_has_token(request) or is_platform_operator(request)):
        return HttpResponse(
            _CLOSED, status=401, content_type="text/plain", headers={"WWW-Authenticate": "Bearer"}
        )
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(fleet_status()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _has_token(request: HttpRequest) -> bool:
    """Return whether the request has the configured token; False if none is configured."""
    wanted: str = settings.ARBOR_METRICS_TOKEN
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if not wanted or scheme.casefold() != "bearer":
        return False
    return hmac.compare_digest(token.strip().encode(), wanted.encode())


class _Figures(Collector):
    """Collects the figures of the fleet as gauges."""

    def __init__(self, fleet: FleetStatus) -> None:
        self._fleet = fleet

    def collect(self) -> Iterator[Metric]:
        fleet = self._fleet
        yield from _heartbeat_metrics(fleet)
        yield _gauge_by_label("arbor_agents", "Agents.", "status", fleet.agents)
        yield _gauge_by_label("arbor_queue_workers", "Workers that consume a queue.", "queue", fleet.queues)
        yield _gauge("arbor_calls_pending", "Model calls that wait.", fleet.backlogs["pending_calls"])
        yield from _outbox_metrics(fleet)
        yield _gauge_by_label(
            "arbor_agents_noticed", "Agents by problem in their recent activity.", "kind", fleet.notices
        )
        yield from _usage_metrics(fleet)
        yield _gauge(
            "arbor_proposals_pending", "Proposals that wait for a decision.", fleet.pending_proposals
        )
        yield _gauge("arbor_scheduler_alive", "1 while the scheduler is alive.", fleet.scheduler_alive)
        yield from _maintenance_metrics(fleet.maintenance)


def _heartbeat_metrics(fleet: FleetStatus) -> Iterator[Metric]:
    heartbeats = fleet.heartbeats
    ended = {
        "completed": heartbeats.completed,
        "failed": heartbeats.failed,
        "skipped": heartbeats.skipped,
    }
    yield _gauge_by_label(
        "arbor_heartbeats_day", "Ended heartbeats that began in the last 24 hours.", "outcome", ended
    )
    now = {
        "due": heartbeats.due,
        "queued": heartbeats.queued,
        "running": heartbeats.running,
        "lost": heartbeats.lost_leases,
    }
    yield _gauge_by_label("arbor_heartbeats_now", "Heartbeats due or under way.", "state", now)
    yield _gauge(
        "arbor_heartbeat_oldest_due_seconds",
        "Seconds since the oldest due heartbeat was due.",
        heartbeats.oldest_due_s,
    )


def _outbox_metrics(fleet: FleetStatus) -> Iterator[Metric]:
    figures = fleet.outbox
    states = {"waiting": figures["waiting"], "failed": figures["failed"]}
    yield _gauge_by_label(
        "arbor_outbox_messages",
        f"Messages of agents that are not delivered; each count stops at {outbox.MAX_COUNTED}.",
        "state",
        states,
    )
    yield _gauge(
        "arbor_outbox_oldest_due_seconds",
        "Seconds since the oldest due message was due.",
        figures["oldest_due_s"],
    )


def _usage_metrics(fleet: FleetStatus) -> Iterator[Metric]:
    usage = fleet.usage
    yield _gauge("arbor_model_calls_today", "Model calls of today (UTC).", usage.calls)
    yield _gauge("arbor_model_tokens_today", "Tokens of today's model calls.", usage.tokens)
    yield _gauge("arbor_model_cost_usd_today", "Cost of today's model calls in US dollars.", usage.cost_usd)
    yield _gauge(
        "arbor_agents_short_of_budget", "Agents whose budget of today is low or used up.", usage.agents_short
    )


def _maintenance_metrics(health: Mapping[str, Any]) -> Iterator[Metric]:
    figures, jobs = health["figures"], health["jobs"]
    yield _gauge_of_rows(
        "arbor_maintenance_backlog",
        f"Rows that wait for maintenance; most counts stop at {MAX_COUNTED}.",
        "figure",
        figures,
        "count",
    )
    yield _gauge_of_rows(
        "arbor_maintenance_judged",
        "The number that decides the state: a count, the most of one agent, or an age in seconds.",
        "figure",
        figures,
        "judged",
    )
    states = {name: HealthState(figure["state"]).rank for name, figure in figures.items()}
    yield _gauge_by_label("arbor_maintenance_state", "0: ok, 1: warn, 2: critical.", "figure", states)
    yield _gauge_of_rows("arbor_job_seconds", "Duration of a job's last run.", "job", jobs, "seconds")
    yield _gauge_of_rows(
        "arbor_job_done",
        "Units of work that a job's last run did, as the job counts them.",
        "job",
        jobs,
        "done",
    )
    yield _gauge_of_rows(
        "arbor_job_failed_steps", "Steps of a job's last run that failed.", "job", jobs, "failed"
    )
    ages = {name: job["succeeded_ago_s"] for name, job in jobs.items() if job["succeeded_ago_s"] is not None}
    yield _gauge_by_label(
        "arbor_job_last_success_age_seconds", "Seconds since the job's last success.", "job", ages
    )
    # A job that is switched off has no state of health.
    states = {name: HealthState(job["state"]).rank for name, job in jobs.items() if job["state"] != OFF}
    yield _gauge_by_label("arbor_job_state", "0: ok, 1: warn, 2: critical.", "job", states)


def _gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(name, description, value=float(value))


def _gauge_by_label(name: str, description: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, description, labels=[label])
    for key, value in values.items():
        family.add_metric([key], float(value))
    return family


def _gauge_of_rows(
    name: str, description: str, label: str, rows: Mapping[str, Mapping[str, Any]], part: str
) -> Metric:
    return _gauge_by_label(name, description, label, {key: row[part] for key, row in rows.items()})
