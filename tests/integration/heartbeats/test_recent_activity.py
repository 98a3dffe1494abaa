"""Recent activity of an agent, read from recorded heartbeats, and its notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent, AgentState
from apps.calls.models import DailyUsage
from apps.fleet.policy import set_policy
from apps.goals.models import Goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.reports.status import fleet_status
from apps.heartbeats.services.situations.recent_activity import (
    exhausted_heartbeats_of,
    recent_heartbeats_of,
    spending_of,
)
from apps.heartbeats.services.situations.situation import load_situation
from apps.memories.models import Episode
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import ModelRefused
from arbor.heartbeat.failure_modes import UNSUMMARIZED_EPISODES, RecentActivity, notices_of
from arbor.heartbeat.situation import NoticeKind
from tests.factories.heartbeats import HeartbeatFactory
from tests.factories.memories import EpisodeFactory
from tests.integration.heartbeats.conftest import REST, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script


def record_heartbeats(agent: Agent, heartbeats: Sequence[dict[str, Any]]) -> None:
    """Store records of heartbeats, oldest first."""
    now = datetime.now(UTC)
    for ago, values in zip(range(len(heartbeats), 0, -1), heartbeats, strict=True):
        at = now - timedelta(hours=ago)
        row = HeartbeatFactory(
            agent=agent,
            slot_at=at,
            ended_at=at,
            **{"actions": [], "narrative": "", "status": "done", **values},
        )
        Heartbeat.objects.filter(id=row.id).update(started_at=at)


def notices_by_kind(agent: Agent) -> dict[NoticeKind, str]:
    """Return the texts of the notices about the recent activity of the agent."""
    activity = load_situation(agent.id)["activity"]
    notices = notices_of(
        RecentActivity(
            heartbeats=recent_heartbeats_of(activity),
            energy=spending_of(activity),
            limited=activity["limited"],
        )
    )
    return {notice.kind: notice.text for notice in notices}


def record_of(action: str, params: dict[str, Any], verdict: str = "run") -> dict[str, Any]:
    """Return the fields of a heartbeat with one action."""
    return {"actions": [{"action": action, "params": params, "verdict": verdict}]}


#: The fields of a skipped heartbeat.
SKIPPED: dict[str, Any] = {"status": "skipped", "number": 0, "energy_start": None, "energy_end": None}


@pytest.mark.parametrize(
    ("action", "params", "topic"),
    [
        ("recall", {"query": "the tides", "limit": 5}, "the tides"),
        ("synthesize", {"topic": "the tides", "content": "They turn."}, "the tides"),
        ("inquire_shallow", {"question": "Why tides?", "queries": ["tides"]}, "Why tides?"),
        ("inquire_deep", {"question": "Why tides?"}, "Why tides?"),
        ("reflect", {"insight": "They turn.", "focus": "the tides"}, "the tides"),
        ("maintain", {"target": "memory", "id": "abc", "verdict": None}, "abc"),
    ],
)
def test_a_repeated_topic_is_noticed_in_each_action(
    agent: Agent, action: str, params: dict[str, Any], topic: str
) -> None:
    with tenant_transaction(agent.tenant_id):
        # Skipped heartbeats between them make no difference.
        once = [record_of(action, params), SKIPPED, SKIPPED]
        record_heartbeats(agent, once * 3)
        assert (
            f"You have turned to “{topic}” in 3 heartbeats in a row."
            in notices_by_kind(agent)[NoticeKind.LOOP]
        )


def test_each_query_counts_and_a_refused_action_does_not(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        inquiries = [{"question": f"x{n}", "queries": [f"why {n}{n}", "tides"]} for n in "abc"]
        record_heartbeats(agent, [record_of("inquire_shallow", question) for question in inquiries])
        assert "“tides”" in notices_by_kind(agent)[NoticeKind.LOOP]
        record_heartbeats(agent, [record_of("inquire_deep", {"question": "tides"}, "too_little_energy")])
        assert NoticeKind.LOOP not in notices_by_kind(agent)


def test_unsummarized_episodes_are_counted_for_one_agent(
    agent: Agent, tenant: Tenant, new_agent: Callable[..., Agent]
) -> None:
    other = new_agent(tenant, name="Grace")

    def build_episodes(owner: Agent, count: int, *, days_ago: int, summarized: bool = False) -> list[Episode]:
        at = datetime.now(UTC) - timedelta(days=days_ago)
        return [
            EpisodeFactory.build(
                tenant_id=tenant.id,
                agent=owner,
                session=f"{owner.name} {days_ago} {number}",
                started_at=at,
                last_at=at + timedelta(minutes=number),
                ended_at=at + timedelta(hours=1),
                summarized_at=at + timedelta(hours=2) if summarized else None,
            )
            for number in range(count)
        ]

    with tenant_transaction(agent.tenant_id):
        Episode.objects.filter(agent_id=agent.id).delete()
        Episode.objects.bulk_create(build_episodes(other, 210, days_ago=9))
        assert load_situation(agent.id)["activity"]["unsummarized"] == 0
        # The old episodes have summaries.
        Episode.objects.bulk_create(build_episodes(agent, 60, days_ago=8, summarized=True))
        Episode.objects.bulk_create(build_episodes(agent, UNSUMMARIZED_EPISODES, days_ago=1))
        assert load_situation(agent.id)["activity"]["unsummarized"] == UNSUMMARIZED_EPISODES


def test_unused_energy_is_noticed_across_skipped_heartbeats(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        record_heartbeats(agent, [{"energy_start": 20.0, "energy_end": 19.0}, SKIPPED] * 24)
        assert "you left 9.0 of 10 energy" in notices_by_kind(agent)[NoticeKind.HOARDING]


@pytest.mark.parametrize(
    ("days", "level", "is_noticed"),
    [(0, "degradation", False), (6, "halt", False), (7, "halt", True), (1, "normal", True)],
)
def test_energy_is_not_called_unused_after_a_limit_ran_short(
    agent: Agent, days: int, level: str, is_noticed: bool
) -> None:
    with tenant_transaction(agent.tenant_id):
        record_heartbeats(agent, [{"energy_start": 20.0, "energy_end": 19.0}] * 24)
        day = datetime.now(UTC).date() - timedelta(days=days)
        DailyUsage.objects.create(tenant_id=agent.tenant_id, agent_id=agent.id, day=day, level=level)
        assert (NoticeKind.HOARDING in notices_by_kind(agent)) is is_noticed


@pytest.mark.parametrize("budget", ["actions", "ticks"])
def test_another_budget_has_no_notices_about_energy(agent: Agent, budget: str) -> None:
    with tenant_transaction(agent.tenant_id):
        record_heartbeats(agent, [{"energy_start": 4.0, "energy_end": 2.0}] * 24)
        assert NoticeKind.HOARDING in notices_by_kind(agent)
        Heartbeat.objects.filter(agent_id=agent.id).update(energy_end=0)
        assert exhausted_heartbeats_of(load_situation(agent.id)["activity"]) == 3
        set_policy(agent_id=agent.id, changes={"budget": budget}, actor="test")
        assert exhausted_heartbeats_of(load_situation(agent.id)["activity"]) == 0
        assert NoticeKind.HOARDING not in notices_by_kind(agent)


def test_ticks_paid_by_cycles_are_no_energy(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        spent = {"energy_start": 20.0, "energy_end": 12.0}
        record_heartbeats(agent, [spent, {"energy_start": 3.0, "energy_end": 0.0, "trigger": "cycle"}] * 24)
        situation = load_situation(agent.id)
        assert exhausted_heartbeats_of(situation["activity"]) == 0
        assert [spending[:2] for spending in spending_of(situation["activity"])] == [(20.0, 12.0)] * 24
        assert NoticeKind.HOARDING not in notices_by_kind(agent)


def stored_notices(agent: Agent) -> dict[str, str]:
    """Return the texts of the notices in the agent's state, by kind."""
    with tenant_transaction(agent.tenant_id):
        notices = AgentState.objects.values_list("notices", flat=True).get(agent_id=agent.id)
    return {notice["kind"]: notice["text"] for notice in notices}


def test_unreadable_replies_in_a_row_are_counted(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted("nothing to read", repeat=True)
    assert run_heartbeat(fleet, agent).status == HeartbeatStatus.FAILED
    assert "1 time in a row" in stored_notices(agent)["invalid_replies"]
    run_heartbeat(fleet, agent)
    assert "2 times in a row" in stored_notices(agent)["invalid_replies"]
    assert fleet_status().notices["invalid_replies"] == 1


def test_a_usable_reply_ends_the_notice(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted("nothing to read", "nothing to read", "nothing to read", REST)
    run_heartbeat(fleet, agent)
    assert run_heartbeat(fleet, agent).status == HeartbeatStatus.DONE
    assert "invalid_replies" not in stored_notices(agent)


def test_refusals_in_a_row_are_noticed(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    scripted(ModelRefused("not that"), repeat=True)
    for _ in range(3):
        assert run_heartbeat(fleet, agent).status == HeartbeatStatus.FAILED
    assert "refusals" in stored_notices(agent)


def test_notices_are_stored_and_shown_to_the_agent(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    model = scripted(REST, repeat=True)
    with tenant_transaction(agent.tenant_id):
        goal = Goal.objects.filter(agent_id=agent.id, state="active").first()
        assert goal is not None
        Goal.objects.filter(id=goal.id).update(touched_at=datetime.now(UTC) - timedelta(days=8))
    for _ in range(4):
        run_heartbeat(fleet, agent)
    prompt = model.requests[-1].messages[0].content
    assert "## Noticed about yourself" in prompt
    assert f"no progress for a week on: {goal.title}" in prompt
    assert "What else might deserve attention?" in prompt
    assert stored_notices(agent).keys() >= {"stagnation", "loop"}
