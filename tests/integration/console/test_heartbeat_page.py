"""Pages of a heartbeat and of a percept."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.agents.models import Trigger
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.goals import GoalFactory
from tests.factories.heartbeats import HeartbeatFactory, PerceptFactory
from tests.factories.memories import MemoryFactory
from tests.support.console import World, page_of
from tests.unit.heartbeat.builders import goal, intent, situation


@pytest.mark.parametrize(
    ("trigger", "cause"),
    [
        (Trigger.TIMER, "its timer"),
        (Trigger.EVENT, "an event"),
        (Trigger.DRIVE, "a drive"),
        (Trigger.MESSAGE, "a message"),
    ],
)
def test_a_heartbeat_page_shows_its_feeling_and_its_trigger(
    viewer: Client, world: World, trigger: Trigger, cause: str
) -> None:
    with tenant_transaction(world.tenant.id):
        heartbeat = HeartbeatFactory(trigger=trigger, emotional_valence=-0.25, arousal=0.75)
    page = viewer.get(reverse("admin:heartbeats_heartbeat_change", args=[heartbeat.pk])).content.decode()
    facts = page.partition('id="heartbeat-facts"')[2].partition("</dl>")[0]
    assert "Low and stirred up" in facts
    assert "valence -0.25 of -1 to 1, arousal 0.75 of 1" in facts
    assert f"<dd>{cause}</dd>" in facts


def situation_with(**changes: Any) -> dict[str, Any]:
    """Return the situation of a heartbeat, as its row stores it."""
    return situation(goals=[goal()], intents=[intent()], **changes).model_dump(mode="json")


def shown(viewer: Client, heartbeat: Heartbeat) -> str:
    return viewer.get(page_of(heartbeat)).content.decode()


def test_a_heartbeat_page_explains_its_mode_by_the_situation(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        explained = HeartbeatFactory(mode="goal_pursuit", situation=situation_with())
        by_other_rules = HeartbeatFactory(mode="reflection", situation=situation_with())
    assert "1 committed step waited to be done." in shown(viewer, explained)
    assert 'id="why-mode"' not in shown(viewer, by_other_rules)


def test_a_heartbeat_page_says_whether_a_model_or_a_rule_decided(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        by_rule = HeartbeatFactory(model="reflex/policy")
        by_model = HeartbeatFactory(model="openai/gpt-5-mini")
    assert "Why, by the rules of the reflex policy" in shown(viewer, by_rule)
    assert "in the model's words" not in shown(viewer, by_rule)
    assert "Why, in the model's words" in shown(viewer, by_model)


def test_an_action_shows_a_memory_by_its_text_instead_of_its_id(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory(agent=world.agent, content="The ferry stopped for nine days.")
        action = {
            "action": "connect",
            "params": {"from_id": str(memory.id), "relation": "causes", "note": None},
            "verdict": "run",
            "cost": 1,
        }
        heartbeat = HeartbeatFactory(agent=world.agent, actions=[action])
    text = shown(viewer, heartbeat).partition('id="actions"')[2]
    assert f'from id:</span> <a class="ar-link" href="{page_of(memory)}">The ferry stopped' in text
    assert "relation:</span> causes" in text
    assert "note:</span>" not in text


def test_a_goal_change_links_to_the_goal_by_its_title(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        coast = GoalFactory(agent=world.agent, title="Chart the coast")
        heartbeat = HeartbeatFactory(
            agent=world.agent, goal_changes=[{"goal_id": str(coast.id), "kind": "completed", "change": ""}]
        )
    changes = shown(viewer, heartbeat).partition('id="goal-changes"')[2]
    assert f'href="{page_of(coast)}">Chart the coast</a>' in changes


def test_a_heartbeat_page_counts_spending_in_its_budgets_unit(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        heartbeat = HeartbeatFactory(
            agent=world.agent, situation=situation_with(energy_unit="ticks"), energy_start=3.0, energy_end=2.0
        )
    facts = shown(viewer, heartbeat).partition('id="heartbeat-facts"')[2]
    assert "<dt>Ticks</dt>" in facts
    assert "1 tick</span>" in facts
    assert "<dt>Energy</dt>" in shown(viewer, world.heartbeat)
    for page in ("admin:heartbeats_heartbeat_changelist", "admin:index"):
        assert "3 → 2 ticks" in viewer.get(reverse(page)).content.decode(), page


def test_a_heartbeat_page_counts_dropped_items_and_further_ones(viewer: Client, world: World) -> None:
    dropped = [{"path": "actions[0]", "value": "0", "reason": "an action is an object"}]
    further = {"path": "", "value": "", "reason": "9 further items were dropped: an action is an object (9)"}
    second = {"path": "", "value": "{}", "reason": "a further reply in the same text; one reply is read"}
    for items, count in (
        (dropped, "1 item"),
        ([second], "1 item"),
        ([second, *dropped], "2 items"),
        ([second, *dropped, further], "more than 2 items"),
    ):
        with tenant_transaction(world.tenant.id):
            heartbeat = HeartbeatFactory(agent=world.agent, dropped=items)
        assert f"proposed, {count} of the reply not used" in shown(viewer, heartbeat)


def test_a_skipped_heartbeat_has_no_number(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        heartbeat = HeartbeatFactory(status=HeartbeatStatus.SKIPPED, number=0)
    text = shown(viewer, heartbeat)
    assert "Heartbeat (skipped)" in text
    assert "eartbeat 0" not in text


def test_a_heartbeat_under_way_has_not_decided_yet(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        heartbeat = HeartbeatFactory(
            agent=AgentFactory(), status=HeartbeatStatus.RUNNING, ended_at=None, actions=[], trace=[]
        )
    under_way = shown(viewer, heartbeat)
    assert "It has not decided yet" in under_way
    assert "No stage is recorded yet" in under_way
    with tenant_transaction(world.tenant.id):
        Heartbeat.objects.filter(id=heartbeat.id).update(status=HeartbeatStatus.DONE, ended_at=timezone.now())
    ended = shown(viewer, heartbeat)
    assert "It did nothing" in ended
    assert "It never began" in ended


def test_a_slot_is_shown_with_its_time_zone(viewer: Client, world: World) -> None:
    assert f"{world.heartbeat.slot_at:%Y-%m-%d %H:%M:%S} UTC" in shown(viewer, world.heartbeat)


def test_a_percepts_page_shows_its_detail_and_urgency(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        percept = PerceptFactory(kind="environment", detail={"sensor": "<b>river</b>"}, urgent=True)
    page = viewer.get(reverse("admin:agents_percept_change", args=[percept.pk])).content.decode()
    assert "&lt;b&gt;river&lt;/b&gt;" in page
    assert "sensor" in page
    assert "Urgent" in page
