"""A whole heartbeat on a real language model: what it decides is recorded, what it gets wrong is handled."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from apps import providers
from apps.agents.models import AgentState
from apps.agents.services.creation import create_agent
from apps.agents.services.lifecycle import start_agent
from apps.agents.services.templates import add_template
from apps.heartbeats.models import ExternalCall, Heartbeat, HeartbeatStatus, LedgerEntry
from apps.heartbeats.services.schedule import tick_now
from apps.memories.models import Memory
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
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
  - type: maintain
    description: Stay calm.
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


@pytest.mark.timeout(240)
def test_a_beat_on_a_real_model_is_recorded_as_what_it_was(real_model: str, tenant: Tenant) -> None:
    with a_fleet() as fleet:
        with tenant_transaction(tenant.id):
            add_template(text=TEMPLATE, actor="test")
            agent = create_agent(name="Pebble", template_name="Pebble", actor="test")
            start_agent(agent_id=agent.id, actor="test")
            known = Memory.objects.filter(agent_id=agent.id).count()
            tick_now(agent_id=agent.id)
        fleet.run()
    with tenant_transaction(tenant.id):
        beat = Heartbeat.objects.get(agent_id=agent.id)
        calls = list(ExternalCall.objects.filter(heartbeat_id=beat.id))
        ledger = list(LedgerEntry.objects.filter(agent_id=agent.id, error_kind=""))
        beats = AgentState.objects.get(agent_id=agent.id).beats
        remembered = Memory.objects.filter(agent_id=agent.id).count() - known
    assert beat.model == real_model
    replies = [call for call in calls if call.status == "complete"]
    assert [entry.output_tokens > 0 for entry in ledger] == [True] * len(replies)
    if beat.status == HeartbeatStatus.DONE:
        # Whatever stands in the record stood in the model's own words.
        said = json.loads(replies[-1].reply)
        assert beat.reasoning == said["thinking"].strip()
        assert len(beat.actions) <= len(said["actions"])
        assert (beats, remembered >= 1) == (1, True)
    else:
        # The reply was cut or unreadable, or the call failed: nothing was made up in its place.
        assert beat.reason
        assert (beats, remembered, beat.actions, beat.narrative) == (0, 0, [], "")
