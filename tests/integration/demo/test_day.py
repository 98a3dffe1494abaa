"""A day of the demo's agents without a language model, on a clock that is moved.

After the first hour the heartbeats are rarer, so that the day takes half a minute. `DEMO_DAY=full` keeps the demo's
interval throughout; `DEMO_DAY_STORY` names a file for what the agents thought and did.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connections

from apps.agents.models import Agent, AgentState
from apps.agents.services.templates import seed_builtin_templates
from apps.goals.models import Goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.maintenance.services.consolidation import consolidate, maintain_episodes
from apps.memories.models import Memory
from apps.memories.services.clusters.job import maintain_clusters
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.graph.neighborhoods import refresh_neighborhoods
from apps.memories.services.retention.buffer import promote_buffers
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.goals.values import GoalLayer, GoalState
from arbor.selves.drives import Drive, read_drives
from config.demo.installation import TENANTS, make_demo
from tests.factories.users import UserFactory
from tests.integration.heartbeats.fleet import Fleet, a_fleet
from tests.support.moved_clock import MovedClock, moved_clock

DAY = timedelta(hours=24)
HOUR = timedelta(hours=1)
#: The interval after the first hour, in seconds.
LATER = 480
FULL = os.environ.get("DEMO_DAY") == "full"
STORY = os.environ.get("DEMO_DAY_STORY", "")

JOBS: tuple[Callable[[], object], ...] = (
    embed_backlog,
    maintain_episodes,
    consolidate,
    maintain_clusters,
    refresh_neighborhoods,
    promote_buffers,
)


@dataclass(kw_only=True)
class Life:
    """The day of one agent."""

    agent: Agent
    beats: list[Heartbeat] = field(default_factory=list)
    #: Kinds of problems, by the time they were noticed.
    notices: list[tuple[datetime, str]] = field(default_factory=list)
    #: Hourly levels.
    drives: list[dict[str, float]] = field(default_factory=list)
    moods: list[float] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    insights: list[str] = field(default_factory=list)

    @property
    def done(self) -> list[Heartbeat]:
        return [beat for beat in self.beats if beat.status == HeartbeatStatus.DONE]


class Days:
    """Lets the demo's agents live on a moved clock."""

    def __init__(self, clock: MovedClock, fleet: Fleet, session: psycopg.Connection[Any]) -> None:
        self._clock, self._fleet, self._session = clock, fleet, session
        self.lives = {
            agent.id: Life(agent=agent)
            for demo in TENANTS
            for agent in _in_tenant(demo.slug, lambda: list(Agent.objects.order_by("name")))
        }

    def live(self, span: timedelta) -> None:
        """Run due heartbeats until the span is over; maintenance runs each hour."""
        end, watched = self._clock.now() + span, self._clock.now()
        while (due := self._next_due()) < end:
            self._clock.advance_to(due)
            if self._clock.now() >= watched:
                watched = self._clock.now() + HOUR
                self._maintain()
                self._watch()
            self._fleet.dispatch()
            self._fleet.run()
        self._clock.advance_to(end)
        self._watch()

    def slow_down(self, interval_s: float) -> None:
        self._session.execute("UPDATE heartbeats_heartbeatschedule SET interval_s = %s", [interval_s])

    def finish(self) -> list[Life]:
        """Return the lives with their heartbeats, goals and insights."""
        for life in self.lives.values():
            agent_id = life.agent.id
            with tenant_transaction(life.agent.tenant_id):
                life.beats = list(Heartbeat.objects.filter(agent_id=agent_id).order_by("started_at"))
                life.goals = list(Goal.objects.filter(agent_id=agent_id))
                sources = [f"heartbeat:{beat.id}" for beat in life.beats]
                own = Memory.objects.filter(agent_id=agent_id, source__in=sources).exclude(
                    session="heartbeats"
                )
                life.insights = list(own.order_by("occurred_at").values_list("content", flat=True))
        return list(self.lives.values())

    def _next_due(self) -> datetime:
        row = self._session.execute(
            "SELECT min(next_due_at) FROM heartbeats_heartbeatschedule WHERE NOT in_flight"
        ).fetchone()
        assert row is not None
        found: datetime = row[0]
        return found

    def _maintain(self) -> None:
        for job in JOBS:
            job()
            self._fleet.run()

    def _watch(self) -> None:
        now = self._clock.now()
        for life in self.lives.values():
            with tenant_transaction(life.agent.tenant_id):
                state = AgentState.objects.get(agent_id=life.agent.id)
            life.notices += [(now, notice["kind"]) for notice in state.notices]
            states = read_drives(state.drives, now).states if state.drives else {}
            life.drives.append({name.value: drive.level for name, drive in states.items()})
            life.moods.append(state.mood.get("valence", 0.0))


def _in_tenant[T](slug: str, read: Callable[[], T]) -> T:
    with tenant_transaction(tenant_by_slug(slug).id):
        return read()


@pytest.fixture
def days(database: None, cleaner: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Days]:
    seed_builtin_templates()
    UserFactory.create(username="operator")
    with moved_clock(cleaner, monkeypatch) as clock, a_fleet() as fleet:
        make_demo(operator="operator")
        fleet.messages.clear()
        yield Days(clock, fleet, cleaner)
    connections.close_all()


@pytest.mark.timeout(600)
def test_a_day_without_a_model_is_believable(days: Days) -> None:
    days.live(HOUR)
    if not FULL:
        days.slow_down(LATER)
    days.live(DAY - HOUR)
    lives = days.finish()
    if STORY:
        Path(STORY).write_text("\n".join(map(_story, lives)), encoding="utf-8")
    for life in lives:
        name = life.agent.name
        assert Counter(kind for _, kind in life.notices) == {}, name
        assert {beat.status for beat in life.beats} == {HeartbeatStatus.DONE, HeartbeatStatus.SKIPPED}, name
        _assert_no_thought_twice(life)
        _assert_goals_are_bounded(life)
        _assert_energy_is_used_and_regained(life)
        assert -1 < min(life.moods) <= max(life.moods) < 0.9, name
    # Drives rise while nothing happens, and rest when their need is met.
    curiosity = [[hour[Drive.CURIOSITY] for hour in life.drives if hour] for life in lives]
    assert any(later > before for levels in curiosity for before, later in itertools.pairwise(levels))
    assert all(min(levels[-3:]) < 0.8 for levels in curiosity)


def _assert_no_thought_twice(life: Life) -> None:
    for texts in ([beat.reasoning for beat in life.done], life.insights):
        repeated = [text for text, times in Counter(filter(None, texts)).items() if times > 1]
        assert repeated == [], life.agent.name
    narratives = Counter(beat.narrative.partition(". ")[2] for beat in life.done)
    assert max(narratives.values()) == 1, life.agent.name


def _assert_goals_are_bounded(life: Life) -> None:
    titles = Counter(goal.title for goal in life.goals)
    assert max(titles.values(), default=0) <= 1, life.agent.name
    assert len(life.goals) <= 8, life.agent.name
    waiting = [
        goal.title
        for goal in life.goals
        if goal.layer != GoalLayer.ASPIRATION and goal.state != GoalState.COMPLETED
    ]
    assert waiting == [], life.agent.name


def _assert_energy_is_used_and_regained(life: Life) -> None:
    ends = [beat.energy_end for beat in life.done if beat.energy_end is not None]
    starts = [beat.energy_start for beat in life.done if beat.energy_start is not None]
    assert min(ends) < 16, life.agent.name
    assert starts[-1] > min(ends), life.agent.name


def _story(life: Life) -> str:
    lines = [f"===== {life.agent.name} ({life.agent.template_name}), {len(life.beats)} heartbeats"]
    first = life.beats[0].started_at
    for beat in life.done:
        acted = ", ".join(action["action"] for action in beat.actions)
        minutes = (beat.started_at - first) / timedelta(minutes=1)
        lines.append(
            f"{minutes:7.1f} {beat.mode:15} {beat.energy_start:g} → {beat.energy_end:g} [{acted}] {beat.reasoning}"
        )
    lines += [f"  goal {goal.state}: {goal.layer} {goal.title}" for goal in life.goals]
    lines += [f"  insight: {insight}" for insight in life.insights]
    lines += [f"  notice {at:%H:%M}: {kind}" for at, kind in life.notices]
    lines += [f"  drives {hour} mood {mood}" for hour, mood in zip(life.drives, life.moods, strict=True)]
    return "\n".join(lines)
