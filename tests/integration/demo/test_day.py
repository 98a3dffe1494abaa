"""A day of the demo's agents without a language model, on a clock that is moved.

After the first hour the heartbeats are rarer, so that the day takes twenty seconds. `DEMO_DAY=full` keeps the demo's
interval throughout; `DEMO_DAY_STORY` names a file for what the agents thought and did.
"""

from __future__ import annotations

import itertools
import os
import re
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
from apps.memories.models import Memory
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.goals.values import GoalLayer, GoalState
from arbor.selves.drives import Drive, read_drives
from config.demo.installation import TENANTS, make_demo
from tests.factories.users import UserFactory
from tests.integration.heartbeats.fleet import Fleet, a_fleet
from tests.support.maintenance import JOBS
from tests.support.moved_clock import MovedClock, moved_clock

DAY = timedelta(hours=24)
HOUR = timedelta(hours=1)
#: The interval after the first hour, in seconds.
LATER = 900
FULL = os.environ.get("DEMO_DAY") == "full"
STORY = os.environ.get("DEMO_DAY_STORY", "")

#: A thought about a memory that speaks of the question's subject.
_FOUND = re.compile(r"I wondered: more about “(\w+)”\. I think of this: .*\b\1\b")


@dataclass(kw_only=True)
class AgentDay:
    """The day of one agent."""

    agent: Agent
    heartbeats: list[Heartbeat] = field(default_factory=list)
    #: Kinds of problems, by the time they were noticed.
    notices: list[tuple[datetime, str]] = field(default_factory=list)
    #: Hourly levels.
    drives: list[dict[str, float]] = field(default_factory=list)
    moods: list[float] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    insights: list[str] = field(default_factory=list)

    @property
    def done(self) -> list[Heartbeat]:
        return [heartbeat for heartbeat in self.heartbeats if heartbeat.status == HeartbeatStatus.DONE]


class DemoRun:
    """Runs the demo's agents on a moved clock."""

    def __init__(self, clock: MovedClock, fleet: Fleet, session: psycopg.Connection[Any]) -> None:
        self._clock, self._fleet, self._session = clock, fleet, session
        self.agent_days = {
            agent.id: AgentDay(agent=agent)
            for demo in TENANTS
            for agent in _in_tenant(demo.slug, lambda: list(Agent.objects.order_by("name")))
        }

    def advance(self, span: timedelta) -> None:
        """Run due heartbeats until the span is over; maintenance runs each hour."""
        end, next_watch = self._clock.now() + span, self._clock.now()
        while (due := self._next_due()) < end:
            self._clock.advance_to(due)
            if self._clock.now() >= next_watch:
                next_watch = self._clock.now() + HOUR
                self._maintain()
                self._watch()
            self._fleet.dispatch()
            self._fleet.run()
        self._clock.advance_to(end)
        self._watch()

    def slow_down(self, interval_s: float) -> None:
        self._session.execute("UPDATE heartbeats_heartbeatschedule SET interval_s = %s", [interval_s])

    def finish(self) -> list[AgentDay]:
        """Return the days of all agents with their heartbeats, goals and insights."""
        for day in self.agent_days.values():
            agent_id = day.agent.id
            with tenant_transaction(day.agent.tenant_id):
                day.heartbeats = list(Heartbeat.objects.filter(agent_id=agent_id).order_by("started_at"))
                day.goals = list(Goal.objects.filter(agent_id=agent_id))
                sources = [f"heartbeat:{heartbeat.id}" for heartbeat in day.heartbeats]
                own = Memory.objects.filter(agent_id=agent_id, source__in=sources).exclude(
                    session="heartbeats"
                )
                day.insights = list(own.order_by("occurred_at").values_list("content", flat=True))
        return list(self.agent_days.values())

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
        for day in self.agent_days.values():
            with tenant_transaction(day.agent.tenant_id):
                state = AgentState.objects.get(agent_id=day.agent.id)
            day.notices += [(now, notice["kind"]) for notice in state.notices]
            states = read_drives(state.drives, now).states if state.drives else {}
            day.drives.append({name.value: drive.level for name, drive in states.items()})
            day.moods.append(state.mood.get("valence", 0.0))


def _in_tenant[T](slug: str, read: Callable[[], T]) -> T:
    with tenant_transaction(tenant_by_slug(slug).id):
        return read()


@pytest.fixture
def run(
    database: None, superuser: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[DemoRun]:
    """Return a run of the new demo, on a moved clock and with all messages executed in this process."""
    seed_builtin_templates()
    UserFactory.create(username="operator")
    with moved_clock(superuser, monkeypatch) as clock, a_fleet() as fleet:
        make_demo(operator="operator")
        fleet.messages.clear()
        yield DemoRun(clock, fleet, superuser)
    connections.close_all()


@pytest.mark.timeout(600)
def test_a_day_without_a_model_is_believable(run: DemoRun) -> None:
    run.advance(HOUR)
    if not FULL:
        run.slow_down(LATER)
    run.advance(DAY - HOUR)
    agent_days = run.finish()
    if STORY:
        Path(STORY).write_text("\n".join(map(_story, agent_days)), encoding="utf-8")
    for day in agent_days:
        name = day.agent.name
        assert Counter(kind for _, kind in day.notices) == {}, name
        assert {heartbeat.status for heartbeat in day.heartbeats} == {
            HeartbeatStatus.DONE,
            HeartbeatStatus.SKIPPED,
        }, name
        _assert_no_thought_twice(day)
        _assert_goals_are_bounded(day)
        _assert_energy_is_used_and_regained(day)
        assert -1 < min(day.moods) <= max(day.moods) < 0.9, name
    assert any(map(_finds_what_it_wondered_about, agent_days))
    # Curiosity rises while nothing happens, and falls when it is satisfied.
    curiosity = [[hour[Drive.CURIOSITY] for hour in day.drives if hour] for day in agent_days]
    assert any(later > before for levels in curiosity for before, later in itertools.pairwise(levels))
    assert all(min(levels[-3:]) < 0.8 for levels in curiosity)


def _assert_no_thought_twice(day: AgentDay) -> None:
    for texts in ([heartbeat.reasoning for heartbeat in day.done], day.insights):
        repeated = [text for text, times in Counter(filter(None, texts)).items() if times > 1]
        assert repeated == [], day.agent.name
    narratives = Counter(heartbeat.narrative.partition(". ")[2] for heartbeat in day.done)
    assert max(narratives.values()) == 1, day.agent.name


def _finds_what_it_wondered_about(day: AgentDay) -> bool:
    return any(_FOUND.search(heartbeat.reasoning) for heartbeat in day.done)


def _assert_goals_are_bounded(day: AgentDay) -> None:
    titles = Counter(goal.title for goal in day.goals)
    assert max(titles.values(), default=0) <= 1, day.agent.name
    assert len(day.goals) <= 8, day.agent.name
    waiting = [
        goal.title
        for goal in day.goals
        if goal.layer != GoalLayer.ASPIRATION and goal.state != GoalState.COMPLETED
    ]
    assert waiting == [], day.agent.name


def _assert_energy_is_used_and_regained(day: AgentDay) -> None:
    ends = [heartbeat.energy_end for heartbeat in day.done if heartbeat.energy_end is not None]
    starts = [heartbeat.energy_start for heartbeat in day.done if heartbeat.energy_start is not None]
    assert min(ends) < 16, day.agent.name
    assert starts[-1] > min(ends), day.agent.name


def _story(day: AgentDay) -> str:
    lines = [f"===== {day.agent.name} ({day.agent.template_name}), {len(day.heartbeats)} heartbeats"]
    first = day.heartbeats[0].started_at
    for heartbeat in day.done:
        acted = ", ".join(action["action"] for action in heartbeat.actions)
        minutes = (heartbeat.started_at - first) / timedelta(minutes=1)
        lines.append(
            f"{minutes:7.1f} {heartbeat.mode:15} {heartbeat.energy_start:g} → {heartbeat.energy_end:g} [{acted}] {heartbeat.reasoning}"
        )
    lines += [f"  goal {goal.state}: {goal.layer} {goal.title}" for goal in day.goals]
    lines += [f"  insight: {insight}" for insight in day.insights]
    lines += [f"  notice {at:%H:%M}: {kind}" for at, kind in day.notices]
    lines += [f"  drives {hour} mood {mood}" for hour, mood in zip(day.drives, day.moods, strict=True)]
    return "\n".join(lines)
