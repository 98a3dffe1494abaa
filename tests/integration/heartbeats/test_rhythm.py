"""Schedules: idle heartbeats, active hours, heartbeats brought forward, daily limits, notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from django.db import connections

from apps.agents.models import Agent, AgentState, HeartbeatSchedule, PerceptKind, ScheduleState, Trigger
from apps.agents.services.percepts import perceive
from apps.audit.models import AuditAction, AuditEvent
from apps.calls.models import DailyUsage, ExternalCall
from apps.calls.services import usage
from apps.fleet.administration import limit_tenant
from apps.fleet.policy import set_policy
from apps.goals.models import Goal, Intent, Satisfaction
from apps.goals.services.goals import create_goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import Invalid
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.pacing import NextHeartbeat, next_heartbeat
from arbor.heartbeat.steps import orientation
from arbor.heartbeat.steps.goal_changes import Changes
from arbor.heartbeat.usage import renewed_at
from arbor.models.ports import ModelReply, ModelRequest, ScriptedModel
from arbor.models.usage import Usage
from tests.integration.heartbeats.conftest import REST, beats_of, make_due, schedule_of
from tests.integration.heartbeats.fleet import Fleet

Scripted = Callable[..., ScriptedModel]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each beat add up what its tenant has used."""
    monkeypatch.setattr(usage, "TENANT_SUM_KEPT_S", 0.0)


@pytest.fixture
def content(agent: Agent, scripted: Scripted, settings: Any) -> Agent:
    """Return an agent that wants nothing, and that has just reflected; these tests do not wait for its next thought."""
    settings.ARBOR_REFLECT_PAUSE = timedelta(0)
    scripted(REST, repeat=True)
    with tenant_transaction(agent.tenant_id):
        Intent.objects.filter(agent_id=agent.id).delete()
        Goal.objects.filter(agent_id=agent.id).delete()
    return agent


def beat(fleet: Fleet, agent: Agent, **when: Any) -> Heartbeat:
    make_due(agent, **when)
    fleet.dispatch()
    fleet.run()
    return beats_of(agent)[-1]


def state_of(agent: Agent) -> AgentState:
    with tenant_transaction(agent.tenant_id):
        return AgentState.objects.get(agent_id=agent.id)


def calls_of(agent: Agent) -> int:
    with tenant_transaction(agent.tenant_id):
        return ExternalCall.objects.filter(agent_id=agent.id).count()


def policy(agent: Agent, **changes: Any) -> None:
    with tenant_transaction(agent.tenant_id):
        set_policy(agent_id=agent.id, changes=changes, actor="test")


def use(agent: Agent, **used: Any) -> None:
    with tenant_transaction(agent.tenant_id):
        DailyUsage.objects.update_or_create(
            agent_id=agent.id, tenant_id=agent.tenant_id, day=datetime.now(UTC).date(), defaults=used
        )


@contextmanager
def counted() -> Iterator[list[str]]:
    sent: list[str] = []

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        return execute(sql, params, many, context)

    with connections[APP].execute_wrapper(count):
        yield sent


def test_an_idle_beat_asks_no_model_and_says_why(fleet: Fleet, content: Agent) -> None:
    first = beat(fleet, content)
    assert (first.status, first.mode) == (HeartbeatStatus.DONE, "reflection")
    asked, energy, stale = calls_of(content), state_of(content).energy, state_of(content).stale_beats

    second = beat(fleet, content)

    assert second.status == HeartbeatStatus.SKIPPED
    assert second.reason == "idle: nothing waits, and it reflected at the last beat"
    assert state_of(content).stale_beats == stale + 1
    assert (second.number, second.model, second.energy_start) == (0, "", None)
    assert calls_of(content) == asked
    assert state_of(content).energy == energy
    assert state_of(content).idle_beats == 1
    assert schedule_of(content).state == ScheduleState.IDLE


def test_an_idle_agent_beats_slower_and_reflects_now_and_then(fleet: Fleet, content: Agent) -> None:
    waits, statuses = [], []
    for _ in range(6):
        done = beat(fleet, content)
        statuses.append(done.status)
        waits.append((schedule_of(content).next_due_at - datetime.now(UTC)) / timedelta(hours=1))
    assert statuses == ["done", "skipped", "skipped", "skipped", "done", "skipped"]
    wanted = [1, 1.5, 2.25, 3.375, 1, 1.5]
    assert waits == pytest.approx(wanted, rel=0.06)


@pytest.mark.parametrize(("every", "reflections"), [(2, 3), (5, 1)])
def test_an_idle_agent_reflects_as_often_as_is_set(
    every: int, reflections: int, fleet: Fleet, content: Agent, settings: Any
) -> None:
    settings.ARBOR_REFLECT_EVERY = every
    statuses = [beat(fleet, content).status for _ in range(5)]
    assert statuses.count(HeartbeatStatus.DONE) == reflections


def test_an_idle_agent_does_not_think_again_within_the_pause(
    fleet: Fleet, content: Agent, settings: Any
) -> None:
    settings.ARBOR_REFLECT_PAUSE, settings.ARBOR_REFLECT_EVERY = timedelta(hours=1), 1
    statuses = [beat(fleet, content).status for _ in range(3)]
    assert statuses == ["done", "skipped", "skipped"]
    assert beats_of(content)[-1].reason == "idle: nothing waits, and it last thought 0 min ago"


def test_an_idle_beat_costs_few_statements(fleet: Fleet, content: Agent) -> None:
    beat(fleet, content)
    make_due(content)
    fleet.dispatch()
    with counted() as sent:
        fleet.run()
    assert beats_of(content)[-1].status == HeartbeatStatus.SKIPPED
    assert len(sent) <= 9, "\n".join(" ".join(statement.split())[:100] for statement in sent)


def test_what_reaches_it_ends_the_idleness(fleet: Fleet, content: Agent) -> None:
    beat(fleet, content)
    assert beat(fleet, content).status == HeartbeatStatus.SKIPPED
    with tenant_transaction(content.tenant_id):
        perceive(agent_id=content.id, kind="environment", content="It snows.", actor="test")
    assert beat(fleet, content).status == HeartbeatStatus.DONE
    assert state_of(content).idle_beats == 0


def test_an_urgent_percept_brings_the_beat_forward_and_names_it(fleet: Fleet, content: Agent) -> None:
    with tenant_transaction(content.tenant_id):
        perceive(agent_id=content.id, kind="environment", content="It snows.", actor="test")
    assert fleet.dispatch().due == 0
    with tenant_transaction(content.tenant_id):
        percept = perceive(
            agent_id=content.id,
            kind=PerceptKind.INTERRUPT,
            content="Stop.",
            actor="test",
            detail={"by": "Mia"},
        )
    assert percept.urgent
    assert fleet.dispatch().due == 1
    fleet.run()
    assert beats_of(content)[-1].trigger == Trigger.EVENT
    assert schedule_of(content).next_trigger == Trigger.TIMER


def test_one_that_comes_while_it_beats_is_not_forgotten(fleet: Fleet, content: Agent) -> None:
    make_due(content)
    fleet.dispatch()
    fleet.step()  # it waits for its model now
    with tenant_transaction(content.tenant_id):
        perceive(agent_id=content.id, kind="interrupt", content="Stop.", actor="test")
    fleet.run()
    assert fleet.dispatch().due == 1
    fleet.run()
    assert [heartbeat.trigger for heartbeat in beats_of(content)] == [Trigger.TIMER, Trigger.EVENT]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"kind": "user_message"}, "arbor agent tell"),
        ({"content": " "}, "1 to 8,000 characters"),
        ({"content": "a\0b"}, "no NUL"),
        ({"content": "x" * 8_001}, "got 8,001"),
        ({"detail": {"x": float("nan")}}, "JSON object"),
        ({"detail": {"x": "y" * 4_000}}, "at most 4,000"),
    ],
)
def test_what_is_no_percept_is_refused(agent: Agent, given: dict[str, Any], fault: str) -> None:
    wanted: dict[str, Any] = {"kind": "environment", "content": "It snows.", **given}
    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid, match=fault):
        perceive(agent_id=agent.id, actor="test", **wanted)


def test_outside_its_hours_it_beats_only_when_asked(fleet: Fleet, content: Agent) -> None:
    now = datetime.now(UTC)
    opens = (now + timedelta(hours=3)).replace(second=0, microsecond=0)
    policy(content, active_from=opens.time(), active_until=(opens + timedelta(hours=2)).time())
    night = beat(fleet, content)
    assert night.status == HeartbeatStatus.SKIPPED
    assert night.reason.startswith("idle: outside its active hours, which begin")
    assert opens <= schedule_of(content).next_due_at
    with tenant_transaction(content.tenant_id):
        perceive(agent_id=content.id, kind="interrupt", content="Fire.", actor="test")
    fleet.dispatch()
    fleet.run()
    assert beats_of(content)[-1].status == HeartbeatStatus.DONE
    assert opens <= schedule_of(content).next_due_at


def test_what_is_used_is_counted_once_a_beat_and_once_a_call(
    fleet: Fleet, agent: Agent, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scripted(REST, repeat=True)
    answer = model.complete

    def costly(request: ModelRequest, *, deadline_s: float) -> ModelReply:
        usage = Usage(input_tokens=90, output_tokens=10)
        return replace(answer(request, deadline_s=deadline_s), usage=usage, cost_usd=Decimal("0.25"))

    monkeypatch.setattr(model, "complete", costly)
    beat(fleet, agent)
    beat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        usage = DailyUsage.objects.get(agent_id=agent.id)
    assert (usage.beats, usage.calls) == (2, 2)
    assert (usage.tokens, usage.cost_usd) == (200, Decimal("0.5"))


@pytest.mark.parametrize(
    ("used", "level"),
    [(30, "normal"), (50, "conservation"), (80, "degradation"), (95, "end_times"), (100, "halt")],
)
def test_a_budget_that_runs_low_is_in_the_prompt_and_on_record_once(
    fleet: Fleet, agent: Agent, scripted: Scripted, used: int, level: str
) -> None:
    model = scripted(REST, repeat=True)
    policy(agent, daily_tokens=100)
    use(agent, tokens=used)
    done = beat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        changes = AuditEvent.objects.filter(action=AuditAction.BUDGET_LEVEL, agent_id=agent.id).count()
        stored = DailyUsage.objects.get(agent_id=agent.id).level
    assert (changes, stored) == (int(level != "normal"), level)
    ran = level in ("normal", "conservation", "degradation")
    assert done.status == (HeartbeatStatus.DONE if ran else HeartbeatStatus.SKIPPED)
    if level in ("conservation", "degradation"):
        assert "Noticed about yourself" in model.requests[0].messages[0].content
        assert f"{100 - used}% is left" in model.requests[0].messages[0].content
    if not ran:
        assert "it goes on at" in done.reason
        assert not model.requests
        kinds = [notice["kind"] for notice in state_of(agent).notices]
        assert "budget" in kinds
    if level == "halt":
        now = datetime.now(UTC)
        tomorrow = renewed_at(now)
        # Shortly before midnight the next regular heartbeat may be later still.
        latest = max(tomorrow + timedelta(minutes=3), now + timedelta(hours=2))
        assert tomorrow <= schedule_of(agent).next_due_at <= latest


def test_the_goal_to_spend_less_saves_and_is_closed_when_the_budget_renews(
    fleet: Fleet, content: Agent
) -> None:
    policy(content, daily_beats=20)
    use(content, beats=15)
    with tenant_transaction(content.tenant_id):
        create_goal(
            agent_id=content.id,
            title="Live within your means",
            source=GoalSource.SURVIVAL,
            layer=GoalLayer.TASK,
            rule="survival",
        )
    withheld = beat(fleet, content)
    assert withheld.status == HeartbeatStatus.SKIPPED
    assert "serves no goal" in withheld.reason

    use(content, beats=0)
    assert beat(fleet, content).status == HeartbeatStatus.DONE
    with tenant_transaction(content.tenant_id):
        goal = Goal.objects.get(agent_id=content.id)
        assert (goal.rule, goal.state) == ("survival", "completed")
        assert not Satisfaction.objects.filter(goal_id=goal.id).exists()
    last = beats_of(content)[-1]
    assert [(change["kind"], change["by_rule"]) for change in last.goal_changes] == [("completed", True)]
    # The agent had no part in it: it has rested, and feels so.
    assert "came to rest by itself: there is enough again" in last.narrative
    assert state_of(content).mood["valence"] == pytest.approx(0.1)


def test_a_goal_that_a_person_closes_as_the_budget_renews_stops_no_beat(
    fleet: Fleet, content: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(content, daily_beats=20)
    with tenant_transaction(content.tenant_id):
        goal = create_goal(
            agent_id=content.id,
            title="Live within your means",
            source=GoalSource.SURVIVAL,
            layer=GoalLayer.TASK,
            rule="survival",
        )
    conclude = Changes.conclude

    def closed_before(changes: Changes, goal_id: str, why: str) -> None:
        changes._backlog.move(goal_id, GoalState.ABANDONED, reason="a person closed it")
        conclude(changes, goal_id, why)

    monkeypatch.setattr(Changes, "conclude", closed_before)
    assert beat(fleet, content).status == HeartbeatStatus.DONE
    with tenant_transaction(content.tenant_id):
        assert Goal.objects.get(id=goal.id).abandonment_reason == "a person closed it"


def test_an_aspiration_alone_leaves_the_agent_idle_and_a_task_does_not(fleet: Fleet, content: Agent) -> None:
    with tenant_transaction(content.tenant_id):
        Agent.objects.filter(id=content.id).update(
            genome={
                "role": "EXPLORER",
                "traits": dict.fromkeys(
                    ("risk_tolerance", "collaboration", "depth_vs_breadth", "quality_vs_speed"), 0.5
                ),
            }
        )
    assert beat(fleet, content).status == HeartbeatStatus.DONE
    with tenant_transaction(content.tenant_id):
        assert Goal.objects.get(agent_id=content.id).rule == "role"
    assert beat(fleet, content).reason.startswith("idle: nothing waits")
    with tenant_transaction(content.tenant_id):
        create_goal(agent_id=content.id, title="Map the reef", state=GoalState.ACTIVE)
    assert beat(fleet, content).status == HeartbeatStatus.DONE


def test_a_tenants_limit_counts_all_its_agents(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], scripted: Scripted
) -> None:
    scripted(REST, repeat=True)
    ada, bo = new_agent(tenant, "Ada"), new_agent(tenant, "Bo")
    limit_tenant(slug=tenant.slug, limits={"daily_usd": Decimal("1")}, actor="test")
    use(bo, cost_usd=Decimal("1.5"))
    done = beat(fleet, ada)
    assert done.status == HeartbeatStatus.SKIPPED
    assert "the day's budget is used up" in done.reason
    limit_tenant(slug=tenant.slug, limits={"daily_usd": None}, actor="test")
    assert beat(fleet, ada).status == HeartbeatStatus.DONE


def test_whom_a_limit_has_halted_goes_on_when_it_is_raised_or_lifted(
    fleet: Fleet, tenant: Tenant, new_agent: Callable[..., Agent], scripted: Scripted
) -> None:
    scripted(REST, repeat=True)
    ada, bo, idle = (new_agent(tenant, name) for name in ("Ada", "Bo", "Idle"))
    with tenant_transaction(tenant.id):
        # It waits for longer than that by itself.
        HeartbeatSchedule.objects.filter(agent_id=idle.id).update(
            next_due_at=datetime.now(UTC) + timedelta(days=2)
        )
    for lift in (5, None):
        limit_tenant(slug=tenant.slug, limits={"daily_beats": 0}, actor="test")
        for agent in (ada, bo):
            assert "the day's budget is used up" in beat(fleet, agent).reason
        limit_tenant(slug=tenant.slug, limits={"daily_tokens": 10}, actor="test")
        assert schedule_of(ada).next_due_at >= renewed_at(datetime.now(UTC)), "another limit helps nobody"

        limit_tenant(slug=tenant.slug, limits={"daily_beats": lift, "daily_tokens": None}, actor="test")

        due = {schedule_of(agent).next_due_at - datetime.now(UTC) for agent in (ada, bo)}
        assert len(due) == 2, "not in one moment"
        assert max(due) <= timedelta(seconds=ada.schedule.interval_s * 0.05)
        assert schedule_of(idle).next_due_at > datetime.now(UTC) + timedelta(days=1)


def test_whom_a_limit_halts_just_when_it_is_lifted_goes_on(
    fleet: Fleet, tenant: Tenant, agent: Agent, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(REST, repeat=True)
    limit_tenant(slug=tenant.slug, limits={"daily_beats": 0}, actor="test")
    started: list[Thread] = []

    def lift() -> None:
        limit_tenant(slug=tenant.slug, limits={"daily_beats": None}, actor="test")
        connections.close_all()

    def look(*args: Any, **kwargs: Any) -> NextHeartbeat:
        # It has read the limit that is lifted now, and ends only once that waits for it, or is done.
        started.append(Thread(target=lift))
        started[-1].start()
        with connections[APP].cursor() as cursor:
            blocked = False
            while started[-1].is_alive() and not blocked:
                cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
                (blocked,) = cursor.fetchone()
        return next_heartbeat(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(orientation, "next_heartbeat", look)
        assert "the day's budget is used up" in beat(fleet, agent).reason
    (thread,) = started
    thread.join()
    assert schedule_of(agent).next_due_at <= datetime.now(UTC) + timedelta(minutes=3)


def test_an_agent_whose_own_limit_is_lifted_goes_on(fleet: Fleet, agent: Agent, scripted: Scripted) -> None:
    scripted(REST, repeat=True)
    policy(agent, daily_beats=0)
    assert beat(fleet, agent).status == HeartbeatStatus.SKIPPED

    policy(agent, adaptive=False)
    assert schedule_of(agent).next_due_at >= renewed_at(datetime.now(UTC))
    policy(agent, daily_beats=None)

    assert schedule_of(agent).next_due_at <= datetime.now(UTC) + timedelta(minutes=3)
    assert beat(fleet, agent).status == HeartbeatStatus.DONE


def test_what_goes_wrong_is_told_to_the_agent_and_kept(
    fleet: Fleet, agent: Agent, scripted: Scripted
) -> None:
    model = scripted(REST, repeat=True)
    with tenant_transaction(agent.tenant_id):
        goal = Goal.objects.filter(agent_id=agent.id, state="active").first()
        assert goal is not None
        Goal.objects.filter(id=goal.id).update(touched_at=datetime.now(UTC) - timedelta(days=8))
    for _ in range(4):
        beat(fleet, agent)
    prompt = model.requests[-1].messages[0].content
    assert "## Noticed about yourself" in prompt
    assert f"no progress for a week on: {goal.title}" in prompt
    assert "What else might deserve attention?" in prompt
    assert {notice["kind"] for notice in state_of(agent).notices} >= {"stagnation", "loop"}


def test_a_paused_agent_is_not_claimed_until_its_pause_is_over(fleet: Fleet, content: Agent) -> None:
    with tenant_transaction(content.tenant_id):
        HeartbeatSchedule.objects.filter(agent_id=content.id).update(
            paused_until=datetime.now(UTC) + timedelta(minutes=5)
        )
    make_due(content)
    assert fleet.dispatch().due == 0
