"""Recent activity of an agent, read from recorded heartbeats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.fleet.policy import set_policy
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.recent_activity import exhausted_of, glances_of, spending_of
from apps.heartbeats.services.situation import load_situation
from apps.memories.models import Episode
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.failure_modes import UNSUMMARIZED_EPISODES, RecentActivity, notices_of
from arbor.heartbeat.situation import NoticeKind
from tests.factories.heartbeats import HeartbeatFactory
from tests.factories.memories import EpisodeFactory


def live(agent: Agent, beats: Sequence[dict[str, Any]]) -> None:
    """Put beats on record, oldest first."""
    now = datetime.now(UTC)
    for ago, values in zip(range(len(beats), 0, -1), beats, strict=True):
        at = now - timedelta(hours=ago)
        row = HeartbeatFactory(
            agent=agent,
            slot_at=at,
            ended_at=at,
            **{"actions": [], "narrative": "", "status": "done", **values},
        )
        Heartbeat.objects.filter(id=row.id).update(started_at=at)


def noticed(agent: Agent) -> dict[NoticeKind, str]:
    pulse = load_situation(agent.id)["pulse"]
    found = notices_of(RecentActivity(beats=glances_of(pulse), energy=spending_of(pulse)))
    return {notice.kind: notice.text for notice in found}


def acted(action: str, params: dict[str, Any], verdict: str = "run") -> dict[str, Any]:
    return {"actions": [{"action": action, "params": params, "verdict": verdict}]}


RECEIPT: dict[str, Any] = {"status": "skipped", "number": 0, "energy_start": None, "energy_end": None}


@pytest.mark.parametrize(
    ("action", "params", "topic"),
    [
        ("recall", {"query": "the tides", "limit": 5}, "the tides"),
        ("synthesize", {"topic": "the tides", "content": "They turn."}, "the tides"),
        ("inquire_shallow", {"question": "Why tides?", "queries": ["tides"]}, "tides"),
        ("inquire_deep", {"question": "Why tides?"}, "Why tides?"),
        ("reflect", {"insight": "They turn.", "focus": "the tides"}, "the tides"),
        ("maintain", {"target": "memory", "id": "abc", "verdict": None}, "abc"),
    ],
)
def test_a_topic_that_comes_back_is_seen_in_every_action(
    agent: Agent, action: str, params: dict[str, Any], topic: str
) -> None:
    with tenant_transaction(agent.tenant_id):
        # Receipts between them hide nothing.
        once = [acted(action, params), RECEIPT, RECEIPT]
        live(agent, once * 3)
        assert f"You have turned to “{topic}” in 3 heartbeats in a row." in noticed(agent)[NoticeKind.LOOP]


def test_queries_count_each_and_what_was_refused_does_not(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        asked = [{"question": f"x{n}", "queries": [f"why {n}{n}", "tides"]} for n in "abc"]
        live(agent, [acted("inquire_shallow", question) for question in asked])
        assert "“tides”" in noticed(agent)[NoticeKind.LOOP]
        live(agent, [acted("inquire_deep", {"question": "tides"}, "too_little_energy")])
        assert NoticeKind.LOOP not in noticed(agent)


def test_what_waits_to_be_summed_up_is_counted_however_much_waits_of_others(
    agent: Agent, tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    other = new_agent(tenant, name="Grace")

    def waiting(whose: Agent, count: int, *, days_ago: int, summarized: bool = False) -> list[Episode]:
        at = datetime.now(UTC) - timedelta(days=days_ago)
        return [
            EpisodeFactory.build(
                tenant_id=tenant.id,
                agent=whose,
                session=f"{whose.name} {days_ago} {number}",
                started_at=at,
                last_at=at + timedelta(minutes=number),
                ended_at=at + timedelta(hours=1),
                summarized_at=at + timedelta(hours=2) if summarized else None,
            )
            for number in range(count)
        ]

    with tenant_transaction(agent.tenant_id):
        Episode.objects.filter(agent_id=agent.id).delete()
        Episode.objects.bulk_create(waiting(other, 210, days_ago=9))
        assert load_situation(agent.id)["pulse"]["unsummarized"] == 0
        # Those of long ago are summed up.
        Episode.objects.bulk_create(waiting(agent, 60, days_ago=8, summarized=True))
        Episode.objects.bulk_create(waiting(agent, UNSUMMARIZED_EPISODES, days_ago=1))
        assert load_situation(agent.id)["pulse"]["unsummarized"] == UNSUMMARIZED_EPISODES


def test_unused_energy_is_noticed_over_receipts(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        live(agent, [{"energy_start": 20.0, "energy_end": 19.0}, RECEIPT] * 24)
        assert "you left 9.0 of 10 energy" in noticed(agent)[NoticeKind.HOARDING]


@pytest.mark.parametrize("budget", ["actions", "ticks"])
def test_another_budget_knows_neither_unused_nor_exhausted_energy(agent: Agent, budget: str) -> None:
    with tenant_transaction(agent.tenant_id):
        live(agent, [{"energy_start": 4.0, "energy_end": 0.0}] * 24)
        assert exhausted_of(load_situation(agent.id)["pulse"]) == 3
        assert NoticeKind.HOARDING in noticed(agent)
        set_policy(agent_id=agent.id, changes={"budget": budget}, actor="test")
        assert exhausted_of(load_situation(agent.id)["pulse"]) == 0
        assert NoticeKind.HOARDING not in noticed(agent)


def test_what_cycles_paid_with_is_no_energy(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        lived = {"energy_start": 20.0, "energy_end": 12.0}
        live(agent, [lived, {"energy_start": 3.0, "energy_end": 0.0, "trigger": "cycle"}] * 24)
        found = load_situation(agent.id)
        assert exhausted_of(found["pulse"]) == 0
        assert [spending[:2] for spending in spending_of(found["pulse"])] == [(20.0, 12.0)] * 24
        assert NoticeKind.HOARDING not in noticed(agent)
