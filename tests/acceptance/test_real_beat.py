"""A whole heartbeat on a real language model: what it decides is recorded, what it gets wrong is handled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from apps import providers
from apps.agents.models import Agent, AgentState
from apps.agents.services.templates import add_template
from apps.fleet.contact import message_agent
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.goals.models import Goal
from apps.goals.services.backlogs import lock_backlog, save_backlog
from apps.heartbeats.models import ExternalCall, Heartbeat, HeartbeatStatus, LedgerEntry
from apps.heartbeats.services.schedule import claim_now
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.goals.values import GoalState
from arbor.heartbeat.focus import CONSOLIDATION_EVERY
from arbor.heartbeat.situation import Mode
from tests.acceptance.local_model import LocalModel
from tests.integration.heartbeats.fleet import a_fleet

pytestmark = pytest.mark.acceptance

# A short character and one action: a model of 270 million parameters writes some twenty tokens a second.
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
"""


@pytest.fixture
def real_model(local_model_server: LocalModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Point the installation's default model at the local server, as its settings would."""
    monkeypatch.setattr(providers.settings, "OPENAI_BASE_URL", local_model_server.base_url)
    monkeypatch.setattr(providers.settings, "ARBOR_DEFAULT_MODEL", local_model_server.handle)
    monkeypatch.setattr(providers.settings, "ARBOR_MODEL_MAX_TOKENS", 250)
    monkeypatch.setattr(providers.settings, "ARBOR_MODEL_DEADLINE_S", 60)
    for cached in (providers.credentials, providers.model_for):
        cached.cache_clear()
    yield local_model_server.handle
    for cached in (providers.credentials, providers.model_for):
        cached.cache_clear()


def _wait_for_an_answer(agent: Agent) -> None:
    message_agent(agent_id=agent.id, text="Are you calm today?", actor="test")


def _have_a_plan(agent: Agent) -> None:
    backlog = lock_backlog(agent.id, now=datetime.now(UTC))
    goal = Goal.objects.get(agent_id=agent.id, state=GoalState.ACTIVE)
    backlog.commit(goal.id, action="recall", description="Look for what calms")
    save_backlog(backlog)


def _have_lived_four_beats(agent: Agent) -> None:
    AgentState.objects.filter(agent_id=agent.id).update(beats=CONSOLIDATION_EVERY - 1)


def _want_nothing(agent: Agent) -> None:
    Goal.objects.filter(agent_id=agent.id).delete()


#: What an agent's life must be like for each mode.
_LIVES: dict[Mode, Callable[[Agent], None]] = {
    Mode.CONVERSATION: _wait_for_an_answer,
    Mode.CONSOLIDATION: _have_lived_four_beats,
    Mode.PLAN_EXECUTION: lambda _: None,
    Mode.GOAL_PURSUIT: _have_a_plan,
    Mode.REFLECTION: _want_nothing,
}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("mode", list(Mode))
def test_a_beat_of_each_mode_on_a_real_model_is_recorded_as_what_it_was(
    real_model: str, tenant: Tenant, mode: Mode
) -> None:
    with a_fleet() as fleet:
        with tenant_transaction(tenant.id):
            add_template(text=TEMPLATE, actor="test")
            agent = create_agent(name="Pebble", template_name="Pebble", actor="test")
            start_agent(agent_id=agent.id, actor="test")
            _LIVES[mode](agent)
            before = AgentState.objects.get(agent_id=agent.id)
            known = set(Memory.objects.filter(agent_id=agent.id).values_list("id", flat=True))
            claim_now(agent_id=agent.id)
        fleet.run()
    with tenant_transaction(tenant.id):
        beat = Heartbeat.objects.get(agent_id=agent.id)
        calls = list(ExternalCall.objects.filter(heartbeat_id=beat.id).order_by("requested_at"))
        ledger = list(LedgerEntry.objects.filter(agent_id=agent.id, error_kind=""))
        after = AgentState.objects.get(agent_id=agent.id)
        new = list(Memory.objects.filter(agent_id=agent.id).exclude(id__in=known))
    assert (beat.mode, beat.model) == (mode, real_model)
    replies = [call for call in calls if call.status == "complete"]
    assert [entry.output_tokens > 0 for entry in ledger] == [True] * len(replies)
    if beat.status == HeartbeatStatus.DONE:
        # Whatever stands in the record stood in the model's own words.
        said = [json.loads(call.reply) for call in replies if _is_json(call.reply)]
        assert all(reply["thinking"].strip() in beat.reasoning for reply in said)
        assert len(beat.actions) <= sum(len(reply["actions"]) for reply in said)
        assert after.beats == before.beats + 1
        assert new
        assert {memory.source for memory in new} == {f"heartbeat:{beat.id}"}
    else:
        # The reply was cut or unreadable, or the call failed: nothing was made up in its place.
        assert beat.reason
        assert (after.beats, after.energy) == (before.beats, before.energy)
        assert (new, beat.actions, beat.narrative) == ([], [], "")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
