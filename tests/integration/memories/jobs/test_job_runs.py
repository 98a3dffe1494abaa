"""Job runs: fair between tenants, bounded in time, and not delayed by failing agents."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.memories.services.jobs import job_runs
from apps.memories.services.jobs.job_runs import run_job
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory

ALL_AGENTS = "SELECT id AS agent_id FROM agents_agent WHERE tenant_id = t.id"


@pytest.fixture(autouse=True)
def _without_rests(settings: Any) -> None:
    settings.ARBOR_MAINTENANCE_SHARE = 1.0


def create_agents(tenant: Tenant, count: int) -> list[Agent]:
    with tenant_transaction(tenant.id):
        return list(AgentFactory.create_batch(count))


class RecordedJob:
    """A job with a number of steps for each agent, which records its calls."""

    def __init__(self, steps: int = 1) -> None:
        self._steps = steps
        self.visited: list[UUID] = []
        self.tenants: list[UUID] = []
        self.broken: set[UUID] = set()

    def visit(self, tenant_id: UUID, agent_id: UUID) -> int:
        self.visited.append(agent_id)
        self.tenants.append(tenant_id)
        if agent_id in self.broken:
            raise RuntimeError("a fault of this agent's memories")
        return int(self.visited.count(agent_id) <= self._steps)


def test_each_agent_gets_steps_until_no_work_is_left(tenant: Tenant, other_tenant: Tenant) -> None:
    agents = create_agents(tenant, 3) + create_agents(other_tenant, 2)
    job = RecordedJob(steps=4)
    job_run = run_job("test", waiting=ALL_AGENTS, step=job.visit)
    assert (job_run.steps, job_run.done, job_run.failed) == (25, 20, 0)
    assert {job.visited.count(agent.id) for agent in agents} == {5}


def test_a_failing_agent_delays_no_other_and_is_retried(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_runs, "_MAX_AGENTS_OF_TENANT", 2)
    agents = create_agents(tenant, 8)
    job = RecordedJob()
    job.broken = {agent.id for agent in agents[:5]}
    job_run = run_job("test", waiting=ALL_AGENTS, step=job.visit)
    assert (job_run.done, job_run.failed) == (3, 5)
    assert set(job.visited) == {agent.id for agent in agents}
    job.broken.clear()
    job.visited.clear()
    assert run_job("test", waiting=ALL_AGENTS, step=job.visit).done == 8


def test_a_tenant_with_much_to_do_takes_turns_with_the_others(
    tenant: Tenant,
    other_tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_runs, "_MAX_AGENTS_OF_TENANT", 3)
    create_agents(tenant, 30)
    (lone_agent,) = create_agents(other_tenant, 1)
    job = RecordedJob(steps=0)
    run_job("test", waiting=ALL_AGENTS, step=job.visit)
    assert job.visited.index(lone_agent.id) <= 3


def test_a_query_finds_more_agents_where_one_tenant_has_work(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_agents(tenant, 8)
    monkeypatch.setattr(job_runs, "_MAX_AGENTS_OF_TENANT", 3)
    find, found = job_runs._find_waiting, list[int]()

    def recorded(*arguments: Any) -> list[tuple[UUID, UUID]]:
        agents = find(*arguments)
        found.append(len(agents))
        return agents

    monkeypatch.setattr(job_runs, "_find_waiting", recorded)
    run_job("test", waiting=ALL_AGENTS, step=RecordedJob(steps=1).visit)
    # A new pass over all agents begins with few of each tenant.
    assert found[:5] == [3, 5, 0, 3, 5]


def test_all_agents_are_visited_before_one_is_visited_again(tenant: Tenant) -> None:
    agents = {agent.id for agent in create_agents(tenant, 30)}
    visited: list[UUID] = []

    def visit(_tenant_id: UUID, agent_id: UUID) -> int:
        visited.append(agent_id)
        return int(len(visited) < 90)

    run_job("endless", waiting=f"{ALL_AGENTS} ORDER BY id", step=visit)
    assert [set(visited[place : place + 30]) for place in (0, 30, 60)] == [agents] * 3


def test_a_short_run_is_continued_with_the_other_agents(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = {agent.id for agent in create_agents(tenant, 6)}
    visited: list[UUID] = []

    def visit(_tenant_id: UUID, agent_id: UUID) -> int:
        visited.append(agent_id)
        return 1

    # A step takes a second by this clock, so that two fit into a run.
    monkeypatch.setattr(time, "monotonic", lambda: float(len(visited)))
    for _ in range(3):
        run_job(
            "too short", waiting=f"{ALL_AGENTS} ORDER BY id", step=visit, max_duration=timedelta(seconds=2)
        )
    assert len(visited) == 6
    assert set(visited) == agents


@pytest.mark.bar
def test_a_job_run_ends_in_time(tenant: Tenant, settings: Any) -> None:
    settings.ARBOR_MAINTENANCE_SHARE = 0.01
    agents = create_agents(tenant, 30)
    visited: set[UUID] = set()

    def visit(_tenant_id: UUID, agent_id: UUID) -> int:
        time.sleep(0.02)
        visited.add(agent_id)
        return 1

    waiting = f"{ALL_AGENTS} AND id <> ALL(%(passed)s::uuid[])"
    started = time.monotonic()
    run_job("test", waiting=waiting, step=visit, max_duration=timedelta(seconds=0.3))
    # The rest after a long step does not outlast the job run.
    assert time.monotonic() - started < 1.5
    assert 1 <= len(visited) < len(agents)


def test_a_job_run_rests_between_its_steps_as_the_share_says(
    tenant: Tenant,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.ARBOR_MAINTENANCE_SHARE = 0.25
    create_agents(tenant, 2)
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    clock = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    run_job(
        "test", waiting=ALL_AGENTS, step=lambda _tenant_id, _agent_id: 0, max_duration=timedelta(seconds=500)
    )
    # A second of work by this clock is followed by three of rest.
    assert rests == [3.0, 3.0]


def test_a_job_run_without_waiting_agents_runs_no_step(tenant: Tenant) -> None:
    job_run = run_job("test", waiting=ALL_AGENTS, step=lambda _tenant_id, _agent_id: 1)
    assert job_run == job_runs.JobRunResult()
