"""Health: waiting memories are counted, judged and shown, at a cost that does not grow with the memories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, PlatformEvent
from apps.memories.models import BufferItem, Episode, JobRun, Memory, Mind, Upkeep
from apps.memories.services.jobs import health as health_module
from apps.memories.services.jobs.health import Health, read_health, watch_health
from apps.memories.services.jobs.job_runs import JobRunResult, expect_runs, record_job_run
from apps.memories.services.retention.buffer import add_buffer_items
from apps.memories.services.store.remember import store
from apps.tenants.scope import OPS, tenant_transaction
from arbor.memory.buffer import NewBufferItem
from arbor.memory.maintenance.health import Figure, HealthState, Limit, Metric
from tests.integration.memories.conftest import a_memory
from tests.support.database import recorded_statements


def figure(health: Health, metric: Metric) -> Figure:
    return next(figure for figure in health.figures if figure.metric is metric)


def store_memories(agent: Agent, count: int, **parts: Any) -> None:
    with tenant_transaction(agent.tenant_id):
        memories = [a_memory(f"Ticket {number} of {agent.id}.", **parts) for number in range(count)]
        store(agent_id=agent.id, memories=memories, vectors=None)


def test_an_installation_without_memories_is_healthy(database: None) -> None:
    health = read_health()
    assert health.state is HealthState.OK
    assert {figure.metric for figure in health.figures} == set(Metric)
    assert health.findings == []


def test_waiting_memories_are_judged_by_the_most_of_one_agent(
    mind: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    for agent, count in ((mind, 120), (other_mind, 3), (foreign_mind, 2)):
        store_memories(agent, count)
    health = read_health()
    stale = figure(health, Metric.STALE_NEIGHBORHOODS)
    assert (stale.count, stale.judged, stale.state) == (125, 120, HealthState.WARN)
    assert (
        HealthState.WARN,
        "neighborhoods stale or missing: 125 (120 of one agent)",
        stale.remedy,
    ) in health.findings
    with tenant_transaction(mind.tenant_id):
        Upkeep.objects.update(stale=False)
    assert figure(read_health(), Metric.STALE_NEIGHBORHOODS).count == 2


def test_ages_are_those_of_the_oldest_in_any_tenant(mind: Agent, foreign_mind: Agent) -> None:
    past = datetime.now(UTC) - timedelta(hours=7)
    store_memories(mind, 1, expires_at=datetime.now(UTC) + timedelta(hours=1))
    store_memories(foreign_mind, 2)
    with tenant_transaction(foreign_mind.tenant_id):
        Memory.objects.update(created_at=past, expires_at=past)
        add_buffer_items(agent_id=foreign_mind.id, items=[NewBufferItem(content="A parcel.")])
        BufferItem.objects.update(expires_at=past)
        Mind.objects.update(forgot_at=past - timedelta(days=3), cleaned_at=past, counted_at=past)
    health = read_health()
    for metric, count in ((Metric.EXPIRED, 2), (Metric.BUFFER_EXPIRED, 1), (Metric.UNEMBEDDED, 3)):
        measured = figure(health, metric)
        assert (measured.count, round(measured.judged / 3600), measured.state) == (
            count,
            7,
            HealthState.CRITICAL,
        ), metric
    overdue = figure(health, Metric.OVERDUE_FORGETTING)
    assert (overdue.count, overdue.state) == (1, HealthState.WARN)
    assert "texts without a vector: 3 (the oldest for 7 h)" in [what for _, what, _ in health.findings]


def test_an_age_of_fewer_seconds_than_memories_is_an_age(mind: Agent, settings: Any) -> None:
    settings.ARBOR_HEALTH_LIMITS = {Metric.UNEMBEDDED: Limit(warn=1, critical=100)}
    store_memories(mind, 5)
    with tenant_transaction(mind.tenant_id):
        Memory.objects.update(created_at=datetime.now(UTC) - timedelta(seconds=3))
    assert "texts without a vector: 5 (the oldest for 3 s)" in [what for _, what, _ in read_health().findings]


def test_closed_episodes_and_unreadable_texts_are_counted(mind: Agent, settings: Any) -> None:
    store_memories(mind, 1)
    now = datetime.now(UTC)
    with tenant_transaction(mind.tenant_id):
        Episode.objects.bulk_create(
            [
                Episode(
                    tenant_id=mind.tenant_id,
                    agent_id=mind.id,
                    started_at=now,
                    last_at=now,
                    ended_at=now,
                    session=str(n),
                )
                for n in range(12)
            ]
        )
        Memory.objects.update(embedding_model="refused: wordllama")
    settings.ARBOR_EMBEDDING_MODEL = "openai/other"
    health = read_health()
    assert (figure(health, Metric.UNSUMMARIZED_EPISODES).count, health.state) == (12, HealthState.WARN)
    assert figure(health, Metric.OTHER_EMBEDDER).count == 1
    assert "agents whose vectors are of another model than the settings name: 1" in [
        what for _, what, _ in health.findings
    ]
    assert figure(health, Metric.UNREADABLE).count == 1


def test_only_counts_that_stop_at_the_bound_are_marked(
    mind: Agent, other_mind: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_module, "MAX_COUNTED", 2)
    for agent in (mind, other_mind):
        store_memories(agent, 1)
    with tenant_transaction(mind.tenant_id):
        Memory.objects.update(created_at=datetime.now(UTC) - timedelta(hours=7))
        Mind.objects.update(forgot_at=datetime.now(UTC) - timedelta(days=3))
    settings.ARBOR_EMBEDDING_MODEL = "openai/other"
    findings = [what for _, what, _ in read_health().findings]
    assert "texts without a vector: 2 or more (the oldest for 7 h)" in findings
    assert "agents whose vectors are of another model than the settings name: 2" in findings
    assert "agents whose daily forgetting is late: 2 (the oldest for 2 d)" in findings


def test_a_memory_without_a_possible_vector_waits_for_no_cluster(mind: Agent) -> None:
    store_memories(mind, 3)
    assert figure(read_health(), Metric.UNCLUSTERED).count == 3
    with tenant_transaction(mind.tenant_id):
        Memory.objects.filter(content__startswith="Ticket 0").update(embedding_model="refused: wordllama")
    health = read_health()
    assert (figure(health, Metric.UNCLUSTERED).count, figure(health, Metric.UNREADABLE).count) == (2, 1)


def test_the_limits_are_settings(mind: Agent, settings: Any) -> None:
    store_memories(mind, 5)
    settings.ARBOR_HEALTH_LIMITS = {Metric.STALE_NEIGHBORHOODS: Limit(warn=2, critical=5)}
    assert figure(read_health(), Metric.STALE_NEIGHBORHOODS).state is HealthState.CRITICAL


def test_counting_is_bounded(mind: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_module, "MAX_COUNTED", 4)
    store_memories(mind, 9)
    assert figure(read_health(), Metric.STALE_NEIGHBORHOODS).count == 4


def test_health_takes_four_queries(mind: Agent) -> None:
    store_memories(mind, 3)
    with recorded_statements(OPS, control=True) as sent:
        read_health()
    assert len(sent) == 4


def test_job_runs_are_recorded_and_a_stopped_job_is_reported(database: None) -> None:
    record_job_run(
        name="arbor.decay.fade", period_s=60, seconds=1.5, result=JobRunResult(steps=3, done=7, failed=1)
    )
    (job,) = read_health().jobs
    assert (job.done, job.failed, job.state, job.error) == (7, 1, HealthState.WARN, "")
    assert job.finding == "the last run of the job arbor.decay.fade failed for 1 of its steps"
    assert "maintenance_failed" in job.remedy
    record_job_run(
        name="arbor.decay.fade", period_s=60, seconds=0.1, error=ValueError("the text of somebody's memory")
    )
    (job,) = read_health().jobs
    assert (job.error, job.state) == ("ValueError", HealthState.OK)
    JobRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(hours=2))
    health = read_health()
    assert health.state is HealthState.CRITICAL
    ((state, what, remedy),) = health.findings
    assert (state, what) == (HealthState.CRITICAL, "the job arbor.decay.fade has not succeeded for 2 h")
    assert "ValueError" in remedy
    record_job_run(name="arbor.decay.fade", period_s=60, seconds=0.1, result=0)
    assert read_health().state is HealthState.OK


def test_an_expected_job_that_never_runs_is_reported(database: None) -> None:
    expect_runs({"arbor.decay.fade": 60, "arbor.cleanup.expire": 300})
    assert read_health().state is HealthState.OK
    assert not any(job.has_run for job in read_health().jobs)
    JobRun.objects.update(first_at=datetime.now(UTC) - timedelta(hours=1))
    expect_runs({"arbor.decay.fade": 60, "arbor.cleanup.expire": 300})
    assert {job.name: job.state for job in read_health().jobs} == {
        "arbor.decay.fade": HealthState.CRITICAL,
        "arbor.cleanup.expire": HealthState.CRITICAL,
    }
    record_job_run(name="arbor.decay.fade", period_s=60, seconds=0.1, result=0)
    assert [job.name for job in read_health().jobs if job.has_run] == ["arbor.decay.fade"]
    states = {job.name: job.state for job in read_health().jobs}
    assert states == {"arbor.decay.fade": HealthState.OK, "arbor.cleanup.expire": HealthState.CRITICAL}


def test_a_job_that_is_switched_off_is_shown_as_off(database: None) -> None:
    expect_runs({"arbor.decay.fade": 60, "arbor.export": 10})
    JobRun.objects.update(first_at=datetime.now(UTC) - timedelta(hours=1))
    expect_runs({"arbor.decay.fade": 60})
    health = read_health()
    assert [name for name, job in health.as_json()["jobs"].items() if job["state"] == "off"] == [
        "arbor.export"
    ]
    assert len(health.findings) == 1


def test_a_mind_never_maintained_becomes_overdue(mind: Agent) -> None:
    store_memories(mind, 1)
    assert figure(read_health(), Metric.OVERDUE_FORGETTING).count == 0
    now = datetime.now(UTC)
    with tenant_transaction(mind.tenant_id):
        Mind.objects.update(created_at=now - timedelta(days=9))
    overdue = figure(read_health(), Metric.OVERDUE_FORGETTING)
    assert (overdue.count, overdue.state) == (1, HealthState.CRITICAL)
    with tenant_transaction(mind.tenant_id):
        # The mind has just grown: it is due at once, but not overdue.
        Mind.objects.update(forgot_at=now, cleaned_at=now, counted_at=None)
    assert figure(read_health(), Metric.OVERDUE_FORGETTING).count == 0


def test_a_change_of_state_is_audited_once(mind: Agent, settings: Any) -> None:
    def recorded_states() -> list[tuple[str, str | None]]:
        events = PlatformEvent.objects.using(OPS).filter(action=AuditAction.HEALTH_CHANGED).order_by("id")
        return [(event.detail["state"], event.detail["was"]) for event in events]

    watch_health()
    assert recorded_states() == [("ok", None)]
    store_memories(mind, 5)
    for limit in (Limit(warn=2, critical=50), Limit(warn=2, critical=5)):
        settings.ARBOR_HEALTH_LIMITS = {Metric.STALE_NEIGHBORHOODS: limit}
        watch_health()
        watch_health()
    settings.ARBOR_HEALTH_LIMITS = {}
    assert watch_health() is HealthState.OK
    assert recorded_states() == [("ok", None), ("warn", "ok"), ("critical", "warn"), ("ok", "critical")]
    worst = PlatformEvent.objects.using(OPS).filter(action=AuditAction.HEALTH_CHANGED).order_by("-id")[1]
    assert worst.detail["findings"][0]["what"] == "neighborhoods stale or missing: 5"
    assert str(mind.id) not in str(worst.detail)
