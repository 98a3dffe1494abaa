"""A recorded beat decided again: the same, or what differs; nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db import connections
from django.db.utils import InternalError

from apps.agents.models import Agent
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services import replay as service
from apps.heartbeats.services.replay import ask_other_model, read_recorded_heartbeat
from apps.tenants.models import TenantModel
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import Invalid, NotFound
from arbor.heartbeat.replay import Replay, replay
from arbor.ids import uuid7
from arbor.models.ports import ScriptedModel
from tests.integration.heartbeats.conftest import beats_of, make_due
from tests.integration.heartbeats.fleet import Fleet

REPLY = json.dumps(
    {
        "thinking": "The harbour first.",
        "actions": [
            {"action": "recall", "params": {"query": "harbour"}, "reasoning": "to begin with"},
            {"action": "fly", "params": {}},
            {"action": "rest", "params": {}},
        ],
        "memory_notes": [{"text": "The harbour opens at six."}, {"text": ""}],
    }
)


@pytest.fixture
def beaten(fleet: Fleet, agent: Agent, scripted: Callable[..., ScriptedModel]) -> Heartbeat:
    scripted("no json at all", REPLY)
    make_due(agent)
    fleet.dispatch()
    fleet.run()
    return beats_of(agent)[-1]


def again(beat: Heartbeat) -> Replay:
    return replay(read_recorded_heartbeat(heartbeat_id=beat.id, tenant_id=beat.tenant_id).beat)


def rows(agent: Agent) -> dict[str, int]:
    with tenant_transaction(agent.tenant_id):
        return {
            model._meta.label: model._default_manager.count()
            for model in apps.get_models()
            if issubclass(model, TenantModel) and not model._meta.abstract
        }


def change(beat: Heartbeat, **values: Any) -> None:
    with tenant_transaction(beat.tenant_id):
        Heartbeat.objects.filter(id=beat.id).update(**values)


def test_a_beat_that_is_replayed_comes_out_the_same(beaten: Heartbeat) -> None:
    made = again(beaten)
    assert made.differences == []
    assert [(decision.action, decision.verdict.value) for decision in made.decisions] == [
        ("recall", "run"),
        ("fly", "unknown"),
        ("rest", "run"),
    ]
    assert any("could not be read" in note for note in made.notes)


def test_what_differs_is_shown_where_it_does(beaten: Heartbeat) -> None:
    situation = {**beaten.situation, "name": "Somebody else"}
    actions = [{**beaten.actions[0], "verdict": "too_little_energy"}, *beaten.actions[1:]]
    change(beaten, situation=situation, actions=actions, repairs=["mended"])
    found = {difference.where: difference for difference in again(beaten).differences}
    assert set(found) == {"prompt: timing", "action 1: verdict", "repairs"}
    assert "+" in found["prompt: timing"].diff
    assert (found["action 1: verdict"].recorded, found["action 1: verdict"].replayed) == (
        "too_little_energy",
        "run",
    )


def test_another_energy_decides_otherwise(beaten: Heartbeat) -> None:
    change(beaten, situation={**beaten.situation, "energy": 0.0})
    where = [difference.where for difference in again(beaten).differences]
    assert "action 1: verdict" in where


def test_it_writes_nothing_and_could_not(
    beaten: Heartbeat, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(agent)
    other = ScriptedModel(json.dumps({"actions": [{"action": "rest", "params": {}}]}))
    monkeypatch.setattr(service, "model_for", lambda _handle: other)
    found = read_recorded_heartbeat(heartbeat_id=beaten.id, tenant_id=beaten.tenant_id)
    asked = ask_other_model(found, model="openai/other")
    assert [decision.action for decision in asked.decisions] == ["rest"]
    assert other.requests[0].messages[0].content == found.request.messages[0].content  # type: ignore[union-attr]
    assert rows(agent) == before
    with pytest.raises(InternalError, match="read-only"), tenant_transaction(agent.tenant_id):  # noqa: PT012
        service._read_only()
        with connections[APP].cursor() as cursor:
            cursor.execute("UPDATE agents_agentstate SET nops = 0 WHERE tenant_id = %s", [agent.tenant_id])


def test_reflex_can_be_asked_in_another_models_place(beaten: Heartbeat) -> None:
    found = read_recorded_heartbeat(heartbeat_id=beaten.id, tenant_id=beaten.tenant_id)
    assert ask_other_model(found, model="reflex/default").decisions


def test_a_beat_that_kept_too_little_says_so(beaten: Heartbeat) -> None:
    change(beaten, situation={**beaten.situation, "terms": None})
    with pytest.raises(Invalid, match="did not record its terms"):
        again(beaten)
    change(beaten, situation={}, status="skipped", reason="idle: nothing waits")
    with pytest.raises(Invalid, match="skipped: idle: nothing waits"):
        again(beaten)
    with pytest.raises(NotFound):
        read_recorded_heartbeat(heartbeat_id=uuid7(), tenant_id=beaten.tenant_id)
