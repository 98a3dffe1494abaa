"""Prompts of heartbeats that are cut to the window of their model, and their audit."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.reports.replay import read_recorded_heartbeat
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.clock import SystemClock
from arbor.heartbeat.replay import prompt_of
from arbor.heartbeat.situation import Situation
from arbor.memory.values import NewMemory
from tests.integration.heartbeats.conftest import (
    REST,
    heartbeats_of,
    replay_of,
    run_heartbeat,
    schedule_of,
)
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.unit.models.test_token_counts import WORDS


def cuts_of(agent: Agent) -> list[AuditEvent]:
    with tenant_transaction(agent.tenant_id):
        return list(AuditEvent.objects.filter(agent_id=agent.id, action=AuditAction.TRUNCATED))


def remember_much(agent: Agent) -> None:
    now = SystemClock().now()
    memories = [NewMemory(content=f"Day {n}: {'gulls ' * 180}", occurred_at=now) for n in range(12)]
    remember(tenant_id=agent.tenant_id, agent_id=agent.id, memories=memories)


def test_each_cut_of_a_prompt_is_audited(fleet: Fleet, agent: Agent, scripted: Script, settings: Any) -> None:
    scripted(REST, repeat=True)
    run_heartbeat(fleet, agent)
    assert cuts_of(agent) == []
    remember_much(agent)
    settings.ARBOR_MODEL_CONTEXT = 4_096

    heartbeat = run_heartbeat(fleet, agent)

    (cut,) = cuts_of(agent)
    assert cut.level == "warning"
    assert cut.actor == f"agent:{agent.public_id}"
    assert cut.message.startswith(f"the prompt of heartbeat {heartbeat.number} was cut to the window of ")
    assert cut.detail["heartbeat"] == str(heartbeat.id)
    assert cut.detail["window"] == 4_096
    sources = cut.detail["sources"]
    assert sources["recent"]["tokens"] > 200
    assert cut.detail["tokens"] == sum(source["tokens"] for source in sources.values())
    recorded = read_recorded_heartbeat(heartbeat_id=heartbeat.id, tenant_id=heartbeat.tenant_id).heartbeat
    sent, whole = prompt_of(recorded), prompt_of(replace(recorded, window=10**6))
    assert sent is not None
    assert whole is not None
    for name, source in sources.items():
        assert source["after"] == sent.sizes[name]
        # The note about entries that are not shown takes some tokens.
        assert source["before"] == pytest.approx(whole.sizes[name], abs=12)
        assert source["before"] - source["after"] == source["tokens"] > 0


def test_a_window_without_room_is_on_record_and_tried_less_often(
    fleet: Fleet, agent: Agent, scripted: Script, settings: Any
) -> None:
    model = scripted(REST, repeat=True)
    settings.ARBOR_MODEL_CONTEXT = 1_024
    waits = []
    for _ in range(3):
        heartbeat = run_heartbeat(fleet, agent)
        assert heartbeat.status == HeartbeatStatus.FAILED
        schedule = schedule_of(agent)
        # The agent's page shows it.
        assert schedule.last_error == heartbeat.reason
        assert heartbeat.reason.startswith(
            "ContextTooLarge: the window of scripted/model has about 1024 tokens"
        )
        waits.append((schedule.next_due_at - heartbeat.started_at) / timedelta(hours=1))
    assert waits == [pytest.approx(hours, rel=0.06) for hours in (2, 4, 8)]
    assert model.requests == []

    settings.ARBOR_MODEL_CONTEXT = 16_384
    assert run_heartbeat(fleet, agent).status == HeartbeatStatus.DONE
    schedule = schedule_of(agent)
    assert schedule.last_error == ""
    assert schedule.next_due_at - heartbeats_of(agent)[-1].started_at < timedelta(hours=1.1)


def test_a_tokenizer_counts_for_heartbeats_and_their_replays(
    fleet: Fleet, agent: Agent, scripted: Script, settings: Any, tmp_path: Path
) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(WORDS))
    settings.ARBOR_TOKENIZERS = {"openai": file, "scripted": file}
    settings.ARBOR_MODEL_CONTEXT = 4_096
    remember_much(agent)
    scripted(REST, repeat=True)

    heartbeat = run_heartbeat(fleet, agent)

    situation = Situation.model_validate(heartbeat.situation)
    assert situation.terms is not None
    assert situation.terms.tokenizer in ("openai", "scripted")
    assert replay_of(heartbeat).differences == []
