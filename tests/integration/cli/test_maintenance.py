"""`arbor status`, `arbor doctor` and `arbor ops calls`: late jobs and failed maintenance calls, each with a remedy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.agents.models import Agent
from apps.calls.models import CallStatus, ExternalCall
from apps.memories.models import JobRun
from apps.memories.services.jobs.job_runs import record_job_run
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.heartbeats import MaintenanceCallFactory
from tests.integration.cli.conftest import Arbor

LATE = "the job arbor.decay.fade_memories has not succeeded for 2 h"


def make_a_job_late() -> None:
    record_job_run(name="arbor.decay.fade_memories", period_s=300, seconds=1)
    JobRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(hours=2))


def test_status_is_ok_without_late_jobs(arbor: Arbor) -> None:
    assert "keeps up" in arbor("status").out
    shown = arbor("status", "--json").json["maintenance"]
    assert (shown["state"], shown["findings"]) == ("ok", [])
    assert shown["figures"]["stale_neighborhoods"] == {
        "count": 0,
        "judged": 0,
        "limit": "100:10000",
        "state": "ok",
        "remedy": "",
    }


def test_status_names_a_late_job_and_its_remedy(arbor: Arbor) -> None:
    make_a_job_late()
    out = " ".join(arbor("status").out.split())
    assert LATE in out
    assert "check that its worker and the scheduler run" in out
    shown = arbor("status", "--json").json["maintenance"]
    assert [finding["what"] for finding in shown["findings"]] == [LATE]
    assert shown["jobs"]["arbor.decay.fade_memories"]["state"] == "critical"


def test_doctor_fails_for_a_late_job(arbor: Arbor) -> None:
    def verdict_and_detail() -> tuple[str, str]:
        checks = {check["check"]: check for check in arbor("doctor", "--json").json["checks"]}
        return checks["maintenance"]["verdict"], checks["maintenance"]["detail"]

    assert verdict_and_detail() == ("ok", "keeps up; jobs that have reported: 0")
    make_a_job_late()
    assert verdict_and_detail() == ("fail", LATE)


@pytest.fixture
def agents(tenant: Tenant) -> list[Agent]:
    """Return two agents with a failed maintenance call each."""
    with tenant_transaction(tenant.id):
        created = [AgentFactory.create(name=name) for name in ("Vega", "Altair")]
        for agent in created:
            MaintenanceCallFactory.create(agent=agent, ended_at=agent.created_at)
    return created


def test_failed_calls_are_listed_with_their_reason(arbor: Arbor, agents: list[Agent]) -> None:
    assert "ReplyInvalid: expected a JSON object" in arbor("ops", "calls").out
    (failed,) = arbor("ops", "calls", "--agent", "Vega", "--json").json["failed"]
    assert (failed["agent"], failed["purpose"], failed["about"]) == ("Vega", "summarize", "an episode")


def test_failed_calls_are_retried_for_one_agent_or_all(
    arbor: Arbor, agents: list[Agent], tenant: Tenant
) -> None:
    assert arbor("ops", "calls", "--agent", "Vega", "--retry", "--json").json["retried"] == 1
    assert arbor("ops", "calls", "--json").json["failed"][0]["agent"] == "Altair"
    assert "1 failed call is retried" in arbor("ops", "calls", "--retry").out
    assert "No maintenance call has failed." in arbor("ops", "calls").out
    with tenant_transaction(tenant.id):
        assert {call.status for call in ExternalCall.objects.all()} == {CallStatus.RETRIED}
