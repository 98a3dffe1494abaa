"""Heartbeats of each mode on a real language model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from django.conf import settings

from apps import providers
from apps.agents.models import Agent, AgentState
from apps.agents.services.templates import add_template
from apps.calls.models import ExternalCall, LedgerEntry
from apps.default_model import credentials
from apps.fleet.contact import message_agent
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.goals.models import Goal
from apps.goals.services.backlogs import lock_backlog, save_backlog
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.schedule import claim_now
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.goals.plans import PlanDraft, StepDraft
from arbor.goals.values import GoalState
from arbor.heartbeat.focus import CONSOLIDATION_EVERY
from arbor.heartbeat.situation import Mode
from tests.acceptance.local_model import LocalModel
from tests.integration.heartbeats.fleet import a_fleet

pytestmark = pytest.mark.acceptance

# A short character, two actions, and a reply to copy: a model of 270 million parameters writes some twenty tokens a second,
# and without an example fills every list until its reply is cut off.
TEMPLATE = """---
name: Pebble
version: "1"
character:
  name: Pebble
  description: You are brief. You rest when you can.
values: [brevity]
initial_goals:
  - type: achieve
    description: Find out what calms you.
actions: [rest, recall]
---
## Instructions

- Answer in very few words.
- A good answer: {"thinking": "I am calm.", "actions": [{"action": "rest", "params": {}, "reasoning": "calm", "goal_id":
  null, "intent_id": null}], "memory_notes": [], "goal_updates": [], "new_goals": [], "concerns": [], "curiosity": []}
- Keep every further list of your answer empty, like this: []
"""

#: Heartbeats until one is completed; each of them asks the model up to three times, as in production.
HEARTBEATS = 3


@pytest.fixture
def real_model(local_model_server: LocalModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Point the installation's default model at the local server, as its settings would."""
    monkeypatch.setattr(settings, "OPENAI_BASE_URL", local_model_server.base_url)
    monkeypatch.setattr(settings, "ARBOR_DEFAULT_MODEL", local_model_server.handle)
    monkeypatch.setattr(settings, "ARBOR_MODEL_MAX_TOKENS", 250)
    monkeypatch.setattr(settings, "ARBOR_MODEL_DEADLINE_S", 60)
    for cached in (credentials, providers.model_for):
        cached.cache_clear()
    yield local_model_server.handle
    for cached in (credentials, providers.model_for):
        cached.cache_clear()


def _send_message(agent: Agent) -> None:
    message_agent(agent_id=agent.id, text="Are you calm today?", actor="test")


def _commit_to_a_goal(agent: Agent) -> None:
    backlog = lock_backlog(agent.id, now=datetime.now(UTC))
    goal = Goal.objects.get(agent_id=agent.id, state=GoalState.ACTIVE)
    backlog.plan(goal.id, PlanDraft(steps=[StepDraft(action="recall", description="Look for what calms")]))
    save_backlog(backlog)


def _make_consolidation_due(agent: Agent) -> None:
    AgentState.objects.filter(agent_id=agent.id).update(heartbeats=CONSOLIDATION_EVERY - 1)


def _delete_goals(agent: Agent) -> None:
    Goal.objects.filter(agent_id=agent.id).delete()


#: The functions that prepare an agent for a heartbeat of each mode.
_PREPARATIONS: dict[Mode, Callable[[Agent], None]] = {
    Mode.CONVERSATION: _send_message,
    Mode.CONSOLIDATION: _make_consolidation_due,
    Mode.PLAN_EXECUTION: lambda _: None,
    Mode.GOAL_PURSUIT: _commit_to_a_goal,
    Mode.REFLECTION: _delete_goals,
}


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """A heartbeat, its replies, and the agent's rows before and after."""

    heartbeat: Heartbeat
    replies: list[ExternalCall]
    ledger: list[LedgerEntry]
    before: AgentState
    after: AgentState
    new: list[Memory]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("mode", list(Mode))
def test_a_heartbeat_of_each_mode_completes_on_a_real_model(
    real_model: str, tenant: Tenant, mode: Mode
) -> None:
    with tenant_transaction(tenant.id):
        add_template(text=TEMPLATE, actor="test")
        agent = create_agent(name="Pebble", template_name="Pebble", actor="test")
        start_agent(agent_id=agent.id, actor="test")
        _PREPARATIONS[mode](agent)
    for _ in range(HEARTBEATS):
        outcome = _run_heartbeat(agent)
        heartbeat = outcome.heartbeat
        assert (heartbeat.mode, heartbeat.model) == (mode, real_model)
        assert [entry.output_tokens > 0 for entry in outcome.ledger] == [True] * len(outcome.replies)
        if heartbeat.status == HeartbeatStatus.DONE:
            break
        _assert_no_invented_effects(outcome)
    assert (heartbeat.status, heartbeat.reason) == (HeartbeatStatus.DONE, "")
    _assert_recorded_as_replied(outcome)


def _run_heartbeat(agent: Agent) -> _Outcome:
    """Run one heartbeat of an agent at once, to its end."""
    with a_fleet() as fleet:
        with tenant_transaction(agent.tenant_id):
            before = AgentState.objects.get(agent_id=agent.id)
            known = set(Memory.objects.filter(agent_id=agent.id).values_list("id", flat=True))
            claim_now(agent_id=agent.id)
        fleet.run()
    with tenant_transaction(agent.tenant_id):
        heartbeat = Heartbeat.objects.filter(agent_id=agent.id).latest("started_at")
        calls = ExternalCall.objects.filter(heartbeat_id=heartbeat.id).order_by("requested_at")
        return _Outcome(
            heartbeat=heartbeat,
            replies=[call for call in calls if call.status == "complete"],
            ledger=list(LedgerEntry.objects.filter(call_id__in=[call.id for call in calls], error_kind="")),
            before=before,
            after=AgentState.objects.get(agent_id=agent.id),
            new=list(Memory.objects.filter(agent_id=agent.id).exclude(id__in=known)),
        )


def _assert_recorded_as_replied(outcome: _Outcome) -> None:
    heartbeat = outcome.heartbeat
    replies = [json.loads(call.reply) for call in outcome.replies if _is_json(call.reply)]
    assert replies
    assert all(reply["thinking"].strip() in heartbeat.reasoning for reply in replies)
    assert len(heartbeat.actions) <= sum(len(reply["actions"]) for reply in replies)
    assert outcome.after.heartbeats == outcome.before.heartbeats + 1
    assert outcome.new
    assert {memory.source for memory in outcome.new} == {f"heartbeat:{heartbeat.id}"}


def _assert_no_invented_effects(outcome: _Outcome) -> None:
    """Check a heartbeat whose replies were cut off or unreadable, or whose call failed."""
    heartbeat, before, after = outcome.heartbeat, outcome.before, outcome.after
    assert heartbeat.reason
    assert (after.heartbeats, after.energy) == (before.heartbeats, before.energy)
    assert (outcome.new, heartbeat.actions, heartbeat.narrative) == ([], [], "")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
