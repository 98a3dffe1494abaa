"""Trust scores and tiers over simulated days, from what heartbeats recorded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services import record
from apps.authority.models import TierChange, TrustScore
from apps.authority.services.trust_tiers import create_tiers, set_tier, tier_changes_of, trust_score_of
from apps.fleet.trust_scores import score_agent, score_agents
from apps.heartbeats.models import Heartbeat
from apps.selves.models import Experience
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.template import TrustTier
from arbor.errors import Invalid
from arbor.ids import uuid7
from tests.factories.agents import AgentFactory
from tests.factories.heartbeats import HeartbeatFactory
from tests.factories.selves import ExperienceFactory

DAY = timedelta(days=1)
BORN = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    with tenant_transaction(tenant.id):
        created: Agent = AgentFactory()
        create_tiers([created], now=BORN)
        return created


def _store_heartbeats(
    agent: Agent, *, days: int, start: int = 0, outcome: str = "success", status: str = "done"
) -> None:
    """Store four heartbeats a day, each with one action."""
    times = [
        BORN + (start + day) * DAY + hour * timedelta(hours=6) for day in range(days) for hour in range(4)
    ]
    heartbeats = [
        HeartbeatFactory.build(
            agent=agent, tenant_id=agent.tenant_id, status=status, slot_at=at, started_at=at
        )
        for at in times
    ]
    Heartbeat.objects.bulk_create(heartbeats)
    experiences = Experience.objects.bulk_create(
        [ExperienceFactory.build(agent=agent, tenant_id=agent.tenant_id, outcome=outcome) for _ in times]
    )
    for experience, at in zip(experiences, times, strict=True):
        experience.at = at
    Experience.objects.bulk_update(experiences, ["at"])


def _score(agent: Agent, *, days: range) -> list[str]:
    """Score the agent at the end of each day; return the tier after each."""
    tiers = []
    for day in days:
        score_agent(agent_id=agent.id, now=BORN + (day + 1) * DAY)
        tiers.append(TrustScore.objects.get(agent_id=agent.id).tier)
    return tiers


def _record_breach(agent: Agent, at: datetime, *, actor: str = "agent:it") -> None:
    """Record a forged request at another time, which the audit log's own default would overwrite."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_auditevent (tenant_id, id, at, action, actor, message, detail, agent_id)"
            " VALUES (%s, %s, %s, %s, %s, 'a forged signature', '{}', %s)",
            [agent.tenant_id, uuid7(), at, AuditAction.REQUEST_REFUSED.value, actor, agent.id],
        )


def test_a_good_agent_rises_and_stays(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        _store_heartbeats(agent, days=40)
        tiers = _score(agent, days=range(40))
        changes = list(TierChange.objects.order_by("at").values_list("before", "after", "decided_by"))
        events = AuditEvent.objects.filter(action=AuditAction.TRUST_CHANGED).count()
        score = trust_score_of(agent.id)
    assert list(dict.fromkeys(tiers)) == ["probationary", "trusted", "veteran"]
    assert changes == [
        ("probationary", "trusted", "system:trust"),
        ("trusted", "veteran", "system:trust"),
    ]
    assert events == 2
    assert score.score == pytest.approx(sum(part["points"] for part in score.parts), abs=0.1)
    by_part = {part["part"]: part for part in score.parts}
    assert (by_part["success"]["good"], by_part["uptime"]["total"]) == (119, 119)


def test_an_agent_that_fails_does_not_rise(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        _store_heartbeats(agent, days=30, outcome="failure", status="failed")
        tiers = _score(agent, days=range(30))
    # Failures alone need not lower the tier: the record of safety is worth 25 points.
    assert tiers[-1] in ("probationary", "untrusted")
    assert "trusted" not in tiers


def test_a_breach_lowers_at_once(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        _store_heartbeats(agent, days=20)
        before = _score(agent, days=range(10))[-1]
        _record_breach(agent, BORN + 10 * DAY + timedelta(hours=1))
        after = _score(agent, days=range(10, 11))[-1]
        change = TierChange.objects.latest("at")
        week = _score(agent, days=range(11, 17))
    assert (before, after) == ("trusted", "probationary")
    assert change.reason == "a forged signature"
    # The same breach does not lower it again, and it does not rise within a week.
    assert set(week) == {"probationary"}


def test_a_refusal_by_the_installation_is_no_breach(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        _store_heartbeats(agent, days=10)
        _score(agent, days=range(9))
        _record_breach(agent, BORN + 9 * DAY + timedelta(hours=1), actor="system:heartbeat")
        assert _score(agent, days=range(9, 10)) == ["trusted"]


def test_the_job_scores_once_a_day_and_after_a_breach(agent: Agent) -> None:
    assert score_agents().steps == 1
    assert score_agents().steps == 0
    with tenant_transaction(agent.tenant_id):
        record(
            action=AuditAction.REFLEX, actor="agent:it", agent_id=agent.id, message="a secret in a message"
        )
    assert score_agents().steps == 1
    with tenant_transaction(agent.tenant_id):
        assert trust_score_of(agent.id).tier == TrustTier.UNTRUSTED
    assert score_agents().steps == 0


def test_an_agent_from_before_tiers_starts_as_trusted(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        agent = AgentFactory()
        assert trust_score_of(agent.id).tier == TrustTier.TRUSTED
    assert score_agents().steps == 1
    with tenant_transaction(tenant.id):
        row = TrustScore.objects.get(agent_id=agent.id)
        assert (row.tier, row.score) == (TrustTier.TRUSTED, 40)
        assert tier_changes_of(agent.id) == []


def test_a_person_sets_any_tier(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        set_tier(agent_id=agent.id, tier=TrustTier.AUTONOMOUS, actor="user:ann", reason="knows its work")
        score_agent(agent_id=agent.id, now=timezone.now() + 30 * DAY)
        (change,) = tier_changes_of(agent.id)
        assert (change.after, change.decided_by, change.reason) == (
            "autonomous",
            "user:ann",
            "knows its work",
        )
        assert trust_score_of(agent.id).tier == TrustTier.AUTONOMOUS
        with pytest.raises(Invalid, match="already"):
            set_tier(agent_id=agent.id, tier=TrustTier.AUTONOMOUS, actor="user:ann")
