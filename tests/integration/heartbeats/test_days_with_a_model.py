"""Days of an agent whose language model always has the same thought, on a clock that is moved: what grows, repeats or gets lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connections
from django.db.models import Sum

from apps.agents.models import Agent, Percept
from apps.calls.models import DailyUsage
from apps.fleet.contact import message_agent
from apps.goals.models import Goal
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.memories.models import Cluster
from apps.tenants.scope import tenant_transaction
from arbor.models.ports import ModelRequest
from tests.integration.heartbeats.conftest import state_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, store_fact, text_of
from tests.support.maintenance import JOBS
from tests.support.moved_clock import MovedClock, moved_clock

HOUR = timedelta(hours=1)
DAYS = 4
#: Hours between two rounds of maintenance.
MAINTAINED_EVERY = 8
CRANE = "The harbour crane is the key to everything."
FACT = "The harbour crane was built in 1904 by the brothers Falk."
QUESTION = "What do you know about the harbour crane?"


@pytest.fixture
def clock(superuser: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[MovedClock]:
    with moved_clock(superuser, monkeypatch) as moved:
        yield moved
    connections.close_all()


def answer(request: ModelRequest) -> str:
    """Return the same decision at each heartbeat."""
    if len(request.messages) > 1:
        return json.dumps({"thinking": "The crane.", "actions": []})
    goal = re.search(r"^\[(\S+)\] .* \(active", text_of(request).partition("## Goals")[2], re.MULTILINE)
    return json.dumps(
        {
            "thinking": "I must think of the harbour crane.",
            "actions": [
                {"action": "recall", "params": {"query": "harbour crane"}},
                {"action": "reflect", "params": {"insight": CRANE}},
            ],
            "memory_notes": [{"text": CRANE}],
            "goal_updates": [{"goal_id": goal[1], "note": "Still the crane."}] if goal else [],
            "new_goals": [{"title": "Understand the harbour crane"}],
            "concerns": ["Nobody looks at the crane."],
            "curiosity": ["What is the crane for?"],
        }
    )


def section(prompt: str, heading: str) -> str:
    return prompt.partition(f"\n## {heading}")[2].partition("\n## ")[0]


def live(fleet: Fleet, clock: MovedClock, hours: int) -> None:
    """Run the hourly heartbeats, and maintenance between them."""
    for hour in range(hours):
        clock.advance(HOUR)
        fleet.dispatch()
        fleet.run()
        if hour % MAINTAINED_EVERY == 0:
            for job in JOBS:
                job()
                fleet.run()


@pytest.mark.timeout(600)
def test_a_mind_with_one_thought_stays_tidy_for_days(
    fleet: Fleet, agent: Agent, scripted: Script, clock: MovedClock
) -> None:
    store_fact(agent, FACT)
    model = scripted(answer, repeat=True)
    live(fleet, clock, 24)
    with tenant_transaction(agent.tenant_id):
        message_agent(agent_id=agent.id, text=QUESTION, actor="user:nora")
    live(fleet, clock, 24 * (DAYS - 1))

    prompts = [text_of(request) for request in model.requests if len(request.messages) == 1]
    assert sum(QUESTION in section(prompt, "What reached you") for prompt in prompts) == 1
    last = prompts[-1]
    thoughts = re.findall(r"^thought at [-\d]+ [:\d]+: (.*)", last, re.MULTILINE)
    assert max(Counter(thoughts).values()) == 1, thoughts
    for heading in ("What you have learned from acting", "Goals", "Recent experience"):
        lines = [re.sub(r"\d+", "", line) for line in section(last, heading).splitlines() if line]
        assert max(Counter(lines).values()) == 1, heading
    # The narrative of the last heartbeat appears once, and facts are recalled beside narratives.
    (number,) = re.findall(r"## Last heartbeat \((\d+)", last)
    assert last.count(f"Heartbeat {number}.") == 1
    assert FACT in section(last, "Memories that may matter now")
    _assert_figures_agree(agent, heartbeats=len(prompts))


def _assert_figures_agree(agent: Agent, *, heartbeats: int) -> None:
    state = state_of(agent)
    with tenant_transaction(agent.tenant_id):
        rows = Heartbeat.objects.filter(agent_id=agent.id)
        reasons = {row.status: row.reason for row in rows}
        assert reasons.keys() <= {HeartbeatStatus.DONE, HeartbeatStatus.SKIPPED}, reasons
        done = rows.filter(status=HeartbeatStatus.DONE)
        assert all(row.energy_end is not None and 0 <= row.energy_end <= 20 for row in done)
        used = DailyUsage.objects.filter(agent_id=agent.id).aggregate(heartbeats=Sum("heartbeats"))[
            "heartbeats"
        ]
        assert state.heartbeats == used == done.count() == heartbeats
        assert not Percept.objects.filter(agent_id=agent.id, heartbeat_id__isnull=True).exists()
        titles = Counter(Goal.objects.filter(agent_id=agent.id).values_list("title", flat=True))
        assert max(titles.values()) == 1
        names = " ".join(Cluster.objects.filter(agent_id=agent.id).values_list("name", flat=True))
        assert not re.search("energy|heartbeat|spent", names)
