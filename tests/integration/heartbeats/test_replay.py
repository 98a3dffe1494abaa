"""Replays of recorded heartbeats: decided again, with the differences listed and no row written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.apps import apps
from django.db import connections
from django.db.utils import InternalError

from apps.agents.models import Agent
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.reports import replay as service
from apps.heartbeats.services.reports.replay import ask_other_model, read_recorded_heartbeat
from apps.tenants.models import TenantModel
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import Invalid, NotFound
from arbor.ids import uuid7
from arbor.models.ports import ScriptedModel
from tests.integration.heartbeats.conftest import heartbeats_of, replay_of, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script

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
def recorded(fleet: Fleet, agent: Agent, scripted: Script) -> Heartbeat:
    """Return a recorded heartbeat, whose first reply could not be read."""
    scripted("no json at all", REPLY)
    run_heartbeat(fleet, agent)
    return heartbeats_of(agent)[-1]


def count_rows(agent: Agent) -> dict[str, int]:
    """Count the rows of the agent's tenant, by model."""
    with tenant_transaction(agent.tenant_id):
        return {
            model._meta.label: model._default_manager.count()
            for model in apps.get_models()
            if issubclass(model, TenantModel) and not model._meta.abstract
        }


def change_record(heartbeat: Heartbeat, **values: Any) -> None:
    with tenant_transaction(heartbeat.tenant_id):
        Heartbeat.objects.filter(id=heartbeat.id).update(**values)


def test_a_replay_of_an_unchanged_heartbeat_has_no_differences(recorded: Heartbeat) -> None:
    replayed = replay_of(recorded)
    assert replayed.differences == []
    assert [(decision.action, decision.verdict.value) for decision in replayed.decisions] == [
        ("recall", "run"),
        ("fly", "unknown"),
        ("rest", "run"),
    ]
    assert any("could not be read" in note for note in replayed.notes)


def test_a_replay_shows_each_difference_and_its_place(recorded: Heartbeat) -> None:
    situation = {**recorded.situation, "name": "Somebody else"}
    actions = [{**recorded.actions[0], "verdict": "too_little_energy"}, *recorded.actions[1:]]
    change_record(recorded, situation=situation, actions=actions, repairs=["mended"])
    differences = {difference.where: difference for difference in replay_of(recorded).differences}
    assert set(differences) == {"prompt: timing", "action 1: verdict", "repairs"}
    assert "+" in differences["prompt: timing"].diff
    assert (differences["action 1: verdict"].recorded, differences["action 1: verdict"].replayed) == (
        "too_little_energy",
        "run",
    )


def test_a_record_of_another_version_is_refused(recorded: Heartbeat) -> None:
    change_record(recorded, situation={**recorded.situation, "energy": "plenty"})
    with pytest.raises(Invalid, match=r"recorded by another version of Arbor.*energy.*; 1 fault\)"):
        replay_of(recorded)


def test_another_energy_decides_otherwise(recorded: Heartbeat) -> None:
    change_record(recorded, situation={**recorded.situation, "energy": 0.0})
    where = [difference.where for difference in replay_of(recorded).differences]
    assert "action 1: verdict" in where


def test_a_replay_is_read_only(recorded: Heartbeat, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    before = count_rows(agent)
    other = ScriptedModel(json.dumps({"actions": [{"action": "rest", "params": {}}]}))
    monkeypatch.setattr(service, "model_for", lambda _handle: other)
    recording = read_recorded_heartbeat(heartbeat_id=recorded.id, tenant_id=recorded.tenant_id)
    answer = ask_other_model(recording, model="openai/other")
    assert [decision.action for decision in answer.decisions] == ["rest"]
    assert other.requests[0].messages[0].content == recording.request.messages[0].content  # type: ignore[union-attr]
    assert count_rows(agent) == before
    with pytest.raises(InternalError, match="read-only"), tenant_transaction(agent.tenant_id):  # noqa: PT012
        service._set_read_only()
        with connections[APP].cursor() as cursor:
            cursor.execute("UPDATE agents_agentstate SET nops = 0 WHERE tenant_id = %s", [agent.tenant_id])


def test_the_reflex_policy_can_replace_the_model(recorded: Heartbeat) -> None:
    recording = read_recorded_heartbeat(heartbeat_id=recorded.id, tenant_id=recorded.tenant_id)
    assert ask_other_model(recording, model="reflex/default").decisions


def test_an_incomplete_record_is_refused_with_the_reason(recorded: Heartbeat) -> None:
    change_record(recorded, situation={**recorded.situation, "terms": None})
    with pytest.raises(Invalid, match="did not record its terms"):
        replay_of(recorded)
    change_record(recorded, situation={}, status="skipped", reason="idle: nothing waits")
    with pytest.raises(Invalid, match="skipped: idle: nothing waits"):
        replay_of(recorded)
    with pytest.raises(NotFound):
        read_recorded_heartbeat(heartbeat_id=uuid7(), tenant_id=recorded.tenant_id)
