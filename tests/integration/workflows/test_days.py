"""Days of an agent that does a step of a scheduled workflow each morning, on a clock that is moved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connections

from apps.agents.models import Agent, Percept
from apps.goals.models import Goal
from apps.memories.models import BufferItem, Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.workflows.models import WorkflowRun
from apps.workflows.services.definitions import WorkflowSchedule
from apps.workflows.services.sweep import sweep_workflows
from arbor.models.ports import ModelRequest
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, action_of, reply_of, text_of
from tests.integration.workflows.workflow_setup import define_workflow
from tests.support.moved_clock import MovedClock, moved_clock

DAYS = 4
STEP = re.compile(r"complete_step, step ([0-9a-f-]{36})")


@pytest.fixture
def clock(superuser: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[MovedClock]:
    with moved_clock(superuser, monkeypatch) as moved:
        yield moved
    connections.close_all()


def answer(request: ModelRequest) -> str:
    """Answer each step that the goals name."""
    goals = text_of(request).partition("\n## Goals")[2].partition("\n## ")[0]
    steps = dict.fromkeys(STEP.findall(goals))
    return reply_of(*(action_of("complete_step", step=step, output="It is high.") for step in steps))


@pytest.mark.timeout(300)
def test_a_daily_step_leaves_nothing_behind(
    tenant: Tenant, fleet: Fleet, agent: Agent, scripted: Script, clock: MovedClock
) -> None:
    scripted(answer, repeat=True)
    define_workflow(
        tenant,
        'look [type=delegate, task="Look at the tide."]; start -> look -> done',
        agent=agent,
        schedule=WorkflowSchedule(cron="0 7 * * *"),
    )
    with tenant_transaction(tenant.id):
        before = set(Goal.objects.values_list("id", flat=True))
    for _ in range(DAYS * 4):
        clock.advance(timedelta(hours=6))
        sweep_workflows()
        fleet.run()
        fleet.dispatch()
        fleet.run()

    with tenant_transaction(tenant.id):
        runs = Counter(WorkflowRun.objects.values_list("status", flat=True))
        goals = Counter(Goal.objects.exclude(id__in=before).values_list("title", "state"))
        remembered = [
            *Memory.objects.values_list("content", flat=True),
            *BufferItem.objects.values_list("content", flat=True),
        ]
        contents = list(Percept.objects.values_list("content", flat=True))
    assert runs == {"succeeded": DAYS}
    assert goals == {("Do the step look of the workflow report", "completed"): DAYS}
    assert not STEP.search(" ".join(remembered))
    # The agent did the steps itself, so it is notified of the steps, and of nothing else.
    assert len(contents) == DAYS, contents
