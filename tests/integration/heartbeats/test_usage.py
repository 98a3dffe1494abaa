"""Daily usage: counted, compared with the limits of agent and tenant, and their effect on schedules."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent, HeartbeatSchedule
from apps.audit.models import AuditAction, AuditEvent
from apps.calls.models import DailyUsage
from apps.calls.services import usage
from apps.calls.services.usage import tenant_used
from apps.fleet.administration import limit_tenant
from apps.fleet.policy import set_policy
from apps.goals.models import Goal, Satisfaction
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import HeartbeatStatus
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from arbor.errors import Invalid
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.pacing import NextHeartbeat, next_heartbeat
from arbor.heartbeat.steps import orientation
from arbor.heartbeat.steps.goal_changes import BacklogEditor
from arbor.heartbeat.usage import renewed_at
from arbor.models.ports import ModelReply, ModelRequest, TextSink
from arbor.models.usage import Usage
from tests.integration.heartbeats.conftest import (
    REST,
    change_policy,
    heartbeats_of,
    run_heartbeat,
    schedule_of,
    state_of,
)
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.support.threads import in_own_connection


@pytest.fixture(autouse=True)
def no_cached_tenant_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each heartbeat sum up the usage of its tenant anew."""
    monkeypatch.setattr(usage, "TENANT_SUM_CACHED_S", 0.0)


def set_usage(agent: Agent, **used: Any) -> None:
    """Store what the agent has used today."""
    with tenant_transaction(agent.tenant_id):
        DailyUsage.objects.update_or_create(
            agent_id=agent.id, tenant_id=agent.tenant_id, day=datetime.now(UTC).date(), defaults=used
        )


def create_survival_goal(agent: Agent) -> Goal:
    """Create the goal to spend less, as the rule for survival does; return it."""
    with tenant_transaction(agent.tenant_id):
        return create_goal(
            agent_id=agent.id,
            title="Live within your means",
            source=GoalSource.SURVIVAL,
            layer=GoalLayer.TASK,
            rule="survival",
        )


def test_the_sum_of_a_tenant_is_not_that_of_the_day_before(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    class _Tomorrow(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> _Tomorrow:
            return cls.fromtimestamp(time.time(), tz) + timedelta(days=1)

    monkeypatch.setattr(usage, "TENANT_SUM_CACHED_S", 600.0)
    set_usage(agent, tokens=100)
    with tenant_transaction(agent.tenant_id):
        assert tenant_used().tokens == 100
        DailyUsage.objects.update(day=datetime.now(UTC).date() - timedelta(days=1))
        assert tenant_used().tokens == 100
        monkeypatch.setattr(usage, "datetime", _Tomorrow)
        assert tenant_used().tokens == 0


def test_usage_is_counted_once_for_each_heartbeat_and_call(
    fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scripted(REST, repeat=True)
    answer = model.complete

    def costly(request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None) -> ModelReply:
        usage = Usage(input_tokens=90, output_tokens=10)
        return replace(
            answer(request, deadline_s=deadline_s, on_text=on_text), usage=usage, cost_usd=Decimal("0.25")
        )

    monkeypatch.setattr(model, "complete", costly)
    run_heartbeat(fleet, agent)
    run_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        usage = DailyUsage.objects.get(agent_id=agent.id)
    assert (usage.heartbeats, usage.calls) == (2, 2)
    assert (usage.tokens, usage.cost_usd) == (200, Decimal("0.5"))


@pytest.mark.parametrize(
    ("used", "level"),
    [(30, "normal"), (50, "conservation"), (80, "degradation"), (95, "end_times"), (100, "halt")],
)
def test_a_low_budget_is_in_the_prompt_and_audited_once(
    fleet: Fleet, agent: Agent, scripted: Script, used: int, level: str
) -> None:
    model = scripted(REST, repeat=True)
    change_policy(agent, daily_tokens=100)
    set_usage(agent, tokens=used)
    heartbeat = run_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        changes = AuditEvent.objects.filter(action=AuditAction.BUDGET_LEVEL, agent_id=agent.id).count()
        stored = DailyUsage.objects.get(agent_id=agent.id).level
    assert (changes, stored) == (int(level != "normal"), level)
    runs = level in ("normal", "conservation", "degradation")
    assert heartbeat.status == (HeartbeatStatus.DONE if runs else HeartbeatStatus.SKIPPED)
    if level in ("conservation", "degradation"):
        assert "Noticed about yourself" in model.requests[0].messages[0].content
        assert f"{100 - used}% is left" in model.requests[0].messages[0].content
    if not runs:
        assert "it goes on at" in heartbeat.reason
        assert not model.requests
        kinds = [notice["kind"] for notice in state_of(agent).notices]
        assert "budget" in kinds
    if level == "halt":
        now = datetime.now(UTC)
        tomorrow = renewed_at(now)
        # Shortly before midnight the next regular heartbeat may be later still.
        latest = max(tomorrow + timedelta(minutes=3), now + timedelta(hours=2))
        assert tomorrow <= schedule_of(agent).next_due_at <= latest


def test_the_goal_to_spend_less_closes_when_the_budget_renews(fleet: Fleet, idle_agent: Agent) -> None:
    change_policy(idle_agent, daily_heartbeats=20)
    set_usage(idle_agent, heartbeats=15)
    create_survival_goal(idle_agent)
    withheld = run_heartbeat(fleet, idle_agent)
    assert withheld.status == HeartbeatStatus.SKIPPED
    assert "serves no goal" in withheld.reason

    set_usage(idle_agent, heartbeats=0)
    assert run_heartbeat(fleet, idle_agent).status == HeartbeatStatus.DONE
    with tenant_transaction(idle_agent.tenant_id):
        goal = Goal.objects.get(agent_id=idle_agent.id)
        assert (goal.rule, goal.state) == ("survival", "completed")
        assert not Satisfaction.objects.filter(goal_id=goal.id).exists()
    last = heartbeats_of(idle_agent)[-1]
    assert [(change["kind"], change["by_rule"]) for change in last.goal_changes] == [("completed", True)]
    # The rule closed the goal, so the mood shows only the rest.
    assert "came to rest by itself: there is enough again" in last.narrative
    assert state_of(idle_agent).mood["valence"] == pytest.approx(0.1)


def test_a_goal_closed_concurrently_by_a_person_stops_no_heartbeat(
    fleet: Fleet, idle_agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_policy(idle_agent, daily_heartbeats=20)
    goal = create_survival_goal(idle_agent)
    conclude = BacklogEditor.conclude

    def close_and_conclude(changes: BacklogEditor, goal_id: str, why: str) -> None:
        changes._backlog.move(goal_id, GoalState.ABANDONED, reason="a person closed it")
        conclude(changes, goal_id, why)

    monkeypatch.setattr(BacklogEditor, "conclude", close_and_conclude)
    assert run_heartbeat(fleet, idle_agent).status == HeartbeatStatus.DONE
    with tenant_transaction(idle_agent.tenant_id):
        assert Goal.objects.get(id=goal.id).abandonment_reason == "a person closed it"


def test_a_tenants_limit_counts_all_its_agents(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], scripted: Script
) -> None:
    scripted(REST, repeat=True)
    ada, bo = new_agent(tenant, "Ada"), new_agent(tenant, "Bo")
    limit_tenant(slug=tenant.slug, limits={"daily_usd": Decimal("1")}, actor="test")
    set_usage(bo, cost_usd=Decimal("1.5"))
    heartbeat = run_heartbeat(fleet, ada)
    assert heartbeat.status == HeartbeatStatus.SKIPPED
    assert "the day's budget is used up" in heartbeat.reason
    limit_tenant(slug=tenant.slug, limits={"daily_usd": None}, actor="test")
    assert run_heartbeat(fleet, ada).status == HeartbeatStatus.DONE


def test_a_limit_may_be_a_float_of_few_decimals(tenant: Tenant) -> None:
    limit_tenant(slug=tenant.slug, limits={"daily_usd": 0.1}, actor="test")
    assert Tenant.objects.using(OPS).get(id=tenant.id).daily_usd == Decimal("0.1")
    with pytest.raises(Invalid, match=r"at most 4 decimals, got 0\.00012$"):
        limit_tenant(slug=tenant.slug, limits={"daily_usd": 0.00012}, actor="test")


@pytest.mark.parametrize("name", ["daily_heartbeats", "daily_tokens"])
def test_a_limit_of_heartbeats_or_tokens_is_a_whole_number(
    tenant: Tenant, idle_agent: Agent, name: str
) -> None:
    with pytest.raises(Invalid, match=r"a day is a whole number, got 0\.5$"):
        limit_tenant(slug=tenant.slug, limits={name: 0.5}, actor="test")
    with (
        tenant_transaction(tenant.id),
        pytest.raises(Invalid, match=r"a day is a whole number, got 1\.5$"),
    ):
        set_policy(agent_id=idle_agent.id, changes={name: Decimal("1.5")}, actor="test")
    limit_tenant(slug=tenant.slug, limits={name: 20.0}, actor="test")
    assert getattr(Tenant.objects.using(OPS).get(id=tenant.id), name) == 20


def test_agents_halted_by_a_limit_resume_when_it_is_raised(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], scripted: Script
) -> None:
    scripted(REST, repeat=True)
    ada, bo, idle = (new_agent(tenant, name) for name in ("Ada", "Bo", "Idle"))
    with tenant_transaction(tenant.id):
        # This agent was not halted, so no change of a limit brings its heartbeat forward.
        HeartbeatSchedule.objects.filter(agent_id=idle.id).update(
            next_due_at=datetime.now(UTC) + timedelta(days=2)
        )
    for lift in (5, None):
        limit_tenant(slug=tenant.slug, limits={"daily_heartbeats": 0}, actor="test")
        for agent in (ada, bo):
            assert "the day's budget is used up" in run_heartbeat(fleet, agent).reason
        limit_tenant(slug=tenant.slug, limits={"daily_tokens": 10}, actor="test")
        assert schedule_of(ada).next_due_at >= renewed_at(datetime.now(UTC)), (
            "a change of another limit resumes no agent"
        )

        limit_tenant(slug=tenant.slug, limits={"daily_heartbeats": lift, "daily_tokens": None}, actor="test")

        due = {schedule_of(agent).next_due_at - datetime.now(UTC) for agent in (ada, bo)}
        assert len(due) == 2, "the agents resume at different times"
        assert max(due) <= timedelta(seconds=ada.schedule.interval_s * 0.05)
        assert schedule_of(idle).next_due_at > datetime.now(UTC) + timedelta(days=1)


def test_an_agent_halted_while_the_limit_is_lifted_resumes(
    fleet: Fleet, tenant: Tenant, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)
    limit_tenant(slug=tenant.slug, limits={"daily_heartbeats": 0}, actor="test")
    started: list[Thread] = []

    def lift() -> None:
        limit_tenant(slug=tenant.slug, limits={"daily_heartbeats": None}, actor="test")

    def lift_limit_and_plan(*args: Any, **kwargs: Any) -> NextHeartbeat:
        # The heartbeat has read the limit that is lifted now, and goes on once the change waits for its lock or is done.
        started.append(in_own_connection(lift))
        with connections[APP].cursor() as cursor:
            blocked = False
            while started[-1].is_alive() and not blocked:
                cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
                (blocked,) = cursor.fetchone()
        return next_heartbeat(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(orientation, "next_heartbeat", lift_limit_and_plan)
        assert "the day's budget is used up" in run_heartbeat(fleet, agent).reason
    (thread,) = started
    thread.join(20)
    assert schedule_of(agent).next_due_at <= datetime.now(UTC) + timedelta(minutes=3)


def test_an_agent_resumes_when_its_own_limit_is_lifted(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted(REST, repeat=True)
    change_policy(agent, daily_heartbeats=0)
    assert run_heartbeat(fleet, agent).status == HeartbeatStatus.SKIPPED

    change_policy(agent, adaptive=False)
    assert schedule_of(agent).next_due_at >= renewed_at(datetime.now(UTC))
    change_policy(agent, daily_heartbeats=None)

    assert schedule_of(agent).next_due_at <= datetime.now(UTC) + timedelta(minutes=3)
    assert run_heartbeat(fleet, agent).status == HeartbeatStatus.DONE
