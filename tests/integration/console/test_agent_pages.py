"""Pages of agents, schedules, policies, goals and selves, and notices in `/metrics`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.agents.models import Agent, AgentPolicy, AgentState, HeartbeatSchedule
from apps.agents.services.sealed_percepts import CLOSED, seal_percept
from apps.authority.models import TrustScore
from apps.calls.models import DailyUsage
from apps.console import paging
from apps.console.pages import agent as agent_page
from apps.console.pages import agent_panels
from apps.console.pages.agent import read_agent, read_agent_overview
from apps.console.paging import INLINE_ROWS
from apps.fleet.administration import set_tenant_energy
from apps.fleet.policy import set_policy
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.goals import GoalFactory, ProgressNoteFactory
from tests.factories.heartbeats import HeartbeatFactory
from tests.factories.memories import MemoryFactory
from tests.factories.rows import minutes_ago
from tests.factories.skills import AgentSkillFactory
from tests.integration.console.test_metrics import TOKEN, read_figures, scrape
from tests.support.console import World, page_of


def set_notice_and_halt(world: World) -> Agent:
    """Give an agent a notice of a loop, a used-up budget, active hours and idle heartbeats; return the agent."""
    with tenant_transaction(world.tenant.id):
        usage = DailyUsage.objects.first()
        assert usage is not None
        agent: Agent = Agent.objects.get(id=usage.agent_id)
        DailyUsage.objects.filter(id=usage.id).update(level="halt")
        AgentPolicy.objects.filter(agent_id=agent.id).update(
            active_from=time(8), active_until=time(22), time_zone="Europe/Berlin", daily_usd=1
        )
        notices = [{"kind": "loop", "text": "You have turned to <b>tides</b> in 4 heartbeats."}, "nonsense"]
        AgentState.objects.filter(agent_id=agent.id).update(notices=notices, idle_heartbeats=3)
    return agent


def test_a_thought_with_an_impossible_time_is_shown_without_it(viewer: Client, world: World) -> None:
    thoughts = [{"text": "The ice will hold.", "at": "2026-02-30T10:00:00+00:00"}]
    with tenant_transaction(world.tenant.id):
        AgentState.objects.filter(agent_id=world.agent.id).update(working_memory={"thoughts": thoughts})
    assert "The ice will hold." in viewer.get(world.agent_page).content.decode()


def test_goals_are_counted_and_open_ones_shown_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_page, "GOALS_LISTED", 2)
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
        GoalFactory(agent=agent, state="active", touched_at=minutes_ago(90))
        for _ in range(3):
            GoalFactory(agent=agent, state="completed")
        page = read_agent(agent, may_operate=False, may_approve=False, may_own=False)
    found = {column.state: (column.count, len(column.goals)) for column in page.columns}
    assert found == {"active": (1, 1), "queued": (0, 0), "backburner": (0, 0), "completed": (3, 1)}


def test_an_agents_page_says_that_a_conversation_suspends_it(viewer: Client, world: World) -> None:
    assert "in a conversation" not in viewer.get(page_of(world.agent)).content.decode()
    with tenant_transaction(world.tenant.id):
        until = timezone.now() + timedelta(minutes=5)
        HeartbeatSchedule.objects.filter(agent=world.agent).update(paused_until=until)
    assert "in a conversation" in viewer.get(page_of(world.agent)).content.decode()


def test_the_last_mode_is_that_of_a_heartbeat_which_was_not_skipped(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
        HeartbeatFactory(agent=agent, mode="reflection", started_at=minutes_ago(9))
        HeartbeatFactory(agent=agent, mode="", status="skipped", number=0)
        assert read_agent_overview(agent).last_mode == "reflection"


def test_rows_of_agents_are_found_by_words(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory(name="Vega")
        set_policy(agent_id=agent.id, changes={"daily_heartbeats": 3}, actor="cli:ann")
        for row_agent in (agent, AgentFactory(name="Lyra")):
            TrustScore.objects.create(
                tenant_id=world.tenant.id, agent=row_agent, tier="probationary", since=timezone.now()
            )
        AgentSkillFactory(agent=agent, name="lamps")
        AgentSkillFactory(agent=agent, name="tides", position=2)
    for model, query in (
        ("agents_agentpolicy", {"q": "vega"}),
        ("authority_capabilitygrant", {"q": "execute/recall", "agent__id__exact": str(agent.id)}),
        ("authority_trustscore", {"q": "vega"}),
        ("knowledge_agentskill", {"q": "lamp", "agent__id__exact": str(agent.id)}),
    ):
        found = viewer.get(reverse(f"admin:{model}_changelist"), query).context["cl"].result_list
        assert [row.agent_id for row in found] == [agent.id], model


def test_an_agents_page_shows_notices_budget_and_active_hours(viewer: Client, world: World) -> None:
    agent = set_notice_and_halt(world)
    page = viewer.get(page_of(agent)).content.decode()
    assert "You have turned to &lt;b&gt;tides&lt;/b&gt; in 4 heartbeats." in page
    assert "budget: halt" in page
    assert "3 idle heartbeats in a row: its heartbeats are rarer" in page
    assert "Heartbeats from 08:00 to 22:00, Europe/Berlin" in page
    assert "of 24 heartbeats" in page


def test_an_agents_page_shows_why_its_last_heartbeat_failed(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        HeartbeatSchedule.objects.filter(agent=world.agent).update(last_error="ModelTimeout: no answer")
    page = viewer.get(page_of(world.agent)).content.decode()
    assert "<strong>Its last heartbeat failed.</strong> ModelTimeout: no answer" in page


def test_each_list_that_an_agents_page_links_opens(owner: Client, world: World) -> None:
    page = owner.get(page_of(world.agent)).content.decode()
    lists = {unescape(link) for link in re.findall(r'href="([^"]+/\?agent[^"]+)"', page)}
    assert len(lists) > 5
    assert [link for link in lists if owner.get(link).status_code != 200] == []


def test_the_text_of_a_sealed_message_is_not_shown(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        sender, receiver = (AgentFactory(name=name) for name in ("Vega", "Bo"))
        text = "The eels left by the moonlit weir."
        percept = seal_percept(sender_id=sender.id, receiver_id=receiver.id, content=text, detail={})
        percept.save(force_insert=True)
    pages = {url: viewer.get(url).content.decode() for url in (page_of(receiver), page_of(percept))}
    assert "sealed until it is taken in" in pages[page_of(receiver)]
    assert CLOSED in pages[page_of(percept)]
    for page in pages.values():
        assert text not in page
        assert str((percept.sealed or {})["box"]) not in page


def test_a_schedules_page_shows_the_due_time_and_a_pause(viewer: Client, world: World) -> None:
    until = timezone.now() + timedelta(hours=3)
    with tenant_transaction(world.tenant.id):
        schedule = HeartbeatSchedule.objects.exclude(state="off")[0]
        HeartbeatSchedule.objects.filter(agent_id=schedule.agent_id).update(paused_until=until)
    page = viewer.get(page_of(schedule)).content.decode()
    assert f'datetime="{until.isoformat()}"' in page
    assert "Paused until" in page


def test_the_first_page_raises_an_alarm_for_budgets_that_run_low(viewer: Client, world: World) -> None:
    assert "runs low" not in viewer.get(reverse("admin:index")).content.decode()
    set_notice_and_halt(world)
    page = viewer.get(reverse("admin:index")).content.decode()
    assert "The day&#x27;s budget of 1 agent runs low" in page
    assert "1 of them nothing until tomorrow" in page


def test_metrics_count_notices_by_kind(world: World, settings: Any) -> None:
    settings.ARBOR_METRICS_TOKEN = TOKEN
    set_notice_and_halt(world)
    figures = read_figures(scrape(Client(), f"Bearer {TOKEN}").content.decode())["arbor_agents_noticed"]
    assert (figures["loop"], figures["hoarding"]) == (1.0, 0.0)


def test_an_agents_page_opens_before_it_has_a_state(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
    text = viewer.get(page_of(agent)).content.decode()
    assert "no schedule" in text
    assert "by the defaults" in text


def test_a_policys_page_names_its_agent_and_the_unset_limits(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        policy = AgentPolicy.objects.get()
        AgentPolicy.objects.update(tier_models={"strategic": ["openai/gpt-5", "openai/gpt-5-mini"]})
    text = viewer.get(page_of(policy)).content.decode()
    for words in (
        f"Policy of {world.agent.name}",
        "none of its own",
        "always",
        "strategic: openai/gpt-5, openai/",
    ):
        assert words in text, words


def test_pages_show_the_energy_of_the_policies(viewer: Client, world: World) -> None:
    set_tenant_energy(slug=world.tenant.slug, changes={"maximum": 40}, actor="test")
    with tenant_transaction(world.tenant.id):
        policy = AgentPolicy.objects.get()
        set_policy(agent_id=policy.agent_id, changes={"energy": {"costs": {"recall": 3}}}, actor="test")
    assert "energy of 40" in viewer.get(page_of(world.agent)).content.decode()
    text = viewer.get(page_of(policy)).content.decode()
    assert "10 come back at each heartbeat, 40 at most; recall costs 3" in text
    assert 'data-width="30"' in viewer.get("/admin/").content.decode()


def test_an_agents_page_shows_its_mood_and_its_drives(viewer: Client, world: World) -> None:
    at = datetime.now(UTC).isoformat()
    with tenant_transaction(world.tenant.id):
        AgentState.objects.filter(agent_id=world.agent.id).update(
            mood={"valence": 0.9, "arousal": 0.9, "at": at},
            drives={"states": {"curiosity": {"level": 0.9, "at": at, "building": True}}},
        )
    text = viewer.get(reverse("admin:agents_agent_change", args=[world.agent.id])).content.decode()
    assert "very good and stirred up" in text
    assert 'data-drive="curiosity"' in text
    assert "curiosity <strong>urgent</strong>" in text
    assert "rest <strong>" not in text


def test_a_goals_page_shows_its_parts_plans_memories_and_worth(viewer: Client, world: World) -> None:
    page = next(page for page in world.pages if "/goals/goal/" in page and page.endswith("/change/"))
    text = viewer.get(page).content.decode()
    for words in ("Part of", "steps", "progress", "0.8"):
        assert words in text


def test_an_agents_page_shows_each_goal_above_its_parts(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        coast = GoalFactory(agent=world.agent, title="Chart the coast")
        reef = GoalFactory(agent=world.agent, title="Sound the reef", parent=coast)
        GoalFactory(agent=world.agent, title="Drop the lead", parent=reef)
    text = viewer.get(world.agent_page).content.decode()
    tree = text[text.index('id="goal-tree"') :]
    places = [tree.index(title) for title in ("Chart the coast", "Sound the reef", "Drop the lead")]
    assert places == sorted(places)
    assert 'data-indent="36"' in tree


def test_the_memory_panel_says_where_its_counting_ended(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_panels, "ROWS_COUNTED", 2)
    with tenant_transaction(world.tenant.id):
        MemoryFactory.create_batch(3, agent=world.agent)
    assert '<dt>memories</dt><dd class="ar-num">2+</dd>' in viewer.get(world.agent_page).content.decode()


def test_a_goals_page_shows_the_first_of_many_notes(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "ROWS_COUNTED", 25)
    with tenant_transaction(world.tenant.id):
        goal = GoalFactory(agent=world.agent)
        for number in range(30):
            ProgressNoteFactory(goal=goal, text=f"Sounding number {number}.")
    first = viewer.get(page_of(goal)).content.decode()
    assert "the first 25 progress notes" in first
    assert first.count("Sounding number") == INLINE_ROWS
    assert viewer.get(page_of(goal), {"notes-page": 2}).content.decode().count("Sounding number") == 5


def test_a_goals_page_names_its_empty_tables(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        goal = GoalFactory(agent=world.agent)
    assert viewer.get(page_of(goal)).content.decode().count("none yet") == 6
