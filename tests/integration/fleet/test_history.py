"""Deletion of the history of agents by age: memories and open records stay."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections
from django.db.models import Sum

from apps.agents.models import Agent, Percept
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.authority.models import ActionApproval, CapabilityUse
from apps.authority.services.grants import grant_capability, revoke_capability
from apps.calls.models import DailyUsage, ExternalCall, LedgerEntry
from apps.contacts.models import ChatMessage, ChatSession, HookDelivery, OutboxMessage, PartialReply
from apps.fleet import authority_history, history
from apps.fleet.goal_history import RETAINED_NOTES
from apps.fleet.history import RETAINED_HEARTBEATS, history_sizes, sweep_history
from apps.goals.models import Goal, Intent, Plan, PlanStep, ProgressNote
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.reports.replay import read_recorded_heartbeat
from apps.memories.models import JobRun, Memory
from apps.memories.services.jobs.job_runs import JobRunResult
from apps.tenants.models import ConsoleSession, Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from arbor.authority.constraints import MAX_PERIOD_S, Constraints, Rate
from arbor.clock import FrozenClock
from arbor.errors import NotFound
from arbor.history import Record
from arbor.ids import uuid7
from tests.factories.approvals import ActionApprovalFactory
from tests.factories.authority import CapabilityUseFactory
from tests.factories.contacts import (
    ChatMessageFactory,
    ChatSessionFactory,
    HookDeliveryFactory,
    OutboxMessageFactory,
    SignalWebhookFactory,
)
from tests.factories.goals import (
    GoalFactory,
    GoalMemoryLinkFactory,
    IntentFactory,
    PlanFactory,
    PlanStepFactory,
    ProgressNoteFactory,
)
from tests.factories.heartbeats import (
    ExternalCallFactory,
    HeartbeatFactory,
    LedgerEntryFactory,
    MaintenanceCallFactory,
    PerceptFactory,
)
from tests.factories.memories import MemoryFactory
from tests.integration.fleet.history_rows import YearOfHours

# At noon: whole days are deleted, so the numbers depend on the hour.
LONG_AGO = (datetime.now(UTC) - timedelta(days=1200)).replace(hour=12)


@pytest.fixture
def ages(settings: Any) -> dict[Record, timedelta | None]:
    """Return the ages in force, which a test may change."""
    ages = dict(settings.ARBOR_HISTORY_AGES)
    settings.ARBOR_HISTORY_AGES = ages
    return ages


def make_old_heartbeats(agent: Agent, count: int) -> list[Heartbeat]:
    return [
        HeartbeatFactory(agent=agent, slot_at=LONG_AGO + timedelta(hours=hour), number=hour + 1)
        for hour in range(count)
    ]


def test_a_year_of_hourly_heartbeats_stops_growing(
    agent: Agent, ages: dict[Record, timedelta | None]
) -> None:
    ages[Record.CONVERSATIONS] = ages[Record.MESSAGES] = timedelta(days=90)
    ages[Record.LEDGER] = ages[Record.USAGE] = timedelta(days=120)
    year = YearOfHours(agent, LONG_AGO)
    with tenant_transaction(agent.tenant_id):
        MemoryFactory.create_batch(5, agent=agent)
    sizes = []
    for _ in range(12):
        year.extend(days=30)
        while sweep_history(FrozenClock(year.now)).done:
            pass
        sizes.append(year.counts())
    # 90 days of heartbeats, each with a call, and 30 days of maintenance calls; the first day is retained as a whole.
    assert sizes[5]["Heartbeat"] == pytest.approx(90 * 24, abs=24)
    assert sizes[5]["ExternalCall"] == pytest.approx(90 * 24 + 30, abs=25)
    assert sizes[5]["LedgerEntry"] == pytest.approx(120 * 24, abs=2)
    assert all(sizes[5] == size for size in sizes[6:])
    with tenant_transaction(agent.tenant_id):
        assert not Percept.objects.filter(heartbeat=None).exists()
        assert Memory.objects.count() == 5
        used = DailyUsage.objects.aggregate(Sum("heartbeats"), Sum("calls"))
        # The day of the age limit is retained as a whole.
        assert used == {"heartbeats__sum": 24 * 121, "calls__sum": 24 * 121}


def test_old_heartbeats_go_with_their_calls_and_percepts(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        old = make_old_heartbeats(agent, RETAINED_HEARTBEATS + 1)
        entry = LedgerEntryFactory(call=ExternalCallFactory(heartbeat=old[0]))
        PerceptFactory(agent=agent, heartbeat=old[0])
        waiting = PerceptFactory(agent=agent)
        MemoryFactory(agent=agent, source=f"heartbeat:{old[0].id}")
    assert sweep_history().done == 1
    with tenant_transaction(agent.tenant_id):
        assert set(Heartbeat.objects.values_list("id", flat=True)) == {heartbeat.id for heartbeat in old[1:]}
        assert list(Percept.objects.values_list("id", flat=True)) == [waiting.id]
        assert not ExternalCall.objects.exists()
        # Its ledger entry is retained for longer, and its memories are not deleted.
        assert LedgerEntry.objects.get(id=entry.id).call_id is None
        assert Memory.objects.get().source == f"heartbeat:{old[0].id}"
    with pytest.raises(NotFound, match="ARBOR_HEARTBEATS_DAYS"):
        read_recorded_heartbeat(heartbeat_id=old[0].id, tenant_id=agent.tenant_id)


def test_an_open_heartbeat_is_never_deleted(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        old = make_old_heartbeats(agent, RETAINED_HEARTBEATS + 2)
        Heartbeat.objects.filter(id=old[0].id).update(status="waiting", ended_at=None)
    assert sweep_history().done == 1
    with tenant_transaction(agent.tenant_id):
        assert Heartbeat.objects.get(status="waiting").id == old[0].id


def test_an_age_of_none_retains_records_for_ever(agent: Agent, ages: dict[Record, timedelta | None]) -> None:
    ages.update(dict.fromkeys(Record))
    with tenant_transaction(agent.tenant_id):
        make_old_heartbeats(agent, RETAINED_HEARTBEATS + 1)
        MaintenanceCallFactory(agent=agent, requested_at=LONG_AGO)
    assert sweep_history().steps == 0
    with tenant_transaction(agent.tenant_id):
        assert Heartbeat.objects.count() == RETAINED_HEARTBEATS + 1
        assert ExternalCall.objects.count() == 1


def test_records_that_are_not_over_stay_whatever_their_age(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        MaintenanceCallFactory(agent=agent, requested_at=LONG_AGO, status="pending")
        talk = ChatSessionFactory(agent=agent, started_at=LONG_AGO, ended_at=None)
        ChatMessageFactory(session=talk, at=LONG_AGO)
        OutboxMessageFactory(agent=agent, created_at=LONG_AGO, status="pending")
        OutboxMessageFactory(agent=agent, created_at=LONG_AGO, status="failed")
    assert sweep_history().done == 1
    with tenant_transaction(agent.tenant_id):
        assert ExternalCall.objects.count() == ChatMessage.objects.count() == 1
        assert OutboxMessage.objects.get().status == "pending"


def test_ended_plans_go_with_their_steps_and_intents(agent: Agent) -> None:
    def add_ended_plan(goal: Goal, days: int, **values: Any) -> Plan:
        at = LONG_AGO + timedelta(days=days)
        plan = PlanFactory(agent=agent, goal=goal, status="abandoned", ended_at=at, **values)
        Plan.objects.filter(id=plan.id).update(created_at=at)
        IntentFactory(
            agent=agent, goal=goal, step=PlanStepFactory(plan=plan), status="abandoned", ended_at=at
        )
        return plan

    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        closed = GoalFactory(agent=agent, state="abandoned")
        goal = GoalFactory(agent=agent, state="active")
        gone = [add_ended_plan(closed, 1), add_ended_plan(goal, 2), add_ended_plan(goal, 3)]
        latest = add_ended_plan(goal, 4)
        draft = PlanFactory(agent=agent, goal=goal, status="draft")
    assert sweep_history().done == len(gone)
    with tenant_transaction(agent.tenant_id):
        assert set(Plan.objects.filter(agent_id=agent.id)) == {latest, draft}
        assert Intent.objects.get(agent_id=agent.id).step == PlanStep.objects.get() == latest.steps.get()
    assert sweep_history().done == 0


def test_progress_of_long_closed_goals_goes_and_the_latest_notes_stay(agent: Agent) -> None:
    recently = datetime.now(UTC) - timedelta(days=30)
    with tenant_transaction(agent.tenant_id):
        Goal.objects.filter(agent_id=agent.id).delete()
        memory = MemoryFactory(agent=agent)
        goals = {
            "gone": GoalFactory(agent=agent, state="completed", completed_at=LONG_AGO),
            "closed": GoalFactory(agent=agent, state="abandoned", abandoned_at=recently),
            "open": GoalFactory(agent=agent, state="active"),
        }
        for goal in goals.values():
            GoalMemoryLinkFactory(goal=goal, memory=memory)
            notes = ProgressNoteFactory.create_batch(RETAINED_NOTES + 2, goal=goal)
            for number, note in enumerate(notes):
                at = LONG_AGO + timedelta(days=number)
                ProgressNote.objects.filter(id=note.id).update(at=at, text=str(number))
    assert sweep_history().done == RETAINED_NOTES + 2 + 1 + 2
    with tenant_transaction(agent.tenant_id):
        remaining = {name: (goal.notes.count(), goal.links.count()) for name, goal in goals.items()}
        assert remaining == {"gone": (0, 0), "closed": (RETAINED_NOTES + 2, 1), "open": (RETAINED_NOTES, 1)}
        assert goals["open"].notes.order_by("at").values_list("text", flat=True)[0] == "2"
    assert sweep_history().steps == 0


def test_old_notes_of_one_moment_stay_and_need_no_step(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        goal = GoalFactory(agent=agent, state="active")
        ProgressNoteFactory.create_batch(RETAINED_NOTES + 2, goal=goal)
        ProgressNote.objects.filter(goal=goal).update(at=LONG_AGO)
    assert sweep_history().steps == 0
    with tenant_transaction(agent.tenant_id):
        assert goal.notes.count() == RETAINED_NOTES + 2


def test_old_deliveries_go_unless_they_are_sent_again(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        webhook = SignalWebhookFactory()
        HookDeliveryFactory(at=LONG_AGO)
        young = HookDeliveryFactory()
        for status in ("confirmed", "failed", "retrying", "resending"):
            HookDeliveryFactory(hook=None, webhook=webhook, status=status, at=LONG_AGO)
    assert sweep_history().done == 3
    with tenant_transaction(agent.tenant_id):
        left = set(HookDelivery.objects.values_list("status", flat=True))
        assert left == {young.status, "retrying", "resending"}


def test_old_approvals_go_once_they_and_their_heartbeats_have_ended(agent: Agent) -> None:
    expiry = LONG_AGO + timedelta(days=7)
    with tenant_transaction(agent.tenant_id):
        heartbeat = HeartbeatFactory(agent=agent)

        def store(**columns: Any) -> UUID:
            row = {
                "agent": agent,
                "asked_at": LONG_AGO,
                "expires_at": expiry,
                "heartbeat_id": uuid4(),
            } | columns
            return UUID(str(ActionApprovalFactory(**row).id))

        for status in ("denied", "expired", "withdrawn"):
            store(status=status)
        store(status="executed", executed_by=uuid4())
        remaining = {
            store(status="denied", heartbeat_id=heartbeat.id),
            store(status="executed", executed_by=heartbeat.id),
            store(status="denied", expires_at=datetime.now(UTC) + timedelta(days=1)),
            store(status="denied", asked_at=datetime.now(UTC)),
            store(status="pending"),
        }
    assert sweep_history().done == 4
    with tenant_transaction(agent.tenant_id):
        assert set(ActionApproval.objects.values_list("id", flat=True)) == remaining


def test_each_tenant_is_swept_by_itself(agent: Agent, other_tenant: Tenant) -> None:
    with tenant_transaction(agent.tenant_id):
        MaintenanceCallFactory(agent=agent, requested_at=LONG_AGO)
    with tenant_transaction(other_tenant.id):
        MaintenanceCallFactory(requested_at=LONG_AGO)
        MaintenanceCallFactory()
    assert sweep_history().done == 2
    with tenant_transaction(other_tenant.id):
        assert ExternalCall.objects.count() == 1


def add_audit(tenant: Tenant, at: datetime) -> None:
    with tenant_transaction(tenant.id), connections[APP].cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_auditevent (tenant_id, id, at, action, actor, message, detail)"
            " VALUES (%s, %s, %s, 'denied', 'cli:ann', 'no', '{}')",
            [tenant.id, uuid7(), at],
        )


def test_old_audit_records_leave_a_record_of_their_deletion(tenant: Tenant) -> None:
    for at in (LONG_AGO, LONG_AGO + timedelta(days=1), datetime.now(UTC) - timedelta(days=700)):
        add_audit(tenant, at)
    assert sweep_history().done == 2
    with tenant_transaction(tenant.id):
        deletion = AuditEvent.objects.get(action=AuditAction.AUDIT_DELETED)
        assert deletion.detail["actions"] == {"denied": 2}
        assert AuditEvent.objects.filter(action="denied").count() == 1


def test_one_deleted_audit_record_is_recorded_as_one(tenant: Tenant) -> None:
    add_audit(tenant, LONG_AGO)
    assert sweep_history().done == 1
    with tenant_transaction(tenant.id):
        deletion = AuditEvent.objects.get(action=AuditAction.AUDIT_DELETED)
    assert deletion.message.startswith("deleted 1 audit record from ")


def test_the_size_of_history_includes_what_goes_with_a_record(tenant: Tenant) -> None:
    with connections[OPS].cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name",
            [[model._meta.db_table for model in (ChatSession, ChatMessage, PartialReply)]],
        )
        (size,) = cursor.fetchone()
    assert history_sizes()[Record.CONVERSATIONS] == size


def test_no_clock_that_runs_ahead_deletes_an_audit_record(tenant: Tenant) -> None:
    add_audit(tenant, datetime.now(UTC) - timedelta(days=700))
    assert sweep_history(FrozenClock(datetime.now(UTC) + timedelta(days=9000))).done == 0
    with tenant_transaction(tenant.id):
        assert AuditEvent.objects.get().action == "denied"


def test_acts_on_the_installation_are_deleted_by_age(database: None) -> None:
    with connections[OPS].cursor() as cursor:
        for at in (LONG_AGO, datetime.now(UTC)):
            cursor.execute(
                "INSERT INTO audit_platformevent (id, at, action, actor, message, detail)"
                " VALUES (%s, %s, 'denied', 'cli:ann', 'no', '{}')",
                [uuid7(), at],
            )
    sweep_history()
    actions = list(PlatformEvent.objects.using(OPS).order_by("at").values_list("action", flat=True))
    assert sorted(actions) == ["audit.deleted", "denied"]


def test_expired_sessions_and_jobs_of_old_versions_go(database: None) -> None:
    now = datetime.now(UTC)
    ConsoleSession.objects.create(
        session_key="old",
        session_data="",
        expire_date=now - timedelta(minutes=1),
        seen_at=now,
        public_id=uuid4(),
    )
    ConsoleSession.objects.create(
        session_key="new",
        session_data="",
        expire_date=now + timedelta(minutes=9),
        seen_at=now,
        public_id=uuid4(),
    )
    JobRun.objects.create(name="arbor.renamed", ended_at=now - timedelta(days=31), seconds=1)
    JobRun.objects.create(name="arbor.current", ended_at=now, seconds=1)
    sweep_history()
    assert ConsoleSession.objects.get().session_key == "new"
    assert JobRun.objects.get().name == "arbor.current"


def test_uses_of_capabilities_go_once_nothing_counts_them(agent: Agent) -> None:
    def add_use(*, at: datetime, **limits: Any) -> UUID:
        grant = grant_capability(
            agent_id=agent.id, resource="arbor://fs/read/**", actor="test", constraints=Constraints(**limits)
        )
        CapabilityUseFactory(capability=grant, at=at)
        return grant.id

    now = datetime.now(UTC)
    long_ago, recently = now - timedelta(days=32), now - timedelta(days=30)
    rate = Rate(uses=5, seconds=MAX_PERIOD_S)
    with tenant_transaction(agent.tenant_id):
        add_use(at=long_ago, rate=rate)
        revoked = add_use(at=long_ago, max_uses=9)
        revoke_capability(capability_id=revoked, reason="over", actor="test")
        counted = {
            add_use(at=recently, rate=Rate(uses=6, seconds=60)),
            add_use(at=long_ago, rate=rate, max_uses=8),
        }
    sweep_history()
    with tenant_transaction(agent.tenant_id):
        assert set(CapabilityUse.objects.values_list("capability_id", flat=True)) == counted


def test_rows_that_are_gone_are_counted_as_none(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[int] = []

    def run_step(_name: str, *, step: Callable[[UUID, UUID], int], **_: object) -> JobRunResult:
        """Run a step although nothing waits, as if another worker had deleted the rows that were found."""
        done.append(step(agent.tenant_id, agent.id))
        return JobRunResult()

    monkeypatch.setattr(history, "run_job", run_step)
    monkeypatch.setattr(authority_history, "run_job", run_step)
    sweep_history()
    assert set(done) == {0}


def test_a_deletion_with_a_condition_in_sql_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="Heartbeat: without `ended`"):
        history._Sweep(waiting="", model=Heartbeat, column="started_at", deletable="status = 'done'")
