"""Situations, traces, requests, replies and states as packed JSON, also migrated from jsonb."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.exceptions import FieldError
from psycopg.types.json import Jsonb

from apps.agents.models import Agent, AgentState
from apps.calls.models import ExternalCall
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.calls import questions
from apps.tenants.encoding import to_json_bytes
from apps.tenants.packing import pack, unpack
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch, insert_rows
from arbor.heartbeat.prompts.questions import request_of
from arbor.heartbeat.situation import Situation
from config.servers.postgres import EmbeddedPostgres
from tests.factories.heartbeats import HeartbeatFactory
from tests.integration.heartbeats.conftest import REST, last_heartbeat, run_heartbeat
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script

SITUATION: dict[str, Any] = {"energy_unit": "actions", "text": "“ä”\n" * 2000, "list": [1, 2.5, None]}


@pytest.fixture
def heartbeat(agent: Agent) -> Iterator[Heartbeat]:
    """Return a heartbeat with a situation and a trace, and run the test in a transaction of its tenant."""
    with tenant_transaction(agent.tenant_id):
        yield HeartbeatFactory(agent=agent, situation=SITUATION, trace=[{"sequence": 1}])


def test_a_situation_is_stored_compressed_and_read_unchanged(heartbeat: Heartbeat) -> None:
    assert Heartbeat.objects.get(id=heartbeat.id).situation == SITUATION
    ((stored,),) = fetch("SELECT situation FROM heartbeats_heartbeat WHERE id = %(id)s", id=heartbeat.id)
    assert len(stored) < 500


def test_a_list_is_appended_to(heartbeat: Heartbeat) -> None:
    statement = """
    UPDATE heartbeats_heartbeat SET trace = trace || %(steps)s::bytea WHERE tenant_id = %(tenant)s AND id = %(id)s
    """
    for number in (2, 3):
        change(statement, id=heartbeat.id, steps=pack([{"sequence": number}]))

    assert Heartbeat.objects.get(id=heartbeat.id).trace == [{"sequence": number} for number in (1, 2, 3)]


def test_rows_are_inserted_and_updated(heartbeat: Heartbeat, agent: Agent) -> None:
    slot_at = heartbeat.slot_at - timedelta(hours=1)
    new = HeartbeatFactory.build(agent=agent, tenant_id=agent.tenant_id, slot_at=slot_at, situation=SITUATION)
    insert_rows([new])
    Heartbeat.objects.filter(id=heartbeat.id).update(situation={})

    assert Heartbeat.objects.get(id=new.id).situation == SITUATION
    assert Heartbeat.objects.get(id=new.id).trace == new.trace
    assert Heartbeat.objects.get(id=heartbeat.id).situation == {}


def test_a_query_into_a_packed_column_is_refused(heartbeat: Heartbeat) -> None:
    with pytest.raises(FieldError, match="packed"):
        Heartbeat.objects.filter(situation__energy_unit="actions").exists()
    with pytest.raises(FieldError):
        Heartbeat.objects.filter(situation__contains={"list": []}).exists()


def test_a_request_is_stored_byte_for_byte(
    fleet: Fleet, agent: Agent, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed_values: list[bytes] = []

    def record_packed(value: Any) -> bytes:
        packed_values.append(pack(value))
        return packed_values[-1]

    monkeypatch.setattr(questions, "pack", record_packed)
    model = scripted(REST)
    run_heartbeat(fleet, agent)

    with tenant_transaction(agent.tenant_id):
        call = ExternalCall.objects.get(heartbeat_id=last_heartbeat(agent).id)
        ((stored,),) = fetch("SELECT request FROM calls_externalcall WHERE id = %(id)s", id=call.id)
    assert bytes(stored) == packed_values[0]
    assert to_json_bytes(request_of(call.request).to_json()) == to_json_bytes(model.requests[0].to_json())
    assert (
        Situation.model_validate(last_heartbeat(agent).situation).energy_unit
        == last_heartbeat(agent).energy_unit
        != ""
    )


def test_replies_and_states_are_stored_packed(fleet: Fleet, agent: Agent, scripted: Script) -> None:
    text = f"{REST}\n“ä”\t{'and so on, ' * 40}"
    scripted(text)
    run_heartbeat(fleet, agent)

    with tenant_transaction(agent.tenant_id):
        call = ExternalCall.objects.get(heartbeat_id=last_heartbeat(agent).id)
        state = AgentState.objects.get(agent_id=agent.id)
        ((reply,),) = fetch("SELECT reply FROM calls_externalcall WHERE id = %(id)s", id=call.id)
        ((*columns,),) = fetch(
            "SELECT drives, mood, learned FROM agents_agentstate WHERE agent_id = %(agent)s", agent=agent.id
        )
    assert call.reply == text
    assert len(reply) < len(text) / 3
    assert [unpack(column) for column in columns] == [state.drives, state.mood, state.learned]
    assert len(columns[0]) < len(to_json_bytes(state.drives)) / 2
    assert state.learned == {"rest": [1, 1]}


def test_an_update_of_a_call_does_not_log_its_request(superuser: psycopg.Connection[Any]) -> None:
    # An update logs all columns between the first and the last that change.
    columns = [
        name
        for (name,) in superuser.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'calls_externalcall'::regclass AND attnum > 0 ORDER BY attnum"
        )
    ]
    first_that_changes = columns.index("due_at")
    assert {"subject", "request", "sections"} <= set(columns[:first_that_changes])
    assert {"lease_until", "status", "reply", "ended_at"} <= set(columns[first_that_changes:])


def test_rows_of_an_older_version_are_read_and_appended_to(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.superuser_url) as session:
        session.execute("CREATE TEMP TABLE old (situation jsonb, trace jsonb)")
        session.execute("INSERT INTO old VALUES (%s, %s)", [Jsonb(SITUATION), Jsonb([{"sequence": 1}])])
        for column in ("situation", "trace"):
            session.execute(
                f"ALTER TABLE old ALTER {column} TYPE bytea USING '\\x00'::bytea || convert_to({column}::text, 'UTF8')"
            )
        session.execute("UPDATE old SET trace = trace || %s", [pack([{"sequence": 2, "node": "x" * 200}])])
        row = session.execute("SELECT situation, trace FROM old").fetchone()
    assert row is not None
    meta = Heartbeat._meta
    assert meta.get_field("situation").from_db_value(row[0], None, None) == SITUATION
    steps = meta.get_field("trace").from_db_value(row[1], None, None)
    assert [step["sequence"] for step in steps] == [1, 2]
