"""How agents live, on the console's pages and in `/metrics`: notices, budgets, policies."""

from __future__ import annotations

from datetime import time, timedelta
from typing import Any

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.agents.models import Agent, AgentPolicy, AgentState, HeartbeatSchedule
from apps.calls.models import DailyUsage
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.integration.console.test_metrics import TOKEN, scrape, values
from tests.support.console import World, page_of


def lives_badly(world: World) -> Agent:
    """Let the world's first agent be in a loop, and short of money."""
    with tenant_transaction(world.tenant.id):
        usage = DailyUsage.objects.first()
        assert usage is not None
        agent: Agent = Agent.objects.get(id=usage.agent_id)
        DailyUsage.objects.filter(id=usage.id).update(level="halt")
        AgentPolicy.objects.filter(agent_id=agent.id).update(
            active_from=time(8), active_until=time(22), time_zone="Europe/Berlin", daily_usd=1
        )
        notices = [{"kind": "loop", "text": "You have turned to <b>tides</b> in 4 heartbeats."}, "nonsense"]
        AgentState.objects.filter(agent_id=agent.id).update(notices=notices, idle_beats=3)
    return agent


def test_an_agents_page_shows_how_it_lives(viewer: Client, world: World) -> None:
    agent = lives_badly(world)
    page = viewer.get(page_of(agent)).content.decode()
    assert "You have turned to &lt;b&gt;tides&lt;/b&gt; in 4 heartbeats." in page
    assert "budget: halt" in page
    assert "3 idle heartbeats in a row: its heartbeats are rarer" in page
    assert "Heartbeats from 08:00 to 22:00, Europe/Berlin" in page
    assert "of 24 heartbeats" in page


def test_a_schedules_page_says_when_it_is_due_and_that_somebody_talks(viewer: Client, world: World) -> None:
    until = timezone.now() + timedelta(hours=3)
    with tenant_transaction(world.tenant.id):
        schedule = HeartbeatSchedule.objects.exclude(state="off")[0]
        HeartbeatSchedule.objects.filter(agent_id=schedule.agent_id).update(paused_until=until)
    page = viewer.get(page_of(schedule)).content.decode()
    assert f'datetime="{until.isoformat()}"' in page
    assert "Paused until" in page


def test_the_first_page_raises_an_alarm_for_budgets_that_run_low(viewer: Client, world: World) -> None:
    assert "runs low" not in viewer.get(reverse("admin:index")).content.decode()
    lives_badly(world)
    page = viewer.get(reverse("admin:index")).content.decode()
    assert "The day&#x27;s budget of 1 runs low" in page
    assert "1 of them until tomorrow" in page


def test_metrics_count_what_is_noticed(world: World, settings: Any) -> None:
    settings.ARBOR_METRICS_TOKEN = TOKEN
    lives_badly(world)
    found = values(scrape(Client(), f"Bearer {TOKEN}").content.decode())["arbor_agents_noticed"]
    assert (found["loop"], found["hoarding"]) == (1.0, 0.0)


def test_an_agents_page_opens_before_it_has_a_state(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
    text = viewer.get(page_of(agent)).content.decode()
    assert "no schedule" in text
    assert "by the defaults" in text


def test_a_policys_page_says_whose_it_is_and_what_it_leaves_open(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        policy = AgentPolicy.objects.get()
        AgentPolicy.objects.update(tier_models={"deep": ["openai/gpt-5", "openai/gpt-5-mini"]})
    text = viewer.get(page_of(policy)).content.decode()
    for words in (
        f"Policy of {world.agent.name}",
        "none of its own",
        "always",
        "deep: openai/gpt-5, openai/",
    ):
        assert words in text, words
